"""Bodies that are compressed, empty or no UTF-8: recorded and replayed to the byte."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from adapters.openai_rows import NOWHERE, M
from openai._models import FinalRequestOptions
from support.chat_server import completion
from support.scripted_server import Answer, Asked, ScriptedServer

import stepfork

JSON = {"content-type": "application/json"}
SOUND = b"\xff\xfb\x90\x00"
HTML = "<h1>Schöne Grüße</h1>".encode("latin-1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


@pytest.fixture
def play(path: Path) -> Iterator[Callable[..., tuple[Any, Any]]]:
    """What an agent gets live from a server with one answer, and on replay from nobody."""
    servers: list[ScriptedServer] = []

    def run(answer: Answer, agent: Callable[[openai.OpenAI], Any], **settings: Any) -> tuple[Any, Any]:
        server = ScriptedServer(lambda asked: answer)
        servers.append(server)
        with stepfork.record(path, **settings), openai.OpenAI(base_url=server.url, api_key="k") as client:
            live = agent(client)
        with stepfork.replay(path), openai.OpenAI(base_url=NOWHERE) as client:
            replayed = agent(client)
        assert server.hits == 1
        return live, replayed

    yield run
    for server in servers:
        server.stop()


def seen(response: Any) -> tuple[int, bytes]:
    return response.status_code, response.content


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
@pytest.mark.parametrize("status", [200, 204])
def test_C122_an_empty_body_that_says_it_is_compressed(play: Any, encoding: str, status: int) -> None:
    def agent(client: openai.OpenAI) -> Any:
        found = client.files.with_raw_response.delete("file-1")
        return seen(found.http_response)

    live, replayed = play((status, {"content-encoding": encoding}, b""), agent)
    assert live == replayed == (status, b"")


def test_C122_an_answer_to_HEAD(play: Any, path: Path) -> None:
    def agent(client: openai.OpenAI) -> Any:
        asked = FinalRequestOptions(method="HEAD", url="/files/file-1/content")
        return client.request(type(None), asked)

    headers = {"content-encoding": "gzip", "content-type": "application/octet-stream"}
    assert play((200, headers, b""), agent) == (None, None)
    (call,) = stepfork.load(path).calls
    assert (call.name, call.result) == ("files.content", "")
    assert "method: HEAD\n" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)], ids=["gzip", "deflate"]
)
def test_C122_a_compressed_answer_stands_as_what_it_is(
    play: Any, path: Path, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    body = json.dumps(completion("Grüß Gott"), ensure_ascii=False).encode()

    def agent(client: openai.OpenAI) -> Any:
        found = client.chat.completions.with_raw_response.create(model="m", messages=M)  # type: ignore[arg-type]
        return seen(found.http_response), found.parse().choices[0].message.content

    live, replayed = play((200, {**JSON, "content-encoding": encoding}, compress(body)), agent)
    assert live == replayed == ((200, body), "Grüß Gott")
    assert "content: Grüß Gott" in path.read_text("utf-8")
    assert encoding not in path.read_text("utf-8")


def test_C124_bytes_that_are_no_text(play: Any, path: Path) -> None:
    def agent(client: openai.OpenAI) -> Any:
        return client.audio.speech.create(model="t", voice="alloy", input="hi").content

    assert play((200, {"content-type": "audio/mpeg"}, SOUND), agent) == (SOUND, SOUND)
    assert "body: !bytes //uQAA==\n" in path.read_text("utf-8")


def test_C124_an_error_page_in_latin_1(play: Any) -> None:
    def agent(client: openai.OpenAI) -> Any:
        with pytest.raises(openai.NotFoundError) as caught:
            client.models.retrieve("m")
        return seen(caught.value.response), caught.value.response.text

    live, replayed = play((404, {"content-type": "text/html; charset=latin-1"}, HTML), agent)
    assert live == replayed == ((404, HTML), "<h1>Schöne Grüße</h1>")


def test_C124_a_page_in_latin_1_that_a_tool_fetches(make_module: Any, path: Path) -> None:
    tools = make_module(
        """
        import urllib.request
        def fetch(url):
            with urllib.request.urlopen(url, timeout=10) as page:
                return page.read()
        def fetch_text(url):
            return fetch(url).decode("latin-1")
        """
    )
    served: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        served.append(asked)
        return 200, {"content-type": "text/html; charset=latin-1"}, HTML

    server = ScriptedServer(answer)
    try:
        with stepfork.record(path, tools=[tools.__name__]):
            live = tools.fetch(server.url), tools.fetch_text(server.url)
    finally:
        server.stop()
    with stepfork.replay(path):
        assert (
            (tools.fetch(server.url), tools.fetch_text(server.url)) == live == (HTML, "<h1>Schöne Grüße</h1>")
        )
    assert len(served) == 2
