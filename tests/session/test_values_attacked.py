"""Values of every kind, and what lies about itself: tools take, return and yield it; replay gives it back."""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import re
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from pydantic import SecretStr
from support import odd_values as odd
from support.odd_values import Page

import stepfork

TOOLS = """
    bodies = []
    made = []
    def give(name):
        bodies.append("give")
        return made[0]()
    def take(value):
        bodies.append("take")
        return "taken"
    def stream(name):
        bodies.append("stream")
        yield {"inside": [made[0]()]}
"""
ALLOW: Any = {"allow_classes": ["support.odd_values.*"]}


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def shown(value: Any) -> Any:
    """A value in a form that tells it from every other."""
    if isinstance(value, dict):
        return [type(value), [[shown(key), shown(item)] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        return [type(value), *map(shown, value)]
    if isinstance(value, set | frozenset):
        return [type(value), *sorted(map(repr, map(shown, value)))]
    if isinstance(value, np.ndarray):
        order = value.flags.f_contiguous, value.flags.c_contiguous
        return [value.dtype, value.shape, value.tolist(), order]
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return [type(value), repr(value), getattr(value, "freq", None)]
    if isinstance(value, SecretStr):
        return [type(value)]
    if type(value) is int:
        return hex(value)
    return [type(value), repr(value)]


VALUES: dict[str, Callable[[], Any]] = {
    "an alias": lambda: [odd.Alias.UNO, odd.Alias.LIST],
    "flags": lambda: [odd.Access.READ | odd.Access(1), odd.Access.BOTH, ~odd.Access.READ, odd.Keep(9)],
    "keys that are enums": lambda: {odd.Prio.LOW: 1, odd.Alias.ONE: 2, odd.Access(5): 3, 7: 4},
    "keys that are floats": lambda: {-0.0: 1, math.inf: 2, 0.5: 3},
    "keys that are NaN": lambda: {math.nan: 1, float("nan"): 2},
    "a set of NaN": lambda: {math.nan, float("nan"), 1.5},
    "keys of classes": lambda: {odd.Hashed("a"): 1, odd.Linked(a=1): 2, odd.Pair(1): 3, (1, (2,)): 4},
    "keys true and two": lambda: {True: 1, 2: 2, None: 3, "True": 4},
    "a mixed set": lambda: {1, "a", None, (1,), 2.5, b"x", frozenset({1, "b"})},
    "a long number": lambda: [10**5000, {10**5000: -(10**6000)}],
    "a deep list": lambda: nested(120),
    "a decimal": lambda: [Decimal("sNaN123"), Decimal("-0.00"), Decimal("-Infinity"), Decimal("1E+999999")],
    "dataclasses": lambda: [
        *(odd.Base(1), odd.Below(1, k=7), odd.Linked(a=odd.Linked(a=2)), odd.Outer._Private(1))
    ],
    "a model with validators": lambda: odd.Validated(X=1),
    "a root model": lambda: odd.Numbers([1, 2]),
    "generic models": lambda: [Page(items=[1]), Page[int](items=[1]), Page[Page[odd.Cat]](items=[])],
    "a generic of a list": lambda: Page[list[int]](items=[[1]]),
    "a union": lambda: odd.Owner(pet={"kind": "dog"}),
    "a secret": lambda: odd.Login(user="ann", key="correct-horse-battery"),
    "a dataclass of pydantic's": lambda: odd.Checked(a=1, b="correct-horse-battery"),
    "classes of attrs": lambda: [
        *(odd.Defined(1, [2]), odd.Derived(1, w=4), odd.Undecorated(3), odd.Hashed("a"))
    ],
    "named tuples": lambda: [odd.Pair(1), odd.Named([odd.Pair(2)])],
    "a typed dict": lambda: odd.Typed(a=1),
    "times": lambda: [
        dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Oslo")),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=-1))),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")),
        dt.time(1, tzinfo=dt.timezone(dt.timedelta(0), "UTC+00")),
    ],
    "time zones": lambda: [dt.UTC, ZoneInfo("Europe/Oslo"), dt.timezone(dt.timedelta(hours=1), "CET")],
    "a struct_time": lambda: [time.gmtime(0), time.struct_time(range(9))],
    "patterns": lambda: [re.compile("a+", re.IGNORECASE), re.compile(b"\xff"), re.compile("(?x) a")],
    "addresses": lambda: [
        ipaddress.ip_address("fe80::1%eth0"),
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_interface("10.1.2.3/8"),
    ],
    "a slice": lambda: slice(1, None, 2),
    "classes": lambda: [str, odd.Validated, odd.Base, odd.Defined, odd.Alias, odd.Pair, odd.Typed, KeyError],
    "records": lambda: np.array([(1, 2.5)], dtype=[("a", "<i4"), ("b", ">f8")]),
    "a record": lambda: np.array([(1, "x")], dtype=[("a", "<i4"), ("b", "<U3")])[0],
    "arrays": lambda: [
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.asfortranarray(np.arange(200.0).reshape(2, 100)),
        np.array(["2024-01-01", "NaT"], dtype="datetime64[ns]"),
        np.array(3),
        np.array([1, None, [2]], dtype=object),
        np.array(["a", "bc"]),
    ],
    "scalars of numpy": lambda: [np.float32(0.1), np.datetime64("NaT"), np.bool_(True), {np.int64(1): 2}],
    "moments of pandas": lambda: [
        pd.Timestamp("2024-01-01T00:00:00.000000001", tz="UTC"),
        pd.Timestamp("2024-10-27 01:30", tz="UTC").tz_convert(ZoneInfo("Europe/Oslo")),
        pd.Timestamp("2024-01-01"),
        pd.Timedelta("-1ns"),
        pd.Period("2024-01", freq="M"),
        pd.NaT,
        pd.NA,
    ],
    "indexes": lambda: [
        pd.Index([1, 2], name="n"),
        pd.RangeIndex(3),
        pd.date_range("2024", periods=3, freq="D"),
        pd.MultiIndex.from_tuples([(1, "a")], names=["p", None]),
    ],
    "frames": lambda: [
        pd.DataFrame({"a": [1, 2]}, index=pd.date_range("2024", periods=2, freq="D")),
        pd.DataFrame({"t": [pd.Timestamp("2024"), "x"]}),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_it_comes_back_as_itself(tools: Any, path: Path, name: str) -> None:
    tools.made[:] = [VALUES[name]]

    def agent() -> list[Any]:
        return [tools.give(name), tools.take(VALUES[name]()), list(tools.stream(name))]

    with stepfork.record(path, tools=[tools.__name__], **ALLOW):
        live = shown(agent())
    tools.bodies.clear()
    with stepfork.replay(path, **ALLOW):
        assert shown(agent()) == live
    assert tools.bodies == []


@pytest.mark.parametrize("name", VALUES)
def test_another_one_as_argument_is_a_mismatch(tools: Any, path: Path, name: str) -> None:
    with stepfork.record(path, tools=[tools.__name__], **ALLOW):
        tools.take([VALUES[name](), "old"])
    with pytest.raises(stepfork.ReplayMismatchError) as caught:  # noqa: SIM117
        with stepfork.replay(path, **ALLOW):
            tools.take([VALUES[name](), "new"])
    assert 'argument \'value[1]\': expected "old", got "new"' in str(caught.value).partition("\n")[0]
    with pytest.raises(stepfork.ReplayMismatchError) as caught:  # noqa: SIM117
        with stepfork.replay(path, **ALLOW):
            tools.take("something else")
    assert len(str(caught.value)) < 4000


LYING: dict[str, tuple[Callable[[], Any], Any]] = {
    "a text": (lambda: odd.LyingText("x"), "x"),
    "a list": (lambda: odd.LyingList([1]), [1]),
    "a number": (lambda: odd.LyingInt(3), 3),
}


@pytest.mark.parametrize("name", LYING)
def test_no_method_of_what_lies_is_asked(tools: Any, path: Path, name: str) -> None:
    make, plain = LYING[name]
    tools.made[:] = [make]
    with stepfork.record(path, tools=[tools.__name__]):
        tools.give(name)
        tools.take(make())
    with stepfork.replay(path):
        found = tools.give(name)
        tools.take(make())
    assert type(found) is type(plain)
    assert found == plain


def test_no_method_of_an_object_is_asked(tools: Any, path: Path) -> None:
    tools.made[:] = [lambda: odd.Raising(1)]
    with stepfork.record(path, tools=[tools.__name__]):
        tools.give("it")
        tools.take({"deep": [odd.Raising(2)]})
    with stepfork.replay(path):
        found = tools.give("it")
        tools.take({"deep": [odd.Raising(2)]})
    assert type(found) is odd.Raising
    assert vars(found) == {"a": 1}


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a decimal of one's own": (lambda: odd.OwnDecimal(1), "support.odd_values.OwnDecimal"),
    "a moment of one's own": (lambda: odd.OwnMoment(2024, 1, 1), "support.odd_values.OwnMoment"),
    "a time zone of one's own": (lambda: dt.time(1, tzinfo=odd.OwnZone()), "time zone of type OwnZone"),
    "a class that is no data": (lambda: odd.OwnZone, "'support.odd_values:OwnZone' is no class of data"),
    "a function": (lambda: shown, "function"),
    "a module": (lambda: odd, "module"),
    "a generator": (lambda: {"rows": (it for it in [1])}, "rows is of type generator"),
    "a key twice": (lambda: {LyingKey("x"): 1, "x": 2}, "in which two things have the same form"),
    "a masked array": (lambda: np.ma.array([1], mask=[1]), "MaskedArray"),
    "too deep": (lambda: nested(200), "nested more than 150 levels deep"),
    "a generic of a union": (lambda: Page[int | str](items=[1]), "give it a class of its own"),
}  # fmt: skip


class LyingKey(str):
    """Another key than the same text."""

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_come_back_is_refused_in_one_sentence(tools: Any, path: Path, name: str) -> None:
    make, said = REFUSED[name]
    value = make()
    tools.made[:] = [lambda: value]
    with pytest.raises(stepfork.RecordingError) as caught:  # noqa: SIM117
        with stepfork.record(path, tools=[tools.__name__], **ALLOW):
            assert tools.give(name) is value
    assert said in str(caught.value)
    assert "tool 'give' cannot be recorded: result" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_C112_the_value_of_a_secret_type_reaches_no_file(tools: Any, path: Path) -> None:
    tools.made[:] = [lambda: odd.Login(user="ann", key="correct-horse-battery")]
    with stepfork.record(path, tools=[tools.__name__]):
        found = tools.give("it")
        tools.take({"key": found.key, "said": "my key is correct-horse-battery"})
    text = path.read_text("utf-8")
    assert "correct-horse" not in text
    assert "raw-bytes" not in text
    with stepfork.replay(path):
        found = tools.give("it")
        assert isinstance(found.key, SecretStr)
        tools.take({"key": found.key, "said": f"my key is {found.key.get_secret_value()}"})


def test_an_ordered_dict_keeps_the_order_it_was_given(make_module: Any, path: Path) -> None:
    module = make_module(
        """
        from collections import OrderedDict
        def ranked():
            found = OrderedDict(a=1, b=2)
            found.move_to_end("a")
            return found
        """
    )
    with stepfork.record(path, tools=[module.__name__]):
        module.ranked()
    with stepfork.replay(path):
        assert list(module.ranked()) == ["b", "a"]


def test_large_values(tools: Any, path: Path) -> None:
    tools.made[:] = [lambda: {"text": "words and words\n" * 600_000, "rows": list(range(200_000))}]
    with stepfork.record(path, tools=[tools.__name__]):
        live = tools.give("it")
    with stepfork.replay(path):
        assert tools.give("it") == live


def test_two_places_that_hold_one_object_hold_two_equal_ones_on_replay(make_module: Any, path: Path) -> None:
    """docs/values.md says so."""
    module = make_module("def twice():\n    row = [1]\n    return [row, row]\n")
    with stepfork.record(path, tools=[module.__name__]):
        assert module.twice()[0] is not None
    with stepfork.replay(path):
        found = module.twice()
    assert found == [[1], [1]]
    assert found[0] is not found[1]
