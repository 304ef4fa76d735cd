"""Objects from what they held, without their constructors. Knows attributes and policy, no kind of class.

Only where what an object holds cannot be written (a lock that ``__post_init__`` makes) its constructor runs,
if the policy lets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepfork.cassette.values.declared import Default, fields_today
from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
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
    declared: Callable[[Any], dict[str, Default]],
) -> Any:
    """An object from what it held, or from the arguments of its constructor."""
    if isinstance(content, dict) and "init" in content:
        return by_constructor(content, decoder, is_kind, what, lambda kind, given: kind(**given))
    fields = parts(content, ("class", "fields"), ("attributes", "absent"))
    values, beyond = decoder.fields(fields["fields"]), decoder.fields(fields.get("attributes", {}))
    absent = names(fields.get("absent", []))
    kind = decoder.find(fields["class"], is_kind, what)
    made = bare(kind)
    put_state(made, fields_today(kind, values, declared(kind), absent=absent) | beyond)
    return made


def by_constructor(
    content: Any,
    decoder: Decoder,
    is_kind: Callable[[type], bool],
    what: str,
    make: Callable[[Any, dict[str, Any]], Any],
) -> Any:
    """An object from the arguments of its constructor."""
    fields = parts(content, ("class", "init"))
    values = decoder.fields(fields["init"])
    kind = decoder.find(fields["class"], is_kind, what)
    decoder.constructs(kind)
    try:
        return make(kind, values)
    except BadValue:
        raise
    except Exception as problem:
        given = ", ".join(values)
        raise Missing(
            f"class {fields['class']!r} cannot be made of the recorded {given}: {problem}; record again"
        ) from None


def names(content: Any) -> list[str]:
    """A list of names. Raises BadValue for anything else."""
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise BadValue("a list of names expected")
    return content
