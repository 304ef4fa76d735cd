"""Objects from what they held, without their constructors. Knows attributes and policy, no kind of class.

Only where what an object holds cannot be written (a lock that ``__post_init__`` makes) its constructor runs,
if the policy lets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepfork.cassette.values.faults import BadValue, Unsupported, type_name
from stepfork.cassette.values.policy import class_name
from stepfork.cassette.values.state import bare, put_state, state_of
from stepfork.cassette.values.walk import Decoder, Encoder, parts
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain


def check_bare(value: object, path: str) -> None:
    """Raises Unsupported for an object whose class cannot be made bare."""
    try:
        bare(type(value))
    except BadValue as problem:
        raise Unsupported(path, type_name(value), f"({problem})") from None


def constructed(
    value: Any,
    given: dict[str, Any],
    encoder: Encoder,
    path: str,
    problem: Unsupported,
    decode: Callable[[Any, Decoder], Any],
) -> Plain:
    """The arguments of the constructor, where what the object holds cannot be written.

    Raises:
        Unsupported: the problem that led here, if this does not do either; with the line to add, if that
            would.
    """
    name = class_name(type(value))
    try:
        form: Plain = {"class": name, "init": encoder.fields(given, path)}
    except Unsupported:
        raise problem from None
    if not encoder.classes.may_construct(type(value)):
        problem.hint = f"if its constructor may run on replay, set allow_classes = [{name!r}]"
        raise problem
    again = decode(form, Decoder(encoder.classes))
    if not _alike(state_of(value), state_of(again), encoder, path):
        why = "(its constructor does not make it again)"
        raise Unsupported(path, type_name(value), why) from None
    return form


def _alike(old: dict[str, Any], new: dict[str, Any], encoder: Encoder, path: str) -> bool:
    """Whether two states are equal, where they can be written; of one type where they cannot."""
    if old.keys() != new.keys():
        return False
    for name, item in old.items():
        try:
            here = canonical_text(encoder.encode(item, path))
        except Unsupported:
            if type(new[name]) is not type(item):
                return False
            continue
        if here != canonical_text(encoder.encode(new[name], path)):
            return False
    return True


def rebuilt(
    content: Any,
    decoder: Decoder,
    is_kind: Callable[[type], bool],
    what: str,
    make: Callable[[Any, dict[str, Any]], Any],
) -> Any:
    """An object from what it held, or from the arguments of its constructor."""
    by_constructor = isinstance(content, dict) and "init" in content
    fields = parts(content, ("class", "init" if by_constructor else "fields"))
    values = decoder.fields(fields["init" if by_constructor else "fields"])
    kind = decoder.find(fields["class"], is_kind, what)
    if by_constructor:
        decoder.constructs(kind)
        return make(kind, values)
    made = bare(kind)
    put_state(made, values)
    return made
