"""Other versions of the SDK, and other tools beside stepfork: what is tolerated, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import openai
import pytest
from adapters.openai_rows import NOWHERE, M, seen
from support.chat_server import ChatServer
from support.openai_answers import OpenAIAnswers
from support.scripted_server import ScriptedServer

import stepfork


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def ask(client: openai.OpenAI) -> Any:
    return client.chat.completions.create(model="m", messages=M, stream=True)  # type: ignore[call-overload]


def answer_in(path: Path, *changes: tuple[str, str]) -> None:
    """Edits a cassette; its checksum is left behind."""
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text.partition("sha256:")[0])


def test_C137_an_answer_of_another_time_is_built_all_the_same(server: ChatServer, path: Path) -> None:
    def agent() -> Any:
        with openai.OpenAI(base_url=server.url, api_key="k") as client:
            return client.chat.completions.create(model="m", messages=M)

    with stepfork.record(path):
        agent()
    usage = "  usage: {prompt_tokens: 3, completion_tokens: 4, total_tokens: 7}\n"
    answer_in(path, (usage, "  x: {new: [1]}\n"), ("finish_reason: stop", "finish_reason: foo"))
    with pytest.warns(UserWarning, match="checksum"), stepfork.replay(path):
        answer = agent()
    assert (answer.usage, answer.x, answer.choices[0].finish_reason) == (None, {"new": [1]}, "foo")


def test_C139_a_tool_below_that_edits_requests_is_not_seen(path: Path) -> None:
    """It edits what is sent; the agent's own request is recorded, and replays with and without the tool."""
    server = ScriptedServer(OpenAIAnswers())

    def edit(request: Any) -> None:
        content = request.read().replace(b"{", b'{"stream_options":{"include_usage":true},', 1)
        request.stream = type(request.stream)(content)
        request.headers["content-length"] = str(len(content))

    def agent(url: str, with_tool: bool) -> Any:
        with openai.OpenAI(base_url=url, api_key="k") as client:
            if with_tool:
                client._client.event_hooks = {"request": [edit]}
            return [seen(chunk) for chunk in ask(client)]

    with stepfork.record(path):
        recorded = agent(server.url, with_tool=True)
    server.stop()
    assert server.asked[0].json["stream_options"] == {"include_usage": True}
    assert "stream_options" not in path.read_text()
    for with_tool in (True, False):
        with stepfork.replay(path):
            assert agent(NOWHERE, with_tool) == recorded


def test_C139_a_tool_above_that_edits_requests_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it adds is part of what the SDK is asked: without it, that is the only difference."""
    server = ScriptedServer(OpenAIAnswers())
    completions = type(openai.OpenAI(api_key="k").chat.completions)
    create: Any = completions.create

    def with_usage(self: Any, **asked: Any) -> Any:
        return create(self, **asked, stream_options={"include_usage": True})

    def agent(url: str) -> Any:
        with openai.OpenAI(base_url=url, api_key="k") as client:
            return [seen(chunk) for chunk in ask(client)]

    with monkeypatch.context() as tool:
        tool.setattr(completions, "create", with_usage)
        with stepfork.record(path):
            recorded = agent(server.url)
        server.stop()
        with stepfork.replay(path):
            assert agent(NOWHERE) == recorded
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        agent(NOWHERE)
    assert caught.value.path == "stream_options"


def test_what_some_versions_add_does_not_count(server: ChatServer, path: Path) -> None:
    def agent(**more: Any) -> Any:
        with openai.OpenAI(base_url=server.url, api_key="k") as client:
            return seen(client.chat.completions.create(model="m", messages=M, **more))

    with stepfork.record(path):
        recorded = agent(stream=False)
    for more in ({}, {"stream": False}):
        with stepfork.replay(path):
            assert agent(**more) == recorded
    with pytest.raises(stepfork.ReplayMismatchError, match="stream"), stepfork.replay(path):
        agent(stream=True)


def test_embeddings_in_base64_are_floats_for_who_asked_for_no_base64(path: Path) -> None:
    """Old SDKs ask for base64 only where numpy is installed."""
    server = ScriptedServer(OpenAIAnswers())

    def agent(url: str, **more: Any) -> Any:
        with openai.OpenAI(base_url=url, api_key="k") as client:
            body = {"model": "e", "input": "x", **more}
            return client.post("/embeddings", cast_to=object, body=body)["data"][0]["embedding"]  # type: ignore[index]

    with stepfork.record(path):
        packed = agent(server.url, encoding_format="base64")
    server.stop()
    with stepfork.replay(path):
        assert agent(NOWHERE, encoding_format="base64") == packed
    with stepfork.replay(path):
        assert agent(NOWHERE) == [0.5, -1.25, 3.0, pytest.approx(0.1)]
    with pytest.raises(stepfork.ReplayMismatchError, match="encoding_format"), stepfork.replay(path):
        agent(NOWHERE, encoding_format="float")


# -- an SDK that is not as expected -----------------------------------------------------------------


def test_an_sdk_without_what_is_patched_is_refused_and_nothing_stays_patched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from openai._base_client import BaseClient, SyncAPIClient

    before = dict(vars(SyncAPIClient))
    monkeypatch.delattr(BaseClient, "_make_status_error_from_response")
    with pytest.raises(stepfork.ConfigError, match="_make_status_error_from_response does not exist"):
        stepfork.autopatch()
    assert dict(vars(SyncAPIClient)) == before


FAKE = """
class BaseClient:
    def _build_request(self, options): ...
    def _process_response(self): ...
class SyncAPIClient(BaseClient):
    def request(self): return "live"
class AsyncAPIClient(BaseClient):
    async def request(self): return "live"
"""


@pytest.mark.parametrize(
    "order", ["import openai; stepfork.autopatch()", "stepfork.autopatch(); import openai"]
)
def test_another_sdk_of_that_name_is_refused_loudly(tmp_path: Path, order: str) -> None:
    package = tmp_path / "openai"
    package.mkdir()
    (package / "__init__.py").write_text("from openai._base_client import *\n")
    (package / "_base_client.py").write_text(FAKE)
    program = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import stepfork
        try:
            {order}
        except stepfork.ConfigError as error:
            print("refused:", error)
        import stepfork.instrument.wrapping
        from openai._base_client import SyncAPIClient
        print(type(vars(SyncAPIClient)["request"]).__name__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    refused, kind = done.stdout.splitlines() or [done.stderr, ""]
    assert "does not exist in the installed version of openai" in refused
    assert "use a supported version" in refused
    assert kind == "function", "nothing is patched by half"


def test_a_client_that_sends_in_its_own_way_makes_the_recording_fail(path: Path) -> None:
    class Mine(openai.OpenAI):
        def _build_request(self, options: Any, **_: Any) -> Any:
            return self._client.build_request(options.method, "http://127.0.0.1:9/")

    with pytest.raises(stepfork.RecordingError, match="stepfork cannot see"), stepfork.record(path):
        client = Mine(api_key="k", base_url=NOWHERE)
        client._client.send = lambda request, **_: answered(request)  # type: ignore[method-assign]
        with client:
            client.get("/x", cast_to=object)


def answered(request: Any) -> Any:
    module = sys.modules[type(request).__module__.partition(".")[0]]
    return module.Response(200, json={}, request=request)
