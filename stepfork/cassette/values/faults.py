"""What can go wrong between a Python value and its plain form. Knows no type and no tag."""

from __future__ import annotations


class Unsupported(Exception):
    """A value that has no plain form: where it stands, what it is, and what would help (`hint`)."""

    def __init__(self, path: str, type: str, why: str = "", hint: str = "") -> None:
        self.path = path
        self.type = type
        self.why = why
        self.hint = hint
        super().__init__(f"{path}: {type}{why and ' ' + why}")


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
