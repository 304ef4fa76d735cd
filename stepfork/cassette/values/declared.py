"""What a recorded object held against what its class declares today. Knows names and defaults; knows no tag.

Classes change after a recording. What was recorded of a field that is gone, or what a new one would hold,
cannot be told, and must not be made up: only a new field with a plain default gets it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from stepfork.cassette.values.faults import Missing
from stepfork.cassette.values.policy import class_name

Default: TypeAlias = "Callable[[], Any] | None"
"""Makes the value of a field that nobody gave; None where it must be given."""

_FACTORIES: Final = frozenset({bool, bytes, dict, float, frozenset, int, list, set, str, tuple})
_FRESH: Final = frozenset({dict, list, set})


def fields_today(
    kind: type,
    recorded: Mapping[str, Any],
    declared: Mapping[str, Default],
    *,
    absent: Iterable[str] = (),
    of_others: Iterable[str] = (),
    by_constructor: bool = False,
) -> dict[str, Any]:
    """The recorded fields and the defaults of those that are new.

    `absent` were declared and not there when it was recorded; `of_others` may be gone or not, because
    something else takes them. A constructor gives new fields their defaults itself.

    Raises:
        Missing: naming class and fields, if the class declares others than were recorded.

    >>> fields_today(KeyError, {"id": 1}, {"id": None, "note": lambda: ""})
    {'id': 1, 'note': ''}
    """
    absent = set(absent)
    gone = [name for name in (*recorded, *absent) if name not in declared and name not in set(of_others)]
    new = [name for name in declared if name not in recorded and name not in absent]
    open_ = [name for name in new if declared[name] is None]
    if gone or open_:
        raise _changed(kind, gone, new if gone else open_)
    if by_constructor:
        return dict(recorded)
    made = {name: default() for name in new if (default := declared[name]) is not None}
    return {name: made.get(name, recorded.get(name)) for name in declared if name not in absent} | {
        name: item for name, item in recorded.items() if name not in declared
    }


def _changed(kind: type, gone: list[str], new: list[str]) -> Missing:
    said = []
    if gone:
        said.append(f"no longer has the recorded field{_s(gone)} {_listed(gone)}")
    if new:
        said.append(
            f"has the field{_s(new)} {_listed(new)} that {'was' if len(new) == 1 else 'were'} not recorded"
        )
    way = (
        "record again, or put the fields back"
        if gone
        else "record again, or give the new field a plain default"
    )
    return Missing(f"class {class_name(kind)!r} {' and '.join(said)}; {way}")


def _s(names: list[str]) -> str:
    return "" if len(names) == 1 else "s"


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def plain_default(default: Any) -> Default:
    """The default of a field that has one: the very object, or a fresh copy of a container."""
    if type(default) in _FRESH:
        return lambda: copy.deepcopy(default)
    return lambda: default


def made_by(factory: Any) -> Default:
    """A default that a factory makes: of a builtin only, since no code of the program runs for a file."""
    return factory if isinstance(factory, type) and factory in _FACTORIES else None


def of_dataclass(kind: Any) -> dict[str, Default]:
    """The fields of a dataclass, pydantic's included."""
    of_pydantic = vars(kind).get("__pydantic_fields__")
    if isinstance(of_pydantic, dict):
        return {name: _of_pydantic(field) for name, field in of_pydantic.items()}
    found: dict[str, Default] = {}
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            found[field.name] = plain_default(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = made_by(field.default_factory)
        else:
            found[field.name] = None
    return found


def of_attrs(kind: Any) -> dict[str, Default]:
    """The fields of a class of attrs'. A converter would run for a default; it does not for a file."""
    found: dict[str, Default] = {}
    for field in kind.__attrs_attrs__:
        default = field.default
        if type(default).__name__ == "Factory":
            made = None if default.takes_self else made_by(default.factory)
        else:
            made = None if type(default).__name__ == "_Nothing" else plain_default(default)
        found[field.name] = None if field.converter is not None else made
    return found


def of_model(kind: Any) -> dict[str, Default]:
    """The fields of a pydantic model, version 2 or 1."""
    if hasattr(kind, "__pydantic_fields__"):
        return {name: _of_pydantic(field) for name, field in kind.__pydantic_fields__.items()}
    found: dict[str, Default] = {}
    for name, field in kind.__fields__.items():
        if field.default_factory is not None:
            found[name] = made_by(field.default_factory)
        else:
            found[name] = None if field.required is True else plain_default(field.default)
    return found


def private_of_model(kind: Any) -> dict[str, Default]:
    """The private attributes of a pydantic model that have a default; others may be there or not."""
    return {
        name: _of_pydantic(field)
        for name, field in kind.__private_attributes__.items()
        if field.default_factory is not None or not _is_undefined(field.default)
    }


def _of_pydantic(field: Any) -> Default:
    """The default of a field or a private attribute."""
    if field.default_factory is not None:
        return made_by(field.default_factory)
    if _is_undefined(field.default) or getattr(field, "validate_default", None):
        return None
    return plain_default(field.default)


def _is_undefined(default: Any) -> bool:
    return type(default).__name__ in ("PydanticUndefinedType", "UndefinedType")
