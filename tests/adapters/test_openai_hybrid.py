"""Every row of the OpenAI table in mode ``hybrid``: made live, as while recording; the cassette stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.openai_table import Kind, Row, here, hybrid, record

import stepfork

ROWS = [(row, kind) for row, kind in here() if not row.refused]


@pytest.mark.parametrize(("row", "kind"), ROWS, ids=[f"{row.group}-{row.name}-{kind}" for row, kind in ROWS])
def test_row_is_live(row: Row, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    recorded = record(row, kind, path)
    before = path.read_bytes()
    saw, run, hits = hybrid(row, kind, path)
    assert saw == recorded
    calls = [call for call in stepfork.load(path).calls if call.kind == "llm"]
    assert run.counts.live == len(calls)
    assert len(run.live_calls) == len(calls)
    assert run.spending.requests >= min(hits, len(calls))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
