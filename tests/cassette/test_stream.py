"""Event streams come back byte for byte from what stands of them in a cassette, and say what they said."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.examples import examples
from test_stream_samples import in_file, openai_chat, openai_tools, responses, sse

from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import parse_document
from stepfork.cassette.stream import calls_of, decode, encode, text_of
from stepfork.cassette.stream.encode import encoded
from stepfork.core.model import Tagged

MANY = examples(300)
FEWER = examples(200)


def chunk(delta: Any, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": None}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def contents(*texts: str, **more: Any) -> list[Any]:
    return [chunk({"content": text}, **more) for text in texts]


def call(arguments: str, at: int = 0, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return chunk({"tool_calls": [{"index": at, **more, "function": {**name, "arguments": arguments}}]})


def typed(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def text(*lines: str) -> bytes:
    return "\n\n".join([*lines, ""]).encode()


def data(value: Any) -> str:
    return f"data: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}"


LOGPROB = {"content": [{"token": "Hi", "logprob": -1.5e-05, "bytes": [72, 105], "top_logprobs": []}]}
KINDS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "LF": (sse(contents("He", "llo")), {"text": "Hello"}),
    "CRLF": (sse(contents("He", "llo")).replace(b"\n", b"\r\n"), {"text": "Hello"}),
    "CR": (sse(contents("He", "llo")).replace(b"\n", b"\r"), {"text": "Hello"}),
    "mixed line ends": (sse(contents("He")).replace(b"\n", b"\r\n") + sse(contents("llo")), {}),
    "byte order mark": (b"\xef\xbb\xbf" + sse(contents("He", "llo")), {"text": "Hello"}),
    "no blank after the colon": (sse(contents("He", "llo")).replace(b"data: ", b"data:"), {"text": "Hello"}),
    "spaced": (sse(contents("He", "llo"), separators=None), {"text": "Hello"}),
    "mixed spacing": (sse(contents("He", "llo"), separators=(", ", ":")), {"text": "Hello"}),
    "ascii escapes": (sse(contents("Hé", "ll\U0001f600"), ensure_ascii=True), {"text": "Héll\U0001f600"}),
    "half a surrogate pair each": (
        sse(contents("\ud83d", "\ude00"), ensure_ascii=True),
        {"text": "\ud83d\ude00"},
    ),
    "HTML escapes of Go": (
        sse(contents("<a", "b&c"), ensure_ascii=True).replace(b"<", b"\\u003c").replace(b"&", b"\\u0026"),
        {"text": "<ab&c"},
    ),
    "escaped slashes": (sse(contents("a", "b/c")).replace(b"b/c", b"b\\/c"), {"text": "ab/c"}),
    "one text spelled in two ways": (
        sse(contents("a", "b/c/d", "e/f", "é")).replace(b"b/c", b"b\\/c").replace("é".encode(), b"\\u00E9"),
        {"text": "ab/c/de/fé"},
    ),
    "a text that is none": (sse(contents("a", "b", "c")).replace(b'"b"', b'"\\x"'), {"text": "ac"}),
    "text of several lines": (sse(contents("a\n", "b\n\n", "c")), {"text": "a\nb\n\nc"}),
    "separators YAML folds": (sse(contents("a\x85", "b\u2028", "c\u2029")), {"text": "a\x85b\u2028c\u2029"}),
    "usage": (sse([*contents("He", "llo"), chunk({}, usage={"total_tokens": 9})]), {"text": "Hello"}),
    "comments and blank keep-alives": (
        text(": open", data(contents("He")[0]), ": ping", "", data(contents("llo")[0]), ": ping", ": ping"),
        {"text": "Hello"},
    ),
    "retry and ids": (
        text(*(f"id: {at}\nretry: 10\n{data(one)}" for at, one in enumerate(contents("He", "l", "lo")))),
        {"text": "Hello"},
    ),
    "ids that are no numbers": (
        text(*(f"id: ev_{at * 7}\n{data(one)}" for at, one in enumerate(contents("He", "l", "lo")))),
        {"text": "Hello"},
    ),
    "event names of no type": (
        text(*(f"event: message\n{data(one)}" for one in contents("He", "l", "lo"))),
        {"text": "Hello"},
    ),
    "data in several lines": (
        text('data: {"a":\ndata: 1}', *map(data, contents("He", "llo")), 'data: {"a":\ndata: 2}'),
        {"text": "Hello"},
    ),
    "an error amid": (
        text(*map(data, contents("He", "llo")), data({"error": {"message": "overloaded $text", "code": 5}})),
        {"text": "Hello"},
    ),
    "no [DONE]": (sse(contents("He", "llo"), end=""), {"text": "Hello"}),
    "[DONE] without its end": (sse(contents("He", "llo"), end="data: [DONE]"), {"text": "Hello"}),
    "[DONE] and one line end": (sse(contents("He", "llo"), end="data: [DONE]\n"), {"text": "Hello"}),
    "more line ends": (sse(contents("He", "llo"), end="data: [DONE]\n\n\n\n\n"), {"text": "Hello"}),
    "cut in an event": (sse(contents("He", "llo", "gone"), end="")[:-40], {"text": "Hello"}),
    "cut in a character": (sse(contents("He", "llo"), end='data: {"a":"é')[:-1], {"text": "Hello"}),
    "cut in a line end": (sse(contents("He", "llo"), end="").replace(b"\n", b"\r\n")[:-1], {"text": "Hello"}),
    "two choices": (
        sse([*contents("He"), *contents("Good", index=1), *contents("llo"), *contents("bye", index=1)]),
        {"choices": [{"text": "Hello"}, {"text": "Goodbye"}]},
    ),
    "two choices in one event": (
        sse(
            {"choices": [{"index": 0, "delta": {"content": a}}, {"index": 1, "delta": {"content": b}}]}
            for a, b in ("ab", "cd")
        ),
        {"choices": [{"text": "ac"}, {"text": "bd"}]},
    ),
    "refusal": (sse([chunk({"refusal": part}) for part in ("No", " way")]), {"refusal": "No way"}),
    "reasoning": (
        sse([chunk({"reasoning_content": "Hm", "content": None}), *contents("Hi")]),
        {"text": "Hi", "reasoning": "Hm"},
    ),
    "reasoning told twice": (
        sse([chunk({"reasoning": part, "reasoning_content": part}) for part in ("H", "m", "!")]),
        {"reasoning": "Hm!"},
    ),
    "calls": (
        sse([call("", id="call_1", name="search"), call('{"q":'), call('"rust"}')]),
        {"tool_calls": [{"id": "call_1", "name": "search", "arguments": {"q": "rust"}}]},
    ),
    "calls that take turns": (
        sse([call('{"a"', id="x", name="f"), call('{"b"', 1, id="y", name="g"), call(":1}"), call(":2}", 1)]),
        {
            "tool_calls": [
                {"id": "x", "name": "f", "arguments": {"a": 1}},
                {"id": "y", "name": "g", "arguments": {"b": 2}},
            ]
        },
    ),
    "calls that all have index 0": (
        sse([call('{"a":1}', id="x", name="f"), call('{"b":2}', id="y", name="f")]),
        {
            "tool_calls": [
                {"id": "x", "name": "f", "arguments": {"a": 1}},
                {"id": "y", "name": "f", "arguments": {"b": 2}},
            ]
        },
    ),
    "a call whose id every event repeats": (
        sse([call(part, id="x", name="f") for part in ('{"a"', ":1", "}")]),
        {"tool_calls": [{"id": "x", "name": "f", "arguments": {"a": 1}}]},
    ),
    "arguments with blanks": (
        sse([call('{"q": ', id="x", name="f"), call('"go"}')]),
        {"tool_calls": [{"id": "x", "name": "f", "arguments": {"q": "go"}}]},
    ),
    "arguments in two styles": (
        sse([call('{"q": "go"}', id="x", name="f"), call('{"q":"go"}', 1, id="y", name="g")]),
        {
            "tool_calls": [
                {"id": "x", "name": "f", "arguments": {"q": "go"}},
                {"id": "y", "name": "g", "arguments": '{"q":"go"}'},
            ]
        },
    ),
    "arguments no style gives back": (
        sse([call('{ "q":1.50,', id="x", name="f"), call('"q":2}')]),
        {"tool_calls": [{"id": "x", "name": "f", "arguments": '{ "q":1.50,"q":2}'}]},
    ),
    "arguments that were cut": (
        sse([call('{"q":', id="x", name="f"), call('"g')]),
        {"tool_calls": [{"id": "x", "name": "f", "arguments": '{"q":"g'}]},
    ),
    "arguments nested too deep for YAML": (
        sse([call('{"a":' * 300 + "1" + "}" * 300, id="x", name="f")]),
        {"tool_calls": [{"id": "x", "name": "f", "arguments": '{"a":' * 300 + "1" + "}" * 300}]},
    ),
    "the old function_call": (
        sse(
            chunk({"function_call": one})
            for one in ({"name": "f", "arguments": ""}, {"arguments": '{"a":1}'})
        ),
        {"tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
    ),
    "log probabilities": (sse([chunk({"content": "Hi"}, logprobs=LOGPROB)] * 3), {"text": "HiHiHi"}),
    "odd numbers": (
        text(*(f'data: {{"a":{one},"b":-0.0,"c":1e5,"d":{10**40}}}' for one in ("1", "1.0", "1E+5", "-0"))),
        {},
    ),
    "no JSON for Python": (text('data: {"a":NaN,"b":1}', 'data: {"a":-Infinity,"b":2}'), {}),
    "a key twice": (text('data: {"a":1,"a":2}', 'data: {"a":1,"a":3}'), {}),
    "choices that are none": (sse([{"choices": ["a", 5]}, {"choices": 5}, {"choices": [{"delta": 5}]}]), {}),
    "unknown fields": (sse(contents("He", "llo", x={"$y": ["$text", {"z": None}]})), {"text": "Hello"}),
    "completions": (
        sse([{"id": "c", "choices": [{"text": part, "index": 0}]} for part in ("He", "llo")]),
        {"text": "Hello"},
    ),
    "audio with its transcript": (
        sse([chunk({"audio": {"data": "UklGRg==", "transcript": part}}) for part in ("He", "llo")]),
        {"text": "Hello"},
    ),
    "transcription": (
        sse(
            [typed("transcript.text.delta", delta="He"), typed("transcript.text.delta", delta="llo")]
            + [typed("transcript.text.done", text="Hello")],
        ),
        {"text": "Hello"},
    ),
    "images": (sse(typed("image.partial", b64_json="iVBORw0KGgo" * 50, at=at) for at in (0, 1)), {}),
    "another API": (sse(typed("delta", delta={"type": "text", "text": one}) for one in "abcdef"), {}),
    "two texts": (
        sse(typed("response.output_text.delta", output_index=at, delta="ab"[at]) for at in (0, 1)),
        {"text": ["a", "b"]},
    ),
    "no events": (b"hello", {}),
    "nothing": (b"", {}),
    "no text": (b"data: \xff\xfe\n\n", {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_and_stands_as_what_it_said(kind: str) -> None:
    raw, said = KINDS[kind]
    in_file(raw)
    stream = encode(raw)
    stream.pop("wire", None)
    stream.pop("raw", None)
    assert stream == said


SAYING = [kind for kind, (_, said) in KINDS.items() if said]


@pytest.mark.parametrize("kind", SAYING)
def test_the_wire_does_not_repeat_what_was_said(kind: str) -> None:
    stream = encode(KINDS[kind][0])
    wire = emit_document({"wire": stream["wire"]})
    for told in (text_of(stream), *(arguments for _, arguments in calls_of(stream))):
        assert len(told) < 4 or told not in wire


def test_C58_the_events_of_Responses_come_back_and_what_they_repeat_stands_once() -> None:
    raw = responses()
    text = in_file(raw)
    stream: Any = parse_document(text)["stream"]
    assert list(stream) == ["text", "reasoning", "tool_calls", "wire"]
    call = {"id": "call_5dp5Uj0Loqn1YcyIpqSq6sLX", "name": "get_weather"}
    assert stream["tool_calls"] == [{**call, "arguments": {"city": "New York, USA", "unit": "c"}}]
    for once in ("You are a helpful assistant", "additionalProperties", "call_5dp5Uj0Loqn1YcyIpqSq6sLX"):
        assert text.count(once) == (4 if once.startswith("You") else 1)
    assert text.count(stream["text"][:40]) == text.count(stream["reasoning"][:40]) == 1


def test_the_sample_of_the_contract() -> None:
    text = in_file(openai_tools())
    assert text.startswith(
        "stream:\n"
        "  text: Looking both up.\n"
        "  tool_calls:\n"
        "  - {id: call_8wSWhuzOhClEzH8c2pYjRIi0, name: search, arguments: {q: rust}}\n"
        '  - {id: call_8wSWhuzOhClEzH8c2pYjRIi1, name: summarise, arguments: {q: go, "n": 3}}\n'
        "  wire:\n"
        "    events: |\n"
        '      $common = "id":"chatcmpl-'
    )


def test_the_same_stream_under_another_id_differs_in_one_line() -> None:
    raw = openai_chat(to=None)
    one, other = (
        in_file(raw),
        in_file(raw.replace(b"chatcmpl-C42q", b"chatcmpl-D53r").replace(b"1790", b"1791")),
    )
    changed = [
        at
        for at, pair in enumerate(zip(one.splitlines(), other.splitlines(), strict=True))
        if len({*pair}) > 1
    ]
    assert len(changed) == 1


def test_bytes_and_repeated_values_are_derived() -> None:
    tokens = ["He", "llo", " wörld", "!"]
    logs = [
        {
            "content": [
                {"token": one, "logprob": -0.5, "bytes": [*one.encode()], "top_logprobs": [{"token": one}]}
            ]
        }
        for one in tokens
    ]
    stream: Any = encode(
        sse(chunk({"content": one}, logprobs=log) for one, log in zip(tokens, logs, strict=True))
    )
    assert '"token":$this text' in stream["wire"]["events"]
    assert '"bytes":$bytes text' in stream["wire"]["events"]
    assert "series" not in stream["wire"]


def test_a_stream_that_stands_raw_is_readable_too() -> None:
    raw: dict[str, Any] = {"raw": openai_tools().decode()}
    assert text_of(raw) == "Looking both up."
    assert [name for name, _ in calls_of(raw)] == ["search", "summarise"]
    assert text_of({"raw": "no events"}) == "no events"
    assert text_of({"raw": Tagged("bytes", "/w==")}) == ""


def test_what_nobody_said_is_still_readable() -> None:
    parts = ["Once ", "upon ", "a ", "time, ", "there ", "was."]
    raw = sse(
        typed("content_block_delta", index=0, delta={"type": "text_delta", "text": one}) for one in parts
    )
    stream: Any = encode(raw)
    assert stream["wire"]["texts"] == {"text_2": "Once upon a time, there was."}
    assert text_of(stream) == "Once upon a time, there was."


def test_a_stream_out_of_proportion_stands_raw() -> None:
    raw = b": ping\n\n" * 200_000
    assert encode(raw) == {"raw": raw.decode()}


# -- random streams ---------------------------------------------------------------------------------

CHARS = st.sampled_from(
    [*"abcxyz  {}[]()$\\\"'/<>&%:,;#=-_|~\t\n\r\b\x0b\x1b\x00\x7f0159"]
    + [
        "é",
        "漢",
        "😀",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ue000",
        "\ufffe",
        "$text",
        "$next text",
        "$$",
        "%s",
        "%",
        "\n\n",
    ]
    + ["data: ", "[DONE]", '"type":"a"', "\\u00e9", "{2}", "4{10}", "\\"]
)
TEXT = st.one_of(st.lists(CHARS, max_size=6).map("".join), st.text(max_size=8))
NUMBER = st.sampled_from(
    ["0", "-0", "1", "1.0", "-0.0", "1e-5", "1E5", "1e+22", "0.1", "12345678901234567890123", "-7"]
)


@st.composite
def literals(draw: st.DrawFn, depth: int = 3) -> str:
    """A JSON text in a spelling of its own."""
    kind = draw(st.sampled_from(["text", "number", "word", "numbers"] + ["object", "list"] * (depth > 0)))
    if kind == "text":
        return json.dumps(draw(TEXT), ensure_ascii=draw(st.booleans()))
    if kind == "number":
        return draw(NUMBER)
    if kind == "word":
        return draw(st.sampled_from(["null", "true", "false", "NaN", "Infinity", "-Infinity"]))
    if kind == "numbers":
        return f"[{','.join(draw(st.lists(NUMBER, max_size=3)))}]"
    comma, colon = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": "), (" ,", " : ")]))
    if kind == "list":
        return f"[{comma.join(draw(st.lists(literals(depth - 1), max_size=3)))}]"
    keys = draw(
        st.lists(
            st.sampled_from(["a", "b", "type", "index", "id", "delta", "name", "text", "é$"]), max_size=3
        )
    )
    members = [f"{json.dumps(key, ensure_ascii=False)}{colon}{draw(literals(depth - 1))}" for key in keys]
    return f"{{{comma.join(members)}}}"


@st.composite
def shaped(draw: st.DrawFn) -> list[str]:
    """Events of few shapes, as servers send them, in one spelling or in several."""
    spaced, ascii_only = draw(st.booleans()), draw(st.booleans())
    more = draw(st.dictionaries(st.sampled_from(["x", "usage", "obfuscation"]), literals(1), max_size=2))
    lines = []
    for at in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 9)) == 0:
            spaced, ascii_only = draw(st.booleans()), draw(st.booleans())
        said = draw(TEXT)
        index = draw(st.sampled_from([0, 0, 0, 1]))
        kind = draw(
            st.sampled_from(["content"] * 4 + ["call", "start", "responses", "item", "done", "logprobs"])
        )
        value: dict[str, Any]
        if kind == "content":
            value = chunk({"content": draw(st.sampled_from([said, said, "", None]))}, index)
        elif kind == "logprobs":
            log = {"token": said, "bytes": [*said.encode("utf-8", "replace")], "logprob": at / 3}
            value = chunk({"content": said}, logprobs={"content": [log]})
        elif kind == "call":
            value = call(said, index)
        elif kind == "start":
            value = call(draw(st.sampled_from(["", '{"a":1}', said])), index, id=draw(TEXT), name="f")
        elif kind == "responses":
            value = typed("response.output_text.delta", sequence_number=at, output_index=index, delta=said)
        elif kind == "item":
            item = {"type": "function_call", "call_id": draw(TEXT), "name": "f", "arguments": ""}
            value = typed("response.output_item.added", sequence_number=at, output_index=index, item=item)
        else:
            value = typed("response.output_text.done", text=draw(TEXT))
        value.update({key: json.loads(text) for key, text in more.items()} if draw(st.booleans()) else {})
        text = json.dumps(value, ensure_ascii=ascii_only, separators=None if spaced else (",", ":"))
        name = f"event: {value.get('type', 'message')}\n" if draw(st.integers(0, 3)) == 0 else ""
        lines.append(f"{name}data: {text}")
    return lines


ODD = st.one_of(
    literals().map(lambda text: f"data: {text}"),
    st.sampled_from(
        [
            "",
            ": ping",
            ":",
            "data: [DONE]",
            "data: [DONE]",
            "data:",
            "data",
            "retry: 10",
            "id: 7\ndata: {}",
            "\n",
            " ",
        ]
        + [
            'data: {"a":1}\ndata: {"b":2}',
            'event: x\nid: a\ndata: {"type":"x"}',
            'data: {"error":{"message":"no"}}',
        ]
        + [
            "$common = 1",
            "\\",
            '{"no": "data"}',
            "[1]",
            'data: {"a":',
            'data: {"a":"',
            "data: {$text}",
            "data: [%s]",
        ]
    ),
    TEXT,
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    events: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        events += draw(st.one_of(shaped(), shaped(), st.lists(ODD, max_size=4)))
    times = draw(st.sampled_from([1, 1, 1, 2, 5]))
    whole = "".join(f"{one}\n\n" for one in events * times)
    if draw(st.integers(0, 3)) == 0:
        whole += "data: [DONE]" + draw(st.sampled_from(["", "\n", "\n\n", "\n\n\n"]))
    whole = draw(st.sampled_from(["", "", "", "\ufeff"])) + whole
    end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]))
    raw = whole.replace("\n", end).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 2)) == 0:
        raw = raw[: draw(st.integers(0, len(raw)))]
    return raw


@MANY
@given(streams())
def test_any_stream_comes_back_byte_for_byte(raw: bytes) -> None:
    stream = encode(raw)
    event("wire" if "wire" in stream else "raw")
    assert decode(stream) == raw
    found = encoded(raw)  # a wire that is not worth it has to come back too
    text = emit_document({"stream": found or stream})
    for pure in (False, True):
        back: Any = parse_document(text, pure=pure)["stream"]
        assert decode(back) == raw


@FEWER
@given(st.binary(max_size=60), st.sampled_from([b"", b"data: ", b'data: {"a":"', b"\xef\xbb\xbf"]))
def test_any_bytes_come_back(raw: bytes, before: bytes) -> None:
    in_file(before + raw)


@FEWER
@given(st.lists(TEXT.filter(lambda text: "\ufffd" not in text), min_size=1, max_size=30), st.booleans())
def test_a_text_in_any_pieces_stands_as_itself(parts: list[str], ascii_only: bool) -> None:
    raw = sse(contents(*parts), ensure_ascii=ascii_only)
    assert text_of(encode(raw)) == "".join(parts) or not "".join(parts)


VALUES = st.recursive(
    st.one_of(st.integers(), st.floats(), TEXT, st.none()),
    lambda inner: st.dictionaries(TEXT, inner),
    max_leaves=6,
)


@FEWER
@given(VALUES, st.booleans())
def test_arguments_stand_as_a_mapping(value: Any, spaced: bool) -> None:
    arguments = json.dumps({"value": value}, separators=None if spaced else (",", ":"))
    parts = [arguments[at : at + 5] for at in range(0, len(arguments), 5)]
    raw = sse([call("", id="x", name="f"), *map(call, parts)])
    in_file(raw)
    assert calls_of(encode(raw)) == [("f", arguments)]


# -- work -------------------------------------------------------------------------------------------


def work(function: Callable[[], Any]) -> int:
    """How many functions a call calls, built-in ones included."""
    count = 0

    def saw(_frame: Any, kind: str, _argument: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(saw)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("to", [None, 10])
def test_the_work_grows_with_the_length(to: int | None) -> None:
    small, large = openai_chat(500, to), openai_chat(20_000, to)
    assert work(lambda: encode(large)) < 44 * work(lambda: encode(small))
    small_stream, large_stream = encode(small), encode(large)
    assert work(lambda: decode(large_stream)) < 44 * work(lambda: decode(small_stream))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'data: {"a":"' + b'\\"' * 200_000, id="a string without end"),
        pytest.param(b"data: " + b"[" * 300_000 + b"\n\n", id="deep"),
        pytest.param(b"data: " + b"[{}," * 100_000 + b"\n\n", id="no values"),
        pytest.param(b"data: [" + b"1," * 40_000 + b"null]\n\n", id="numbers"),
        pytest.param(b'data: {"a":1' + b" " * 300_000 + b"\n\n", id="blanks"),
        pytest.param(b"\n" * 300_000, id="line ends"),
        pytest.param(b"event: x\n" * 50_000, id="names"),
        pytest.param(b"".join(b'data: {"%d":1}\n\n' % at for at in range(5000)), id="shapes"),
        pytest.param(
            b"".join(b'data: {"type":"%d","a":[%d]}\n\n' % (at, at) for at in range(5000)), id="types"
        ),
        pytest.param(b"data: {%s}\n\n" % b",".join(b'"%d":{"x":1}' % at for at in range(5000)), id="keys"),
    ],
)
def test_no_stream_takes_for_ever(raw: bytes) -> None:
    for one in (raw, raw * 2):
        assert decode(encode(one)) == one
