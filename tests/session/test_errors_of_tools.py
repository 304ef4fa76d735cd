"""What tools raise, errors of HTTP libraries first of all: an agent catches on replay what it caught live."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOOLS = """
    import json, subprocess, threading, urllib.error, urllib.request
    import attrs, httpx2, openai, pydantic, requests
    from dataclasses import dataclass
    bodies = []

    class Down(Exception):
        def __init__(self, *, service, code):
            super().__init__(f"{service} is down")
            self.service, self.code = service, code

    class Silent(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    @dataclass
    class Typed(Exception):
        code: int

    @attrs.define(auto_exc=True)
    class Defined(Exception):
        code: int

    class Held(Exception):
        def __init__(self, text):
            super().__init__(text)
            self.lock = threading.Lock()

    class Order(pydantic.BaseModel):
        count: int

    def by_requests(url):
        bodies.append(1)
        answer = requests.post(url, json={"q": 1}, headers={"X-Trace": "t"}, timeout=5)
        answer.raise_for_status()

    def by_requests_json(url):
        bodies.append(1)
        requests.get(url, timeout=5).json()

    def by_requests_down(url):
        bodies.append(1)
        requests.get("http://127.0.0.1:9/x", timeout=5)

    def by_urllib(url):
        bodies.append(1)
        urllib.request.urlopen(url, timeout=5)

    def by_urllib_read(url):
        bodies.append(1)
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError as error:
            error.read(4)
            raise

    def by_httpx(url):
        bodies.append(1)
        httpx2.post(url, json={"q": 1}).raise_for_status()

    def by_httpx_down(url):
        bodies.append(1)
        httpx2.get("http://127.0.0.1:9/x")

    def raises(name):
        bodies.append(1)
        if name == "from one that cannot be written":
            try:
                raise Held("inner")
            except Held as inner:
                raise Down(service="db", code=3) from inner
        if name == "from itself":
            error = ValueError("a")
            error.__cause__ = KeyError("b")
            error.__cause__.__cause__ = error
            raise error
        if name == "a group":
            raise ExceptionGroup("all", [Down(service="db", code=1), ExceptionGroup("more", [KeyError("k")])])
        if name == "a process":
            subprocess.run(["false"], check=True, capture_output=True)
        raise {
            "required keywords": lambda: Down(service="db", code=3),
            "no text": lambda: Silent(1),
            "a dataclass": lambda: Typed(5),
            "attrs": lambda: Defined(5),
            "json": lambda: json.JSONDecodeError("bad", "{", 1),
            "unicode": lambda: UnicodeDecodeError("utf-8", b"\\xff", 0, 1, "bad"),
            "a file": lambda: FileNotFoundError(2, "No such file", "a.txt"),
            "two files": lambda: OSError(18, "Cross-device", "a.txt", None, "b.txt"),
            "stop": lambda: LookupError({"a": {1, 2}}, b"x"),
        }[name]()

    def validates(value):
        bodies.append(1)
        return Order(count=value)

    def made_by_hand(value):
        bodies.append(1)
        raise pydantic.ValidationError.from_exception_data(
            "Order", [{"type": "int_parsing", "loc": ("count",), "input": value}]
        )
"""


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b'{"error": "slow down"}' if self.path != "/binary" else b"\xff\x00"
        self.send_response(200 if self.path == "/no-json" else 429, "Slow Down")
        for name, value in (("Retry-After", "30"), ("X-Twice", "a"), ("X-Twice", "b")):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) - (self.path == "/no-json")))
        self.end_headers()
        self.wfile.write(body[:-1] if self.path == "/no-json" else body)

    do_GET = do_POST = _answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def both(tools: Any, tmp_path: Path) -> Callable[[Callable[[], Any]], Any]:
    """Runs an agent as it is, records and replays it: the same each time, and no body runs on replay."""

    def run(agent: Callable[[], Any]) -> Any:
        plain = agent()
        path = tmp_path / "run.yaml"
        with stepfork.record(path, tools=[tools.__name__]):
            assert agent() == plain
        tools.bodies.clear()
        for _ in range(2):
            with stepfork.replay(path):
                assert agent() == plain
        assert tools.bodies == []
        return plain

    return run


def caught(tool: Callable[[Any], Any], given: Any) -> BaseException:
    try:
        tool(given)
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def kept(headers: Any) -> list[str]:
    """The names of those headers that say more than which program answered when."""
    return [name for name in headers if name.lower() not in ("date", "server", "content-length")]


def test_requests_raises_for_status(tools: Any, both: Any, url: str) -> None:
    def agent() -> Any:
        error: Any = caught(tools.by_requests, f"{url}/x")
        answer = error.response
        assert error.request is not None
        return [
            type(error), str(error), answer.status_code, answer.reason, answer.text, answer.json(),
            answer.url, answer.headers["retry-after"], kept(answer.headers), answer.encoding, answer.ok,
            answer.history,
            answer.request.method, answer.request.url, answer.request.body, answer.request.headers["x-trace"],
        ]  # fmt: skip

    assert both(agent)[2:5] == [429, "Slow Down", '{"error": "slow down"}']


@pytest.mark.parametrize("how", ["raised", "made"])
def test_C72_an_error_of_pydantics_has_its_args(tools: Any, both: Any, tmp_path: Path, how: str) -> None:
    def agent() -> Any:
        error: Any = caught(tools.validates if how == "raised" else tools.made_by_hand, "no number")
        return [type(error), str(error), error.errors(), [type(item) for item in error.args]]

    assert [kind.__name__ for kind in both(agent)[3]] == (
        [] if how == "raised" else ["str", "list", "str", "bool"]
    )
    shown = subprocess.run(
        [sys.executable, "-m", "stepfork", "inspect", str(tmp_path / "run.yaml")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert 'ValidationError("Order", [{"type": "int_parsing"' in shown.stdout


def test_requests_finds_no_json(tools: Any, both: Any, url: str) -> None:
    def agent() -> Any:
        error: Any = caught(tools.by_requests_json, f"{url}/no-json")
        return [type(error), str(error), error.doc, error.pos, isinstance(error, ValueError)]

    both(agent)


def test_requests_finds_no_server(tools: Any, tmp_path: Path) -> None:
    def agent() -> Any:
        error: Any = caught(tools.by_requests_down, "x")
        reason = error.args[0].reason
        return [type(error), type(reason), error.request.url, error.response, error.args[0].url, str(error)]

    with stepfork.record(tmp_path / "run.yaml", tools=[tools.__name__]):
        live = agent()
    with stepfork.replay(tmp_path / "run.yaml"):
        assert agent() == live


@pytest.mark.parametrize("page", ["/x", "/binary"])
@pytest.mark.parametrize("tool", ["by_urllib", "by_urllib_read"])
def test_urllib_raises_the_response(tools: Any, both: Any, url: str, tool: str, page: str) -> None:
    """The live agent, too, can still read the body, which the recording read."""

    def agent() -> Any:
        error: Any = caught(getattr(tools, tool), url + page)
        found = [
            type(error),
            str(error),
            error.code,
            error.reason,
            error.url,
            error.geturl(),
            error.getcode(),
        ]
        headers = error.headers
        found += [headers["retry-after"], headers.get_all("x-twice"), type(headers), error.info() is headers]
        return [*found, error.read(), error.read()]

    assert both(agent)[2:4] == [429, "Slow Down"]


def test_httpx_raises_for_status(tools: Any, both: Any, url: str) -> None:
    def agent() -> Any:
        error: Any = caught(tools.by_httpx, f"{url}/x")
        answer = error.response
        return [type(error), str(error), answer.status_code, answer.json(), answer.headers["retry-after"]]

    both(agent)


def test_httpx_finds_no_server(tools: Any, both: Any) -> None:
    def agent() -> Any:
        error: Any = caught(tools.by_httpx_down, "x")
        return [type(error), str(error), str(error.request.url)]

    both(agent)


def shown(error: BaseException, above: tuple[int, ...] = ()) -> Any:
    if id(error) in above:
        return "again"
    try:
        text = str(error)
    except RuntimeError as problem:
        text = f"raises {problem}"
    found = [type(error), text, error.args if not isinstance(error, ExceptionGroup) else error.message]
    found += [{name: item for name, item in vars(error).items() if name != "lock"}]
    found += [
        getattr(error, name, None) for name in ("errno", "filename", "filename2", "returncode", "stderr")
    ]
    if isinstance(error, ExceptionGroup):
        found.append([shown(item) for item in error.exceptions])
    return repr(found)


@pytest.mark.parametrize(
    "name",
    [
        *("required keywords", "no text", "a dataclass", "attrs", "json", "unicode", "a file", "two files"),
        *("stop", "a group", "a process", "from one that cannot be written", "from itself"),
    ],
)
def test_the_error_is_the_same(tools: Any, both: Any, name: str) -> None:
    both(lambda: shown(caught(tools.raises, name)))


def test_a_cause_that_cannot_be_written_is_left_out_and_the_file_says_so(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        assert caught(tools.raises, "from one that cannot be written").__cause__ is not None
    assert f'cause_left_out: "{tools.__name__}:Held: inner"\n' in path.read_text("utf-8")
    with stepfork.replay(path):
        error = caught(tools.raises, "from one that cannot be written")
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_an_error_of_validation(tools: Any, both: Any) -> None:
    def agent() -> Any:
        error: Any = caught(tools.validates, "many")
        return [type(error), str(error), error.errors(), error.error_count(), error.title]

    both(agent)


def test_C112_secrets_in_the_errors_of_http_libraries_reach_no_file(
    tools: Any, tmp_path: Path, make_module: Any, url: str
) -> None:
    module = make_module(
        """
        import requests
        def ask(url):
            headers = {"Authorization": "Bearer abcdefgh12345678", "X-Gateway-Secret": "abcdefgh12345678"}
            requests.get(url, headers=headers, timeout=5).raise_for_status()
        """
    )
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[module.__name__]):
        error: Any = caught(module.ask, f"{url}/x")
        assert error.request.headers["authorization"] == "Bearer abcdefgh12345678"
    assert "abcdefgh12345678" not in path.read_text("utf-8")
    with stepfork.replay(path):
        error = caught(module.ask, f"{url}/x")
        assert error.request.headers["x-gateway-secret"] == "<secret:gateway_secret:1>"
        assert "authorization" not in error.request.headers, "it is no business of the cassette's"
