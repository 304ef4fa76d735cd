"""What can go wrong between a Python value and its plain form. Knows no type and no tag."""

from __future__ import annotations

from typing import Final

from stepfork.core.model import Plain

_MOST: Final = 10_000
"""So many containers of a value that was refused are looked into."""


class Unsupported(Exception):
    """A value that has no plain form: where it stands, what it is, and what would help (`hint`).

    `beside` is what can be read of the value it is a part of: a secret in there may be in the path as well.
    """

    def __init__(self, path: str, type: str, why: str = "", hint: str = "") -> None:
        self.path = path
        self.type = type
        self.why = why
        self.hint = hint
        self.beside: Plain = None
        super().__init__(f"{path}: {type}{why and ' ' + why}")


def readable(value: object, seen: set[int] | None = None) -> Plain:
    """The texts of a value under their keys, without all that is no text and no plain container.

    >>> readable({"password": "abc", "rest": [object(), ("x",)]})
    {'password': 'abc', 'rest': [None, ['x']]}
    """
    seen = set() if seen is None else seen
    if type(value) is str:
        return value
    if type(value) not in (dict, list, tuple) or id(value) in seen or len(seen) > _MOST:
        return None
    seen.add(id(value))
    if isinstance(value, dict):
        return {key: readable(item, seen) for key, item in value.items() if type(key) is str}
    return [readable(item, seen) for item in value]  # type: ignore[attr-defined]


class BadValue(ValueError):
    """A plain value that does not fit its tag; the message says what was expected."""


class Missing(BadValue):
    """A plain value that fits, but what it is made of is not at hand: a class, a library, a codec."""


def type_name(value: object) -> str:
    """How a value's type is named in messages: ``list``, ``decimal.Decimal``.

    >>> type_name([]), type_name(ValueError("x"))
    ('list', 'ValueError')
    """
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
