"""Instances of the user's classes: enums, named tuples, dataclasses. Knows no model and no exception.

An enum's member is looked up, the others are rebuilt from what they hold (`rebuild`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Callable
from typing import Any, Final

from stepfork.cassette.values.declared import of_attrs, of_dataclass
from stepfork.cassette.values.faults import Missing, Unsupported, type_name
from stepfork.cassette.values.models import is_model
from stepfork.cassette.values.policy import class_name
from stepfork.cassette.values.rebuild import check_bare, constructed, rebuilt
from stepfork.cassette.values.state import state_of
from stepfork.cassette.values.walk import Decoder, Encoder, Row, parts, text, whole
from stepfork.core.model import Plain

# -- enums ------------------------------------------------------------------------------------------


def _is_enum(kind: type) -> bool:
    return issubclass(kind, enum.Enum)


def _encode_enum(value: enum.Enum, encoder: Encoder, path: str) -> Plain:
    name = encoder.name_of(value, path)
    if type(value)._member_map_.get(value._name_ or "") is value:
        return f"{name}.{value._name_}"
    if not (isinstance(value, enum.Flag) and type(value._value_) is int):
        raise Unsupported(path, type_name(value), "(a member without a name)")
    return {"class": name, "value": value._value_}  # flags combined


def _decode_enum(content: Any, decoder: Decoder) -> enum.Enum:
    if isinstance(content, dict):
        fields = parts(content, ("class", "value"))
        value = whole(fields["value"])
        kind = decoder.find(fields["class"], lambda found: issubclass(found, enum.Flag), "enum of flags")
        made = kind._value2member_map_.get(value)  # type: ignore[attr-defined]
        if made is None:
            with contextlib.suppress(ValueError):
                made = enum.Flag._missing_.__func__(kind, value)  # type: ignore[attr-defined]
        if type(made) is not kind:
            raise Missing(f"{fields['class']!r} has no flags {value}; record again, or put them back")
        return made  # type: ignore[return-value]
    name, _, member = text(content).rpartition(".")
    kind = decoder.find(name, _is_enum, "enum")
    found: enum.Enum | None = kind._member_map_.get(member)  # type: ignore[attr-defined]
    if found is None:
        raise Missing(f"enum {name!r} has no member {member!r}; record again, or put it back")
    return found


# -- named tuples -----------------------------------------------------------------------------------


def _is_named_tuple(kind: type) -> bool:
    fields = getattr(kind, "_fields", None)
    return issubclass(kind, tuple) and isinstance(fields, tuple) and all(type(name) is str for name in fields)


def _encode_named_tuple(value: Any, encoder: Encoder, path: str) -> Plain:
    name = encoder.name_of(value, path)
    if state_of(value):
        raise Unsupported(path, type_name(value), "(a named tuple with attributes of its own)")
    values = list(tuple.__iter__(value))
    if len(values) != len(type(value)._fields):
        raise Unsupported(path, type_name(value), "(it has more or fewer items than fields)")
    with encoder.visit(value, path):
        return {
            "class": name,
            "fields": encoder.fields(dict(zip(type(value)._fields, values, strict=True)), path),
        }


def _decode_named_tuple(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("class", "fields"))
    values = decoder.fields(fields["fields"])
    kind: Any = decoder.find(fields["class"], _is_named_tuple, "named tuple")
    if sorted(values) != sorted(kind._fields):
        said = f"{fields['class']!r} has the fields {', '.join(kind._fields)}, and not {', '.join(values)}"
        raise Missing(f"{said}; record again, or put them back")
    return tuple.__new__(kind, [values[name] for name in kind._fields])


# -- dataclasses ------------------------------------------------------------------------------------


def _is_dataclass(kind: type) -> bool:
    return dataclasses.is_dataclass(kind)


def _encode_dataclass(value: Any, encoder: Encoder, path: str) -> Plain:
    fields = {field.name: field.name if field.init else "" for field in dataclasses.fields(value)}
    return _encode_fields(value, fields, encoder, path, _decode_dataclass)


def _encode_fields(
    value: Any, fields: dict[str, str], encoder: Encoder, path: str, decode: Callable[[Any, Decoder], Any]
) -> Plain:
    """`fields` has what the class declares, each with the name that the constructor takes it by."""
    name = encoder.name_of(value, path)
    state = state_of(value)
    declared = [field for field in fields if field in state]
    with encoder.visit(value, path):
        try:
            check_bare(value, path)
            form: dict[str, Plain] = {
                "class": name,
                "fields": encoder.fields({key: state[key] for key in declared}, path),
            }
            if beyond := {key: item for key, item in state.items() if key not in fields}:
                form["attributes"] = encoder.fields(beyond, path)
            if len(declared) < len(fields):
                form["absent"] = [key for key in fields if key not in state]
            return form
        except Unsupported as problem:
            given = {fields[field]: state[field] for field in declared if fields[field]}
            return constructed(value, given, encoder, path, problem, decode)


def _decode_dataclass(content: Any, decoder: Decoder) -> Any:
    return rebuilt(content, decoder, _is_dataclass, "dataclass", of_dataclass)


# -- attrs ------------------------------------------------------------------------------------------


_HASH: Final = "_attrs_cached_hash"


def is_attrs(kind: type) -> bool:
    """Whether a class is one of attrs'."""
    return any("__attrs_attrs__" in vars(base) for base in kind.__mro__)


def _encode_attrs(value: Any, encoder: Encoder, path: str) -> Plain:
    declared: Any = type(value).__attrs_attrs__
    fields = {field.name: (field.alias or field.name) if field.init else "" for field in declared}
    return _encode_fields(value, fields, encoder, path, _decode_attrs)


def _decode_attrs(content: Any, decoder: Decoder) -> Any:
    made = rebuilt(content, decoder, is_attrs, "class of attrs'", of_attrs)
    code = getattr(type(made).__hash__, "__code__", None)
    if code is not None and _HASH in code.co_names:
        object.__setattr__(made, _HASH, None)  # it is worked out when it is asked for
    return made


# -- classes themselves -----------------------------------------------------------------------------

_PLAIN: Final = frozenset(
    {str, int, float, bool, bytes, list, dict, tuple, set, frozenset, complex, bytearray, type(None)}
)


def _is_data(kind: type) -> bool:
    """Whether a class only says of what shape data are: no harm is done where a program calls it."""
    kinds = (_is_enum, _is_named_tuple, _is_dataclass, is_attrs, is_model)
    typed = hasattr(kind, "__required_keys__")  # a TypedDict
    return kind in _PLAIN or typed or issubclass(kind, BaseException) or any(is_it(kind) for is_it in kinds)


def _encode_class(value: Any, encoder: Encoder, path: str) -> Plain:
    if not _is_data(value):
        hint = "pass its name"
        raise Unsupported(path, "type", f"({class_name(value)!r} is no class of data)", hint)
    return encoder.name_of_class(value, path, "type")


def _decode_class(content: Any, decoder: Decoder) -> Any:
    return decoder.find(content, _is_data, "class of data")


CLASSES = (
    Row("class", lambda kind: issubclass(kind, type), _encode_class, _decode_class),
    Row("enum", _is_enum, _encode_enum, _decode_enum),
    Row("namedtuple", _is_named_tuple, _encode_named_tuple, _decode_named_tuple),
    Row("dataclass", _is_dataclass, _encode_dataclass, _decode_dataclass),
    Row("attrs", is_attrs, _encode_attrs, _decode_attrs),
)
"""Behind pydantic's models, which may be dataclasses too."""
