"""Tools that run at the same time and were given one object: what would not replay is refused, no more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOOLS = """
    import asyncio
    from dataclasses import dataclass, field

    @dataclass
    class State:
        found: dict = field(default_factory=dict)
        limit: int = 3

    async def look(name, state, wait):
        await asyncio.sleep(wait)
        state.found[name] = len(state.found)
        return name

    async def early(state, go_on):
        state.found["early"] = 1
        await asyncio.sleep(go_on)

    async def count(state, wait):
        await asyncio.sleep(wait)
        return state.limit

    async def both(state):
        await look("inner", state, 0)
        await asyncio.gather(look("a", State(), 0.01), look("b", State(), 0.02))
        state.found["outer"] = 1

    def wait_and_put(name, state):
        BARRIER.wait(20)
        state.found[name] = 1
        BARRIER.wait(20)
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def both(tools: Any, path: Path) -> Callable[[Callable[[], Any]], Any]:
    """Records what an async function does and replays it: the same."""

    def run(agent: Callable[[], Any]) -> Any:
        with stepfork.record(path, tools=[tools.__name__]):
            live = asyncio.run(agent())
        for _ in range(2):
            with stepfork.replay(path):
                assert asyncio.run(agent()) == live
        return live

    return run


def refused(path: Path, tools: Any, agent: Callable[[], Any]) -> str:
    with pytest.raises(stepfork.RecordingError) as caught, stepfork.record(path, tools=[tools.__name__]):
        agent()
    return str(caught.value)


def test_one_changes_what_the_other_was_given(tools: Any, path: Path) -> None:
    async def agent() -> None:
        state = tools.State()
        await asyncio.gather(tools.look("a", state, 0.01), tools.look("b", state, 0.02))
        assert state.found == {"a": 0, "b": 1}

    told = refused(path, tools, lambda: asyncio.run(agent()))
    assert told == (
        "tool 'look' cannot be recorded: argument 'state' is of type dict that changed while this call and "
        "one of 'look' ran, which was given it too; let the tool return what it changes, or leave the tool "
        "out with 'exclude'"
    )


def test_one_that_was_over_before_the_other_changed_it(tools: Any, path: Path) -> None:
    async def agent() -> None:
        state = tools.State()
        await asyncio.gather(tools.look("a", state, 0.05), tools.count(state, 0.01))

    assert "tool 'look' cannot be recorded: argument 'state'" in refused(
        path, tools, lambda: asyncio.run(agent())
    )


def test_threads(tools: Any, path: Path) -> None:
    tools.BARRIER = threading.Barrier(2)

    def agent() -> None:
        state = tools.State()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(tools.wait_and_put, "ab", [state, state]))

    assert "tool 'wait_and_put' cannot be recorded: argument 'state'" in refused(path, tools, agent)


def test_objects_of_their_own(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        states = [tools.State(), tools.State()]
        await asyncio.gather(tools.look("a", states[0], 0.01), tools.look("b", states[1], 0.02))
        return [state.found for state in states]

    assert both(agent) == [{"a": 0}, {"b": 0}]


def test_an_object_that_nobody_changes(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        state = tools.State()
        return await asyncio.gather(tools.count(state, 0.01), tools.count(state, 0.02))

    assert both(agent) == [3, 3]


def test_one_after_the_other(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        state = tools.State()
        await tools.look("a", state, 0.01)
        await tools.look("b", state, 0)
        return state.found

    assert both(agent) == {"a": 0, "b": 1}


def test_a_tool_that_calls_another_with_its_own_argument(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        state = tools.State()
        await tools.both(state)
        return state.found

    assert both(agent) == {"inner": 0, "outer": 1}


def test_one_that_began_when_the_change_was_made(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        state = tools.State()
        task = asyncio.create_task(tools.early(state, 0.03))
        await asyncio.sleep(0)
        found = await tools.count(state, 0.01)
        await task
        return [found, state.found]

    assert both(agent) == [3, {"early": 1}]


def test_what_is_refused_does_not_disturb_the_next_recording(tools: Any, path: Path, both: Any) -> None:
    test_one_changes_what_the_other_was_given(tools, path.with_name("other.yaml"))
    test_one_after_the_other(tools, both)
