"""What an outcome should be, against what it was. Knows Python values and what is secret; no cassette."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepfork.cassette.values import Unsupported, encode
from stepfork.core.canonical import canonical_text
from stepfork.core.matching import ABSENT
from stepfork.core.redaction import Redactor
from stepfork.core.wording import spell_pair
from stepfork.session import active

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
    found = _differ(actual, expected, exact, "")
    if found is not None:
        raise AssertionError(f"behavior mismatch{_worded(*found)}")


def _differ(actual: Any, expected: Any, exact: bool, path: str) -> tuple[str, Any, Any] | None:
    """The first place where they differ, and what was expected there and what came."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            place = _step(path, key)
            if key not in actual:
                return place, value, ABSENT
            found = _differ(actual[key], value, exact, place)
            if found is not None:
                return found
        extra = [key for key in actual if key not in expected] if exact else []
        return (_step(path, extra[0]), ABSENT, actual[extra[0]]) if extra else None
    if isinstance(expected, list | tuple) and type(expected) is type(actual):
        for at, value in enumerate(expected):
            place = f"{path}[{at}]"
            if at >= len(actual):
                return place, value, ABSENT
            found = _differ(actual[at], value, exact, place)
            if found is not None:
                return found
        at = len(expected)
        return (f"{path}[{at}]", ABSENT, actual[at]) if len(actual) > at else None
    return None if type(actual) is type(expected) and _equal(actual, expected) else (path, expected, actual)


def _equal(actual: Any, expected: Any) -> bool:
    try:
        return bool(actual == expected or (actual != actual and expected != expected))
    except ValueError:  # arrays, which compare item by item
        return canonical_text(encode(actual)) == canonical_text(encode(expected))


def _step(path: str, key: Any) -> str:
    name = key if isinstance(key, str) else repr(key)
    return f"{path}.{name}" if path else name


def _worded(path: str, expected: Any, actual: Any) -> str:
    """What differs in words, without the secrets that the open session knows, or that can be told."""
    run = active.any_run()
    redactor = Redactor() if run is None else run.redactor
    try:
        key = path.rpartition(".")[2]
        old, new = spell_pair(_under(key, expected, redactor), _under(key, actual, redactor), _LIMIT)
    except Unsupported:
        old, new = (redactor.redact_text(repr(value))[:_LIMIT] for value in (expected, actual))
    return f"{f' at {redactor.redact_text(path)!r}' if path else ''}: expected {old}, got {new}"


def _under(key: str, value: Any, redactor: Redactor) -> Any:
    if value is ABSENT:
        return value
    redacted = redactor.redact({key: encode(value)})
    assert isinstance(redacted, dict)
    return next(iter(redacted.values()))
