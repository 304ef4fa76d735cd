"""Tools that call themselves: how deep, and what becomes of a run whose stack is spent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOOLS = """
import sys

def depth():
    frame, found = sys._getframe(), 0
    while frame is not None:
        frame, found = frame.f_back, found + 1
    return found

depths = []

def down(number):
    depths.append(depth())
    return 0 if number == 0 else 1 + down(number - 1)

async def adown(number):
    depths.append(depth())
    return 0 if number == 0 else 1 + await adown(number - 1)

def other(number):
    return number
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def steps_of(depths: list[int]) -> set[int]:
    return {later - earlier for earlier, later in pairwise(depths)}


def test_each_level_of_a_recorded_tool_takes_four_frames(path: Path, tools: Any) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        assert tools.down(3) == 3
        assert steps_of(tools.depths) == {4}
        tools.depths.clear()
        assert asyncio.run(tools.adown(3)) == 3
        assert max(steps_of(tools.depths)) <= 4


def below(levels: int, function: Callable[[], Any]) -> Any:
    return function() if levels == 0 else below(levels - 1, function)


@pytest.mark.parametrize("offset", range(0, 24, 3))
def test_a_stack_that_is_spent_ends_in_the_error_of_the_run_and_in_no_other(
    path: Path, tools: Any, offset: int
) -> None:
    """Wherever it is spent: in the tool, in reading its arguments, in writing down what it raised."""

    def program() -> list[Any]:
        found = [tools.other(1)]
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            below(offset, lambda: tools.down(10 * sys.getrecursionlimit()))
        return [*found, tools.other(2)]

    with stepfork.record(path, tools=[tools.__name__]):
        assert program() == [1, 2]
    found = stepfork.load(path)
    assert found.status == "completed"
    assert [call.name for call in found.calls] == ["other", "down", "other"]
    assert found.calls[1].error["class"] == "builtins:RecursionError"
    with stepfork.replay(path) as run:
        assert program() == [1, 2]
    assert run.counts.live == 0
