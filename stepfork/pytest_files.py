"""Which files in a cassette folder are cassettes, of what, and which a renamed test had. Knows no session.

Other tools keep files of theirs in folders of the same name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

_NOT_ONE: Final = re.compile(r"\.(failed|partial(\.\d+)?)\.yaml\Z")
_OF_FIXTURE: Final = re.compile(r"(function|class|module|package|session)\.")


def is_of_fixture(path: Path) -> bool:
    """Whether a cassette has the name of a fixture's."""
    return bool(_OF_FIXTURE.match(path.name))


def is_cassette(path: Path) -> bool:
    """Whether a file is one of ours, and no leftover of a recording."""
    if _NOT_ONE.search(path.name):
        return False
    try:
        with path.open("rb") as file:
            return file.read(10) == b"stepfork: "
    except OSError:
        return False


def cassettes_of_tests(folder: Path, used: Collection[Path]) -> list[Path]:
    """The cassettes right in a folder that are no fixture's and none of `used`."""
    if not folder.is_dir():
        return []
    there = (path for path in sorted(folder.glob("*.yaml")) if path not in used and not is_of_fixture(path))
    return [path for path in there if is_cassette(path)]


def of_renamed(path: Path, free: list[Path], *, only: bool = True) -> Path | None:
    """Which of the files that nothing uses was that of a missing one: the one with a similar name.

    Else the `only` one that there is.
    """
    close = difflib.get_close_matches(path.name, [other.name for other in free], 1, 0.8)
    if close:
        return path.with_name(close[0])
    return free[0] if only and len(free) == 1 else None
