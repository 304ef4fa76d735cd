"""Replays, on this version of the SDK, the cassettes that the table's rows left on other versions.

    python tests/matrix/cross.py OWN OTHER...    folders that the adapter tests wrote

What an agent sees must be what it sees with the cassette recorded here; of that the table's test has proven
that it is what the agent saw live.
"""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path
from typing import Any

from adapters.openai_table import Kind, Row, here, replay


def main(own: Path, others: list[Path]) -> int:
    for name in ("load_verify_locations", "load_default_certs", "set_default_verify_paths"):
        setattr(ssl.SSLContext, name, lambda *_, **__: None)  # no TLS here, and it takes its time
    failures = replayed = 0
    for row, kind in here():
        if row.refused:
            continue
        expected = replay(row, kind, own / file_of(row, kind))
        for other in others:
            cassette = other / file_of(row, kind)
            if cassette.exists():
                problem = differs(row, kind, cassette, expected)
                replayed += 1
                if problem:
                    failures += 1
                    version = json.loads((other / "table.json").read_text("utf-8"))["openai"]
                    print(f"{row.group}: {row.name}, {kind}, recorded on {version}: {problem}")
    print(f"{replayed} cassettes replayed, {failures} of them differ")
    return int(failures > 0)


def file_of(row: Row, kind: Kind) -> str:
    return f"{row.group}.{row.name}.{kind}.yaml"


def differs(row: Row, kind: Kind, cassette: Path, expected: Any) -> str:
    """What is different with this cassette; nothing if the agent sees the same."""
    try:
        found = replay(row, kind, cassette)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if found == expected else f"expected {expected!r}, got {found!r}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(other) for other in sys.argv[2:]]))
