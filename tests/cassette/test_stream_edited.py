"""A recorded stream after an edit: what still fits, what is refused and how, and that nothing blows up."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from test_stream_samples import llama_chat, openai_chat, openai_tools, responses, sse

from stepfork.cassette.stream import Misfit, calls_of, check, decode, encode, text_of
from stepfork.cassette.stream.decode import most, size_of
from stepfork.core.model import Tagged


def payloads(raw: bytes) -> list[Any]:
    found = [event.partition("data: ")[2] for event in raw.decode().split("\n\n")]
    return [json.loads(one) for one in found if one[:1] == "{"]


def said(raw: bytes) -> list[str]:
    deltas = [one["choices"][0]["delta"] for one in payloads(raw) if one.get("choices")]
    return [delta["content"] for delta in deltas if delta.get("content") is not None]


def chat(*texts: str) -> dict[str, Any]:
    return encode(sse({"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Looking it up now.", ["Look", "ing ", "it up now."]),
        ("Lo", ["Lo", "", ""]),
        ("", ["", "", ""]),
        ("Looking ", ["Look", "ing ", ""]),
    ],
)
def test_an_edited_text_is_cut_as_before_and_the_last_piece_takes_the_rest(
    text: str, pieces: list[str]
) -> None:
    stream = chat("Look", "ing ", "up.")
    stream["text"] = text
    check(stream)
    assert said(decode(stream)) == pieces
    assert text_of(stream) == text


def test_an_edited_piece_loses_its_odd_spelling() -> None:
    stream: Any = encode(sse([{"choices": [{"delta": {"content": "a/b/c"}}]}]).replace(b"a/b", b"a\\/b"))
    assert stream["wire"]["odd"] == {"text": {"0": '"a\\/b/c"'}}
    stream["text"] = "a/b/d"
    assert said(decode(stream)) == ["a/b/d"]


def test_without_its_cuts_a_text_comes_at_once() -> None:
    stream = chat("Look", "ing ", "up.")
    del stream["wire"]["cuts"]
    assert said(decode(stream)) == ["", "", "Looking up."]


def test_edited_arguments_follow() -> None:
    stream: Any = encode(openai_tools())
    stream["tool_calls"][0]["arguments"]["q"] = "zig and rust"
    stream["tool_calls"][1]["name"] = "explain"
    assert calls_of(stream) == [("search", '{"q":"zig and rust"}'), ("explain", '{"q":"go","n":3}')]
    calls = [
        one["choices"][0]["delta"].get("tool_calls") for one in payloads(decode(stream)) if one["choices"]
    ]
    parts = [call[0]["function"] for call in calls if call]
    assert "".join(part["arguments"] for part in parts) == '{"q":"zig and rust"}{"q":"go","n":3}'
    assert [part["name"] for part in parts if "name" in part] == ["search", "explain"]


def test_what_repeats_a_text_follows_it() -> None:
    stream: Any = encode(responses())
    stream["text"] = "Quite another text, and a shorter one."
    events = payloads(decode(stream))
    by_type = {one["type"]: one for one in events}
    deltas = [one["delta"] for one in events if one["type"] == "response.output_text.delta"]
    assert "".join(deltas) == stream["text"]
    assert by_type["response.output_text.done"]["text"] == stream["text"]
    assert by_type["response.completed"]["response"]["output"][1]["content"][0]["text"] == stream["text"]


def test_a_secret_replaced_in_a_text_leaves_the_stream_playable() -> None:
    raw = sse(
        {"choices": [{"delta": {"content": part}}], "obfuscation": "x" * 9}
        for part in ("key sk", "-12", "34 ok")
    )
    stream = encode(raw)
    stream["text"] = "key <secret:api_key:1> ok"
    assert "".join(said(decode(stream))) == stream["text"]


WIRE = {"events": '{"text":$next text}\n', "order": "1{2}", "cuts": {"text": "11"}}
TEXT = {"text": "Hi", "wire": WIRE}


@pytest.mark.parametrize(
    ("stream", "field", "problem"),
    [
        ({"text": "Hi"}, "wire", "missing"),
        ({"text": "Hi", "wire": []}, "wire", "a mapping expected"),
        ({"wire": {}}, "wire.events", "missing"),
        ({"wire": {"events": ""}}, "wire.events", "line 1: an event expected, found an empty line"),
        ({"wire": {"events": "$a = {}"}}, "wire.events", "an event expected"),
        ({"wire": {"events": 5}}, "wire.events", "text expected; add quotes"),
        ({"wire": {**WIRE, "cut": {}}}, "wire.cut", "unknown field; known here: json, "),
        ({**TEXT, "text": False}, "text", "text expected; add quotes"),
        ({**TEXT, "txt": "Hi"}, "txt", "unknown field; known here: text, "),
        ({**TEXT, "raw": "x"}, "text", "a stream that stands raw has nothing else"),
        ({"raw": "x", "wire": WIRE}, "wire", "a stream that stands raw has nothing else"),
        ({"raw": 1.5}, "raw", "text or bytes expected; add quotes"),
        ({"raw": Tagged("bytes", "?")}, "raw", "bytes in base64 expected"),
        ({**TEXT, "choices": []}, "text", "a stream with 'choices' says everything there"),
        ({"choices": {}, "wire": WIRE}, "choices", "a sequence expected"),
        ({"choices": ["Hi"], "wire": WIRE}, "choices[0]", "a mapping expected"),
        ({**TEXT, "tool_calls": ["f"]}, "tool_calls[0]", "a mapping expected"),
        (
            {**TEXT, "tool_calls": [{"args": {}}]},
            "tool_calls[0].args",
            "unknown field; known here: id, name, arguments",
        ),
        ({**TEXT, "tool_calls": [{"name": 5}]}, "tool_calls[0].name", "text expected; add quotes"),
        (
            {**TEXT, "tool_calls": [{"arguments": {"a": Tagged("set", [])}}]},
            "tool_calls[0].arguments",
            "what JSON has",
        ),
        ({**TEXT, "tool_calls": [{"name": "f"}]}, "tool_calls[0].name", "no event of the stream says it"),
        ({"wire": WIRE}, "text", "missing; an event takes it"),
        ({"wire": {"events": "[$next a]"}}, "wire.texts.a", "missing; an event takes it"),
        ({"wire": {"events": "[$text]"}}, "wire.events", "line 1: nothing is named 'text'"),
        ({"wire": {"events": "[1]\n[$value a]"}}, "wire.series.a", "missing; an event takes it"),
        (
            {"wire": {"events": "[$this a]"}},
            "wire.events",
            "'$this a' stands in an event that takes no such text",
        ),
        (
            {"wire": {"events": "[$pad9 a]", "series": {"a": ""}}},
            "wire.events",
            "'$pad9 a' stands in an event without",
        ),
        (
            {**TEXT, "wire": {**WIRE, "order": "1 2"}},
            "wire.order",
            "the number of an event from 1 to 1 expected",
        ),
        ({**TEXT, "wire": {**WIRE, "order": "1 x{"}}, "wire.order", "an item expected at 'x{'"),
        ({**TEXT, "wire": {**WIRE, "cuts": {"text": "111"}}}, "wire.cuts.text", "more than the 2 pieces"),
        (
            {**TEXT, "wire": {**WIRE, "cuts": {"text": "1"}}},
            "wire.cuts.text",
            "into 1 pieces, the events take 2",
        ),
        ({**TEXT, "wire": {**WIRE, "cuts": {"text": "1?"}}}, "wire.cuts.text", "a length expected at '?'"),
        ({**TEXT, "wire": {**WIRE, "cuts": {"text": 11}}}, "wire.cuts.text", "text expected; add quotes"),
        ({**TEXT, "wire": {**WIRE, "cuts": {"text": "11", "b": "1"}}}, "wire.cuts.b", "no event takes it"),
        ({**TEXT, "wire": {**WIRE, "odd": {"text": {"2": "x"}}}}, "wire.odd.text.2", "the number of a piece"),
        ({**TEXT, "wire": {**WIRE, "odd": {"text": []}}}, "wire.odd.text", "a mapping expected"),
        ({**TEXT, "wire": {**WIRE, "json": "loose"}}, "wire.json", "spaced, ascii, html, slash expected"),
        ({**TEXT, "wire": {**WIRE, "arguments": "x"}}, "wire.arguments", "unknown style 'x'; one of compact"),
        ({**TEXT, "wire": {**WIRE, "frame": "wide"}}, "wire.frame", "one of 'tight', 'named'"),
        ({**TEXT, "wire": {**WIRE, "bom": 1}}, "wire.bom", "flag expected"),
        ({"wire": {**WIRE, "texts": {"text": 5}}}, "wire.texts.text", "text expected"),
        ({**TEXT, "wire": {**WIRE, "eol": "lfcr"}}, "wire.eol", "one of 'lf', 'crlf', 'cr' expected"),
        ({**TEXT, "wire": {**WIRE, "end": "x"}}, "wire.end", "no text"),
        ({**TEXT, "wire": {**WIRE, "tail": Tagged("set", [])}}, "wire.tail", "bytes in base64 expected"),
        (
            {"wire": {"events": "[$value a]", "series": {"a": "1 2"}}},
            "wire.series.a",
            "more than the 1 values",
        ),
        ({"wire": {"events": "[$word a]", "series": {"a": ""}}}, "wire.series.a", "it holds 0 values"),
        (
            {"wire": {"events": "[$item a]", "series": {"a": [5]}}},
            "wire.series.a[0]",
            "text expected; add quotes",
        ),
        ({"wire": {"events": "[$item a]", "series": {"a": "b"}}}, "wire.series.a", "a sequence expected"),
        (
            {"wire": {"events": "[$value a]", "series": {"a": {"from": 1}}}},
            "wire.series.a",
            "'from' and 'step'",
        ),
        (
            {"wire": {"events": "[$value a]", "series": {"a": {"from": 10**5000, "step": 1}}}},
            "wire.series.a",
            "a smaller number expected",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(stream: Any, field: str, problem: str) -> None:
    with pytest.raises(Misfit) as caught:
        check(stream)
    assert caught.value.field == field
    assert problem in caught.value.problem


MANY = "9" * 9
DOUBLING = "".join(f"$a{at + 1} = [$a{at},$a{at}]\n" for at in range(60))


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param({"wire": {"events": "[1]", "order": f"1{{{MANY}}}"}}, id="an event many times"),
        pytest.param({"wire": {"events": "[1]", "order": f"1{{{MANY}}} " * 99 + "1"}}, id="many runs"),
        pytest.param({**TEXT, "wire": {**WIRE, "order": f"1{{{MANY}}}"}}, id="pieces of nothing"),
        pytest.param({**TEXT, "wire": {**WIRE, "cuts": {"text": f"0{{{MANY}}}"}}}, id="cuts into nothing"),
        pytest.param({"wire": {"events": f"$a0 = 1\n{DOUBLING}[$a60]"}}, id="doubling"),
        pytest.param(
            {"wire": {"events": "[$value a]", "order": "1 1", "series": {"a": f"1{{{MANY}}}"}}}, id="values"
        ),
        pytest.param(
            {"text": "x" * 10**5, "wire": {"events": "[$next text" + ",$this text" * 20_000 + "]"}},
            id="again",
        ),
        pytest.param({"text": "x" * 10**5, "wire": {"events": "[" + "$text," * 20_000 + "]"}}, id="repeats"),
        pytest.param(
            {"text": "x" * 10**5, "wire": {"events": "[$next text" + ",$bytes text" * 20_000 + "]"}},
            id="bytes",
        ),
    ],
)
def test_a_small_file_never_becomes_a_huge_stream(stream: Any) -> None:
    with pytest.raises(Misfit):
        decode(stream)


@pytest.mark.parametrize(
    "line",
    ['["' + '\\"' * 200_000 + "$", "[$" + "a." * 200_000, "\\" * 400_001 + "$a", "[" + '"' * 400_001 + "$"],
)
def test_a_hostile_line_is_read_in_one_go(line: str) -> None:
    with pytest.raises(Misfit) as caught:
        decode({"wire": {"events": f"[$missing]\n{line}"}})
    assert len(str(caught.value)) < 200


SAMPLES = [encode(raw) for raw in (openai_chat(20), openai_tools(), llama_chat(20), responses(30))]
PLAIN = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        st.just(Tagged("bytes", "AA==")),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner)),
    max_leaves=5,
)
SIGNS = st.sampled_from(
    [
        *'${}[]()"\\ \n,:09a',
        "$text",
        "$next text",
        "$a = ",
        "{999999999}",
        "(99)",
        "\n\n",
        "$this text",
        "$bytes text",
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(inner for key, item in items for inner in places(item, (*path, key)))]


@examples(500)
@given(st.data())
def test_any_edit_is_played_or_refused(data: st.DataObject) -> None:
    stream: Any = copy.deepcopy(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(stream)[1:] or [()]))
        if not path:
            continue
        above = stream
        for key in path[:-1]:
            above = above[key]
        old = above[path[-1]]
        how = data.draw(st.sampled_from(["signs", "signs", "cut", "other", "gone"]))
        if isinstance(old, str) and how in ("signs", "cut"):
            at = data.draw(st.integers(0, len(old)))
            end = at if how == "signs" else data.draw(st.integers(at, len(old)))
            above[path[-1]] = old[:at] + (data.draw(SIGNS) if how == "signs" else "") + old[end:]
        elif how == "gone":
            del above[path[-1]]
        else:
            above[path[-1]] = data.draw(PLAIN)
    with suppress(Misfit):
        assert len(decode(stream)) <= 4 * most(size_of(stream)) + 100
