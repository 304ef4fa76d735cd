"""What an outcome should be, against what it was. Knows Python values and what is secret; no cassette."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from stepfork.cassette.values import Unsupported, encode
from stepfork.core.canonical import canonical_text
from stepfork.core.matching import ABSENT
from stepfork.core.model import OPAQUE, Tagged, cut
from stepfork.core.placeholder_texts import MARK
from stepfork.core.redaction import Redactor
from stepfork.core.renaming import Apart, Renaming
from stepfork.core.wording import PLACE, spell_pair
from stepfork.session import active

_LIMIT = 200  # characters of a value in the message


def expect(actual: Any, expected: Any, *, exact: bool = False) -> None:
    """Asserts that an outcome is as expected; says the first place where it is not.

    Every key named in `expected` must be there and match; with `exact` nothing else may be there. Lists
    match element by element. ``1``, ``1.0`` and ``True`` are different, as keys and inside of sets and
    objects too: there, what a cassette can hold is equal if it would be written alike. A placeholder
    of a secret stands for what the open session knows to be one.

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
    found = _differ(actual, expected, exact, secrets)
    return None if found is None else secrets.worded(*found)


_Place: TypeAlias = "tuple[_Place, str] | None"
"""A path, from its last step to its first: what is deep costs no more for that."""
_Pair: TypeAlias = tuple[_Place, Any, Any]


def _differ(actual: Any, expected: Any, exact: bool, secrets: _Secrets) -> tuple[str, Any, Any] | None:
    """The first place where they differ, and what was expected there and what came."""
    compared: dict[tuple[int, int], tuple[Any, Any]] = {}  # they are held, so that no other gets their number
    waiting: list[Iterator[_Pair]] = [iter([(None, actual, expected)])]
    while waiting:
        step = next(waiting[-1], None)
        if step is None:
            waiting.pop()
            continue
        place, new, old = step
        inside = None
        if isinstance(new, Mapping) and isinstance(old, Mapping):
            inside = _items(place, new, old, exact)
        elif isinstance(old, list | tuple) and type(old) is type(new):
            inside = _elements(place, new, old)
        if inside is None:
            if not _same(new, old) and not secrets.same(place, old, new):
                return _spelled(place), old, new
        elif new is not old and (id(new), id(old)) not in compared:
            compared[id(new), id(old)] = (new, old)
            waiting.append(inside)
    return None


def _items(
    place: _Place, actual: Mapping[Any, Any], expected: Mapping[Any, Any], exact: bool
) -> Iterator[_Pair]:
    """The values of two mappings, by key; of keys that only one has the value and ABSENT."""
    names = {_name(key): key for key in actual if not isinstance(key, str)}
    wanted = set()
    for key, value in expected.items():
        own: Any = key
        if not isinstance(key, str):
            wanted.add(name := _name(key))
            own = names.get(name, ABSENT)
        yield (place, _key(key, place)), actual.get(own, ABSENT), value
    for key in actual if exact else ():
        if key not in expected if isinstance(key, str) else _name(key) not in wanted:
            yield (place, _key(key, place)), actual[key], ABSENT


def _elements(place: _Place, actual: Sequence[Any], expected: Sequence[Any]) -> Iterator[_Pair]:
    pairs = itertools.zip_longest(actual, expected, fillvalue=ABSENT)
    return (((place, f"[{at}]"), new, old) for at, (new, old) in enumerate(pairs))


def _name(key: Any) -> Any:
    """What tells a key that is no text from others: 1, 1.0 and True are three."""
    try:
        return canonical_text(encode(key))
    except Unsupported:
        return (key,)


def _same(actual: Any, expected: Any) -> bool:
    """Whether two values are of the same type, and hold the same."""
    if actual is expected or type(actual) is not type(expected):
        return actual is expected
    if type(actual) in (str, int, bool):
        return bool(actual == expected)
    try:
        new, old = encode(actual), encode(expected)
        if canonical_text(new) == canonical_text(old):
            return True
        one_value = isinstance(new, float) or (isinstance(new, Tagged) and new.tag in OPAQUE)
        return one_value and bool(actual == expected)  # 1.0 and 1.00 of a Decimal, 0.0 and -0.0
    except Unsupported:
        return _equal(actual, expected)


def _equal(actual: Any, expected: Any) -> bool:
    """Whether two values that have no plain form say that they are equal."""
    try:
        return bool(actual == expected)
    except Exception:  # arrays, which compare item by item; what is nested too deep
        return False


def _key(key: Any, above: _Place) -> str:
    name = key if isinstance(key, str) else _shown(key)
    return name if above is None else f".{name}"


def _spelled(place: _Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return "".join(reversed(steps))


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # nested too deep, or as its class has it
        return f"a value of type {type(value).__name__}"


class _Secrets:
    """What is secret in two outcomes, as far as the open session knows it or it can be told."""

    def __init__(self) -> None:
        run = active.any_run()
        self._redactor = Redactor() if run is None else run.redactor
        self._renaming = Renaming(Apart(self._redactor.replays))

    def same(self, place: _Place, expected: Any, actual: Any) -> bool:
        """Whether a text is the one that is expected with a placeholder in it."""
        if not isinstance(expected, str) or type(actual) is not type(expected) or MARK not in expected:
            return False
        return self._renaming.unify(expected, self._under(_spelled(place), actual))

    def worded(self, path: str, expected: Any, actual: Any) -> str:
        """What differs, in words."""
        try:
            old, new = spell_pair(self._under(path, expected), self._under(path, actual), _LIMIT)
        except Unsupported:
            old, new = (self._redactor.redact_text(_shown(it))[:_LIMIT] for it in (expected, actual))
        place = f" at {cut(self._redactor.redact_text(path), PLACE)!r}" if path else ""
        return f"{place}: expected {old}, got {new}"

    def _under(self, path: str, value: Any) -> Any:
        """A value as it may be shown, under the key that the path ends with."""
        if value is ABSENT:
            return value
        redacted = self._redactor.redact({path.rpartition(".")[2]: encode(value)})
        assert isinstance(redacted, dict)
        return next(iter(redacted.values()))
