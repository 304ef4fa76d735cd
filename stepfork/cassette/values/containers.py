"""Containers of the standard library that JSON lacks. Knows their shapes; what is in them is any value.

Subclasses of dict and list that are not named here stand as plain mappings and sequences and come back as
such: an OrderedDict, the headers of a library.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from types import SimpleNamespace
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue
from stepfork.cassette.values.walk import AS_BASE, Decoder, Encoder, Row, parts, text, whole
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain

_FACTORIES: Final[dict[str, type]] = {
    kind.__name__: kind for kind in (bool, dict, float, int, list, set, str, tuple)
}


def _items(value: Any, encoder: Encoder, path: str) -> Plain:
    return encoder.items(value, path)


def _sorted_items(value: Any, encoder: Encoder, path: str) -> Plain:
    return sorted(encoder.apart(value, value, path), key=canonical_text)


def _apart(content: Any, decoder: Decoder) -> dict[Any, None]:
    if not isinstance(content, list):
        raise BadValue("a sequence expected")
    items = decoder.apart(content)
    if len(items) != len(content):
        raise BadValue("an item stands twice")
    return items


def _decode_multipart(content: Any, decoder: Decoder) -> list[Any]:
    """The parts of a request's body, as instrument/multipart takes them down."""
    for part in decoder.items(content):
        if isinstance(part, dict) and "text" in part:
            told = parts(part, ("name", "text"))
        else:
            told = dict(parts(part, ("name", "size", "sha256"), ("file", "type")))
            whole(told.pop("size"))
        for value in told.values():
            text(value)
    return decoder.items(content)


def _pairs(content: Any, decoder: Decoder) -> dict[Any, Any]:
    if not isinstance(content, list) or any(not isinstance(it, list) or len(it) != 2 for it in content):
        raise BadValue("pairs of key and value expected")
    keys = decoder.apart([pair[0] for pair in content])
    if len(keys) != len(content):
        raise BadValue("a key stands twice")
    return dict(zip(keys, decoder.items([pair[1] for pair in content]), strict=True))


def _encode_default(value: defaultdict[Any, Any], encoder: Encoder, path: str) -> Plain:
    factory = value.default_factory
    name = next((name for name, known in _FACTORIES.items() if known is factory), None)
    if name is None and factory is not None:
        return AS_BASE
    return {"factory": name, "items": encoder.mapping(value, path)}


def _decode_default(content: Any, decoder: Decoder) -> defaultdict[Any, Any]:
    fields = parts(content, ("factory", "items"))
    name = fields["factory"]
    if name is not None and name not in _FACTORIES:
        raise BadValue(f"the factory of a defaultdict is null or one of {', '.join(_FACTORIES)}")
    factory = None if name is None else _FACTORIES[name]
    return defaultdict(factory, decoder.mapping(fields["items"]))


def _encode_deque(value: deque[Any], encoder: Encoder, path: str) -> Plain:
    items = encoder.items(value, path)
    return items if value.maxlen is None else {"maxlen": value.maxlen, "items": items}


def _decode_deque(content: Any, decoder: Decoder) -> deque[Any]:
    if isinstance(content, list):
        return deque(decoder.items(content))
    fields = parts(content, ("maxlen", "items"))
    items = decoder.items(fields["items"])
    if type(fields["maxlen"]) is not int or len(items) > fields["maxlen"]:
        raise BadValue("'maxlen' must be a number, and hold the items")
    return deque(items, fields["maxlen"])


def _encode_namespace(value: SimpleNamespace, encoder: Encoder, path: str) -> Plain:
    with encoder.visit(value, path):
        return encoder.fields(vars(value), path)


def _decode_namespace(content: Any, decoder: Decoder) -> SimpleNamespace:
    return SimpleNamespace(**decoder.fields(content))


CONTAINERS = (
    Row("tuple", tuple, _items, lambda content, decoder: tuple(decoder.items(content))),
    Row("set", set, _sorted_items, lambda content, decoder: set(_apart(content, decoder))),
    Row("frozenset", frozenset, _sorted_items, lambda content, decoder: frozenset(_apart(content, decoder))),
    Row(
        "counter",
        Counter,
        lambda value, encoder, path: encoder.mapping(value, path),
        lambda content, decoder: Counter(decoder.mapping(content)),
    ),
    Row("defaultdict", defaultdict, _encode_default, _decode_default),
    Row("deque", deque, _encode_deque, _decode_deque),
    Row("namespace", SimpleNamespace, _encode_namespace, _decode_namespace),
    Row("map", None, _items, _pairs),  # written by Encoder.mapping
    Row("multipart", None, _items, _decode_multipart),
)
"""In no order: each has one exact type."""
