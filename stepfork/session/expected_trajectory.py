"""Which calls a run should have made, against those it made. Pure: knows public calls, no cassette.

`selectors` says how the rules name calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from stepfork.core.model import Call
from stepfork.core.wording import spell
from stepfork.errors import ConfigError
from stepfork.session.expectation import first_difference
from stepfork.session.selectors import KINDS, selects

_SHOWN: Final = 30  # calls of the trajectory that a message lists


@dataclass(frozen=True, slots=True)
class Arguments:
    """What one call of a name should have been asked: every key named must be there and match."""

    name: str
    arguments: Mapping[str, Any]
    occurrence: int = 1


@dataclass(frozen=True, slots=True)
class ExpectedTrajectory:
    """What is expected of the calls of a run; what is None is not.

    Attributes:
        called: each was called at least once.
        not_called: none of them was.
        counts: how often each was called, exactly.
        arguments: what the n-th call of a name (from 1) was asked.
        order: they were called in this order, whatever came between.
        sequence: they were called right after one another; only calls of the kinds named here count.
        strict_sequence: they are all calls of the kinds named here, in this order.
        max_steps: at most so many top-level calls were made, of any kind.
    """

    called: tuple[str, ...] | None = None
    not_called: tuple[str, ...] | None = None
    counts: Mapping[str, int] | None = None
    arguments: tuple[Arguments, ...] | None = None
    order: tuple[str, ...] | None = None
    sequence: tuple[str, ...] | None = None
    strict_sequence: tuple[str, ...] | None = None
    max_steps: int | None = None

    @classmethod
    def of(cls, rules: Mapping[str, Any], source: str) -> ExpectedTrajectory:
        """Checked rules, as they stand in JSON; `source` says in an error where they came from.

        Raises:
            ConfigError: for an unknown key (listing the valid ones) or a value of another shape.

        >>> ExpectedTrajectory.of({"called": ["search"], "max_steps": 5}, "here").max_steps
        5
        """
        if not isinstance(rules, Mapping) or not rules:
            raise ConfigError(f"{source}: expected an object with some of {', '.join(_READERS)}")
        read: dict[str, Any] = {}
        for key, value in rules.items():
            if key not in _READERS:
                raise ConfigError(f"{source}: unknown key {key!r}; the keys are {', '.join(_READERS)}")
            read[key] = _READERS[key](value, f"{source}: {key}")
        return cls(**read)

    def faults(self, calls: Sequence[Call]) -> list[str]:
        """What is not as expected, a sentence each, in the order of the attributes."""
        found: list[str] = []
        for field in fields(self):
            expected = getattr(self, field.name)
            if expected is not None:
                found += _CHECKS[field.name](expected, calls)
        return found

    def check(self, calls: Sequence[Call]) -> None:
        """Asserts all of it.

        Raises:
            AssertionError: naming every rule that does not hold, and the calls that were made.

        >>> ExpectedTrajectory(called=("search",)).check([])
        Traceback (most recent call last):
        AssertionError: trajectory mismatch: called: 'search' was never called
          calls made: none
        """
        __tracebackhide__ = True
        faults = self.faults(calls)
        if faults:
            shown = [_label(call) for call in calls[:_SHOWN]]
            more = f", and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
            made = f"  calls made: {', '.join(shown) or 'none'}{more}"
            first, *others = faults
            raise AssertionError(
                "\n".join([f"trajectory mismatch: {first}", *(f"  {it}" for it in others), made])
            )


# -- reading -----------------------------------------------------------------------------------------


def _names(value: Any, source: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{source} must be a list of names, not {_found(value)}")
    return tuple(_name(item, source) for item in value)


def _name(value: Any, source: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{source} must hold names of calls, found {_found(value)}")
    return value


def _counts(value: Any, source: str) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{source} must be an object of names and numbers, not {_found(value)}")
    return {_name(name, source): _number(count, f"{source}.{name}", 0) for name, count in value.items()}


def _number(value: Any, source: str, least: int) -> int:
    if type(value) is not int or value < least:
        raise ConfigError(f"{source} must be a whole number from {least} on, not {_found(value)}")
    return value


def _arguments(value: Any, source: str) -> tuple[Arguments, ...]:
    """A list of objects; an object of names and arguments is short for the first call of each."""
    if isinstance(value, Mapping):
        value = [{"name": name, "arguments": arguments} for name, arguments in value.items()]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{source} must be a list of objects, not {_found(value)}")
    return tuple(_one(item, f"{source}[{at}]") for at, item in enumerate(value))


def _one(value: Any, source: str) -> Arguments:
    if isinstance(value, Arguments):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source} must be an object with name, arguments and occurrence, not {_found(value)}"
        )
    if unknown := [key for key in value if key not in ("name", "arguments", "occurrence")]:
        raise ConfigError(f"{source}: unknown key {unknown[0]!r}; the keys are name, arguments, occurrence")
    arguments = value.get("arguments")
    if not isinstance(arguments, Mapping):
        raise ConfigError(f"{source}.arguments must be an object, not {_found(arguments)}")
    occurrence = _number(value.get("occurrence", 1), f"{source}.occurrence", 1)
    return Arguments(_name(value.get("name"), f"{source}.name"), arguments, occurrence)


def _found(value: Any) -> str:
    return (
        "null"
        if value is None
        else f"{str(value)[:60]!r}"
        if isinstance(value, str)
        else type(value).__name__
    )


_READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "called": _names,
    "not_called": _names,
    "counts": _counts,
    "arguments": _arguments,
    "order": _names,
    "sequence": _names,
    "strict_sequence": _names,
    "max_steps": lambda value, source: _number(value, source, 0),
}


# -- checking ----------------------------------------------------------------------------------------


def _calls_of(selector: str, calls: Sequence[Call]) -> list[tuple[int, Call]]:
    """The calls it names, with their numbers from 1."""
    return [(at, call) for at, call in enumerate(calls, 1) if selects(selector, call)]


def _called(expected: Sequence[str], calls: Sequence[Call]) -> list[str]:
    return [f"called: {name!r} was never called" for name in expected if not _calls_of(name, calls)]


def _not_called(expected: Sequence[str], calls: Sequence[Call]) -> list[str]:
    found = [(name, _calls_of(name, calls)) for name in expected]
    return [f"not_called: {name!r} was called, by call #{made[0][0]}" for name, made in found if made]


def _count(expected: Mapping[str, int], calls: Sequence[Call]) -> list[str]:
    found = [(name, count, len(_calls_of(name, calls))) for name, count in expected.items()]
    return [
        f"counts: {name!r} was called {_times(made)}, expected {_times(count)}"
        for name, count, made in found
        if made != count
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _asked(expected: Sequence[Arguments], calls: Sequence[Call]) -> list[str]:
    faults = []
    for one in expected:
        made = _calls_of(one.name, calls)
        if len(made) < one.occurrence:
            made_it = f"{one.name!r} was called {_times(len(made))}"
            faults.append(f"arguments: {made_it}, so there is no call {one.occurrence} of it")
            continue
        number, call = made[one.occurrence - 1]
        difference = first_difference(call.args, one.arguments)
        if difference is not None:
            faults.append(f"arguments: call #{number} ({one.name!r}){difference}")
    return faults


def _order(expected: Sequence[str], calls: Sequence[Call]) -> list[str]:
    after = 0
    for at, name in enumerate(expected):
        later = next((number for number, _ in _calls_of(name, calls) if number > after), None)
        if later is None:
            behind = f" after {expected[at - 1]!r} (call #{after})" if at else ""
            return [f"order: {name!r} was not called{behind}"]
        after = later
    return []


def _counting(expected: Sequence[str], calls: Sequence[Call]) -> list[tuple[int, Call]]:
    """The calls of the kinds that selectors name, with their numbers."""
    kinds: set[str] = set()
    for selector in expected:
        kind = selector.partition(":")[0]
        named = {call.kind for _, call in _calls_of(selector, calls)} or {"tool"}
        kinds |= {kind} if kind in KINDS else named
    return [(number, call) for number, call in enumerate(calls, 1) if call.kind in kinds]


def _sequence(expected: Sequence[str], calls: Sequence[Call]) -> list[str]:
    made = _counting(expected, calls)
    best, place = 0, ""
    for start in range(len(made) - len(expected) + 1):
        fits = 0
        while fits < len(expected) and selects(expected[fits], made[start + fits][1]):
            fits += 1
        if fits == len(expected):
            return []
        if fits > best:
            number, call = made[start + fits]
            best = fits
            came = f"after {expected[fits - 1]!r} came {_label(call)} (call #{number})"
            place = f": {came}, expected {expected[fits]!r}"
    return [f"sequence: {spell(list(expected))} was not called in a row{place}"] if expected else []


def _strict_sequence(expected: Sequence[str], calls: Sequence[Call]) -> list[str]:
    made = _counting(expected, calls) if expected else list(enumerate(calls, 1))
    for at, (number, call) in enumerate(made):
        if at >= len(expected):
            return [
                f"strict_sequence: expected no more after {at} calls, but call #{number} is {_label(call)}"
            ]
        if not selects(expected[at], call):
            return [f"strict_sequence: expected {expected[at]!r}, got {_label(call)} (call #{number})"]
    if len(made) < len(expected):
        return [f"strict_sequence: expected {expected[len(made)]!r}, but there were no more calls"]
    return []


def _max_steps(expected: int, calls: Sequence[Call]) -> list[str]:
    return (
        [f"max_steps: {len(calls)} calls were made, expected at most {expected}"]
        if len(calls) > expected
        else []
    )


def _label(call: Call) -> str:
    return call.name if call.kind == "tool" else f"{call.kind}:{call.name}"


_CHECKS: Final[dict[str, Callable[[Any, Sequence[Call]], list[str]]]] = {
    "called": _called,
    "not_called": _not_called,
    "counts": _count,
    "arguments": _asked,
    "order": _order,
    "sequence": _sequence,
    "strict_sequence": _strict_sequence,
    "max_steps": _max_steps,
}
