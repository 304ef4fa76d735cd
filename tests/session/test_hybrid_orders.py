"""Mode ``hybrid`` for any program: what is live may ask anything, everything else may change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import agent_loop
from support.examples import examples

import stepfork

MODELS = ("a", "b")
STEP = st.one_of(
    st.tuples(st.just("tool"), st.integers(0, 3)), st.tuples(st.sampled_from(MODELS), st.text(max_size=5))
)
PROGRAM = st.lists(STEP, min_size=1, max_size=6)
LIVE = st.sampled_from([(), ("llm",), ("llm:a",), ("llm:a", "llm:b"), ("llm:c",)])


class World:
    """Runs programs: tools that note that they ran, a model in the process that notes what it was asked."""

    def __init__(self, tools: Any, path: Path) -> None:
        self.tools = tools
        self.path = path
        self.asked: list[tuple[str, str]] = []
        self.client = agent_loop.client(self._model)

    def _model(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.asked.append((body["model"], body["messages"][0]["content"]))
        return agent_loop.model(request)

    def run(self, program: list[tuple[str, Any]]) -> None:
        for what, asked in program:
            if what == "tool":
                self.tools.step(asked)
            else:
                body = {"model": what, "messages": [{"role": "user", "content": asked}]}
                self.client.post("/chat/completions", cast_to=object, body=body)

    def record(self, program: list[tuple[str, Any]]) -> None:
        with stepfork.record(self.path, tools=[self.tools.__name__]):
            self.run(program)
        self.tools.ran.clear()
        self.asked.clear()


@pytest.fixture
def world(make_module: Any, tmp_path: Path) -> Iterator[World]:
    tools = make_module("ran = []\ndef step(number):\n    ran.append(number)\n    return number\n")
    made = World(tools, tmp_path / "run.yaml")
    yield made
    made.client.close()


def is_live(step: tuple[str, Any], live: tuple[str, ...]) -> bool:
    return step[0] != "tool" and (not live or "llm" in live or f"llm:{step[0]}" in live)


def ended(live: tuple[str, ...], *programs: list[tuple[str, Any]]) -> AbstractContextManager[Any]:
    """How a session ends: a selector of live calls has to name one that was recorded or made."""
    there = {f"llm:{what}" for program in programs for what, _ in program if what != "tool"}
    if there.issuperset(live) or (there and live == ("llm",)):
        return nullcontext()
    return pytest.raises(stepfork.ConfigError, match=r"^live: .* names no LLM call")


ONE_WORLD = examples(100)


@ONE_WORLD
@given(program=PROGRAM, live=LIVE, data=st.data())
def test_live_calls_may_ask_anything(
    world: World, program: list[tuple[str, Any]], live: tuple[str, ...], data: st.DataObject
) -> None:
    world.record(program)
    before = world.path.read_bytes()
    now = [
        (what, data.draw(st.text(max_size=5)) if is_live((what, asked), live) else asked)
        for what, asked in program
    ]
    with ended(live, now), stepfork.replay(world.path, mode="hybrid", live=live) as run:
        world.run(now)
    chosen = [number for number, step in enumerate(now, 1) if is_live(step, live)]
    assert run.live_calls == chosen
    assert world.asked == [now[number - 1] for number in chosen]
    assert (run.counts.live, run.counts.substituted) == (len(chosen), len(now) - len(chosen))
    assert world.tools.ran == []
    assert world.path.read_bytes() == before


@ONE_WORLD
@given(program=PROGRAM, now=PROGRAM, live=LIVE)
def test_any_other_program_is_refused_at_its_first_difference(
    world: World, program: list[tuple[str, Any]], now: list[tuple[str, Any]], live: tuple[str, ...]
) -> None:
    """And nothing behind that is sent or runs."""

    def placed(step: tuple[str, Any]) -> object:
        return "any question" if step[0] != "tool" else step

    def same(recorded: tuple[str, Any], step: tuple[str, Any]) -> bool:
        return placed(recorded) == placed(step) if is_live(step, live) else recorded == step

    world.record(program)
    fits = 0
    while fits < min(len(program), len(now)) and same(program[fits], now[fits]):
        fits += 1
    if fits == len(program) == len(now):
        with ended(live, program), stepfork.replay(world.path, mode="hybrid", live=live):
            world.run(now)
    else:
        with (
            pytest.raises(stepfork.ReplayMismatchError, match=f"^call #{fits + 1}: "),
            stepfork.replay(world.path, mode="hybrid", live=live),
        ):
            world.run(now)
    assert world.asked == [step for step in now[:fits] if is_live(step, live)]
    assert world.tools.ran == []
