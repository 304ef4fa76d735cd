"""Streams of the OpenAI SDK: chunk by chunk live and replayed, as far as they were read and no further."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from adapters.openai_rows import NOWHERE, VERSION, M, seen
from support.chat_server import DONE, EVENTS, chunk, event
from support.openai_answers import OpenAIAnswers
from support.scripted_server import Piece, ScriptedServer

import stepfork

LIMIT = 5.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


@pytest.fixture
def serve() -> Iterator[Callable[..., ScriptedServer]]:
    """A server that sends these pieces of a stream; the usual answers without any."""
    servers: list[ScriptedServer] = []

    def make(*pieces: Piece, **headers: str) -> ScriptedServer:
        answers: Any = (lambda asked: (200, {**EVENTS, **headers}, pieces)) if pieces else OpenAIAnswers()
        servers.append(ScriptedServer(answers))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


def ask(client: Any, **more: Any) -> Any:
    return client.chat.completions.create(**{"model": "m", "messages": M, "stream": True, **more})


def live(server: ScriptedServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)


def frozen() -> openai.OpenAI:
    return openai.OpenAI(base_url=NOWHERE)


def one(content: str) -> bytes:
    return event(chunk(content))


def said(chunks: Any) -> list[str]:
    return [item.choices[0].delta.content for item in chunks]


def test_the_first_chunk_is_there_before_the_stream_ends(
    serve: Callable[..., ScriptedServer], path: Path
) -> None:
    read, read_too = threading.Event(), threading.Event()
    server = serve(one("a"), read, one("b"), read_too, one("c"), DONE)
    with stepfork.record(path), live(server) as client:
        stream = ask(client)
        first = next(stream).choices[0].delta.content
        read.set()
        second = next(stream).choices[0].delta.content
        read_too.set()
        assert [first, second, *said(stream)] == ["a", "b", "c"]
    with stepfork.replay(path), frozen() as client:
        assert said(ask(client)) == ["a", "b", "c"]


def test_C50_an_async_stream_neither_hangs_nor_waits(
    serve: Callable[..., ScriptedServer], path: Path
) -> None:
    read = threading.Event()
    server = serve(one("a"), read, one("b"), DONE)

    async def agent(url: str) -> list[str]:
        got = []
        async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
            async for item in await ask(client):
                read.set()
                got.append(item.choices[0].delta.content)
        return got

    with stepfork.record(path):
        assert asyncio.run(asyncio.wait_for(agent(server.url), LIMIT)) == ["a", "b"]
    with stepfork.replay(path):
        assert asyncio.run(asyncio.wait_for(agent(NOWHERE), LIMIT)) == ["a", "b"]


def test_C52_a_stream_is_the_sdks_own(serve: Callable[..., ScriptedServer], path: Path) -> None:
    def sync(client: openai.OpenAI) -> Any:
        stream = ask(client)
        assert isinstance(stream, openai.Stream)
        first = next(stream)
        assert stream.response.status_code == 200
        stream.close()
        assert stream.response.is_closed
        return seen(first)

    async def asynchronous(url: str) -> Any:
        async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
            stream = await ask(client)
            assert isinstance(stream, openai.AsyncStream)
            first = await anext(stream)
            await stream.close()
            assert stream.response.is_closed
            return seen(first)

    server = serve()
    with stepfork.record(path), live(server) as client:
        recorded = sync(client), asyncio.run(asynchronous(server.url))
    with stepfork.replay(path), frozen() as client:
        assert (sync(client), asyncio.run(asynchronous(NOWHERE))) == recorded


def test_C54_an_error_in_mid_stream_comes_after_the_same_chunks(
    serve: Callable[..., ScriptedServer], path: Path
) -> None:
    def agent(client: openai.OpenAI, model: str) -> Any:
        got: list[Any] = []
        with pytest.raises(Exception) as caught:
            for item in ask(client, model=model):
                got.append(seen(item))
        assert len(got) == 2
        return got, type(caught.value), str(caught.value)

    with stepfork.record(path), live(serve()) as client:
        broken, told = agent(client, "breaks"), agent(client, "says")
    assert told[1] is openai.APIError
    with stepfork.replay(path), frozen() as client:
        assert agent(client, "breaks") == broken
        assert agent(client, "says") == told


def test_C56_every_replay_has_a_stream_of_its_own(serve: Callable[..., ScriptedServer], path: Path) -> None:
    server = serve()
    with stepfork.record(path), live(server) as client:
        recorded = [said(list(ask(client))[:-1]) for _ in range(2)]
    for _ in range(2):
        with stepfork.replay(path), frozen() as client:
            assert [said(list(ask(client))[:-1]) for _ in range(2)] == recorded


if VERSION >= (1, 66):  # older ones have no Responses API

    def test_C58_responses_streams_give_the_same_typed_events(
        serve: Callable[..., ScriptedServer], path: Path
    ) -> None:
        def agent(client: openai.OpenAI) -> Any:
            tool: Any = {"type": "function", "name": "search", "parameters": {}, "strict": False}
            text = [seen(item) for item in client.responses.create(model="m", input="x", stream=True)]
            calls = client.responses.create(model="m", input="x", stream=True, tools=[tool])
            return text, [seen(item) for item in calls]

        with stepfork.record(path), live(serve()) as client:
            recorded = agent(client)
        kinds = [[name for name, *_ in events] for events in recorded]
        assert {"ResponseTextDeltaEvent", "ResponseCompletedEvent"} <= set(kinds[0])
        assert {"ResponseFunctionCallArgumentsDeltaEvent", "ResponseCompletedEvent"} <= set(kinds[1])
        with stepfork.replay(path), frozen() as client:
            assert agent(client) == recorded


def _swallow_and_go_on(path: Path) -> None:
    """An agent that catches everything; every further call fails, and so does leaving the session."""
    with stepfork.replay(path), frozen() as client:
        got = []
        try:
            for item in ask(client):
                got.append(item.choices[0].delta.content)
        except Exception:
            assert got == ["a", "b"]
        with pytest.raises(stepfork.ReplayMismatchError, match="reads further"):
            ask(client)


def test_reading_further_than_recorded_is_a_mismatch_that_stays(
    serve: Callable[..., ScriptedServer], path: Path
) -> None:
    with stepfork.record(path), live(serve(one("a"), one("b"), one("c"), DONE)) as client:
        stream = ask(client)
        assert [next(stream).choices[0].delta.content for _ in range(2)] == ["a", "b"]
        stream.close()
    with pytest.raises(stepfork.ReplayMismatchError, match="reads further in the stream") as caught:
        _swallow_and_go_on(path)
    assert (caught.value.index, caught.value.kind, caught.value.cassette) == (1, "llm", path)


def test_an_abandoned_stream_is_recorded_as_far_as_it_was_read(
    serve: Callable[..., ScriptedServer], path: Path
) -> None:
    """Also where the server sent more than was read: what the network had brought does not count."""
    server = serve(one("a") + one("b") + one("c"), DONE)
    with stepfork.record(path), live(server) as client:
        kept = ask(client)
        assert next(kept).choices[0].delta.content == "a"
    assert stepfork.load(path).calls[0].result == "a"
    with stepfork.replay(path), frozen() as client:
        kept = ask(client)
        assert next(kept).choices[0].delta.content == "a"


def test_recording_the_same_reading_again_gives_the_same_cassette(
    serve: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """However the network cut the stream."""
    texts = []
    whole = one("a") + one("b") + one("c")
    for at, pieces in enumerate(
        [[whole, DONE], [one("a"), one("b"), one("c"), DONE], [whole[:70], whole[70:]]]
    ):
        path = tmp_path / f"{at}" / "run.yaml"
        with stepfork.record(path), live(serve(*pieces)) as client:
            stream = ask(client)
            next(stream), next(stream)
            stream.close()
        texts.append(path.read_text().partition("recorded_at")[2].partition("\n")[2].partition("sha256")[0])
    assert texts[0] == texts[1] == texts[2]


def test_a_compressed_stream_stands_as_text(serve: Callable[..., ScriptedServer], path: Path) -> None:
    import gzip

    body = gzip.compress(one("a") + one("b") + DONE)
    server = serve(body[:20], body[20:], **{"content-encoding": "gzip"})
    with stepfork.record(path), live(server) as client:
        recorded = said(ask(client))
    assert stepfork.load(path).calls[0].result == "ab"
    with stepfork.replay(path), frozen() as client:
        assert said(ask(client)) == recorded


def test_a_retried_call_is_noted_and_replayed_without_sleeping(
    serve: Callable[..., ScriptedServer], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent(client: openai.OpenAI) -> Any:
        client = client.with_options(max_retries=5)
        return seen(client.chat.completions.create(model="busy-2", messages=M))

    server = serve()
    with stepfork.record(path), live(server) as client:
        recorded = agent(client)
    assert server.hits == 3
    assert "attempts: [429, 429]" in path.read_text()
    assert len(stepfork.load(path).calls) == 1

    def never(seconds: float) -> None:
        raise AssertionError("the replay slept")

    monkeypatch.setattr(time, "sleep", never)
    with stepfork.replay(path), frozen() as client:
        assert agent(client) == recorded
