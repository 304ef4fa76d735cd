"""docs/cassette-format.md: its examples are read, by two readers, and say what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import second_reader
from support.readers_agree import first_reader, readers_agree
from support.second_reader_stream import json_text, stream_bytes
from support.servers import ROOT

import stepfork
from stepfork.cassette import frame, json_style, question, schema, stream, tool_fields
from stepfork.cassette.check import faults_of
from stepfork.cassette.reader import parse_document
from stepfork.cassette.stream.decode import _FIELDS
from stepfork.cassette.stream.leaves import BESIDE, SAID
from stepfork.cassette.values import TAGS

PAGE = (ROOT / "docs" / "cassette-format.md").read_text("utf-8")
BLOCKS: list[str] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CALLS = [block for block in BLOCKS if block.startswith(("tool:", "llm:"))]
STREAMS = re.findall(r"```yaml\n(text:.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
FIRST = """\
llm: chat.completions
request: {model: m, tool_choice: auto, config: {}, messages: [1, 2, 3]}
response: {}
"""


def opened(path: Path, *documents: str) -> Path:
    path.write_text("---\n".join(["stepfork: 1\nname: x\n", *documents, "end: completed\n"]), "utf-8")
    return path


def test_the_first_example_is_a_cassette(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(BLOCKS[0], "utf-8")
    read = readers_agree(path)
    assert read["end"]["checksum"] == "ok"
    assert [call["name"] for call in read["calls"]] == ["count_stock", "chat.completions"]


@pytest.mark.parametrize("block", CALLS, ids=[block.partition("\n")[0] for block in CALLS])
def test_every_call_on_the_page_reads(tmp_path: Path, block: str) -> None:
    path = opened(tmp_path / "run.yaml", FIRST, block)
    assert faults_of(path)[1] == []
    assert stepfork.load(path).calls
    readers_agree(path)


def test_the_request_of_the_example_that_extends(tmp_path: Path) -> None:
    (block,) = [block for block in CALLS if "extends: 1" in block]
    calls = readers_agree(opened(tmp_path / "run.yaml", FIRST, block))["calls"]
    assert calls[1]["asked"] == {
        "model": "m",
        "config": {"stop": ["end"]},
        "messages": [1, {"role": "user", "content": "And then?"}],
        "temperature": 0.5,
    }


@pytest.mark.parametrize(("told", "raw"), STREAMS)
def test_the_streams_of_the_examples(told: str, raw: str) -> None:
    read = parse_document(told)
    assert stream.decode(read) == raw.encode()
    assert stream_bytes(second_reader.parse(told)) == raw.encode()


def test_the_first_stream_is_what_is_written_for_its_bytes() -> None:
    told, raw = STREAMS[0]
    assert stream.encode(raw.encode()) == parse_document(told)


def test_the_partial_file(tmp_path: Path) -> None:
    (block,) = [block for block in BLOCKS if block.startswith("start:")]
    path = tmp_path / "run.partial.yaml"
    path.write_text(
        "---\n".join(["stepfork: 1\nname: x\n", block, "start: 0\ntool: outer\nresult: 1\n", "tool"])
    )
    told, own = second_reader.read(path)["calls"], first_reader(path)["calls"]
    assert [call["name"] for call in told] == [call["name"] for call in own] == ["outer", "look_up"]


def test_every_field_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_0-9]+)`", PAGE))
    known = {
        *frame._HEADER,
        *frame._END,
        *schema._LLM,
        *schema._SAYS,
        *schema._COMMON,
        *question.FIELDS,
        *tool_fields.FIELDS,
    }
    known |= {
        *tool_fields._STEP,
        *SAID,
        *BESIDE,
        *_FIELDS,
    }
    assert known - named == set()


def test_every_tag_is_in_the_table() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE.partition("\n## Tags\n")[2], re.MULTILINE)
    listed = re.findall(r"`([a-z-]+)`", " ".join(rows))
    assert {*listed} - {"start", "parent", "line", "lines"} == {*TAGS, "shared"}
    assert len(listed) == len({*listed})


@pytest.mark.parametrize("style", json_style.STYLES)
def test_json_is_written_as_the_page_says(style: str) -> None:
    value: Any = {"ü": [1.0, 1e-05, 10**30, '\x7f/\u2028\x00"\\', {}, []], "a": {"b": None, "c": [True]}}
    assert json_text(value, style) == json_style.write(value, style)
    assert json.loads(json_text(value, style)) == value
