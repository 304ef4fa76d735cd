"""pydantic's models (version 2 or 1), secrets and URLs. Knows how they keep what they hold.

pydantic is not imported here: who has a model of it has imported it.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from types import GenericAlias
from typing import Any, Final

from stepfork.cassette.values.declared import fields_today, of_model, private_of_model
from stepfork.cassette.values.faults import BadValue, Unsupported, type_name
from stepfork.cassette.values.policy import class_name
from stepfork.cassette.values.rebuild import by_constructor, check_bare, constructed, names
from stepfork.cassette.values.state import attributes_of, bare
from stepfork.cassette.values.walk import Decoder, Encoder, Row, parts, text
from stepfork.core.model import Plain

_SECRETS: Final = ("SecretStr", "SecretBytes")
_ALIASED: Final = (list, dict, set, frozenset, tuple)


def is_model(kind: type) -> bool:
    """Whether a class is a model of pydantic's."""
    return _base_model(kind) is not None


def _base_model(kind: type) -> Any:
    """The class of pydantic's (version 2 or 1) that a model derives from."""
    for base in kind.__mro__[1:]:
        if base.__module__ in ("pydantic.main", "pydantic.v1.main") and base.__qualname__ == "BaseModel":
            return base
    return None


def _encode_model(value: Any, encoder: Encoder, path: str) -> Plain:
    named = _named(type(value), encoder, path)
    check_bare(value, path)
    state = _base_model(type(value)).__getstate__(value)
    held = attributes_of(value)
    was_set, extra, private = _parts_of(state)
    with encoder.visit(value, path):
        declared = of_model(type(value))
        kept_extra = takes_extra(type(value))
        own = {name: item for name, item in held.items() if name in declared or kept_extra}
        form: dict[str, Plain] = {**named, "fields": encoder.fields(own, path)}
        if len(own) < len(held):
            beyond = {name: item for name, item in held.items() if name not in own}
            form["attributes"] = encoder.fields(beyond, path)
        if absent := [name for name in declared if name not in held]:
            form["absent"] = absent  # type: ignore[assignment]
        if set(was_set) != own.keys() | (extra or {}).keys():
            form["set"] = sorted(was_set)  # type: ignore[assignment]
        if extra:
            form["extra"] = encoder.fields(extra, path)
        try:
            if private:
                form["private"] = encoder.fields(private, path)
        except Unsupported as problem:
            given = {key: item for key, item in held.items() if key in was_set} | (extra or {})
            return constructed(value, given, encoder, path, problem, _decode_model)
        return form


# -- generic models ---------------------------------------------------------------------------------


def _named(kind: Any, encoder: Encoder, path: str) -> dict[str, Plain]:
    """The class of a model; of a generic one (``Page[Item]``) the class and what it is made for."""
    origin, args = _origin(kind)
    if origin is None:
        return {"class": encoder.name_of_class(kind, path, f"{kind.__module__}.{kind.__qualname__}")}
    what = f"{kind.__module__}.{kind.__qualname__}"
    name = encoder.name_of_class(origin, path, what)
    form: dict[str, Plain] = {"class": name, "of": [_of(item, encoder, path, what) for item in args]}
    if not encoder.classes.may_construct(origin):
        hint = f"if it may be made on replay, set allow_classes = [{name!r}]"
        raise Unsupported(path, what, "(a generic model)", hint)
    return form


def _origin(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a class of pydantic's or a type like ``list[int]`` was made of, if it was."""
    if isinstance(kind, GenericAlias):
        return kind.__origin__, kind.__args__
    made_of: Any = vars(kind).get("__pydantic_generic_metadata__") if isinstance(kind, type) else None
    return (made_of["origin"], made_of["args"]) if made_of else (None, ())


def _of(kind: Any, encoder: Encoder, path: str, what: str) -> Plain:
    origin, args = _origin(kind)
    if origin is not None:
        inner: list[Plain] = [_of(item, encoder, path, what) for item in args]
        return {"class": encoder.name_of_class(origin, path, what), "of": inner}
    if not (isinstance(kind, type) and _is_content(kind)):
        why = f"(a generic model made for {kind})"
        raise Unsupported(path, what, why, "give it a class of its own: class Items(Page[...]): ...")
    return encoder.name_of_class(kind, path, what)


def _argument(content: Any, decoder: Decoder) -> Any:
    if isinstance(content, str):
        return decoder.find(content, _is_content, "class of data")
    fields = parts(content, ("class", "of"))
    kind = decoder.find(fields["class"], lambda kind: is_model(kind) or kind in _ALIASED, "generic class")
    inner = [_argument(item, decoder) for item in _listed(fields["of"])]
    if is_model(kind):
        decoder.constructs(kind)
    return _generic(kind, inner) if is_model(kind) else GenericAlias(kind, tuple(inner))


def _is_content(kind: type) -> bool:
    """Whether a generic model may be made for a class: it says of what shape data are."""
    named = kind.__module__ in ("builtins", "datetime", "decimal", "uuid") and kind is not object
    return named or is_model(kind) or dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)


def _generic(kind: Any, args: list[Any]) -> Any:
    made = _base_model(kind).__class_getitem__.__func__(kind, tuple(args))
    if not is_model(made):
        raise BadValue(f"{class_name(kind)!r} is no generic model")
    return made


def _listed(content: Any) -> list[Any]:
    """What a generic class was made for, down to all that these were made for."""
    if not isinstance(content, list):
        raise BadValue("'of' must be a list of classes")
    for item in content:
        if not isinstance(item, str):
            _listed(parts(item, ("class", "of"))["of"])
    return content


def _parts_of(state: dict[str, Any]) -> tuple[set[str], dict[str, Any] | None, dict[str, Any] | None]:
    if "__fields_set__" in state:  # version 1, whose extra fields are fields
        return state["__fields_set__"], None, state.get("__private_attribute_values__")
    return state["__pydantic_fields_set__"], state["__pydantic_extra__"], state["__pydantic_private__"]


def _decode_model(content: Any, decoder: Decoder) -> Any:
    if isinstance(content, dict) and "init" in content:
        return by_constructor(content, decoder, is_model, "pydantic model", _construct)
    fields = parts(content, ("class", "fields"), ("attributes", "absent", "of", "set", "extra", "private"))
    held, extra = decoder.fields(fields["fields"]), decoder.fields(fields.get("extra", {}))
    private = decoder.fields(fields.get("private", {}))
    beyond, absent = decoder.fields(fields.get("attributes", {})), names(fields.get("absent", []))
    was_set = set(names(fields["set"])) if "set" in fields else held.keys() | extra.keys()
    of = _listed(fields.get("of", []))
    kind = decoder.find(fields["class"], is_model, "pydantic model")
    if "of" in fields:
        decoder.constructs(kind)
        kind = _generic(kind, [_argument(item, decoder) for item in of])
    model = bare(kind)
    base = _base_model(kind)
    declared, more = of_model(kind), takes_extra(kind)
    given = fields_today(kind, held | extra, declared, absent=absent, of_others=held | extra if more else ())
    private = fields_today(kind, private, private_of_model(kind), of_others=kind.__private_attributes__)  # type: ignore[attr-defined]
    if hasattr(base, "model_construct"):  # version 2
        extra = {name: item for name, item in given.items() if name not in declared}
        state = {
            "__dict__": {name: given[name] for name in declared if name in given} | beyond,
            "__pydantic_fields_set__": set(was_set),
            "__pydantic_extra__": extra if extra or more else None,
            "__pydantic_private__": private if private or kind.__private_attributes__ else None,  # type: ignore[attr-defined]
        }
    else:
        state = {
            "__dict__": given | beyond,
            "__fields_set__": set(was_set),
            "__private_attribute_values__": private,
        }
    base.__setstate__(model, state)
    return model


def _construct(kind: Any, given: dict[str, Any]) -> Any:
    more = given if takes_extra(kind) else ()
    fields_today(kind, given, of_model(kind), of_others=more, by_constructor=True)
    return kind.model_construct(**given)


def takes_extra(kind: Any) -> bool:
    """Whether a model holds fields that its class does not declare."""
    if hasattr(kind, "model_config"):
        return bool(kind.model_config.get("extra") == "allow")
    extra = kind.__config__.extra
    return bool(getattr(extra, "value", extra) == "allow")


def fields_set(model: Any) -> set[str]:
    """The names of the fields that were set."""
    return _parts_of(_base_model(type(model)).__getstate__(model))[0]


def parts_of_model(model: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The fields of a model, what it holds beyond them, and what is private."""
    _, extra, private = _parts_of(_base_model(type(model)).__getstate__(model))
    return attributes_of(model), extra or {}, private or {}


def put_parts(model: Any, template: Any, parts: dict[str, Any]) -> None:
    """Gives a model the parts of these names, where `template`, another one of its class, has them."""
    base = _base_model(type(model))
    state = dict(base.__getstate__(template))
    for name, held in state.items():
        if isinstance(held, dict):
            state[name] = {key: parts.get(key, item) for key, item in held.items()}
    known = attributes_of(model)
    kept = {
        name: item for name, item in model.__dict__.items() if name not in known
    }  # worked out from the rest
    base.__setstate__(model, {**state, "__dict__": {**state["__dict__"], **kept}})


# -- secrets ----------------------------------------------------------------------------------------


def _is_secret(kind: type) -> bool:
    return kind.__module__ in ("pydantic.types", "pydantic.v1.types") and kind.__name__ in _SECRETS


def _encode_secret(value: Any, encoder: Encoder, path: str) -> Plain:
    """Under a key that says what it is, so that it is replaced before anything is written."""
    held = value.get_secret_value()
    if isinstance(held, bytes):
        try:
            held = held.decode("utf-8")
        except UnicodeDecodeError:
            raise Unsupported(path, type_name(value), "whose bytes are no text") from None
    return {"class": encoder.name_of(value, path), "secret": encoder.encode(held, path)}


def _decode_secret(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("class", "secret"))
    held = text(fields["secret"])
    kind: Any = decoder.find(fields["class"], _is_secret, "secret of pydantic's")
    return kind(held.encode("utf-8") if kind.__name__ == "SecretBytes" else held)


# -- URLs -------------------------------------------------------------------------------------------


def _is_url(kind: type) -> bool:
    """Whether it is a URL: nothing else of pydantic's, whose other types import what a text names."""
    core = ("Url", "MultiHostUrl") if kind.__module__ == "pydantic_core._pydantic_core" else ()
    bases = [base.__name__ for base in kind.__mro__ if base.__module__ == "pydantic.networks"]
    return kind.__name__ in core or (bool(bases) and bases[-1] in ("_BaseUrl", "_BaseMultiHostUrl"))


def _encode_url(value: Any, encoder: Encoder, path: str) -> Plain:
    """By pydantic's own encoder, if that is exact."""
    kind = type(value)
    form: Plain = {
        "class": encoder.name_of(value, path),
        "value": _adapter(kind).dump_python(value, mode="json"),
    }
    try:
        same = _decode_url(form, Decoder(encoder.classes)) == value
    except ValueError:
        same = False
    if not same:
        raise Unsupported(path, type_name(value), "(pydantic's own encoder does not keep it)")
    return form


def _decode_url(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("class", "value"))
    spelled = text(fields["value"])
    kind = decoder.find(fields["class"], _is_url, "URL of pydantic's")
    value = _adapter(kind).validate_python(spelled)
    if type(value) is not kind:
        raise BadValue(f"{fields['class']!r} does not take that value")
    return value


def _adapter(kind: type) -> Any:
    return sys.modules["pydantic"].TypeAdapter(kind)


MODELS = (
    Row("secret", _is_secret, _encode_secret, _decode_secret),
    Row("model", is_model, _encode_model, _decode_model),
    Row("url", _is_url, _encode_url, _decode_url),
)
"""In the order in which a class is tried."""
