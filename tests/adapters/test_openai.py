"""The OpenAI SDK through the public API: recorded over HTTP, replayed with the server down and no key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from adapters.openai_rows import NOWHERE, M
from support.chat_server import ChatServer, completion, json_answer

import stepfork

OMITTED: Any = getattr(openai, "omit", openai.NOT_GIVEN)


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

    def sync(self, agent: Callable[[openai.OpenAI], Any]) -> Any:
        with self.client() as client, stepfork.record(self.path):
            recorded = agent(client)
        self.server.stop()
        for _ in range(2):
            with stepfork.replay(self.path) as run, openai.OpenAI(base_url=NOWHERE) as client:
                assert agent(client) == recorded
            assert run.counts.live == 0
        return recorded


@pytest.fixture
def play(server: ChatServer, path: Path) -> Play:
    return Play(server, path)


def test_C60_every_way_in_is_the_same_call(play: Play) -> None:
    def agent(client: openai.OpenAI) -> Any:
        posted = client.post("/chat/completions", cast_to=object, body={"model": "m", "messages": M})
        other = client.with_options(timeout=2).chat.completions.create(model="m", messages=M).model_dump()
        return posted, other

    play.sync(agent)
    assert [call.name for call in stepfork.load(play.path).calls] == ["chat.completions"] * 2


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


def test_C77_a_mismatch_is_not_retried_by_the_sdk(
    server: ChatServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        client.chat.completions.create(model="m", messages=M)
    built, slept = [], []
    monkeypatch.setattr(time, "sleep", slept.append)

    class Counting(openai.OpenAI):
        def _build_request(self, *args: Any, **kwargs: Any) -> Any:
            built.append(1)
            return super()._build_request(*args, **kwargs)

    client = Counting(base_url=server.url, api_key="k", max_retries=5)
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        client.chat.completions.create(model="m", messages=say("other"))
    client.close()
    assert (len(built), slept, server.hits) == (1, [], 1)


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
        client.chat.completions.create(model="m", messages=M, temperature=OMITTED)
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
        lambda: client.files.create(file=b"x", purpose="assistants"),
        lambda: client.audio.transcriptions.create(file=b"x", model="m"),
    ]
    for call in calls:
        with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
            call()
    assert server.hits == hits
    client.close()


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
