"""Plain values as one YAML document. Knows how a cassette looks; knows no file and not what the values mean.

A diff should show what changed and nothing else: block style, one line a field, text as it reads; what
is small stands on one line. The time is linear in the size of the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from stepfork.cassette.floats import CODES, pack
from stepfork.cassette.scalars import (
    MAX_DEPTH,
    SURROGATES,
    float_text,
    flow_text,
    has_surrogates,
    inline_text,
    int_text,
    literal_text,
)
from stepfork.core.model import Plain, Tagged

TAGGED: Final = "tagged"
"""Tag of a value whose content needs a tag itself: ``!tagged {path: !surrogates "a\\\\udc80"}``."""

OWN_TAGS: Final = frozenset((TAGGED, SURROGATES, *CODES))
"""Tags of the emitter's own, which no value may have."""

_WIDTH: Final = 100
_FLOW_LEVELS: Final = 2
_KEY_LIMIT: Final = 1000  # YAML reads a key without "?" only within 1024 characters
_TAG: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

_short_inline = lru_cache(maxsize=4096)(inline_text)
_short_flow = lru_cache(maxsize=4096)(flow_text)


def emit_document(mapping: dict[str, Plain]) -> str:
    """The mapping as the text of one YAML document, without separators.

    Lines end with LF and the last one with exactly one, but for the empty lines that a text with several
    final newlines keeps when it stands last.

    Raises:
        TypeError: if something in it is not a plain value; the message names its type.
        ValueError: if it is nested deeper than 200 levels, or a tag is no name or one of the emitter's own.

    >>> print(emit_document({"args": {"q": "rust"}, "result": Tagged("tuple", ["Go", 0.9])}), end="")
    args: {q: rust}
    result: !tuple [Go, 0.9]
    """
    if type(mapping) is not dict:
        raise TypeError(f"a document is a dict, not a {type(mapping).__qualname__}")
    if not mapping:
        return "{}\n"
    out: list[str] = []
    _mapping(mapping, "\n", "", out, 1)
    out.append("\n")
    return "".join(out)


def _mapping(mapping: dict[str, Any], line: str, lead: str, out: list[str], depth: int) -> None:
    """Appends the fields; `line` is a line end with the indentation, `lead` stands before the first."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the value is nested deeper than {MAX_DEPTH} levels")
    inner = line + "  "
    append = out.append
    for key, value in mapping.items():
        if type(key) is not str:
            key = _key(key)
        head = _short_head(key) if len(key) < 65 else _long_head(key, line)
        kind = type(value)
        if kind is str:
            if "\n" in value:
                text = literal_text(value, inner)
            else:
                text = _short_inline(value) if len(value) < 65 else inline_text(value)
            append(f"{lead}{head} {text}")
        elif (atom := _ATOMS.get(kind)) is not None:
            append(f"{lead}{head} {atom(value)}")
        else:
            append(lead + head)
            _rest(value, line, _WIDTH - len(line) - len(head), out, depth, after_dash=False)
        lead = line


def _sequence(items: list[Any], line: str, lead: str, out: list[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"the value is nested deeper than {MAX_DEPTH} levels")
    inner = line + "  "
    room = _WIDTH - len(line) - 1
    for value in items:
        out.append(lead + "-")
        kind = type(value)
        if kind is str:
            out.append(" " + (inline_text(value) if "\n" not in value else literal_text(value, inner)))
        elif (atom := _ATOMS.get(kind)) is not None:
            out.append(" " + atom(value))
        else:
            _rest(value, line, room, out, depth, after_dash=True)
        lead = line


def _rest(value: Any, line: str, room: int, out: list[str], depth: int, *, after_dash: bool) -> None:
    """Appends what follows ``key:`` or ``-`` where that is more than a scalar.

    `room` is what the line still holds after one blank.
    """
    inner = line + "  "
    kind = type(value)
    tag = ""
    if kind is not dict and kind is not list:
        if kind is Tagged:
            name, value = _untagged(value)
            tag = f" !{name}"
            room -= len(tag)
        else:
            value = _base(value)
        if (text := _scalar(value, inner)) is not None:
            out.append(f"{tag} {text}")
            return
        kind = type(value)
    if _may_fit(value, room, _FLOW_LEVELS) and (text := _flow(value, room)) is not None:
        out.append(f"{tag} {text}")
        return
    if kind is list and not tag and (packed := pack(value)) is not None:
        out.append(f" !{packed[0]} {inline_text(packed[1])}")
        return
    compact = after_dash and not tag  # the first item stands on the line of the dash
    out.append(" " if compact else tag)
    if kind is dict:
        _mapping(value, inner, "" if compact else inner, out, depth + 1)
    else:
        dashes = inner if after_dash else line
        _sequence(value, dashes, "" if compact else dashes, out, depth + 1)


def _may_fit(value: Any, room: int, levels: int) -> bool:
    """Whether the collection may stand on one line, found without writing it; stops as soon as it cannot."""
    if type(value) is dict:
        if 6 * len(value) > room:
            return not value
        value = value.values()
    elif 3 * len(value) > room:
        return not value
    for item in value:
        kind = type(item)
        if kind is Tagged:
            item = item.value
            kind = type(item)
        if kind is str:
            room -= len(item)
            if room < 0 or "\n" in item:
                return False
        elif kind is dict or kind is list:
            if item and (levels == 1 or not _may_fit(item, room, levels - 1)):
                return False
        elif kind not in _ATOMS:  # a subclass, or a tag within a tag
            return False
    return True


def _flow(value: Any, room: int) -> str | None:
    """The collection on one line, or None if it is not empty and takes more than `room`."""
    parts = []
    room -= 2
    if not value:
        return "{}" if type(value) is dict else "[]"
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                key = _key(key)
            if len(key) > room or (text := _flow_item(item, room)) is None:
                return None
            text = f"{_short_head(key)} {text}"
            room -= len(text) + 2
            parts.append(text)
        return f"{{{', '.join(parts)}}}" if room >= -2 else None
    for item in value:
        if (text := _flow_item(item, room)) is None:
            return None
        room -= len(text) + 2
        parts.append(text)
    return f"[{', '.join(parts)}]" if room >= -2 else None


def _flow_item(value: Any, room: int) -> str | None:
    """A value in flow style; None if it takes more than `room`."""
    kind = type(value)
    if kind is str:
        return _short_flow(value)
    if (atom := _ATOMS.get(kind)) is not None:
        return atom(value)
    if kind is dict or kind is list:
        return _flow(value, room)
    if kind is Tagged:
        name, value = _untagged(value)
        text = _flow_item(value, room)
        return None if text is None else f"!{name} {text}"
    return _flow_item(_base(value), room)


def _scalar(value: Any, inner: str) -> str | None:
    """A scalar in block context, or None for a collection."""
    if isinstance(value, str):
        return literal_text(value, inner) if "\n" in value else inline_text(value)
    atom = _ATOMS.get(type(value))
    return None if atom is None else atom(value)


def _untagged(value: Tagged) -> tuple[str, Any]:
    """Tag and content of a tagged value; a content that needs a tag itself is wrapped once more."""
    tag, content = value.tag, value.value
    if not _TAG.fullmatch(tag) or tag in OWN_TAGS:
        raise ValueError(f"{tag!r} cannot be a tag")
    content = _base(content)
    if (
        type(content) is Tagged
        or (type(content) is str and has_surrogates(content))
        or (type(content) is list and pack(content) is not None)
    ):
        return TAGGED, {tag: content}
    return tag, content


def _base(value: Any) -> Any:
    """The plain value a subclass stands for.

    Raises:
        TypeError: if it stands for none.
    """
    kind = type(value)
    if kind in _ATOMS or kind in _COLLECTIONS:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    bases: tuple[Callable[[Any], Any], ...] = (int, float, list, dict)
    for base in bases:
        if isinstance(value, base):  # type: ignore[arg-type]
            return base(value)
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__} is not a plain value")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a plain value is a str, not a {type(key).__qualname__}")
    return str.__str__(key)


def _head(key: str) -> str:
    return f"{flow_text(key)}:"


def _long_head(key: str, line: str) -> str:
    text = flow_text(key)
    return f"{text}:" if len(text) < _KEY_LIMIT else f"? {text}{line}:"


_short_head = lru_cache(maxsize=4096)(_head)

_ATOMS: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: int_text,
    float: float_text,
}
_COLLECTIONS: Final = frozenset((str, list, dict, Tagged))
