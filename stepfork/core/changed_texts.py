"""A plain value with a change made to all its texts. Pure; knows no reason for a change."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Final

from stepfork.core.canonical import canonical_text
from stepfork.core.model import OPAQUE, Plain, Tagged, texts_in

BYTES: Final = frozenset({"bytes", "bytearray", "memoryview"})


def changed(value: Plain, change: Callable[[str], str]) -> Plain:
    """The value with `change` made to its texts and keys, and to bytes that are text; the same object if that
    changes nothing.

    >>> changed({"a": ["b", 1]}, str.upper)
    {'A': ['B', 1]}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        mapping = {change(key): changed(item, change) for key, item in value.items()}
        same = all(new is old for new, old in zip(mapping.values(), value.values(), strict=True))
        return value if same and all(map(value.__contains__, mapping)) else mapping
    if isinstance(value, list):
        items = [changed(item, change) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, Tagged) or value.tag in OPAQUE:
        return value
    inner = _bytes(value.value, change) if value.tag in BYTES else changed(value.value, change)
    if inner is value.value:
        return value
    if value.tag in ("set", "frozenset") and isinstance(inner, list):
        inner = sorted(inner, key=canonical_text)
    return Tagged(value.tag, inner)


def _bytes(encoded: Plain, change: Callable[[str], str]) -> Plain:
    """Bytes in base64, changed if they are text: of other files a changed length would make rubbish."""
    text = _said(encoded)
    new = text if text is None else change(text)
    return encoded if new is None or new == text else base64.b64encode(new.encode()).decode()


def _said(encoded: Plain) -> str | None:
    """The text that bytes in base64 are; None if they are none."""
    try:
        text = base64.b64decode(str(encoded), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    return None if "\0" in text else text


def said_in(value: Plain) -> Iterator[str]:
    """All texts of a plain value, and what its bytes say where they are text.

    >>> list(said_in([Tagged("bytes", "aGk=")]))
    ['hi']
    """
    return texts_in(value, lambda tagged: (_said(tagged.value) or "") if tagged.tag in BYTES else None)
