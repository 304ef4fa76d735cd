"""Threads and tasks that outlive their session, and what they may yet do."""

from __future__ import annotations

import asyncio
import re
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.chat_server import ChatServer
from support.plugin_runs import lone_project, run_pytest
from support.strands import SEARCH, Worker, asked, both_ways, in_threads, others

import stepfork


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(SEARCH)


def patched_objects(tools: Any) -> list[Any]:
    """What `stepfork` changes, as it is now."""
    from openai._base_client import AsyncAPIClient, SyncAPIClient

    owners: list[tuple[Any, str]] = [
        (SyncAPIClient, "request"),
        (AsyncAPIClient, "request"),
        (threading.Thread, "start"),
        (threading.Thread, "join"),
        (ThreadPoolExecutor, "submit"),
        (asyncio.base_events.BaseEventLoop, "create_task"),
        (asyncio.base_events.BaseEventLoop, "run_in_executor"),
    ]
    codes = [tools.search.__code__, tools.asearch.__code__]
    return [*codes, *(vars(owner)[name] for owner, name in owners), asyncio.run_coroutine_threadsafe]


def same(before: list[Any], now: list[Any]) -> list[bool]:
    return [one is other for one, other in zip(before, now, strict=True)]


@pytest.mark.parametrize("first_mode", ["record", "replay"])
@pytest.mark.parametrize("autopatched", [None, "off", "replay"])
def test_C44_a_left_over_thread_is_refused_and_cannot_touch_the_next_session(
    tools: Any, path: Path, autopatched: str | None, first_mode: str
) -> None:
    (second,) = others(path, "second")
    for place in (path, second):
        with stepfork.record(place, tools=[tools.__name__]):
            tools.search(place.stem)
    tools.bodies.clear()
    untouched = second.read_bytes()
    before = patched_objects(tools)
    if autopatched is not None:
        stepfork.autopatch(tools=[tools.__name__], mode=autopatched)
    session = stepfork.use_cassette(path, mode=first_mode, tools=[tools.__name__])
    with session:
        tools.search("run")
        late = Worker(lambda q: tools.search(q))
    tools.bodies.clear()
    closed = f"a call came after the session of {path} had closed"
    assert closed in late.refused("run")
    with stepfork.replay(second) as run:
        assert closed in late.refused("second")
        assert tools.search("second") == "second found"
        assert closed in late.refused("second")
        assert asked(run) == ["second"]
    assert tools.bodies == []
    assert second.read_bytes() == untouched
    assert not all(same(before, patched_objects(tools))), "patched until they end"
    late.stop()
    stepfork.unpatch()
    assert all(same(before, patched_objects(tools)))


@pytest.mark.parametrize("autopatched", [None, "off", "replay"])
def test_C44_what_a_left_over_thread_starts_is_refused_too(
    tools: Any, path: Path, autopatched: str | None
) -> None:
    closed = f"a call came after the session of {path} had closed"
    before = patched_objects(tools)
    if autopatched is not None:
        stepfork.autopatch(tools=[tools.__name__], mode=autopatched)
    with stepfork.record(path, tools=[tools.__name__]):
        late = Worker(lambda q: in_threads(lambda: tools.search(q)))
    for _ in range(3):
        assert closed in late.refused("late")
    assert tools.bodies == []
    late.stop()
    stepfork.unpatch()
    assert all(same(before, patched_objects(tools)))


@pytest.mark.parametrize("autopatched", [False, True])
def test_C44_a_left_over_task_is_refused_and_cannot_touch_the_next_session(
    tools: Any, path: Path, autopatched: bool
) -> None:
    (second,) = others(path, "second")
    closed = f"a call came after the session of {path} had closed"
    before = patched_objects(tools)
    if autopatched:
        stepfork.autopatch(tools=[tools.__name__])

    async def late(go: asyncio.Event) -> None:
        await go.wait()
        for q in "sa":
            with pytest.raises(stepfork.NoCassetteError, match=re.escape(closed)):
                await tools.asearch(q)
        with pytest.raises(stepfork.NoCassetteError, match=re.escape(closed)):
            await asyncio.to_thread(tools.search, "s")

    async def main(first: Any, next_one: Any) -> None:
        go = asyncio.Event()
        async with first:
            await tools.asearch("a")
            left = asyncio.create_task(late(go))
        async with next_one as run:
            go.set()
            await left
            await tools.asearch("s")
            assert asked(run) == ["s"]

    for first, next_one in zip(both_ways(path, tools), both_ways(second, tools), strict=True):
        asyncio.run(main(first, next_one))
        assert all(same(before, patched_objects(tools))) is not autopatched
    assert asked(second) == ["s"]
    stepfork.unpatch()
    assert all(same(before, patched_objects(tools)))


def test_C44_a_late_llm_call_is_not_sent(path: Path, server: ChatServer) -> None:
    import openai

    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)

    def ask(said: str) -> Any:
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": said}])

    with stepfork.record(path):
        ask("in time")
        late = Worker(ask)
    for session in (stepfork.record(path.with_name("next.yaml")), stepfork.replay(path)):
        with session:
            assert f"the session of {path} had closed" in late.refused("too late")
            ask("in time")
    late.stop()
    assert [body["messages"][0]["content"] for body in server.bodies] == ["in time"] * 2
    client.close()


def pytest_project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tests: str) -> Any:
    """A project with these tests; gives what runs it in a mode."""
    lone_project(pytester, monkeypatch)
    pytester.makepyfile(agenttools=textwrap.dedent(SEARCH))
    pytester.makeconftest("import stepfork\nstepfork.autopatch(tools=['agenttools'])\n")
    pytester.makepyfile(test_agent=textwrap.dedent(tests))

    def run(mode: str, *options: str) -> pytest.RunResult:
        return run_pytest(pytester, *options, mode=mode)

    return run


def test_C44_the_thread_of_one_test_cannot_touch_the_next_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pytest_project(
        pytester,
        monkeypatch,
        """
        import threading
        import agenttools

        go, said = threading.Event(), []

        def late():
            go.wait()
            for q in ("two", "three", "late"):
                try:
                    said.append(agenttools.search(q))
                except Exception as error:
                    said.append(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=late, daemon=True)

        def test_one():
            assert agenttools.search("one") == "one found"
            thread.start()

        def test_two(stepfork_run):
            assert agenttools.search("two") == "two found"
            go.set()
            thread.join()
            assert agenttools.search("three") == "three found"
            assert [call.args["q"] for call in stepfork_run.calls] == ["two", "three"]
            assert len(said) == 3
            assert all(text.startswith("NoCassetteError: ") for text in said)
            assert all("session of" in text and "test_one.yaml had closed" in text for text in said)
        """,
    )
    folder = pytester.path / "cassettes" / "test_agent"
    run("record").assert_outcomes(passed=2)
    assert {file.name: asked(file) for file in folder.iterdir()} == {
        "test_one.yaml": ["one"],
        "test_two.yaml": ["two", "three"],
    }
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    result = run("replay")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*stepfork: 2 tests, 3 calls replayed, 0 live, 0 newly recorded*"])
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize("scope", ["module", "session"])
@pytest.mark.parametrize("first_call", [False, True], ids=["idle", "calls-in-set-up"])
def test_a_thread_started_by_a_fixture_serves_the_running_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, scope: str, first_call: bool
) -> None:
    run = pytest_project(
        pytester,
        monkeypatch,
        f"""
        import queue, threading
        import pytest
        import agenttools

        @pytest.fixture(scope={scope!r})
        def worker():
            todo, done = queue.Queue(), queue.Queue()

            def work():
                while (q := todo.get()) is not None:
                    try:
                        done.put(agenttools.search(q))
                    except BaseException as error:
                        done.put(error)

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            def ask(q):
                todo.put(q)
                return done.get()
            if {first_call}:
                assert ask("set-up") == "set-up found"
            yield ask
            todo.put(None)
            thread.join()

        @pytest.mark.parametrize("q", ["a", "b"])
        def test_it(worker, q, stepfork_run):
            assert agenttools.search(q) == f"{{q}} found"
            assert worker(q + q) == f"{{q}}{{q}} found"
            assert sorted(call.args["q"] for call in stepfork_run.calls) == [q, q + q]
        """,
    )
    folder = pytester.path / "cassettes" / "test_agent"
    for mode, newly in (("record", 4), ("replay", 0)):
        result = run(mode)
        result.assert_outcomes(passed=2)
        result.stdout.fnmatch_lines([f"*, {newly + first_call * (mode == 'record')} newly recorded*"])
    found = {file.name: sorted(asked(file)) for file in folder.iterdir()}
    assert found == {"test_it[a].yaml": ["a", "aa"], "test_it[b].yaml": ["b", "bb"]} | (
        {f"{scope}.worker.yaml": ["set-up"]} if first_call else {}
    )


# -- what is left over --------------------------------------------------------------------------------


@pytest.mark.parametrize("alive", [True, False])
def test_left_over_calls_of_a_thread_still_alive_are_a_note(tools: Any, path: Path, alive: bool) -> None:
    def agent(session: Any, calls: bool, waits: bool) -> tuple[Any, Worker]:
        with session as run:
            background = Worker(tools.search)
            tools.search("main")
            if calls:
                background.ask("background")
            if waits:
                background.stop()
        return run, background

    agent(stepfork.record(path, tools=[tools.__name__]), calls=True, waits=True)
    if not alive:
        with pytest.raises(stepfork.ReplayMismatchError, match="expected tool 'search' but the agent never"):
            agent(stepfork.replay(path), calls=False, waits=True)
        return
    run, background = agent(stepfork.replay(path), calls=False, waits=False)
    assert run.missing == 0
    assert "(tool 'search') was not made: its task or thread was still running" in run.note
    assert f"the session of {path} had closed" in background.refused("background")
    background.stop()
