"""docs/values.md against what it tells of: each tag is named there, its examples read and are written so."""

from __future__ import annotations

import re

import pytest
from support.servers import ROOT

from stepfork.cassette.reader import parse_document
from stepfork.cassette.values import TAGS, checks
from stepfork.core.model import Tagged

PAGE = (ROOT / "docs" / "values.md").read_text("utf-8")
KIN = {
    "bytearray",
    "http-request",
    "memoryview",
    "frozenset",
    "date",
    "time",
    "posix-path",
    "windows-path",
    "namespace",
    "series",
    "ip-interface",
}
"""Tags that are spelled like the one the page shows for their row."""
INNER = {"multipart"}


def test_every_tag_is_on_the_page() -> None:
    shown = set(re.findall(r"`!([a-z-]+)", PAGE))
    assert shown | KIN | INNER == TAGS


@pytest.mark.parametrize(
    "text", [text for text in re.findall(r"`(![^`]+)`", PAGE) if " " in text and "..." not in text]
)
def test_every_example_reads(text: str) -> None:
    value = parse_document(f"v: {text}\n", known_tags=TAGS)["v"]
    assert isinstance(value, Tagged)
    checks().decode(value)


def test_the_example_of_an_error_reads() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    error = parse_document(text, known_tags=TAGS)["error"]
    checks().decode(Tagged("exception", error))
