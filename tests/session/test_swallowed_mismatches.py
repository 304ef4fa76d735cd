"""A mismatch comes out, whatever thread, task or framework swallows it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.strands import SEARCH, Worker, in_threads

import stepfork

DIFFERS = "tool 'search' argument 'q': expected \"a\", got \"wrong\""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(SEARCH)


@pytest.fixture
def recorded(tools: Any, path: Path) -> Path:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.search("a")
        tools.search("b")
    tools.bodies.clear()
    return path


def mismatch(function: Callable[[], Any]) -> str:
    with pytest.raises(stepfork.ReplayMismatchError) as caught:
        function()
    return str(caught.value)


def test_a_mismatch_swallowed_in_a_thread_is_raised_by_every_later_call_and_at_the_end(
    tools: Any, recorded: Path
) -> None:
    said: list[str] = []

    def ask(q: str) -> None:
        try:
            tools.search(q)
        except BaseException as error:
            said.append(str(error))

    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(recorded) as run:
        other = Worker(tools.search)
        in_threads(lambda: ask("wrong"))
        in_threads(lambda: ask("a"))
        ask("a")
        said.append(mismatch(lambda: other.ask("a")))
        said.append(mismatch(lambda: asyncio.run(tools.asearch("a"))))
        other.stop()
        assert run.counts.substituted == 0
    assert DIFFERS in str(caught.value)
    assert said == [str(caught.value)] * 5
    assert tools.bodies == []


def test_a_mismatch_in_a_task_group_is_in_the_group_that_leaves_the_session(
    tools: Any, recorded: Path
) -> None:
    inside: list[BaseException] = []

    async def agent() -> None:
        async with asyncio.TaskGroup() as group:
            for q in ("wrong", "a", "b"):
                group.create_task(tools.asearch(q))

    with pytest.raises(ExceptionGroup) as caught, stepfork.replay(recorded):
        try:
            asyncio.run(agent())
        except BaseException as error:
            inside.append(error)
            raise
    assert inside == [caught.value], "the session lets pass what it raised itself"
    leaves = {(type(leaf), str(leaf)) for leaf in caught.value.exceptions}
    assert len(leaves) == 1
    ((kind, said),) = leaves
    assert kind is stepfork.ReplayMismatchError
    assert "expected tool 'search' but the agent called 'asearch'" in said


def test_a_mismatch_that_gather_returns_is_raised_at_the_end(tools: Any, recorded: Path) -> None:
    async def agent() -> list[Any]:
        one = asyncio.to_thread(tools.search, "wrong")
        return list(await asyncio.gather(one, asyncio.sleep(0, "fine"), return_exceptions=True))

    with pytest.raises(stepfork.ReplayMismatchError, match=DIFFERS), stepfork.replay(recorded):
        found = asyncio.run(agent())
        assert isinstance(found[0], stepfork.ReplayMismatchError)
        assert found[1] == "fine"


@pytest.mark.parametrize("then", ["returns", "raises-another", "goes-on", "exits"])
def test_a_framework_that_makes_text_of_errors_hides_no_mismatch(
    tools: Any, recorded: Path, then: str
) -> None:
    def use_tool(q: str) -> str:
        try:
            return str(tools.search(q))
        except BaseException as error:
            return f"error: {error}"

    with pytest.raises(stepfork.ReplayMismatchError, match=DIFFERS) as caught, stepfork.replay(recorded):
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(use_tool, ["wrong", "wrong"]))
        assert all(answer.startswith("error: call #1") for answer in answers)
        if then == "goes-on":
            assert [use_tool(q) for q in "ab"] == answers
        elif then == "raises-another":
            raise RuntimeError("the agent gave up")
        elif then == "exits":
            sys.exit(0)
    if then == "raises-another":
        assert isinstance(caught.value.__cause__, RuntimeError)
