"""Values of a document, with the field at which one cannot be read. Knows values; knows no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stepfork.cassette.fields import Fault
from stepfork.cassette.values import IMPORTED, BadValue, ClassPolicy, Decoder, checks, looks
from stepfork.core.model import Plain, Tagged
from stepfork.core.placeholder_texts import unescaped_value


@looks
def check_at(field: str, value: Plain) -> None:
    """Checks that all tags fit their contents, without looking for any class.

    Raises:
        Fault: naming the field.

    >>> check_at("result", Tagged("uuid", "5d4140de-0000-4000-8000-000000000000"))
    """
    for fault in _faults(field, value, checks().decode):
        raise fault


@looks
def look_at(field: str, value: Plain, classes: ClassPolicy = IMPORTED) -> Any:
    """The value for a reader: what only looked like a placeholder is itself again; what is not at hand, or
    does not fit its class any more, stays a `Tagged`.

    Raises:
        Fault: naming the field, where a tag's content does not fit it.

    >>> look_at("result", [Tagged("tuple", [1])])
    [(1,)]
    """
    return _seen(field, unescaped_value(value), lambda: Decoder(classes, lenient=True))


@looks
def decode_at(field: str, value: Plain, classes: ClassPolicy = IMPORTED) -> Any:
    """The value itself.

    Raises:
        Fault: naming the field, where it cannot be rebuilt.

    >>> decode_at("args", {"at": Tagged("tuple", [1])})
    {'at': (1,)}
    """
    return _seen(field, value, lambda: Decoder(classes))


@looks
def field_of(problem: BadValue, outcome: dict[str, Plain], classes: ClassPolicy) -> str:
    """The field of a call's outcome that cannot be rebuilt, as `problem` says."""
    for field, value in outcome.items():
        for fault in _faults(field, value, Decoder(classes).decode):
            if fault.problem == str(problem):
                return fault.field
    return "error" if "error" in outcome else ""


def _seen(field: str, value: Plain, decoder: Callable[[], Decoder]) -> Any:
    try:
        return decoder().decode(value)
    except BadValue as problem:
        for fault in _faults(field, value, decoder().decode):
            raise fault from None
        raise Fault(field, str(problem)) from None


def _faults(field: str, value: Plain, see: Callable[[Plain], Any]) -> Iterator[Fault]:
    """The tagged values that cannot be seen, each at its own place.

    `see` is one decoder's for all of them: a value may name one that stands before it.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _faults(f"{field}.{key}", item, see)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _faults(f"{field}[{at}]", item, see)
    elif isinstance(value, Tagged):
        try:
            see(value)
        except BadValue as problem:
            yield Fault(field, str(problem))
