"""Instances of the user's classes: enums, named tuples, dataclasses, pydantic models. Knows no exception.

They are rebuilt from what they hold, without their constructors. Only where that cannot be written (a lock
that ``__post_init__`` makes) the constructor runs, if the policy lets it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from stepfork.cassette.values.faults import BadValue, Unsupported, type_name
from stepfork.cassette.values.policy import class_name
from stepfork.cassette.values.state import attributes_of, bare, put_state, state_of
from stepfork.cassette.values.walk import Decoder, Encoder, Row, parts, text
from stepfork.core.canonical import canonical_text
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
        kind = decoder.find(fields["class"], lambda found: issubclass(found, enum.Flag), "enum of flags")
        if type(fields["value"]) is not int:
            raise BadValue("the value of flags is a number")
        known = kind._value2member_map_.get(fields["value"])  # type: ignore[attr-defined]
        made = known or enum.Flag._missing_.__func__(kind, fields["value"])  # type: ignore[attr-defined]
        if type(made) is not kind:
            raise BadValue(f"{fields['class']!r} has no flags {fields['value']}")
        return made  # type: ignore[return-value]
    name, _, member = text(content).rpartition(".")
    kind = decoder.find(name, _is_enum, "enum")
    found: enum.Enum | None = kind._member_map_.get(member)  # type: ignore[attr-defined]
    if found is None:
        raise BadValue(f"enum {name!r} has no member {member!r}")
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
        raise BadValue(f"{fields['class']!r} has the fields {', '.join(kind._fields)}")
    return tuple.__new__(kind, [values[name] for name in kind._fields])


# -- dataclasses ------------------------------------------------------------------------------------


def _is_dataclass(kind: type) -> bool:
    return dataclasses.is_dataclass(kind)


def _encode_dataclass(value: Any, encoder: Encoder, path: str) -> Plain:
    name = encoder.name_of(value, path)
    state = state_of(value)
    declared = [field.name for field in dataclasses.fields(value) if field.name in state]
    with encoder.visit(value, path):
        try:
            _check_bare(value, path)
            ordered = {key: state[key] for key in (*declared, *(key for key in state if key not in declared))}
            return {"class": name, "fields": encoder.fields(ordered, path)}
        except Unsupported as problem:
            given = {
                field.name: state[field.name]
                for field in dataclasses.fields(value)
                if field.init and field.name in state
            }
            return _constructed(value, given, encoder, path, problem, _decode_dataclass)


def _decode_dataclass(content: Any, decoder: Decoder) -> Any:
    return _rebuilt(content, decoder, _is_dataclass, "dataclass", lambda kind, given: kind(**given))


# -- pydantic models --------------------------------------------------------------------------------


def _is_model(kind: type) -> bool:
    return _base_model(kind) is not None


def _base_model(kind: type) -> Any:
    """The class of pydantic's (version 2 or 1) that a model derives from."""
    for base in kind.__mro__[1:]:
        if base.__module__ in ("pydantic.main", "pydantic.v1.main") and base.__qualname__ == "BaseModel":
            return base
    return None


def _encode_model(value: Any, encoder: Encoder, path: str) -> Plain:
    name = encoder.name_of(value, path)
    _check_bare(value, path)
    state = _base_model(type(value)).__getstate__(value)
    held = attributes_of(value)
    was_set, extra, private = _parts_of(state)
    with encoder.visit(value, path):
        form: dict[str, Plain] = {"class": name, "fields": encoder.fields(held, path)}
        if set(was_set) != held.keys() | (extra or {}).keys():
            form["set"] = sorted(was_set)  # type: ignore[assignment]
        if extra:
            form["extra"] = encoder.fields(extra, path)
        try:
            if private:
                form["private"] = encoder.fields(private, path)
        except Unsupported as problem:
            given = {key: item for key, item in held.items() if key in was_set} | (extra or {})
            return _constructed(value, given, encoder, path, problem, _decode_model)
        return form


def _parts_of(state: dict[str, Any]) -> tuple[set[str], dict[str, Any] | None, dict[str, Any] | None]:
    if "__fields_set__" in state:  # version 1, whose extra fields are fields
        return state["__fields_set__"], None, state.get("__private_attribute_values__")
    return state["__pydantic_fields_set__"], state["__pydantic_extra__"], state["__pydantic_private__"]


def _decode_model(content: Any, decoder: Decoder) -> Any:
    if isinstance(content, dict) and "init" in content:
        make: Callable[[Any, dict[str, Any]], Any] = lambda kind, given: kind.model_construct(**given)  # noqa: E731
        return _rebuilt(content, decoder, _is_model, "pydantic model", make)
    fields = parts(content, ("class", "fields"), ("set", "extra", "private"))
    held, extra = decoder.fields(fields["fields"]), decoder.fields(fields.get("extra", {}))
    private = decoder.fields(fields.get("private", {}))
    was_set = set(decoder.items(fields["set"])) if "set" in fields else held.keys() | extra.keys()
    kind = decoder.find(fields["class"], _is_model, "pydantic model")
    model = bare(kind)
    base = _base_model(kind)
    if hasattr(base, "model_construct"):  # version 2
        takes_extra = kind.model_config.get("extra") == "allow"  # type: ignore[attr-defined]
        state = {
            "__dict__": held,
            "__pydantic_fields_set__": set(was_set),
            "__pydantic_extra__": extra if extra or takes_extra else None,
            "__pydantic_private__": private if private or kind.__private_attributes__ else None,  # type: ignore[attr-defined]
        }
    else:
        state = {"__dict__": held, "__fields_set__": set(was_set), "__private_attribute_values__": private}
    base.__setstate__(model, state)
    return model


# -- both -------------------------------------------------------------------------------------------


def _check_bare(value: object, path: str) -> None:
    try:
        bare(type(value))
    except BadValue as problem:
        raise Unsupported(path, type_name(value), f"({problem})") from None


def _constructed(
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


def _rebuilt(
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


CLASSES = (
    Row("enum", _is_enum, _encode_enum, _decode_enum),
    Row("namedtuple", _is_named_tuple, _encode_named_tuple, _decode_named_tuple),
    Row("model", _is_model, _encode_model, _decode_model),
    Row("dataclass", _is_dataclass, _encode_dataclass, _decode_dataclass),
)
"""In the order in which a class is tried: a model may be a dataclass too."""
