"""Every row of the OpenAI table, sync and async: recorded over HTTP, replayed without server and key.

With MATRIX_TABLE set to a folder, cassettes and results are left there: the matrix makes its table of them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from adapters.openai_table import ROWS, Kind, Row, here, record, replay

import stepfork

ids = [f"{row.group}-{row.name}-{kind}" for row, kind in here()]
results: dict[str, dict[str, str]] = {row.title: {} for row in ROWS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the cassettes go; afterwards the table stands there too."""
    chosen = os.environ.get("MATRIX_TABLE")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("table")
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    told = {"openai": openai.__version__, "python": python, "rows": results}
    (folder / "table.json").write_text(json.dumps(told, indent=1), "utf-8")


@pytest.mark.parametrize(("row", "kind"), here(), ids=ids)
def test_row(row: Row, kind: Kind, folder: Path) -> None:
    path = folder / f"{row.group}.{row.name}.{kind}.yaml"
    results[row.title][kind] = "failed"
    if row.refused:
        with pytest.raises(stepfork.UnsupportedCallError, match="websocket"):
            record(row, kind, path)
        record(ROWS[0], kind, path)
        with pytest.raises(stepfork.UnsupportedCallError, match="websocket"):
            replay(row, kind, path)
        path.unlink()
    else:
        recorded = record(row, kind, path)
        assert stepfork.load(path).status == "completed"
        for _ in range(2):
            assert replay(row, kind, path) == recorded
    results[row.title][kind] = "passed"
    print(f"{row.title} ({kind}): passed")


def test_the_table_has_every_row_once() -> None:
    titles = [row.title for row in ROWS]
    assert len(set(titles)) == len(titles)
    assert {row.title for row, _ in here()} <= set(titles)
