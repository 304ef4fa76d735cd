"""How a cassette looks: what stands in a block, what on one line, and that a diff shows what changed."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import parse_document, split
from stepfork.core.model import Tagged

SAMPLE = """\
stepfork: 1
name: research
entrypoint: agent:run
tools: [myagent.tools]
args: {topic: Go}
recorded_at: "2026-11-29T14:55:02Z"
---
llm: chat.completions
request:
  model: m
  stream: true
  messages:
  - role: user
    content: |
      Compare Rust and Go.
      Be brief.
stream:
  text: Looking both up.
  tool_calls:
  - {id: call_1, name: search, arguments: {q: rust}}
  - {id: call_2, name: summarise, arguments: {q: go}}
---
tool: search
lane: a
args: {q: rust, api_key: "<secret:api_key:1>"}
error: {class: "agent.errors:SearchDown", args: ["503"], attributes: {retry_after: 30}}
---
tool: summarise
lane: b
args: {q: go}
result: !tuple [Go is small., 0.9]
---
llm: chat.completions
extends: 1
append:
  messages:
  - role: assistant
    tool_calls:
    - {id: call_1, type: function, function: {name: search, arguments: "{\\"q\\": \\"rust\\"}"}}
  - {role: tool, tool_call_id: call_1, content: "error: 503"}
  - {role: tool, tool_call_id: call_2, content: Go is small.}
response: {}
---
end: completed
output: !tuple [Go, 0.9]
sha256: "9b1c"
"""


def test_the_sample_of_the_contract() -> None:
    function = {"name": "search", "arguments": '{"q": "rust"}'}
    documents: list[dict[str, Any]] = [
        {
            "stepfork": 1,
            "name": "research",
            "entrypoint": "agent:run",
            "tools": ["myagent.tools"],
            "args": {"topic": "Go"},
            "recorded_at": "2026-11-29T14:55:02Z",
        },
        {
            "llm": "chat.completions",
            "request": {
                "model": "m",
                "stream": True,
                "messages": [{"role": "user", "content": "Compare Rust and Go.\nBe brief.\n"}],
            },
            "stream": {
                "text": "Looking both up.",
                "tool_calls": [
                    {"id": "call_1", "name": "search", "arguments": {"q": "rust"}},
                    {"id": "call_2", "name": "summarise", "arguments": {"q": "go"}},
                ],
            },
        },
        {
            "tool": "search",
            "lane": "a",
            "args": {"q": "rust", "api_key": "<secret:api_key:1>"},
            "error": {"class": "agent.errors:SearchDown", "args": ["503"], "attributes": {"retry_after": 30}},
        },
        {
            "tool": "summarise",
            "lane": "b",
            "args": {"q": "go"},
            "result": Tagged("tuple", ["Go is small.", 0.9]),
        },
        {
            "llm": "chat.completions",
            "extends": 1,
            "append": {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
                    },
                    {"role": "tool", "tool_call_id": "call_1", "content": "error: 503"},
                    {"role": "tool", "tool_call_id": "call_2", "content": "Go is small."},
                ]
            },
            "response": {},
        },
        {"end": "completed", "output": Tagged("tuple", ["Go", 0.9]), "sha256": "9b1c"},
    ]
    assert "---\n".join(map(emit_document, documents)) == SAMPLE
    assert [parse_document(text, first_line=line) for line, text in split(SAMPLE)] == documents


def test_one_edited_line_of_a_text_is_one_changed_line_of_the_file() -> None:
    lines = [f"{number}. step: # {{}} 😀" for number in range(50)]
    edited = [*lines[:20], "changed", *lines[21:]]
    before, after = (
        emit_document(
            {"request": {"messages": [{"role": "system", "content": "\n".join(text)}]}}
        ).splitlines()
        for text in (lines, edited)
    )
    changes = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    assert len(changes) == 2
    assert "+       changed" in changes


@pytest.mark.parametrize(("width", "flow"), [(100, True), (101, False)])
def test_what_fits_into_a_hundred_columns_stands_on_one_line(width: int, flow: bool) -> None:
    documents = [
        ({"args": {"a": "x", "b": "y" * (width - len("args: {a: x, b: }"))}}, 0),
        ({"args": [{"a": "x\ny"}, {"a": "x", "b": "y" * (width - len("- {a: x, b: }"))}]}, 4),
        ({"a": {"x": "1\n2", "b": ["y" * (width - len("  b: []"))]}}, 4),
        ({"args": Tagged("tuple", ["y" * (width - len("args: !tuple []"))])}, 0),
    ]
    for document, at in documents:
        text = emit_document(document)
        assert parse_document(text) == document
        line = text.splitlines()[at]
        assert (len(line) == width) is flow


def test_more_than_two_levels_are_a_block() -> None:
    assert emit_document({"a": {"b": {"c": []}}}) == "a: {b: {c: []}}\n"
    assert emit_document({"a": {"b": {"c": [1]}}}) == "a:\n  b: {c: [1]}\n"
    assert emit_document({"a": [[1], [[2], [3, [4]]]]}) == "a:\n- [1]\n-\n".replace(
        "-\n", "- - [2]\n  - [3, [4]]\n"
    )
    assert emit_document({}) == "{}\n"
    assert emit_document({"a": {}, "b": []}) == "a: {}\nb: []\n"
    assert emit_document({"a": Tagged("set", ["x\ny"])}) == "a: !set\n- |-\n  x\n  y\n"
    assert emit_document({"a": [Tagged("set", ["x\ny"])]}) == "a:\n- !set\n  - |-\n    x\n    y\n"
