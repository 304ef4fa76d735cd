"""Recording the same behaviour again changes no byte, whatever the schedule and the provider's own ids."""

from __future__ import annotations

import json
import random
import re
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chat_server import DONE, ChatServer, chunk, completion, event
from support.examples import examples

import stepfork
from stepfork.cassette.store import StoredCassette

TOOLS = """
import threading

BIG = "a text that stands in many places\\n" * 60

def look(n, text=""):
    return {"n": n, "text": text}

def big(n):
    return {"n": n, "page": BIG}

def outer(n):
    return [look(n), look(n + 100)]

def fails(n):
    raise LookupError(f"no {n}")

def items(n):
    for at in range(n % 3 + 1):
        got = yield {"at": at}
    return n

def grows(n, into):
    into.append(n)
"""

STEPS = [
    "look",
    "big",
    "outer",
    "fails",
    "items",
    "grows",
    "ask",
    "stream",
    "call",
    "together",
    "asks",
    "again",
]
programs = st.lists(st.sampled_from(STEPS), max_size=8)
relaxed = examples(40)


class Provider:
    """Answers of which `salt` changes what a provider makes anew each time, and `said` what it says."""

    def __init__(self) -> None:
        self.salt = "1"
        self.said = "fine"
        self._made = 0

    def _id(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self.salt}-{self._made}"

    def reset(self, salt: str) -> None:
        self.salt, self._made = salt, 0

    @property
    def when(self) -> int:
        return 1790000000 + len(self.salt) * 1000 + ord(self.salt[0])

    def answer(self, body: dict[str, Any]) -> Any:
        question = body["messages"][-1].get("content") or ""
        head = {"x-request-id": self._id("req"), "x-ratelimit-remaining-requests": str(self.when)}
        made = completion(f"{self.said}: {question}", id=self._id("chatcmpl"), created=self.when)
        made["system_fingerprint"] = self._id("fp")
        if question.startswith("call"):
            function = {"name": "look", "arguments": json.dumps({"n": 5, "id": "7"})}
            message = made["choices"][0]["message"]
            message["content"] = None
            message["tool_calls"] = [{"id": self._id("call"), "type": "function", "function": function}]
        if body.get("stream"):
            same = {"id": made["id"], "created": self.when}
            events = [event({**chunk(word), **same}) for word in f"{self.said} a b c d".split()]
            return 200, {"content-type": "text/event-stream", **head}, b"".join([*events, DONE])
        return 200, {"content-type": "application/json", **head}, json.dumps(made).encode()


@pytest.fixture
def tools(make_module: Any) -> ModuleType:
    made: ModuleType = make_module(TOOLS)
    stepfork.autopatch(tools=[made.__name__])
    return made


@pytest.fixture
def provider(server: ChatServer) -> Provider:
    made = Provider()
    server.answer = made.answer
    return made


@pytest.fixture
def client(server: ChatServer, provider: Provider) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)


def run(tools: ModuleType, client: openai.OpenAI, steps: list[str], dice: random.Random) -> None:
    """The program; `dice` disturbs its schedule and nothing else."""
    talk: list[Any] = [{"role": "system", "content": "You are a patient helper. " * 30}]

    def ask(question: str, stream: bool = False, history: list[Any] | None = None) -> Any:
        messages = [*(talk if history is None else history), {"role": "user", "content": question}]
        made = client.chat.completions.create(model="m", messages=messages, stream=stream)
        return "".join(part.choices[0].delta.content or "" for part in made) if stream else made

    def at_once(*work: Callable[[], Any]) -> None:
        threads = [threading.Thread(target=one) for one in work]
        for thread in threads:
            thread.start()
            if dice.random() < 0.3:
                threading.Event().wait(dice.random() / 300)
        for thread in threads:
            thread.join()

    for at, step in enumerate(steps):
        if step in ("look", "big", "outer"):
            getattr(tools, step)(at)
        elif step == "again":
            tools.look(0)
        elif step == "fails":
            with pytest.raises(LookupError):
                tools.fails(at)
        elif step == "items":
            list(tools.items(at))
        elif step == "grows":
            tools.grows(at, [at])
        elif step in ("ask", "call"):
            reply = ask(f"{step} number {at}, and what do you say to that?").choices[0].message
            talk.append({"role": "user", "content": f"{step} number {at}, and what do you say to that?"})
            talk.append(reply.model_dump(exclude_none=True))
            for call in reply.tool_calls or ():
                found = tools.look(n=json.loads(call.function.arguments)["n"], text=call.id)
                talk.append({"role": "tool", "tool_call_id": call.id, "content": str(found["n"])})
        elif step == "stream":
            talk.append({"role": "assistant", "content": ask(f"stream {at}", stream=True)})
        elif step == "together":
            at_once(
                lambda: tools.look("b", tools.BIG),
                lambda: [tools.look("a"), tools.big(at)],
                lambda: tools.outer(at),
            )
        else:
            with ThreadPoolExecutor(2) as pool:
                for made in [pool.submit(ask, f"side {n}", n == 1, talk[:1]) for n in range(3)]:
                    made.result()


def record(path: Path, *program: Any) -> Any:
    with stepfork.record(path, name="same") as session:
        run(*program)
    return session


def body(path: Path) -> str:
    """The file without its date and what follows from it."""
    lines = path.read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("recorded_at: ", "sha256: ")))


def called(path: Path) -> list[str]:
    """What was called, in no order, without ids."""
    return sorted(
        re.sub(r"call-[^']*", "", repr((call.name, call.args))) for call in stepfork.load(path).calls
    )


def stamp(path: Path) -> tuple[int, int, bytes]:
    return path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()


@relaxed
@given(steps=programs, seed=st.integers(0, 1000))
def test_C131_the_same_behaviour_gives_the_same_bytes_and_leaves_the_file_alone(
    tools: ModuleType, client: openai.OpenAI, provider: Provider, steps: list[str], seed: int
) -> None:
    dice = random.Random(seed)
    sequential = not {"asks", "together"} & set(steps)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first.yaml"), Path(folder, "second.yaml")
        provider.reset("1")
        record(first, tools, client, steps, dice)
        if sequential:  # else the schedule shows in its marks, and in the ids of a provider
            provider.reset("1")
            record(second, tools, client, steps, dice)
            assert body(second) == body(first)
        before, calls = stamp(first), called(first)
        for salt in ("1", "2", "another"):
            provider.reset(salt)
            session = record(first, tools, client, steps, dice)
            if not session.written.unchanged:  # by chance it said that lines had ended before others started
                assert b"\nafter:" in before[2]
                assert not sequential
                assert called(first) == calls
                before = stamp(first)
            assert stamp(first) == before
        assert not list(Path(folder).glob("*.partial*"))
        if {"ask", "stream", "asks"} & set(steps):
            provider.said = "otherwise"
            session = record(first, tools, client, steps, dice)
            provider.said = "fine"
            assert not session.written.unchanged
            assert StoredCassette(first).verdict == "ok"


CHANGES: dict[str, Callable[[ModuleType], Any]] = {
    "an argument": lambda tools: tools.look(2),
    "one more call": lambda tools: [tools.look(1), tools.look(1)],
    "no call": lambda tools: None,
    "another tool": lambda tools: tools.big(1),
    "an id of the tool's own": lambda tools: tools.look(1, "id-2"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_did_change_is_written(
    tmp_path: Path, tools: ModuleType, change: Callable[[ModuleType], Any]
) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        tools.look(1)
    before = stamp(path)
    with stepfork.record(path) as session:
        change(tools)
        if change is CHANGES["no call"]:
            session.set_output(1)
    assert stamp(path)[2] != before[2]
    assert not session.written.unchanged


def test_an_id_that_goes_where_it_did_not_go_is_a_change(
    tmp_path: Path, tools: ModuleType, client: openai.OpenAI, provider: Provider
) -> None:
    """Ids may be others, but what was the first answer's id then must be the first answer's id now."""
    path = tmp_path / "run.yaml"

    def program(which: int) -> Any:
        with stepfork.record(path, name="same") as session:
            ids = []
            for n in range(2):
                messages: Any = [{"role": "user", "content": f"say {n}"}]
                ids.append(client.chat.completions.create(model="m", messages=messages).id)
            tools.look(1, ids[which])
        return session.written

    assert not program(0).unchanged
    provider.reset("other")
    assert program(0).unchanged
    provider.reset("third")
    assert not program(1).unchanged


def test_what_the_model_or_a_tool_calls_an_id_is_no_providers_id(
    tmp_path: Path, client: openai.OpenAI, server: ChatServer, provider: Provider, tools: ModuleType
) -> None:
    path = tmp_path / "run.yaml"

    def program(wanted: str, stream: bool) -> Any:
        def answer(asked: dict[str, Any]) -> Any:
            provider.reset(wanted)
            function = {"name": "look", "arguments": json.dumps({"id": wanted})}
            call = {"index": 0, "id": f"call-{wanted}", "type": "function", "function": function}
            if stream:
                delta = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
                made = {**chunk(""), "id": f"c-{wanted}", "choices": [delta]}
                return 200, {"content-type": "text/event-stream"}, event(made) + DONE
            made = completion("", id=f"c-{wanted}")
            made["choices"][0]["message"]["tool_calls"] = [call]
            return 200, {"content-type": "application/json"}, json.dumps(made).encode()

        server.answer = answer
        with stepfork.record(path, name="same") as session:
            messages: Any = [{"role": "user", "content": "say"}]
            made = client.chat.completions.create(model="m", messages=messages, stream=stream)
            if stream:
                list(made)
        return session.written

    for stream in (False, True):
        program("a", stream)
        assert not program("b", stream).unchanged


def test_a_file_that_was_edited_is_recorded_anew_even_if_it_says_the_same(
    tmp_path: Path, tools: ModuleType
) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        tools.look(1)
    text = path.read_text()
    for edited in (text[: text.index("sha256")], text.replace("---\n", "--- # edited\n", 1)):
        path.write_text(edited)
        with stepfork.record(path) as session:
            tools.look(1)
        assert not session.written.unchanged
        assert StoredCassette(path).verdict == "ok"


def test_C06_a_file_with_the_line_ends_of_windows_is_left_alone_or_written_with_lf(
    tmp_path: Path, tools: ModuleType
) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        tools.look(1, "two\nlines\n")
    windows = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(windows)
    with stepfork.record(path):
        tools.look(1, "two\nlines\n")
    assert path.read_bytes() == windows, "nothing changed"
    with stepfork.record(path):
        tools.look(2, "two\nlines\n")
    assert b"\r" not in path.read_bytes()


def test_C131_chance_in_the_order_of_threads_is_only_ever_taken_out_of_a_file(
    tmp_path: Path, tools: ModuleType
) -> None:
    """A file that says that one thread had ended before another began gives way to one that does not."""
    path = tmp_path / "run.yaml"

    def record_threads(*, one_after_the_other: bool) -> Any:
        with stepfork.record(path) as session:
            ended = threading.Event()
            threads = []
            for n in (2, 1, 3):

                def work(n: int = n) -> None:
                    tools.look(n)
                    if not one_after_the_other:
                        ended.wait()

                threads.append(threading.Thread(target=work))
                threads[-1].start()
                while one_after_the_other and threads[-1].is_alive():
                    threading.Event().wait(0.001)  # not joined: so it may be chance
            ended.set()
            for thread in threads:
                thread.join()
        return session.written

    assert not record_threads(one_after_the_other=True).unchanged
    strict = path.read_text()
    assert "\nafter: [a]" in strict
    assert record_threads(one_after_the_other=True).unchanged
    assert not record_threads(one_after_the_other=False).unchanged
    loose = path.read_text()
    assert "\nafter:" not in loose
    assert record_threads(one_after_the_other=True).unchanged
    assert record_threads(one_after_the_other=False).unchanged
    assert path.read_text() == loose


@pytest.mark.parametrize("stream", [False, True])
def test_C131_how_long_it_took_is_no_change(
    tmp_path: Path, client: openai.OpenAI, server: ChatServer, stream: bool
) -> None:
    """The server of llama.cpp tells its timings in each answer, and in the last event of a stream."""
    path = tmp_path / "run.yaml"

    def program(took: float, said: str = "fine") -> Any:
        timings = {"prompt_n": 3, "prompt_ms": took, "predicted_per_second": took * 2}

        def answer(body: dict[str, Any]) -> Any:
            if not body.get("stream"):
                made = {**completion(said, id="x", created=1), "timings": timings}
                return 200, {"content-type": "application/json"}, json.dumps(made).encode()
            last = {**chunk(""), "id": "x", "created": 1, "timings": timings}
            events = [event({**chunk(said), "id": "x", "created": 1}), event(last), DONE]
            return 200, {"content-type": "text/event-stream"}, b"".join(events)

        server.answer = answer
        with stepfork.record(path, name="same") as session:
            messages: Any = [{"role": "user", "content": "hello"}]
            made = client.chat.completions.create(model="m", messages=messages, stream=stream)
            if stream:
                list(made)
        return session.written

    assert not program(17.25).unchanged
    before = stamp(path)
    assert program(3001.5).unchanged
    assert stamp(path) == before
    assert not program(17.25, "otherwise").unchanged


DATED = """
import urllib.request
import httpx2, requests

def by_requests(url):
    requests.post(url, json={}, timeout=5).raise_for_status()

def by_httpx(url):
    httpx2.post(url, json={}).raise_for_status()

def by_urllib(url):
    urllib.request.urlopen(url, b"{}", timeout=5)

def told(day, order):
    return {"text": f"as of {day}: order {order}", "rows": [order, day]}
"""


@pytest.mark.parametrize("name", ["by_requests", "by_httpx", "by_urllib"])
def test_C131_when_a_server_answered_is_no_change(
    tmp_path: Path, server: ChatServer, make_module: Any, name: str
) -> None:
    path = tmp_path / "run.yaml"
    tools = make_module(DATED)

    def program(day: int, status: int = 503) -> Any:
        head = {"content-type": "text/plain", "Date": f"Mon, {day} Nov 2026 00:00:0{day % 7} GMT"}
        server.answer = lambda body: (status, head, b"down")
        with (
            stepfork.record(path, tools=[tools.__name__], name="same") as session,
            pytest.raises(Exception, match=str(status)),
        ):
            getattr(tools, name)(server.url + "/chat/completions")
        return session.written

    assert not program(12).unchanged
    before = stamp(path)
    assert program(23).unchanged
    assert stamp(path) == before
    assert not program(23, 502).unchanged


def test_C131_what_is_declared_to_be_another_text_in_every_run_is_no_change(
    tmp_path: Path, make_module: Any
) -> None:
    path = tmp_path / "run.yaml"
    tools = make_module(DATED)
    rules = {"date": True, "ORD-[0-9]+": True, "run [0-9]+": "a run"}

    def program(day: str, *orders: str, **settings: Any) -> Any:
        with stepfork.record(path, tools=[tools.__name__], name="same", **settings) as session:
            for order in orders:
                tools.told(day, order)
            session.set_output(f"run {day[-2:]}: {orders[-1]}")
        return session.written

    assert not program("2026-11-29", "ORD-1", "ORD-2", "ORD-1", normalize=rules).unchanged
    before = stamp(path)
    assert program("2026-11-30", "ORD-7", "ORD-8", "ORD-7", normalize=rules).unchanged
    assert stamp(path) == before
    assert not program("2026-11-30", "ORD-7", "ORD-8", "ORD-8", normalize=rules).unchanged, "another one"
    assert not program("2026-11-30", "ORD-7", "ORD-8", "ORD-7").unchanged, "nothing is declared"
