"""A secret that a model says in pieces is a secret all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import ChatServer, stream_answer

import stepfork

TOKEN = "ghp_" + "aB3" * 12


@pytest.mark.parametrize("cuts", [(7, 20), (1, 2), (39, 40), (20, 20)])
def test_a_secret_split_over_deltas_reaches_no_file(
    server: ChatServer, tmp_path: Path, cuts: tuple[int, int]
) -> None:
    path = tmp_path / "run.yaml"
    one, two = cuts
    server.answer = lambda _: stream_answer("key ", TOKEN[:one], TOKEN[one:two], TOKEN[two:], " is fine")

    def agent(client: openai.OpenAI) -> str:
        chunks = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "say it"}], stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        assert agent(client) == f"key {TOKEN} is fine", "the live run sees real values"
    text = path.read_text()
    assert TOKEN[4:12] not in text
    with stepfork.replay(path), openai.OpenAI() as client:
        assert agent(client) == "key <secret:github_token:1> is fine"


@pytest.mark.parametrize("form", ["multi-line data", "an unknown field"])
def test_a_split_secret_in_any_field_or_form(server: ChatServer, tmp_path: Path, form: str) -> None:
    path = tmp_path / "run.yaml"
    key = "content" if form == "multi-line data" else "foo"
    events = []
    for piece in (TOKEN[:9], TOKEN[9:25], TOKEN[25:]):
        data = json.dumps({"id": "c", "choices": [{"index": 0, "delta": {key: piece}}]})
        lines = [data[:12], data[12:]] if form == "multi-line data" and " " in data else [data]
        events.append("".join(f"data: {line}\n" for line in lines) + "\n")
    body = ("".join(events) + "data: [DONE]\n\n").encode()
    server.answer = lambda _: (200, {"content-type": "text/event-stream"}, body)

    def agent(client: openai.OpenAI) -> int:
        chunks = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "say it"}], stream=True
        )
        return len(list(chunks))

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        assert agent(client) == 3
    text = path.read_text()
    assert not [piece for piece in (TOKEN[4:9], TOKEN[9:25], TOKEN[25:]) if piece in text]
    with stepfork.replay(path), openai.OpenAI() as client:
        assert agent(client) == 3


def test_a_hand_made_break_that_cannot_be_rebuilt_cannot_be_swallowed(
    server: ChatServer, tmp_path: Path
) -> None:
    path = tmp_path / "run.yaml"
    server.answer = lambda _: stream_answer("a", "b", end="")

    def agent(client: openai.OpenAI) -> None:
        try:
            messages: Any = [{"role": "user", "content": "a b"}]
            list(client.chat.completions.create(model="m", messages=messages, stream=True))
        except Exception:
            pass

    with stepfork.record(path), openai.OpenAI(base_url=server.url, api_key="k") as client:
        agent(client)
    for kind in ("os:system", "builtins:SystemExit"):
        edited = path.with_name("edited.yaml")
        broken = f'  broken: {{class: "{kind}", args: [x]}}\n---\nend:'
        edited.write_text(path.read_text().replace("---\nend:", broken))
        with pytest.raises(stepfork.CassetteError), stepfork.replay(edited, integrity="off"):
            agent(openai.OpenAI())
