"""Keys and tokens: none is needed on replay, none is sent that is not real, none reaches the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from adapters.openai_rows import M, say
from support.chat_server import ChatServer

import stepfork


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


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


def test_a_module_level_client_made_without_a_key_leaves_nothing_behind(
    server: ChatServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent() -> Any:
        return openai.chat.completions.create(model="m", messages=M).model_dump()

    monkeypatch.setattr(openai, "base_url", server.url)
    with monkeypatch.context() as live:
        live.setattr(openai, "api_key", "k")
        with stepfork.record(path):
            recorded = agent()
    openai._reset_client()
    with stepfork.replay(path):
        assert agent() == recorded
    assert openai.api_key is None
    assert openai._client is None


def test_an_empty_key_is_no_key(server: ChatServer, path: Path) -> None:
    def agent(key: str) -> Any:
        with openai.OpenAI(base_url=server.url, api_key=key) as client:
            return client.chat.completions.create(model="m", messages=M).model_dump()

    with stepfork.record(path):
        recorded = agent("k")
    with stepfork.replay(path):
        assert agent("") == recorded
