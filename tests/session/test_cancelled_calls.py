"""What cancels a call does so again on replay, without waiting for the clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepfork

SLOW = """
    import asyncio
    bodies = []
    async def slow(q):
        bodies.append(q)
        await asyncio.sleep(36_000)
        return "late"
    async def fail(q):
        bodies.append(q)
        await asyncio.sleep(0.01)
        raise ValueError(q)
    async def look(q):
        bodies.append(q)
        return q.upper()
    def block(q):
        bodies.append(q)
        gates[q][0].release()
        gates[q][1].wait()
        return q.upper()
    gates = {}
"""


@pytest.fixture
def slow(make_module: Any) -> Any:
    return make_module(SLOW)


async def with_wait_for(slow: Any, limit: float) -> None:
    await asyncio.wait_for(slow.slow("a"), limit)


async def with_timeout(slow: Any, limit: float) -> None:
    async with asyncio.timeout(limit):
        await slow.slow("a")


async def with_timeout_of_many(slow: Any, limit: float) -> None:
    async with asyncio.timeout(limit):
        await asyncio.gather(*(slow.slow(q) for q in "abc"))


async def with_task_group(slow: Any, limit: float) -> None:
    async with asyncio.TaskGroup() as group:
        for q in "ab":
            group.create_task(slow.slow(q))
        group.create_task(slow.fail("c"))


async def with_task_group_that_fails_by_itself(slow: Any, limit: float) -> None:
    async def fails() -> None:
        await asyncio.sleep(limit)
        raise ValueError("c")

    async with asyncio.TaskGroup() as group:
        group.create_task(slow.slow("a"))
        group.create_task(fails())


async def with_cancel(slow: Any, limit: float) -> None:
    task = asyncio.create_task(slow.slow("a"))
    await asyncio.sleep(limit)
    task.cancel("enough")
    await task


async def with_wait(slow: Any, limit: float) -> None:
    tasks = [asyncio.create_task(slow.slow(q)) for q in "ab"]
    _, pending = await asyncio.wait(tasks, timeout=limit)
    for task in pending:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    raise ExceptionGroup("pending", [TimeoutError(type(one).__name__) for one in found])


async def with_move_on(slow: Any, limit: float) -> None:
    import anyio

    with anyio.move_on_after(limit) as scope:
        await slow.slow("a")
    raise LookupError(scope.cancelled_caught)


async def with_move_on_of_a_group(slow: Any, limit: float) -> None:
    import anyio

    with anyio.move_on_after(limit) as scope:
        async with anyio.create_task_group() as group:
            for q in "ab":
                group.start_soon(slow.slow, q)
    raise LookupError(scope.cancelled_caught)


async def with_fail_after(slow: Any, limit: float) -> None:
    import anyio

    with anyio.fail_after(limit):
        await slow.slow("a")


WAYS = [
    (with_wait_for, 1),
    (with_timeout, 1),
    (with_timeout_of_many, 3),
    (with_task_group, 2),
    (with_task_group_that_fails_by_itself, 1),
    (with_cancel, 1),
    (with_wait, 2),
    (with_move_on, 1),
    (with_move_on_of_a_group, 2),
    (with_fail_after, 1),
]


def spelled(error: BaseException) -> Any:
    """An exception with what is in it, to be compared."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return type(error), str(error), [spelled(one) for one in inner]


@pytest.mark.parametrize(("agent", "cancelled"), WAYS, ids=[way.__name__ for way, _ in WAYS])
def test_C74_what_was_cancelled_is_cancelled_again_without_waiting(
    slow: Any, path: Path, agent: Callable[[Any, float], Any], cancelled: int
) -> None:
    async def around(limit: float) -> Any:
        try:
            await agent(slow, limit)
        except BaseException as error:
            return spelled(error), await slow.look("after")
        return None, await slow.look("after")

    with stepfork.record(path, tools=[slow.__name__]):
        live = asyncio.run(around(0.02))
    assert live[0] is not None
    assert path.read_text("utf-8").count("cancelled: true\n") == cancelled
    slow.bodies.clear()
    with stepfork.replay(path) as run:
        assert asyncio.run(around(7200)) == live
    assert slow.bodies == []
    assert run.missing == 0
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        asyncio.run(slow.look("after"))


@pytest.mark.parametrize("starts", [True, False], ids=["started", "never-started"])
def test_a_background_task_that_asyncio_run_cancels_at_the_end(slow: Any, path: Path, starts: bool) -> None:
    kept: list[Any] = []

    async def agent(starts: bool) -> Any:
        kept.append(asyncio.create_task(slow.slow("background")))
        if starts:
            await asyncio.sleep(0)
        return await asyncio.wait_for(slow.look("a"), 3600)

    with stepfork.record(path, tools=[slow.__name__]):
        assert asyncio.run(agent(True)) == "A"
    assert path.read_text("utf-8").count("cancelled: true\n") == 1
    slow.bodies.clear()
    with stepfork.replay(path) as run:
        assert asyncio.run(agent(starts)) == "A"
    assert slow.bodies == []
    assert run.missing == 0
    assert all(task.cancelled() for task in kept)


def test_a_cancelled_call_must_be_made_by_a_task_that_nobody_cancelled(slow: Any, path: Path) -> None:
    async def agent(calls: bool) -> str:
        if calls:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(slow.slow("a"), 0.01)
        return str(await slow.look("a"))

    with stepfork.record(path, tools=[slow.__name__]):
        asyncio.run(agent(True))
    expected = "expected tool 'slow' but the agent called 'look'"
    with pytest.raises(stepfork.ReplayMismatchError, match=expected), stepfork.replay(path):
        asyncio.run(agent(False))


@pytest.mark.parametrize("makes_it", [False, True])
def test_a_call_that_never_ended_may_be_left_out_and_has_no_answer(
    slow: Any, path: Path, makes_it: bool
) -> None:
    gates = slow.gates["a"] = threading.Semaphore(0), threading.Event()

    def agent(calls: bool) -> threading.Thread | None:
        thread = threading.Thread(target=slow.block, args=("a",), daemon=True) if calls else None
        if thread is not None:
            thread.start()
            gates[0].acquire()
        assert asyncio.run(slow.look("b")) == "B"
        return thread

    with stepfork.record(path, tools=[slow.__name__]):
        left = agent(True)
    gates[1].set()
    assert left is not None
    left.join()
    assert "unfinished: true" in path.read_text("utf-8")
    slow.bodies.clear()

    def swallowing() -> None:
        with pytest.raises(stepfork.ReplayMismatchError):
            slow.block("a")

    if makes_it:
        with (
            pytest.raises(stepfork.ReplayMismatchError, match="'block' was still running when the recording"),
            stepfork.replay(path),
        ):
            thread = threading.Thread(target=swallowing, daemon=True)
            thread.start()
            thread.join()
    else:
        with stepfork.replay(path) as run:
            agent(False)
        assert (run.missing, run.counts.substituted) == (0, 1)
    assert slow.bodies == []
