"""A tool that is asked for numbers, and what a recording of it says: for tests of files and places."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import stepfork

TOOLS = "bodies = []\ndef look(n):\n    bodies.append(n)\n    return [n, 'x' * n]\n"


def record(path: Path, tools: ModuleType, *sizes: int) -> None:
    """Records a look at each size."""
    with stepfork.record(path):
        for n in sizes:
            assert tools.look(n) == [n, "x" * n]


def asked(path: Path) -> list[int]:
    """The sizes that a cassette has."""
    return [call.args["n"] for call in stepfork.load(path).calls]
