"""Work that nobody waited for any more, and what a call costs at the end of a long trajectory."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepfork
from stepfork.cassette import reader
from stepfork.core.order import Order
from stepfork.session import replayer

LONG = 3600.0


def test_C74_work_in_a_thread_that_took_too_long(make_module: Any, tmp_path: Path) -> None:
    """The thread goes on after the timeout; what it calls then is a line of its own."""
    tools = make_module(
        """
        import threading
        go_on = threading.Event()
        def slow(n):
            assert go_on.wait(60)
            return n
        def quick(n):
            return n
        """
    )
    ended = threading.Event()

    def work() -> None:
        tools.slow(1)
        tools.quick(2)
        ended.set()

    async def agent(timeout: float) -> list[Any]:
        seen: list[Any] = []
        try:
            await asyncio.wait_for(asyncio.to_thread(work), timeout)
        except TimeoutError:
            seen.append("timeout")
        seen.append(tools.quick(3))
        try:
            await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, tools.slow, 4), timeout)
        except TimeoutError:
            seen.append("timeout")
        seen.append(tools.quick(5))
        tools.go_on.set()
        await asyncio.get_running_loop().run_in_executor(None, ended.wait)
        return seen

    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        made = asyncio.run(agent(0.02))
    assert made == ["timeout", 3, "timeout", 5]
    assert path.read_text().count("late: true") == 2
    for _ in range(5):
        ended.clear()
        with stepfork.replay(path) as run:
            assert asyncio.run(agent(LONG)) == made
        assert run.counts.substituted == 5


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a document is parsed, two calls are compared, a lane is looked at."""
    counts: Counter[str] = Counter()

    def count(where: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(where, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(where, name, counting)

    count(reader, "parse_document")
    count(replayer, "match")
    count(Order, "_state")
    count(Order, "_ahead")
    return counts


def costs(counts: Counter[str], calls: list[Callable[[], Any]]) -> list[dict[str, int]]:
    """What each of the calls took."""
    taken = []
    for call in calls:
        before = counts.copy()
        call()
        taken.append({name: counts[name] - before[name] for name in counts})
    return taken


def test_a_call_costs_the_same_at_the_end_of_a_long_trajectory(
    make_module: Any, tmp_path: Path, counted: Counter[str]
) -> None:
    tools = make_module("def say(n):\n    return n\n")
    path = tmp_path / "run.yaml"
    total = 10_000
    with stepfork.record(path, tools=[tools.__name__]):
        for number in range(total):
            tools.say(number)
    with stepfork.replay(path):
        taken = costs(counted, [lambda number=number: tools.say(number) for number in range(total)])
    assert taken[1] == taken[total // 2] == taken[-2]
    assert taken[-2]["parse_document"] == taken[-2]["match"] == 1
    assert all(cost == taken[1] for cost in taken[1:-1])


def test_a_call_of_many_lanes_costs_the_same_at_the_end(
    make_module: Any, tmp_path: Path, counted: Counter[str]
) -> None:
    """2,000 threads' worth of lanes, started at one place, each looked at a bounded number of times."""
    tools = make_module("async def say(n):\n    return n\n")
    path = tmp_path / "run.yaml"
    total = 2_000

    async def agent(order: Any) -> None:
        tasks = {number: asyncio.create_task(tools.say(number)) for number in order}
        await asyncio.gather(*tasks.values())
        await tools.say(-1)

    with stepfork.record(path, tools=[tools.__name__]):
        asyncio.run(agent(range(total)))
    for step in (1, -1, 7):
        order = [number * step % total for number in range(total)]
        assert len(set(order)) == total
        counted.clear()
        with stepfork.replay(path):
            asyncio.run(agent(order))
        assert counted["parse_document"] <= total + 4
        assert counted["match"] <= 3 * total
        assert counted["_state"] <= 3 * total
        assert counted["_ahead"] <= 3 * total


def test_a_wait_that_was_in_time_may_give_up_on_replay(make_module: Any, tmp_path: Path) -> None:
    """A thread that was joined with a timeout is a line of its own, however the timeout went."""
    tools = make_module("def say(n):\n    return n\n")
    path = tmp_path / "run.yaml"

    def agent(in_time: bool) -> None:
        gate = threading.Event()

        def background() -> None:
            assert gate.wait(60)
            tools.say("background")

        thread = threading.Thread(target=background)
        thread.start()
        if in_time:
            gate.set()
        thread.join(60 if in_time else 0.01)
        tools.say("main")
        gate.set()
        thread.join()

    for recorded in (True, False):
        with stepfork.record(path, tools=[tools.__name__]):
            agent(recorded)
        for replayed in (True, False):
            with stepfork.replay(path):
                agent(replayed)
