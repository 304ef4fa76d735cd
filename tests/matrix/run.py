"""The matrix: the adapter tests on every environment, cassettes of each replayed on all others, the table.

On every Python but that of `make test` also the tests of threads, tasks and pools.

python tests/matrix/run.py           run everything; print the table; fail if anything fails
python tests/matrix/run.py --docs    and write the table into docs/openai.md
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from environments import HERE, NEWEST, ROOT, Environment, attempt, environments

DOCS = ROOT / "docs" / "openai.md"
CONCURRENCY = [  # and tests/adapters/test_strands.py, which runs with the adapters
    "tests/core/test_order.py",
    "tests/session/test_order_of_calls.py",
    "tests/session/test_fork_join.py",
]
BEGIN, END = "<!-- table: make matrix-docs -->", "<!-- end of table -->"


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--docs", action="store_true", help="write the table into docs/openai.md")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = options.parse_args()
    columns, missing = environments()
    for version in missing:
        print(f"Python {version} was not found: it is left out")
    started = time.monotonic()

    def every(what: str, do: Callable[[Environment], Any]) -> list[Any]:
        print(f"{what} ({time.monotonic() - started:.0f} s)", flush=True)
        with ThreadPoolExecutor(args.jobs) as pool:
            return list(pool.map(do, columns))

    every("installing", Environment.make)
    tested = every("testing", tests)
    ordered = every("testing threads, tasks and pools", concurrency)
    crossed = every("replaying the cassettes of the others", lambda column: cross(column, columns))
    text = table([results(column) for column in columns])
    print(text)
    if args.docs:
        write_docs(text)
    failed = False
    for column, *passed in zip(columns, tested, ordered, crossed, strict=True):
        for what, well in zip(("tests", "concurrency", "cross"), passed, strict=True):
            if not well:
                failed = True
                print(f"\n== {column.name}: {what} failed")
                print("\n".join((column.folder / f"{what}.log").read_text("utf-8").splitlines()[-25:]))
    print(f"{len(columns)} environments, {time.monotonic() - started:.0f} s: {'FAILED' if failed else 'ok'}")
    return int(failed)


def tests(column: Environment) -> bool:
    """Runs the adapter tests; they leave a table and their cassettes."""
    shutil.rmtree(column.folder / "table", ignore_errors=True)
    # one of them is about what comes out of this
    which = ["tests/adapters", "--ignore", "tests/adapters/test_openai_docs.py"]
    return pytest(column, "tests", which, MATRIX_TABLE=str(column.folder / "table"))


def concurrency(column: Environment) -> bool:
    """Runs the tests of threads, tasks and pools, once for each Python that `make test` leaves out."""
    if column.python == HERE or column.sdk != NEWEST:
        return True
    return pytest(column, "concurrency", CONCURRENCY)


def pytest(column: Environment, what: str, which: Sequence[str], **variables: str) -> bool:
    """Runs some tests; the log has the name of what they are."""
    log = column.folder / f"{what}.log"
    log.unlink(missing_ok=True)
    command = [str(column.own), "-m", "pytest", *which, "-q", "-p", "no:cacheprovider"]
    return attempt(command, log, **variables)


def cross(column: Environment, columns: Sequence[Environment]) -> bool:
    """Replays what the other versions of the SDK recorded, and this one on another Python."""
    log = column.folder / "cross.log"
    log.unlink(missing_ok=True)
    base = columns[0].python
    others = [
        str(other.folder / "table") for other in columns if other is not column and other.python == base
    ]
    command = [str(column.own), "tests/matrix/cross.py", str(column.folder / "table"), *others]
    return attempt(command, log, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "tests")]))


def results(column: Environment) -> dict[str, Any]:
    """What the tests left: versions, and each row's result for each sort of client."""
    try:
        told: dict[str, Any] = json.loads((column.folder / "table" / "table.json").read_text("utf-8"))
    except OSError:
        told = {"openai": f"{column.sdk}?", "python": column.python, "rows": {}}
    return told


def table(columns: Sequence[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    rows: dict[str, None] = {}
    for column in columns:
        rows.update(dict.fromkeys(column["rows"]))
    heads = [f"{column['openai']}, {column['python']}" for column in columns]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [
        f"| {row} | {' | '.join(cell(column['rows'].get(row)) for column in columns)} |" for row in rows
    ]
    return "\n".join(lines)


def cell(kinds: dict[str, str] | None) -> str:
    """One result: ``both``, ``sync`` or ``async``; ``-`` where this version has no such thing."""
    if not kinds:
        return "-"
    if set(kinds.values()) != {"passed"}:
        return "**fails**"
    return "both" if len(kinds) == 2 else next(iter(kinds))


def write_docs(text: str) -> None:
    """Puts the table between its marks."""
    before, _, rest = DOCS.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCS.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
