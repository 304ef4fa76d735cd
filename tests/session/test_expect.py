"""`stepfork.expect`: what is equal, what is not, and what it says; never anything but an AssertionError."""

from __future__ import annotations

import copy
import enum
import functools
import math
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.any_values import VALUES
from support.examples import examples

import stepfork


@dataclass(frozen=True)
class Point:
    """A dataclass."""

    x: Any


class Model(pydantic.BaseModel):
    """A model."""

    x: Any


class Pair(NamedTuple):
    """A named tuple."""

    x: Any


class Odd:
    """Has no plain form, and an idea of its own of what is equal."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self.of = (one for one in ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and bool(self.x == other.x)

    __hash__ = None  # type: ignore[assignment]


class Loud:
    """Cannot be shown."""

    def __init__(self) -> None:
        self.of = (one for one in ())

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Color(enum.Enum):
    """An enum."""

    RED = 1
    GREEN = 2


NAN = math.nan
WRAPS: dict[str, Any] = {
    "bare": lambda x: x,
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "value": lambda x: {"a": x},
    "key": lambda x: {x: 2},
    "key of a tuple": lambda x: {(x,): 2},
    "set": lambda x: {x},
    "frozenset": lambda x: {"a": frozenset([(x,)])},
    "deque": lambda x: deque([x]),
    "Counter": lambda x: Counter([x]),
    "defaultdict": lambda x: defaultdict(list, {x: []}),
    "OrderedDict": lambda x: OrderedDict([(x, 1)]),
    "dataclass": Point,
    "dataclass as a key": lambda x: {Point(x): 1},
    "model": lambda x: Model(x=x),
    "model below": lambda x: [Model(x={"a": Point(x)})],
    "named tuple": Pair,
}


def differs(actual: Any, expected: Any, **how: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        stepfork.expect(actual, expected, **how)
    assert len(str(caught.value)) < 2000
    return str(caught.value)


@pytest.mark.parametrize("wrap", WRAPS)
def test_C17_one_and_true_and_a_float_are_three_wherever_they_stand(wrap: str) -> None:
    make, values = WRAPS[wrap], [1, True, 1.0]
    for at, value in enumerate(values):
        for exact in (False, True):
            stepfork.expect(make(value), make(value), exact=exact)
            for other in values[:at] + values[at + 1 :]:
                differs(make(value), make(other), exact=exact)
    stepfork.expect(make(NAN), make(float("nan")))
    differs(make(NAN), make(1.0))


def test_what_is_equal_stays_so() -> None:
    stepfork.expect(Decimal("1.0"), Decimal("1.00"))
    stepfork.expect({"a": -0.0}, {"a": 0.0})
    east = timezone(timedelta(hours=1))
    stepfork.expect(datetime(2024, 1, 1, 1, tzinfo=east), datetime(2024, 1, 1, tzinfo=UTC))
    stepfork.expect({1, 2}, {2, 1})
    stepfork.expect({1: {"a": 1, "b": 2}, 2: 3}, {1: {"b": 2}})
    stepfork.expect([Color.RED, {Color.GREEN: 1}], [Color.RED, {Color.GREEN: 1}])
    stepfork.expect(np.array([1.0, NAN]), np.array([1.0, NAN]))
    stepfork.expect([Odd(1)], [Odd(1)])


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        ({1: 2}, {1.0: 2}, " at '1.0': expected 2, got nothing"),
        ({"a": {1: {2: 3}}}, {"a": {1: {2: 4}}}, " at 'a.1.2': expected 4, got 3"),
        ({1: 2}, {True: 2}, " at 'True': expected 2, got nothing"),
        ([1], [1, 2], " at '[1]': expected 2, got nothing"),
        ([1, 2], [1], " at '[1]': expected nothing, got 2"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, " at 'a[0].b': expected 2, got 1"),
        ({1}, {True}, ": expected set([true]), got set([1])"),
        (None, {"a": 1}, ': expected {"a": 1}, got null'),
        (None, "<secret:token:1>", ': expected "<secret:token:1>", got null'),
        ({}, {"a": "<secret:token:1>"}, " at 'a': expected \"<secret:token:1>\", got nothing"),
        (Color.RED, Color.GREEN, "RED"),
    ],
)
def test_what_it_says(actual: Any, expected: Any, said: str) -> None:
    assert said in differs(actual, expected)
    assert differs(actual, expected).startswith("behavior mismatch")


def test_with_exact_no_other_key_may_be_there() -> None:
    said = differs({1: 2, True + 1: 3}, {1: 2}, exact=True)
    assert said == "behavior mismatch at '2': expected nothing, got 3"
    differs({1: 2}, {}, exact=True)


def nested(levels: int, last: Any) -> Any:
    return functools.reduce(lambda inner, _: [inner], range(levels), last)


def circle() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


def test_what_is_nested_deep_or_in_itself() -> None:
    stepfork.expect(nested(5000, 1), nested(5000, 1))
    assert differs(nested(5000, 1), nested(5000, 2)).endswith("expected 2, got 1")
    stepfork.expect(circle(), circle())
    one = circle()
    stepfork.expect(one, one)
    one[0] = 2
    assert "expected 1, got 2" in differs(one, circle())
    differs({"a": one}, {"a": None})
    differs(nested(5000, 1), 1)
    differs(Point(nested(5000, 1)), Point(nested(5000, 2)))
    differs(Loud(), Loud())
    differs([Odd(1)], [Odd(2)])


@examples(60)
@given(VALUES, VALUES)
def test_any_value_is_as_expected_by_itself_and_no_other(one: Any, other: Any) -> None:
    stepfork.expect(one, one)
    try:
        stepfork.expect([one], [other], exact=True)
    except AssertionError:
        differs([other], [one], exact=True)
    else:
        stepfork.expect([other], [one], exact=True)


@examples(60)
@given(
    st.recursive(
        st.booleans() | st.integers() | st.floats() | st.none(),
        lambda of: st.lists(of) | st.dictionaries(st.integers() | st.text(), of),
    )
)
def test_json_and_more_is_as_expected_by_a_copy(value: Any) -> None:
    stepfork.expect(copy.deepcopy(value), value, exact=True)
