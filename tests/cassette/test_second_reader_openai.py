"""Whatever the OpenAI SDK was answered, the reader written from docs/cassette-format.md reads it alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.openai_table import Row, here, record
from support.readers_agree import readers_agree

PLAYED = [row for row, kind in here() if kind == "sync" and not row.refused]


@pytest.mark.parametrize("row", PLAYED, ids=[f"{row.group}-{row.name}" for row in PLAYED])
def test_row(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    record(row, "sync", path)
    assert readers_agree(path)["calls"]
