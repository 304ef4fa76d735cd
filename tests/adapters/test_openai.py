"""The OpenAI SDK through the public API: recorded over HTTP, replayed with the server down and no key."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import ChatServer, completion, json_answer, stream_answer

import stepfork

M = [{"role": "user", "content": "hi"}]
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def say(content: str) -> Any:
    return [{"role": "user", "content": content}]


class Play:
    """Runs one agent live and recorded, then again with the server down and no key."""

    def __init__(self, server: ChatServer, path: Path) -> None:
        self.server, self.path = server, path

    def client(self, **more: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.server.url, api_key="sk-live", max_retries=0, **more)

    def aclient(self, **more: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.server.url, api_key="sk-live", max_retries=0, **more)

    def sync(self, agent: Callable[[openai.OpenAI], Any]) -> Any:
        with self.client() as client, stepfork.record(self.path):
            recorded = agent(client)
        self.server.stop()
        for _ in range(2):
            with stepfork.replay(self.path) as run, openai.OpenAI(base_url=NOWHERE) as client:
                assert agent(client) == recorded
            assert run.counts.live == 0
        return recorded

    def asynchronous(self, agent: Callable[[openai.AsyncOpenAI], Any]) -> Any:
        async def live() -> Any:
            async with self.aclient() as client:
                with stepfork.record(self.path):
                    return await agent(client)

        async def frozen() -> Any:
            async with openai.AsyncOpenAI(base_url=NOWHERE) as client:
                return await agent(client)

        recorded = asyncio.run(live())
        self.server.stop()
        with stepfork.replay(self.path) as run:
            assert asyncio.run(asyncio.wait_for(frozen(), 5)) == recorded
        assert run.counts.live == 0
        return recorded


@pytest.fixture
def play(server: ChatServer, path: Path) -> Play:
    return Play(server, path)


def test_a_completion_is_the_sdks_own_object(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        answer = client.chat.completions.create(model="m", messages=M)
        assert type(answer).__name__ == "ChatCompletion"
        return answer.model_dump(), answer._request_id

    dumped, request_id = play.sync(agent)
    assert dumped["choices"][0]["message"]["content"] == "you said:\nhi"
    assert request_id == "req_1"


def test_an_async_completion(play: Play) -> None:
    async def agent(client: openai.AsyncOpenAI) -> Any:
        answer = await client.chat.completions.create(model="m", messages=M)
        return answer.model_dump(), answer._request_id

    play.asynchronous(agent)


def test_C52_C56_a_stream_is_the_sdks_own_and_fresh_at_every_replay(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        stream = client.chat.completions.create(model="m", messages=say("one two three"), stream=True)
        assert isinstance(stream, openai.Stream)
        return [chunk.model_dump() for chunk in stream]

    assert len(play.sync(agent)) == 3


def test_C50_an_async_stream(play: Play) -> None:
    async def agent(client: openai.AsyncOpenAI) -> Any:
        stream = await client.chat.completions.create(model="m", messages=say("one two"), stream=True)
        assert isinstance(stream, openai.AsyncStream)
        return [chunk.model_dump() async for chunk in stream]

    play.asynchronous(agent)


def test_a_stream_closed_early_replays_as_far_as_it_was_read(server: ChatServer, path: Path) -> None:
    play = Play(server, path)

    def agent(client: openai.OpenAI) -> Any:
        stream = client.chat.completions.create(model="m", messages=say("one two three"), stream=True)
        first = next(stream).model_dump()
        stream.close()
        return first

    play.sync(agent)


def test_a_stream_nobody_read_is_recorded_when_the_session_ends(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        client.chat.completions.create(model="m", messages=say("one two"), stream=True)
        return client.chat.completions.create(model="m", messages=M).model_dump()

    play.sync(agent)
    assert [call.name for call in stepfork.load(play.path).calls] == ["chat.completions", "chat.completions"]


def test_raw_and_streaming_responses(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=M)
        with client.chat.completions.with_streaming_response.create(model="m", messages=M) as streaming:
            lines = list(streaming.iter_lines())
        return raw.text, raw.parse().model_dump(), raw.headers["x-request-id"], raw.status_code, lines

    play.sync(agent)


def test_C60_every_way_in_is_the_same_call(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        posted = client.post("/chat/completions", cast_to=object, body={"model": "m", "messages": M})
        other = client.with_options(timeout=2).chat.completions.create(model="m", messages=M).model_dump()
        return posted, other

    play.sync(agent)
    assert [call.name for call in stepfork.load(play.path).calls] == ["chat.completions"] * 2


def test_an_error_status_is_the_sdks_own_error(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="m", messages=say("fail"))
        error = caught.value
        return error.status_code, error.body, error.request_id, str(error), dict(error.response.json())

    play.sync(agent)


def test_C72_a_429_keeps_status_body_and_headers(server: ChatServer, path: Path) -> None:
    body = {"error": {"message": "slow down", "type": "rate", "code": "rate_limit"}}
    server.answer = lambda _: json_answer(body, 429, **{"retry-after": "30"})

    def agent(client: openai.OpenAI) -> Any:
        try:
            client.chat.completions.create(model="m", messages=M)
        except openai.RateLimitError as error:
            return error.status_code, error.body, error.response.headers["retry-after"], str(error)

    status, _, retry_after, _ = Play(server, path).sync(agent)
    assert (status, retry_after) == (429, "30")


def test_a_lost_connection_is_the_same_error(path: Path) -> None:
    def agent() -> Any:
        with openai.OpenAI(base_url=NOWHERE, api_key="k", max_retries=0) as client:
            with pytest.raises(openai.APIConnectionError) as caught:
                client.chat.completions.create(model="m", messages=M)
            return type(caught.value), str(caught.value)

    with stepfork.record(path):
        recorded = agent()
    with stepfork.replay(path):
        assert agent() == recorded


def test_a_retried_call_is_one_call_and_replays_without_sleeping(server: ChatServer, path: Path) -> None:
    def answer(_: Any) -> Any:
        if server.hits < 3:
            return json_answer({"error": {"message": "busy"}}, 429, **{"retry-after-ms": "1"})
        return json_answer(completion("at last"))

    server.answer = answer

    def agent(client: openai.OpenAI) -> Any:
        return client.with_options(max_retries=3).chat.completions.create(model="m", messages=M).model_dump()

    Play(server, path).sync(agent)
    assert server.hits == 3
    assert len(stepfork.load(path).calls) == 1


def test_a_client_made_before_the_patch_is_caught(server: ChatServer, path: Path) -> None:
    with openai.OpenAI(base_url=server.url, api_key="sk-live") as client:
        create = client.chat.completions.create
        with stepfork.record(path):
            recorded = create(model="m", messages=M).model_dump()
        server.stop()
        with stepfork.replay(path):
            assert create(model="m", messages=M).model_dump() == recorded


def test_the_module_level_client_and_a_subclass(
    server: ChatServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(openai.OpenAI):
        pass

    def agent() -> Any:
        with Mine(base_url=server.url, api_key="k") as mine:
            first = mine.chat.completions.create(model="m", messages=M).model_dump()
        second = openai.chat.completions.create(model="m", messages=M).model_dump()
        return first, second

    monkeypatch.setattr(openai, "base_url", server.url)
    monkeypatch.setattr(openai, "api_key", "k")
    with stepfork.record(path):
        recorded = agent()
    server.stop()
    with stepfork.replay(path):
        assert agent() == recorded
    openai._reset_client()
    assert len(stepfork.load(path).calls) == 2, "C64: exactly one call a call"


def test_a_client_without_a_key_cannot_go_live(server: ChatServer, path: Path) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=M)
    with stepfork.replay(path):
        keyless = openai.OpenAI(base_url=server.url)
        keyless.chat.completions.create(model="m", messages=M)
    stepfork.autopatch()
    hits = server.hits
    with pytest.raises(stepfork.ConfigError, match="without a key"):
        keyless.chat.completions.create(model="m", messages=M)
    assert server.hits == hits
    keyless.close()
    with pytest.raises(openai.OpenAIError, match=r"[Cc]redentials|api_key"):
        openai.OpenAI()


def test_azure_needs_no_key_but_its_endpoint(server: ChatServer, path: Path) -> None:
    def agent(**key: Any) -> Any:
        with openai.AzureOpenAI(
            azure_endpoint=server.url.removesuffix("/v1"), api_version="2024-10-21", **key
        ) as client:
            return client.chat.completions.create(model="gpt", messages=M).model_dump()

    def never() -> str:
        raise AssertionError("no provider is asked for a token on replay")

    with stepfork.record(path):
        recorded = agent(api_key="k")
    server.stop()
    with stepfork.replay(path):
        assert agent() == recorded
    with stepfork.replay(path):
        assert agent(azure_ad_token_provider=never) == recorded
    with stepfork.replay(path):
        with pytest.raises(ValueError, match=r"api_version|endpoint|base_url"):
            openai.AzureOpenAI()
        agent()
    assert stepfork.load(path).calls[0].name == "chat.completions"


def test_a_changed_prompt_is_refused_and_nothing_is_sent(server: ChatServer, path: Path) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=say("refund order 1"))
    hits = server.hits
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        client = openai.OpenAI(base_url=server.url, api_key="k")
        client.chat.completions.create(model="m", messages=say("refund order 2"))
    error = caught.value
    assert (error.path, error.expected, error.actual) == (
        "messages[0].content",
        "refund order 1",
        "refund order 2",
    )
    assert (error.kind, error.index) == ("llm", 1)
    assert server.hits == hits
    client.close()


def test_C77_a_mismatch_is_not_retried_by_the_sdk(server: ChatServer, path: Path) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=M)
    started = time.process_time()
    client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=5)
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        client.chat.completions.create(model="m", messages=say("other"))
    client.close()
    assert time.process_time() - started < 5


def test_C26_the_arguments_of_a_tool_call_compare_parsed(server: ChatServer, path: Path) -> None:
    def history(arguments: str, said: str = '{"a":1,"b":2}') -> Any:
        call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return [{"role": "user", "content": said}, {"role": "assistant", "tool_calls": [call]}, *M]

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=history('{"a":1,"b":2}'))
    client = openai.OpenAI(base_url=server.url, api_key="k")
    with stepfork.replay(path):
        client.chat.completions.create(model="m", messages=history('{"b": 2, "a": 1}'))
    with pytest.raises(stepfork.ReplayMismatchError, match="arguments"), stepfork.replay(path):
        client.chat.completions.create(model="m", messages=history('{"b": 3, "a": 1}'))
    with pytest.raises(stepfork.ReplayMismatchError, match=r"messages\[0\].content"), stepfork.replay(path):
        client.chat.completions.create(model="m", messages=history('{"a":1,"b":2}', '{"b": 2, "a": 1}'))
    client.close()


def test_C30_omitted_sentinels_equal_absent(server: ChatServer, path: Path) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=M, temperature=openai.omit)
    assert "temperature" not in path.read_text()
    client = openai.OpenAI(base_url=server.url, api_key="k")
    with stepfork.replay(path):
        client.chat.completions.create(model="m", messages=M)
    with stepfork.replay(path):
        client.chat.completions.create(model="m", messages=M, temperature=openai.NOT_GIVEN)
    with pytest.raises(stepfork.ReplayMismatchError, match="temperature"), stepfork.replay(path):
        client.chat.completions.create(model="m", messages=M, temperature=None)
    client.close()


def test_C62_an_endpoint_nobody_recorded_never_goes_live(server: ChatServer, path: Path) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=M)
    hits = server.hits
    client = openai.OpenAI(base_url=server.url, api_key="k")
    calls: list[Callable[[], Any]] = [
        lambda: client.embeddings.create(model="m", input="x"),
        lambda: client.images.generate(prompt="x"),
        lambda: client.models.list(),
        lambda: client.responses.create(model="m", input="x"),
        lambda: client.files.create(file=b"x", purpose="assistants"),
        lambda: client.audio.transcriptions.create(file=b"x", model="m"),
    ]
    for call in calls:
        with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
            call()
    assert server.hits == hits
    client.close()


def test_headers_and_keys_do_not_reach_the_file(server: ChatServer, path: Path) -> None:
    key = "sk-" + "a1B2" * 10
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key=key) as client:
        client.chat.completions.create(
            model="m", messages=say(f"my key is {key}"), extra_headers={"x-mine": "1"}
        )
    text = path.read_text()
    assert key not in text
    assert "x-mine" not in text
    assert server.bodies[0]["messages"][0]["content"].endswith(key), "the live run sees real values"


def test_the_text_of_an_answer_is_byte_for_byte(server: ChatServer, path: Path) -> None:
    texts = [
        json.dumps(completion("é"), ensure_ascii=True, indent=4),
        json.dumps(completion("é"), ensure_ascii=False, separators=(",", ":")) + "\n",
        '{"id": "x",  "choices": [],"f":1.50}',
    ]

    def answer(_: Any) -> Any:
        return 200, {"content-type": "application/json"}, texts[(server.hits - 1) % 3].encode()

    server.answer = answer

    def agent(client: openai.OpenAI) -> Any:
        return [client.chat.completions.with_raw_response.create(model="m", messages=M).text for _ in texts]

    assert Play(server, path).sync(agent) == texts


def test_a_stream_that_breaks_midway_breaks_again(server: ChatServer, path: Path) -> None:
    whole = stream_answer("one", "two", end="")

    def answer(_: Any) -> Any:
        status, headers, body = whole
        return status, {**headers, "content-length": str(len(body) + 100), "connection": "close"}, body

    server.answer = answer

    def agent(client: openai.OpenAI) -> Any:
        seen = []
        with pytest.raises(Exception, match=r"Connection error|peer closed") as caught:
            for chunk in client.chat.completions.create(model="m", messages=M, stream=True):
                seen.append(chunk.model_dump())
        return seen, type(caught.value)

    seen, _ = Play(server, path).sync(agent)
    assert len(seen) == 2


def test_parse_gives_the_model_again(server: ChatServer, path: Path) -> None:
    from pydantic import BaseModel

    class Verdict(BaseModel):
        severity: str

    server.answer = lambda _: json_answer(completion('{"severity": "P0"}'))

    def agent(client: openai.OpenAI) -> Any:
        parsed = client.chat.completions.parse(model="m", messages=M, response_format=Verdict)
        return parsed.choices[0].message.parsed, parsed.id

    verdict, _ = Play(server, path).sync(agent)
    assert verdict == Verdict(severity="P0")


def test_unpatch_restores_the_identical_objects() -> None:
    from openai import _base_client

    owners = [openai.OpenAI, openai.AsyncOpenAI, openai.AzureOpenAI, openai.AsyncAzureOpenAI,
              _base_client.BaseClient, _base_client.SyncAPIClient, _base_client.AsyncAPIClient]  # fmt: skip
    before = [dict(vars(owner)) for owner in owners]
    stepfork.autopatch()
    stepfork.autopatch()
    request = vars(_base_client.SyncAPIClient)["request"]
    assert request is not before[5]["request"]
    assert request.__wrapped__ is before[5]["request"], "wrapped once, however often autopatch was called"
    stepfork.unpatch()
    after = [dict(vars(owner)) for owner in owners]
    assert all(
        a.keys() == b.keys() and all(a[k] is b[k] for k in a) for a, b in zip(before, after, strict=True)
    )


def test_a_patch_over_ours_is_left_alone_and_ours_goes_inert(server: ChatServer) -> None:
    from openai._base_client import SyncAPIClient

    stepfork.autopatch()
    ours = SyncAPIClient.__dict__["request"]
    theirs_saw = []

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        theirs_saw.append(1)
        return ours.__get__(self, type(self))(*args, **kwargs)

    original = ours.__wrapped__
    SyncAPIClient.request = theirs  # type: ignore[method-assign]
    try:
        with pytest.warns(UserWarning, match="patched again by another library"):
            stepfork.unpatch()
        with openai.OpenAI(base_url=server.url, api_key="k") as client:
            client.chat.completions.create(model="m", messages=M)
        assert theirs_saw == [1]
    finally:
        SyncAPIClient.request = original  # type: ignore[method-assign]
