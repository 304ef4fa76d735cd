"""Defaults that cannot be written: what a caller leaves out equals what is absent (contract, 4; C30)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepfork

SOURCE = """
import dataclasses, logging, threading
import openai

MISSING = object()
LOCK = threading.Lock()
bodies = []

def get(key, default=MISSING, *rest, more=LOCK):
    bodies.append(key)
    return [key, default is MISSING, more is LOCK]

def others(a=dataclasses.MISSING, b=..., c=len, d=logging.getLogger("x"), e=openai.NOT_GIVEN, f=openai.omit,
           g=lambda: 1, h=(i for i in ()), i=[LOCK], j=5):
    return [b is ..., c([1]), j, next(h, "none")]

async def aget(key, default=MISSING):
    return default is MISSING

def rows(key, default=MISSING):
    yield default is MISSING

class Shop:
    def get(self, key, /, default=MISSING, **more):
        return default is MISSING
    @staticmethod
    def find(key=MISSING):
        return key is MISSING
    @classmethod
    def all(cls, key=MISSING):
        return key is MISSING
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(SOURCE)


def agent(tools: Any) -> list[Any]:
    return [
        tools.get("a"),
        tools.get("a", tools.MISSING),
        tools.get(key="a", default=tools.MISSING, more=tools.LOCK),
        tools.get("b", 1, 2),
        tools.others(),
        tools.others(j=6),
        asyncio.run(tools.aget("a")),
        list(tools.rows("a")),
        tools.Shop().get("a"),
        tools.Shop.find(),
        tools.Shop.all(),
    ]


def test_C30_defaults_that_cannot_be_written_are_absent(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        live = agent(tools)
    tools.bodies.clear()
    with stepfork.replay(path):
        assert agent(tools) == live
    assert tools.bodies == []
    assert live[:4] == [["a", True, True]] * 3 + [["b", False, True]]
    calls = stepfork.load(path).calls
    assert [dict(call.args) for call in calls[:4]] == [
        {"key": "a", "rest": ()},
        {"key": "a", "rest": ()},
        {"key": "a", "rest": ()},
        {"key": "b", "default": 1, "rest": (2,)},
    ]
    assert calls[4].args["j"] == 5


Act = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (lambda tools: tools.get("a"), lambda tools: tools.get("a", None)),
        (lambda tools: tools.get("a", None), lambda tools: tools.get("a")),
        (lambda tools: tools.get("a"), lambda tools: tools.get("a", object())),
    ],
)
def test_C30_absent_is_no_value(tools: Any, path: Path, then: Act, now: Act) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        then(tools)
    with pytest.raises(stepfork.ReplayMismatchError, match="argument 'default'"), stepfork.replay(path):
        now(tools)


def test_C28_another_object_is_refused_and_ignore_is_a_way_out(tools: Any, path: Path) -> None:
    with pytest.raises(stepfork.RecordingError) as caught, stepfork.record(path, tools=[tools.__name__]):
        assert tools.get("a", object()) == ["a", False, True]
    assert str(caught.value) == (
        "tool 'get' cannot be recorded: argument 'default' is of type object; register a codec for it "
        "(stepfork.codecs), pass a plain value, leave the argument out with ignore = ['get:default'], or the "
        "tool with 'exclude'"
    )
    with stepfork.record(path, tools=[tools.__name__], ignore=["get:default"]):
        tools.get("a", object())
    with stepfork.replay(path, ignore=["get:default"]):
        assert tools.get("a", object()) == ["a", False, True]
