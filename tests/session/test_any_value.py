"""Any value of any supported type, as an argument, as a result and in an error: it comes back as itself.

Compared here by what the objects are, not by what a cassette would say of them.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from support.any_values import BOXES, VALUES, errors, like
from support.examples import examples

import stepfork

TOOLS = """
    bodies = []
    def echo(value):
        bodies.append(1)
        return value
    def fail(error):
        bodies.append(1)
        raise error
    def each(items):
        bodies.append(1)
        for item in items:
            sent = yield item
            if sent is not None:
                yield sent
        return items
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def twice(tools: Any, path: Path, agent: Any) -> None:
    """What an agent sees while recording and on replay is what it sees live; or it is refused."""
    plain = agent()
    try:
        with stepfork.record(path, tools=[tools.__name__]):
            assert agent() == plain
    except stepfork.RecordingError as problem:
        event("refused: " + re.sub(r".*is (of type )?", "", str(problem))[:60])
        return
    if "cause_left_out:" in path.read_text("utf-8"):
        event("a cause left out")
        return
    assert stepfork.load(path).status == "completed"
    tools.bodies.clear()
    with stepfork.replay(path):
        assert agent() == plain
    assert tools.bodies == []


@examples(150)
@given(VALUES)
def test_any_value_comes_back_from_a_tool_that_was_given_it(tools: Any, path: Path, value: Any) -> None:
    twice(tools, path, lambda: like(tools.echo(value)))


@examples(100)
@given(errors(VALUES))
def test_any_error_comes_back(tools: Any, path: Path, error: Any) -> None:
    def agent() -> Any:
        try:
            tools.echo([error])
            tools.fail(error)
        except Exception as caught:
            return like(caught)

    twice(tools, path, agent)


@examples(150)
@given(first=BOXES, second=BOXES)
@example(first=0.0, second=-0.0)
@example(first=[{"a": np.float32(0.0)}], second=[{"a": np.float32(-0.0)}])
def test_what_is_recorded_over_another_recording_is_what_replays(
    tools: Any, path: Path, first: Any, second: Any
) -> None:
    """Also where Python calls the two equal: the recording that says something else takes the place."""
    for value in (first, second):
        with stepfork.record(path, tools=[tools.__name__]):
            tools.echo(value)
        with stepfork.replay(path):
            assert repr(like(tools.echo(value))) == repr(like(value))
    expected = pytest.raises(stepfork.ReplayMismatchError) if like(first) != like(second) else nullcontext()
    with expected, stepfork.replay(path):
        tools.echo(first)
