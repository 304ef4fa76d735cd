"""A secret that a model says in pieces is a secret all the same."""

from __future__ import annotations

from pathlib import Path

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
