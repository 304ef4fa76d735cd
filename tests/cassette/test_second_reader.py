"""docs/cassette-format.md is enough: a reader written from it reads any recording as stepfork does."""

from __future__ import annotations

import asyncio
import functools
import io
import itertools
import json
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import second_reader
from support.agent_loop import SYSTEM, client
from support.examples import examples
from support.readers_agree import as_json, first_reader, readers_agree
from support.second_reader_stream import stream_bytes
from support.servers import ROOT
from support.texts import SURROGATE_TEXT, TEXT
from test_stream import KINDS, streams
from test_stream_samples import openai_chat, openai_tools, responses
from test_values import VALUES as STANDARD
from test_values_of_classes import VALUES as OF_CLASSES

import stepfork
from stepfork.cassette import reader, stream
from stepfork.cassette.emitter import emit_document
from stepfork.cassette.stream.encode import encoded
from stepfork.cassette.values import encode
from stepfork.core.canonical import canonical_text
from stepfork.core.redaction import Redactor

numbers = itertools.count()
SOME = examples(40)
LARGE = st.sampled_from(["word " * 300, "line of text\n" * 90, ["a long item " * 40] * 3])
FLOATS = st.lists(st.floats(width=32), min_size=65, max_size=70) | st.lists(
    st.floats(), min_size=65, max_size=70
)
ANY = st.one_of(
    STANDARD, OF_CLASSES, SURROGATE_TEXT, TEXT, LARGE, FLOATS, st.dictionaries(TEXT, LARGE, max_size=2)
)


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        def echo(value, more=None):
            return value
        def fails(value):
            error = ValueError(value)
            error.add_note("a note")
            raise error
        def pages(values):
            for value in values:
                yield value
        def tidy(state):
            state["odd key"] = [2]
            state["moved"] = state["rows"]
        def head(rows, buffer):
            buffer.write(b"more")
            return next(rows)
        def research(topic):
            return echo(echo(topic) + "!")
        async def slow(value):
            import asyncio
            await asyncio.sleep(9)
        """
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@SOME
@given(st.lists(ANY.filter(lambda value: harmless(value)), min_size=1, max_size=4))
def test_any_values_of_tools_read_alike_and_come_back(tools: Any, folder: Path, values: list[Any]) -> None:
    path = folder / f"{next(numbers)}.yaml"
    with stepfork.record(path, tools=[tools.__name__]) as run:
        for value in values:
            tools.echo(value, more=values[0])
            with pytest.raises(ValueError):
                tools.fails([repr(value)])
            list(tools.pages([value, 1]))
        run.set_output(values)
    read = readers_agree(path)
    assert [call["kind"] for call in read["calls"]] == ["tool"] * 3 * len(values)
    for pure in (False, True):
        with (
            pytest.MonkeyPatch.context() as patch,
            stepfork.replay(path),
        ):
            patch.setattr(reader, "parse_document", functools.partial(reader.parse_document, pure=pure))
            for value in values:
                found = tools.echo(value, more=values[0])
                assert type(found) is type(value)
                assert canonical_text(encode(found)) == canonical_text(encode(value))
                with pytest.raises(ValueError):
                    tools.fails([repr(value)])
                assert len(list(tools.pages([value, 1]))) == 2
    path.unlink()


def harmless(value: Any) -> bool:
    """Whether nothing in a value is a secret, or the key of one: those come back as placeholders."""
    plain = encode([value, repr(value)])
    return Redactor().redact(plain) is plain


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant"]),
            "content": st.sampled_from([SYSTEM, "Go on.", "x " * 50]),
        }
    ),
    max_size=6,
)


@st.composite
def requests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What an agent asks one after the other: the last question, changed here and there."""
    asked: dict[str, Any] = {"model": "m", "messages": draw(MESSAGES)}
    found = [asked]
    for _ in range(draw(st.integers(0, 6))):
        messages = list(asked["messages"])
        cut = draw(st.integers(0, len(messages)))
        del messages[cut : cut + draw(st.integers(0, 2))]
        asked = {**asked, "messages": messages + draw(MESSAGES)}
        for key in draw(st.lists(st.sampled_from(["odd key", "seed", "metadata"]), max_size=2)):
            if draw(st.booleans()):
                asked[key] = {
                    "a.b": SYSTEM,
                    "n": draw(st.integers(0, 3)),
                    "stop": [SYSTEM] * draw(st.integers(0, 2)),
                }
            else:
                asked.pop(key, None)
        found.append(asked)
    return found


@SOME
@given(requests(), st.sampled_from([None, 2, 4]), st.booleans())
def test_any_history_of_requests_reads_alike(
    folder: Path, asked: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    path = folder / f"{next(numbers)}.yaml"

    def answer(request: httpx2.Request) -> httpx2.Response:
        said = {"said": ["ü\n", 1.5, len(request.content), {}, []]}
        text = json.dumps(said, indent=indent, ensure_ascii=ascii_only)
        return httpx2.Response(200, content=text, headers={"content-type": "application/json"})

    with client(answer) as ask, stepfork.record(path):
        for body in asked:
            ask.post("/chat/completions", cast_to=object, body=body)
    assert [call["asked"] for call in readers_agree(path)["calls"]] == asked
    path.unlink()


@examples(200)
@given(streams())
def test_any_stream_reads_alike(raw: bytes) -> None:
    for told in (stream.encode(raw), encoded(raw)):
        if told is not None:
            assert stream_bytes(second_reader.parse(emit_document({"stream": told}))["stream"]) == raw


@pytest.mark.parametrize("raw", [raw for raw, _ in KINDS.values()], ids=list(KINDS))
def test_every_kind_of_stream_reads_alike(raw: bytes) -> None:
    for told in (stream.encode(raw), encoded(raw)):
        if told is not None:
            assert stream_bytes(second_reader.parse(emit_document({"stream": told}))["stream"]) == raw


@pytest.mark.parametrize("sample", [openai_chat, openai_tools, responses])
def test_long_streams_read_alike(sample: Any) -> None:
    raw = sample()
    told = stream.encode(raw)
    assert "wire" in told
    assert stream_bytes(as_json(told)) == raw


def test_what_tools_do_to_their_arguments_reads_alike(tools: Any, folder: Path) -> None:
    path = folder / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.tidy({"rows": [], "odd key": [1]})
        tools.head(iter([1, 2, 3]), io.BytesIO(b"ab"))
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(tools.slow(1), 0.01))
        for page in tools.pages("abc"):
            break
    calls = readers_agree(path)["calls"]
    assert calls[0]["outcome"]["kept"] == {"state.moved": "state.rows"}
    assert calls[0]["outcome"]["replaced"] == ['state["odd key"]']
    assert [list(call["outcome"]) for call in calls] == [
        ["changed", "kept", "replaced", "result"],
        ["left", "written", "result"],
        ["cancelled"],
        ["yields", "closed"],
    ]


def test_lanes_and_calls_inside_of_calls_read_alike(make_module: Any, folder: Path) -> None:
    """Threads that talk, each beside a tool and inside of it; the partial file is read as it grows."""
    tools = make_module(
        """
        asks = {}
        def research(topic):
            return asks[topic](topic)
        """
    )
    path, partial, seen = folder / "run.yaml", folder / "run.partial.yaml", []

    def work(topic: str) -> None:
        with client() as ask:
            history: list[Any] = [{"role": "system", "content": SYSTEM}]

            def say(text: str) -> str:
                history.append({"role": "user", "content": text})
                ask.chat.completions.create(model="m", messages=history)
                return text

            tools.asks[topic] = lambda text: say(text) + say("and more") + say("and on")
            for turn in range(3):
                say(f"{topic}, turn {turn}")
            tools.research(topic)
            say("thanks")
            seen.append(partial.read_bytes())

    with stepfork.record(path, tools=[tools.__name__]):
        threads = [threading.Thread(target=work, args=(f"topic {number}",)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        work("last topic")
    calls = readers_agree(path)["calls"]
    assert {call["lane"].get("lane") for call in calls} >= {"a", "b", "c", None}
    assert sum(call["depth"] for call in calls) == 4 * 3
    assert path.read_text("utf-8").count("extends: ") == 20
    for data in seen:
        partial.write_bytes(data + b"llm: chat.completions\nextends: 1\nappe")  # and a torn last document
        told, own = second_reader.read(partial)["calls"], first_reader(partial)["calls"]
        assert len(told) >= 8
        assert sorted(map(asked_and_answered, told)) == sorted(map(asked_and_answered, own))


def test_a_partial_file_of_one_line_reads_alike_in_order(tools: Any, folder: Path) -> None:
    path, partial, seen = folder / "run.yaml", folder / "run.partial.yaml", []

    with stepfork.record(path, tools=[tools.__name__]):
        tools.echo("first")
        tools.research("x")
        seen.append(partial.read_bytes())
    partial.write_bytes(seen[0])
    told, own = second_reader.read(partial)["calls"], first_reader(partial)["calls"]
    assert list(map(asked_and_answered, told)) == list(map(asked_and_answered, own))
    assert [call["depth"] for call in told] == [0, 0, 1, 1]


def asked_and_answered(call: dict[str, Any]) -> str:
    return canonical_text({key: item for key, item in call.items() if key != "lane"})


CASSETTES = sorted(path for folder in ("cassettes", "examples") for path in (ROOT / folder).rglob("*.yaml"))


@pytest.mark.parametrize("path", CASSETTES, ids=[str(path.relative_to(ROOT)) for path in CASSETTES])
def test_every_cassette_of_the_project_reads_alike(path: Path) -> None:
    readers_agree(path)
