"""C69: beside libraries that patch the same transport: each answers what is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chat_server import ChatServer
from support.plugin_project import PluginProject

import stepfork

AGENT = """
import httpx
import openai

def ask():
    client = openai.OpenAI(base_url="URL", api_key="k", max_retries=0)
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    return answer.choices[0].message.content

def price():
    return httpx.get("https://other.test/price").json()
"""
RESPX = """
import httpx
import pytest
import respx
from mockedagent import ask, price

@respx.mock
def test_it():
    respx.get("https://other.test/price").mock(return_value=httpx.Response(200, json={"cents": 3}))
    PASSED
    assert ask()
    assert price() == {"cents": 3}
"""
PYTEST_HTTPX = """
import pytest
from mockedagent import ask, price

MARK
def test_it(httpx_mock):
    httpx_mock.add_response(url="https://other.test/price", json={"cents": 3})
    assert ask()
    assert price() == {"cents": 3}
"""


@pytest.mark.parametrize(
    ("plugin", "source", "slot", "passes"),
    [
        ("respx", RESPX, "PASSED", 'respx.route(host="127.0.0.1").pass_through()'),
        (
            "pytest_httpx",
            PYTEST_HTTPX,
            "MARK",
            '@pytest.mark.httpx_mock(should_mock=lambda request: request.url.host == "other.test")',
        ),
    ],
    ids=["respx", "pytest-httpx"],
)
def test_C69_replay_inside_an_active_mock(
    tmp_path: Path, server: ChatServer, plugin: str, source: str, slot: str, passes: str
) -> None:
    """Recorded past the mock; on replay the agent's call reaches neither the mock nor the server."""
    project = PluginProject(tmp_path / "project", plugin)
    project.write("pytest.ini", "[pytest]\n")
    project.write("mockedagent.py", AGENT.replace("URL", server.url))
    project.write("test_it.py", source.replace(slot, passes))
    project.test(mode="record").expect(passed=1)
    stored = stepfork.load(project.folder / "cassettes" / "test_it" / "test_it.yaml")
    assert [call.name for call in stored.calls] == ["chat.completions"]
    project.write("test_it.py", source.replace(slot, ""))
    project.test().expect(passed=1).says("1 call replayed, 0 live")
    assert len(server.bodies) == 1
