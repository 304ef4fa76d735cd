"""What an object holds, taken out and put back without running any of its code. Knows no tag."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue

_NO_STATE: Final = (
    "__orig_class__",  # what `Box[int](...)` leaves in a Box: nothing the class looks at
    "_attrs_cached_hash",  # it is another one in each process
)


def state_of(value: object) -> dict[str, Any]:
    """The attributes of an object by name: its slots, and `attributes_of` it."""
    state: dict[str, Any] = {}
    for slot in slots_of(type(value)):
        try:
            state[slot.__name__] = slot.__get__(value)
        except AttributeError:
            continue  # never set
    return state | attributes_of(value)


def attributes_of(value: object) -> dict[str, Any]:
    """What is in the ``__dict__`` of an object.

    What it worked out from the rest and kept (`functools.cached_property`) is left out.
    """
    kind = type(value)
    return {
        name: item
        for name, item in _space(value).items()
        if name not in _NO_STATE and not _is_cached(kind, name)
    }


def put_state(value: object, state: dict[str, Any]) -> None:
    """Gives a new object its attributes; no property, no ``__setattr__`` runs.

    Raises:
        BadValue: for an attribute that the object has no room for.
    """
    slots = {slot.__name__: slot for slot in slots_of(type(value))}
    space = _space(value)
    for name, item in state.items():
        if name in slots:
            slots[name].__set__(value, item)
        elif hasattr(value, "__dict__"):
            space[name] = item
        else:
            raise BadValue(f"{type(value).__qualname__!r} has no attribute {name!r}")


def replace_state(value: object, state: dict[str, Any]) -> None:
    """Gives an object these attributes and no others; what it worked out and kept stays.

    Those of a namespace, which shows them, come into this order.

    Raises:
        BadValue: for an attribute that the object has no room for.
    """
    slots = {slot.__name__: slot for slot in slots_of(type(value))}
    space = _space(value)
    held = state_of(value)
    stay = [name for name in held if name in state]
    in_order = type(value) is not SimpleNamespace or stay == list(state)[: len(stay)]
    for name in held:
        if name in state and in_order:
            continue
        if name in slots:
            slots[name].__delete__(value)
        else:
            del space[name]
    put_state(value, state)


def bare(kind: type) -> Any:
    """A new object of a class, without its constructor.

    Raises:
        BadValue: for a class whose objects hold more than Python's attributes.
    """
    try:
        return object.__new__(kind)
    except TypeError:
        raise BadValue(f"{kind.__qualname__!r} is made by its own constructor only") from None


def _space(value: object) -> dict[str, Any]:
    """The ``__dict__`` of an object; an empty one of no use where it has none."""
    try:
        found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found


def slots_of(kind: type) -> Iterator[MemberDescriptorType]:
    """The slots that a class and those above it declare in Python.

    Those in which a class of attrs' keeps what it worked out are left out.
    """
    for base in kind.__mro__:
        space = vars(base)
        if "__slots__" not in space:
            continue
        declared = {field.name for field in space.get("__attrs_attrs__", ())}
        for name, member in space.items():
            if type(member) is MemberDescriptorType and (name in declared or "__attrs_attrs__" not in space):
                yield member


def _is_cached(kind: type, name: str) -> bool:
    return any(type(vars(base).get(name)) is cached_property for base in kind.__mro__)
