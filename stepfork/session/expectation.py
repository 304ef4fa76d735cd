"""What an outcome should be, against what it was. Knows Python values and what is secret; no cassette."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepfork.cassette.values import Unsupported, encode
from stepfork.core.canonical import canonical_text
from stepfork.core.matching import ABSENT
from stepfork.core.placeholder_texts import MARK
from stepfork.core.redaction import Redactor
from stepfork.core.renaming import Apart, Renaming
from stepfork.core.wording import spell_pair
from stepfork.session import active

_LIMIT = 200  # characters of a value in the message


def expect(actual: Any, expected: Any, *, exact: bool = False) -> None:
    """Asserts that an outcome is as expected; says the first place where it is not.

    Every key named in `expected` must be there and match; with `exact` nothing else may be there. Lists
    match element by element. ``1``, ``1.0`` and ``True`` are different. A placeholder of a secret stands for
    what the open session knows to be one.

    Raises:
        AssertionError: ``behavior mismatch at 'escalation_required': expected true, got false``.

    >>> expect({"severity": "P0", "summary": "..."}, {"severity": "P0"})
    >>> expect({"severity": "P1"}, {"severity": "P0"})
    Traceback (most recent call last):
    AssertionError: behavior mismatch at 'severity': expected "P0", got "P1"
    """
    __tracebackhide__ = True
    fault = first_difference(actual, expected, exact=exact)
    if fault is not None:
        raise AssertionError(f"behavior mismatch{fault}")


def first_difference(actual: Any, expected: Any, *, exact: bool = False) -> str | None:
    """Where the one is not as expected, as the end of a sentence; None if it is.

    >>> print(first_difference({"severity": "P1"}, {"severity": "P0"}))
     at 'severity': expected "P0", got "P1"
    """
    secrets = _Secrets()
    found = _differ(actual, expected, exact, "", secrets)
    return None if found is None else secrets.worded(*found)


def _differ(
    actual: Any, expected: Any, exact: bool, path: str, secrets: _Secrets
) -> tuple[str, Any, Any] | None:
    """The first place where they differ, and what was expected there and what came."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            place = _step(path, key)
            if key not in actual:
                return place, value, ABSENT
            found = _differ(actual[key], value, exact, place, secrets)
            if found is not None:
                return found
        extra = [key for key in actual if key not in expected] if exact else []
        return (_step(path, extra[0]), ABSENT, actual[extra[0]]) if extra else None
    if isinstance(expected, list | tuple) and type(expected) is type(actual):
        for at, value in enumerate(expected):
            place = f"{path}[{at}]"
            if at >= len(actual):
                return place, value, ABSENT
            found = _differ(actual[at], value, exact, place, secrets)
            if found is not None:
                return found
        at = len(expected)
        return (f"{path}[{at}]", ABSENT, actual[at]) if len(actual) > at else None
    same = type(actual) is type(expected) and (
        _equal(actual, expected) or secrets.same(path, expected, actual)
    )
    return None if same else (path, expected, actual)


def _equal(actual: Any, expected: Any) -> bool:
    try:
        return bool(actual == expected or (actual != actual and expected != expected))
    except ValueError:  # arrays, which compare item by item
        return canonical_text(encode(actual)) == canonical_text(encode(expected))


def _step(path: str, key: Any) -> str:
    name = key if isinstance(key, str) else repr(key)
    return f"{path}.{name}" if path else name


class _Secrets:
    """What is secret in two outcomes, as far as the open session knows it or it can be told."""

    def __init__(self) -> None:
        run = active.any_run()
        self._redactor = Redactor() if run is None else run.redactor
        self._renaming = Renaming(Apart(self._redactor.replays))

    def same(self, path: str, expected: Any, actual: Any) -> bool:
        """Whether a text is the one that is expected with a placeholder in it."""
        if not isinstance(expected, str) or MARK not in expected:
            return False
        return self._renaming.unify(expected, self._under(path, actual))

    def worded(self, path: str, expected: Any, actual: Any) -> str:
        """What differs, in words."""
        try:
            old, new = spell_pair(self._under(path, expected), self._under(path, actual), _LIMIT)
        except Unsupported:
            old, new = (self._redactor.redact_text(repr(value))[:_LIMIT] for value in (expected, actual))
        place = f" at {self._redactor.redact_text(path)!r}" if path else ""
        return f"{place}: expected {old}, got {new}"

    def _under(self, path: str, value: Any) -> Any:
        """A value as it may be shown, under the key that the path ends with."""
        if value is ABSENT:
            return value
        redacted = self._redactor.redact({path.rpartition(".")[2]: encode(value)})
        assert isinstance(redacted, dict)
        return next(iter(redacted.values()))
