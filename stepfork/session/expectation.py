"""What an outcome should be, against what it was. Pure: knows plain Python values, no cassette."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepfork.cassette.values import Unsupported, encode
from stepfork.core.canonical import canonical_text
from stepfork.core.wording import spell_pair

_LIMIT = 200  # characters of a value in the message


def expect(actual: Any, expected: Any, *, exact: bool = False) -> None:
    """Asserts that an outcome is as expected; says the first place where it is not.

    Every key named in `expected` must be there and match; with `exact` nothing else may be there. Lists
    match element by element. ``1``, ``1.0`` and ``True`` are different.

    Raises:
        AssertionError: ``behavior mismatch at 'escalation_required': expected true, got false``.

    >>> expect({"severity": "P0", "summary": "..."}, {"severity": "P0"})
    >>> expect({"severity": "P1"}, {"severity": "P0"})
    Traceback (most recent call last):
    AssertionError: behavior mismatch at 'severity': expected "P0", got "P1"
    """
    __tracebackhide__ = True
    fault = _fault(actual, expected, exact, "")
    if fault is not None:
        raise AssertionError(f"behavior mismatch{fault}")


def _fault(actual: Any, expected: Any, exact: bool, path: str) -> str | None:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            place = _step(path, key)
            if key not in actual:
                return f" at {place!r}: expected {_spell(value)}, got nothing"
            fault = _fault(actual[key], value, exact, place)
            if fault is not None:
                return fault
        extra = [key for key in actual if key not in expected] if exact else []
        return (
            f" at {_step(path, extra[0])!r}: expected nothing, got {_spell(actual[extra[0]])}"
            if extra
            else None
        )
    if isinstance(expected, list | tuple) and type(expected) is type(actual):
        for at, value in enumerate(expected):
            place = f"{path}[{at}]"
            if at >= len(actual):
                return f" at {place!r}: expected {_spell(value)}, got nothing"
            fault = _fault(actual[at], value, exact, place)
            if fault is not None:
                return fault
        if len(actual) > len(expected):
            return (
                f" at {f'{path}[{len(expected)}]'!r}: expected nothing, got {_spell(actual[len(expected)])}"
            )
        return None
    if type(actual) is type(expected) and _equal(actual, expected):
        return None
    old, new = _spell_both(expected, actual)
    return f" at {path!r}: expected {old}, got {new}" if path else f": expected {old}, got {new}"


def _equal(actual: Any, expected: Any) -> bool:
    try:
        return bool(actual == expected or (actual != actual and expected != expected))
    except ValueError:  # arrays, which compare item by item
        return canonical_text(encode(actual)) == canonical_text(encode(expected))


def _step(path: str, key: Any) -> str:
    name = key if isinstance(key, str) else repr(key)
    return f"{path}.{name}" if path else name


def _spell(value: Any) -> str:
    return _spell_both(value, value)[0]


def _spell_both(expected: Any, actual: Any) -> tuple[str, str]:
    try:
        return spell_pair(encode(expected), encode(actual), _LIMIT)
    except Unsupported:
        return repr(expected)[:_LIMIT], repr(actual)[:_LIMIT]
