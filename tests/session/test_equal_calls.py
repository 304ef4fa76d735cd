"""Equal calls: in turn where the program orders them, a warning where nothing tells them apart."""

from __future__ import annotations

import asyncio
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import stepfork


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        import itertools
        numbers = itertools.count(1)
        async def ticket(kind):
            return f"{kind}-{next(numbers)}"
        def same(kind):
            return kind
        def counter(kind):
            return next(numbers)
        """
    )


def test_C46_equal_calls_are_answered_in_turn(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        made = [tools.counter("a") for _ in range(3)]
    with stepfork.replay(path):
        assert [tools.counter("a") for _ in range(3)] == made == [1, 2, 3]
    with (
        pytest.raises(stepfork.ReplayMismatchError, match=r"was recorded 3 times .* one time more"),
        stepfork.replay(path),
    ):
        [tools.counter("a") for _ in range(4)]


def test_concurrent_equal_calls_with_different_answers_warn_and_replay(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    async def agent() -> list[str]:
        return list(await asyncio.gather(*(tools.ticket("bug") for _ in range(3))))

    with (
        pytest.warns(
            RuntimeWarning, match=r"run.yaml: tool 'ticket' was called at the same time .*\(and 1 more\)"
        ),
        stepfork.record(path, tools=[tools.__name__]),
    ):
        made = asyncio.run(agent())
    with stepfork.replay(path):
        assert asyncio.run(agent()) == made


@pytest.mark.parametrize("waits", [True, False])
def test_equal_answers_and_equal_calls_that_wait_for_each_other_do_not_warn(
    tools: Any, tmp_path: Path, waits: bool
) -> None:
    def start(function: Any) -> None:
        thread = threading.Thread(target=function, args=("a",))
        thread.start()
        if waits:
            thread.join()
        else:
            threads.append(thread)

    threads: list[threading.Thread] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with stepfork.record(tmp_path / "run.yaml", tools=[tools.__name__]):
            for _ in range(3):
                start(tools.counter if waits else tools.same)
            for thread in threads:
                thread.join()


def test_equal_calls_of_lines_that_other_calls_tell_apart(tools: Any, tmp_path: Path) -> None:
    """Each asks for a ticket of its own first: what is equal afterwards is told apart by that."""
    path = tmp_path / "run.yaml"

    async def one(kind: str) -> list[str]:
        return [await tools.ticket(kind), await tools.ticket("common")]

    async def agent(kinds: str) -> list[list[str]]:
        return list(await asyncio.gather(*map(one, kinds)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with stepfork.record(path, tools=[tools.__name__]):
            made = asyncio.run(agent("xyz"))
    for kinds in ("xyz", "zyx", "yxz"):
        with stepfork.replay(path):
            again = asyncio.run(agent(kinds))
        assert sorted(again) == sorted(made)
