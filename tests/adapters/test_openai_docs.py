"""docs/openai.md shows the table as it is: all rows, the versions of the matrix, nothing that fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.openai_table import ROWS, Row

DOCS = Path(__file__).resolve().parents[2] / "docs" / "openai.md"
HINT = "run 'make matrix-docs'"


@pytest.fixture(scope="module")
def table() -> list[list[str]]:
    lines = [line for line in DOCS.read_text("utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_it_has_the_oldest_and_newest_of_each_major_version(table: list[list[str]]) -> None:
    versions = [head.split(", ")[0] for head in table[0][1:]]
    pythons = {head.split(", ")[1] for head in table[0][1:]}
    first, second, third = (
        [version for version in dict.fromkeys(versions) if version.startswith(major)]
        for major in ("1.", "2.", "3.")
    )
    assert (first[0], second[0], third[0]) == ("1.40.0", "2.0.0", "3.0.0"), HINT
    assert [len(first), len(second), len(third)] == [2, 2, 2], HINT
    assert pythons == {"3.11", "3.12", "3.13"}, HINT


def test_it_has_every_row_and_what_each_version_has_of_it(table: list[list[str]]) -> None:
    versions = [tuple(int(part) for part in head.split(".")[:2]) for head in table[0][1:]]
    expected = [[row.title, *(cell(row, version) for version in versions)] for row in ROWS]
    assert table[2:] == expected, HINT


def cell(row: Row, version: tuple[int, ...]) -> str:
    if not row.is_there(version):
        return "-"
    return "both" if len(row.kinds) == 2 else row.kinds[0]
