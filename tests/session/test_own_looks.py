"""stepfork's own look at a value may run the program's code; what that calls is none of the trajectory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import stepfork
from stepfork import codecs

TOOLS = """
made = []

def price(why):
    made.append(why)
    return len(why)

def show(thing):
    return thing

def fail(thing):
    raise Down(thing)

def fill(rows):
    rows.append(Thing(9))
    return rows

def pages(thing):
    yield thing
    yield thing

async def later(thing):
    return thing

class Thing:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        price("eq")
        return isinstance(other, Thing) and self.number == other.number

    def __repr__(self):
        price("repr")
        return "Thing"

class Down(Exception):
    def __str__(self):
        price("str")
        return "down"

class Refused:
    @property
    def __class__(self):
        price("class")
        return int
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    module = make_module(TOOLS)

    def encode(thing: Any) -> Any:
        module.price("encode")
        return thing.number

    def decode(number: Any) -> Any:
        module.price("decode")
        return module.Thing(number)

    codecs.register(module.Thing, "looked-at", encode, decode)
    yield module
    codecs.CODECS.drop("looked-at")


async def program(tools: Any) -> list[Any]:
    thing = tools.Thing(3)
    found = [tools.show(thing).number, tools.price("own")]
    with pytest.raises(tools.Down):
        tools.fail(thing)
    rows = [tools.Thing(1)]
    found += [len(tools.fill(rows)), rows[1].number]
    found += [item.number for item in tools.pages(thing)]
    found.append((await tools.later(thing)).number)
    return found


NAMES = ["show", "price", "fail", "fill", "pages", "later"]


def test_what_a_codec_or_a_text_calls_is_no_call_of_the_run(path: Path, tools: Any) -> None:
    with stepfork.record(path, tools=[tools.__name__]) as run:
        live = asyncio.run(program(tools))
        run.set_output(tools.Thing(4))
        assert [call.name for call in run.calls] == NAMES
    assert {"encode", "decode"} <= set(tools.made)
    assert [call.name for call in stepfork.load(path).calls] == NAMES
    tools.made.clear()
    with stepfork.replay(path) as run:
        assert asyncio.run(program(tools)) == live
        assert [call.name for call in run.calls] == NAMES
    assert run.counts.substituted == len(NAMES)
    assert run.counts.tool_bodies_executed == 0
    assert "own" not in tools.made
    assert "decode" in tools.made  # they run plainly


def test_a_value_that_is_refused_is_looked_at_aside_too(path: Path, tools: Any) -> None:
    with pytest.raises(stepfork.RecordingError), stepfork.record(path, tools=[tools.__name__]) as run:
        tools.show(tools.Refused())
        assert tools.price("own") == 3
        assert [call.name for call in run.calls] == ["price"]
