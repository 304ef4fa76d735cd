"""Faults that attacks on the order rule found, each as the program that showed it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.chat_server import ChatServer

import stepfork


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        import asyncio
        def say(x):
            return x
        async def asay(x):
            return x
        async def slow(x):
            await asyncio.sleep(x)
        """
    )


def test_what_the_sdk_starts_for_a_request_is_no_line_of_the_agents(
    tools: Any, path: Path, server: ChatServer
) -> None:
    """The first request opens a connection, with tasks; on replay none does."""
    from openai import AsyncOpenAI

    async def agent(nap: float) -> None:
        client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0)
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "plan"}])

        async def audit() -> None:
            await asyncio.sleep(nap)
            await tools.asay("audit")

        background = asyncio.create_task(audit())
        await tools.asay("fetch")
        await background
        await client.close()

    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(agent(0))
    assert "started" not in path.read_text()
    for nap in (0.01, 0):
        with stepfork.replay(path):
            asyncio.run(agent(nap))


@pytest.mark.parametrize("how", ["call_soon", "call_later", "task"])
def test_a_call_in_a_callback_is_inside_no_other(tools: Any, path: Path, how: str) -> None:
    async def agent(text: str) -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def callback(*_: object) -> None:
            done.set()
            if text:
                tools.say(text)

        if how == "call_soon":
            loop.call_soon(callback)
        elif how == "call_later":
            loop.call_later(0, callback)
        else:
            asyncio.create_task(asyncio.sleep(0)).add_done_callback(callback)
        await tools.slow(0)
        await tools.asay("z")
        await done.wait()

    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(agent("callback"))
    assert "depth" not in path.read_text()
    with stepfork.replay(path):
        asyncio.run(agent("callback"))
    for text in ("", "other"):
        with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
            asyncio.run(agent(text))


def test_what_is_done_when_work_has_ended_is_a_line_of_who_asked(tools: Any, path: Path) -> None:
    def agent() -> None:
        with ThreadPoolExecutor(1) as pool:
            for name in "ab":
                future = pool.submit(tools.say, name)
                future.add_done_callback(lambda done: tools.say(f"save {done.result()}"))
        tools.say("z")

    with stepfork.record(path, tools=[tools.__name__]):
        agent()
    for _ in range(20):
        with stepfork.replay(path):
            agent()


def test_a_dropped_last_call_of_a_line_from_outside_is_missed(tools: Any, path: Path) -> None:
    async def line(last: bool) -> None:
        await tools.asay("first")
        if last:
            await tools.asay("last")

    async def agent(last: bool) -> None:
        await asyncio.Task(line(last))
        await tools.asay("z")

    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(agent(True))
    with stepfork.replay(path):
        asyncio.run(agent(True))
    gc.collect()
    with pytest.raises(stepfork.ReplayMismatchError, match="never made it"), stepfork.replay(path):
        asyncio.run(agent(False))


def test_an_unfinished_call_goes_on_until_the_session_ends(make_module: Any, path: Path) -> None:
    tools = make_module(
        """
        import threading
        go_on = threading.Event()
        def endless(x):
            go_on.wait(60)
        def say(x):
            return x
        """
    )

    def agent() -> threading.Thread:
        def work() -> None:
            with contextlib.suppress(stepfork.ReplayMismatchError):  # the session raises it again
                tools.endless(1)

        thread = threading.Thread(target=work)
        thread.start()
        while not run.calls and not run.counts.live:
            time.sleep(0.001)
        tools.say(2)
        return thread

    with stepfork.record(path, tools=[tools.__name__]) as run:
        thread = agent()
    tools.go_on.set()
    thread.join()
    assert "unfinished: true" in path.read_text()
    for _ in range(3):
        with stepfork.replay(path) as run:
            thread = agent()
        thread.join(60)
        assert not thread.is_alive()
    waited_for = "still running when the recording ended"
    with pytest.raises(stepfork.ReplayMismatchError, match=waited_for), stepfork.replay(path) as run:
        agent().join()


def test_nothing_cancels_the_call_any_more(tools: Any, path: Path) -> None:
    async def agent(timeout: float | None) -> None:
        try:
            await asyncio.wait_for(tools.slow(60), timeout)
        except TimeoutError:
            tools.say("late")

    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(agent(0.01))
    with stepfork.replay(path):
        asyncio.run(agent(3600))
    with pytest.raises(stepfork.ReplayMismatchError, match="nothing cancels it now"), stepfork.replay(path):
        asyncio.run(agent(None))


def test_other_timers_and_the_clock_are_left_alone(tools: Any, path: Path) -> None:
    """A background call is cancelled at the end, while a thread works under a timeout; and afterwards."""
    fired: list[str] = []

    async def agent() -> str:
        loop = asyncio.get_running_loop()
        loop.call_later(3000, fired.append, "keepalive")
        background = asyncio.create_task(tools.slow(3600))
        worked = await asyncio.wait_for(asyncio.to_thread(time.sleep, 0.15), 30)
        background.cancel()
        return "done" if worked is None else "?"

    async def sessions() -> None:
        with stepfork.record(path, tools=[tools.__name__]):
            assert await agent() == "done"
        with stepfork.replay(path):
            assert await agent() == "done"
        assert "time" not in vars(asyncio.get_running_loop())
        assert not fired

    asyncio.run(sessions())


def test_deadlock_of_a_pool_that_is_left_before_its_work_is_given_up(make_module: Any, path: Path) -> None:
    tools = make_module("import time\ndef slow(x):\n    time.sleep(x)\n    return x\n")

    async def agent(timeout: float) -> str:
        with ThreadPoolExecutor(1) as pool:
            work = asyncio.get_running_loop().run_in_executor(pool, tools.slow, 0.1)
            try:
                await asyncio.wait_for(work, timeout)
            except TimeoutError:
                return "timeout"
        return "in time"

    with stepfork.record(path, tools=[tools.__name__]):
        assert asyncio.run(agent(0.01)) == "timeout"
    with stepfork.replay(path):
        assert asyncio.run(agent(3600)) == "timeout"


@pytest.mark.parametrize("nested", [1, 2])
def test_threads_that_work_in_an_executor_starts_are_started_before_what_follows_it(
    tools: Any, path: Path, nested: int
) -> None:
    """The work stands as its caller's own calls, and so do the threads that it started after its last one."""

    def inner() -> None:
        tools.say("work")
        for _ in range(2):
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()

    async def work(level: int) -> None:
        loop = asyncio.get_running_loop()
        if level == 1:
            await loop.run_in_executor(None, inner)
        else:
            await loop.run_in_executor(None, lambda: asyncio.run(work(level - 1)))

    async def agent(nap: float) -> None:
        await work(nested)

        async def audit() -> None:
            await asyncio.sleep(nap)
            await tools.asay("audit")

        background = asyncio.create_task(audit())
        await tools.asay("fetch")
        await background

    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(agent(0.01))
    for nap in (0.01, 0, 0.01):
        with stepfork.replay(path):
            asyncio.run(agent(nap))
