"""Plain values made comparable: a canonical text and its digest. Knows no call, no file and no rule.

Two plain values have the same canonical text exactly when they are equal for matching: keys in any
order, of whatever type, ``1``, ``True`` and ``1.0`` all different, NaN equal to NaN, ``-0.0`` and ``0.0``
different.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from stepfork.core.model import Plain, Tagged


def _as_object(tag: str, content: Any) -> dict[str, Any]:
    return {"\x00" + tag: content}  # no JSON object looks like this: the key holds a control character


def _tagged(value: Any) -> Any:
    if not isinstance(value, Tagged):
        raise TypeError(f"{type(value).__name__} is not a plain value")
    return _sorted(value) if value.tag == "map" else _as_object(value.tag, value.value)


def _sorted(value: Any) -> Any:
    """The value with all its tags as objects, the pairs of each mapping in the order of their texts."""
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    if not isinstance(value, Tagged):
        return value
    content = _sorted(value.value)
    if value.tag == "map" and isinstance(content, list):
        content.sort(key=_ENCODER.encode)
    return _as_object(value.tag, content)


def _as_it_stands(value: Any) -> Any:
    return _as_object(value.tag, value.value) if isinstance(value, Tagged) else _tagged(value)


_LONGEST: Final = 2_000
"""Bits of a number that Python spells out under any setting of its limit."""
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_tagged, check_circular=False
)
_IN_ORDER = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, default=_as_it_stands, check_circular=False
)


def canonical_text(value: Plain) -> str:
    """The canonical text of a plain value. Raises TypeError for anything that is not plain.

    >>> canonical_text({"b": 1, "a": [True, 1.0]})
    '{"a":[true,1.0],"b":1}'
    """
    return _encoded(_ENCODER, value)


def _encoded(encoder: json.JSONEncoder, value: Plain) -> str:
    try:
        return encoder.encode(value)
    except ValueError:  # a number of so many digits that Python refuses to spell it out
        return encoder.encode(_in_hex(value))


def _in_hex(value: Any) -> Any:
    if isinstance(value, Tagged):
        return Tagged(value.tag, _in_hex(value.value))
    if isinstance(value, dict):
        return {key: _in_hex(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_hex(item) for item in value]
    return Tagged("int", hex(value)) if type(value) is int and value.bit_length() > _LONGEST else value


def digest(value: Plain, *, in_order: bool = False) -> str:
    """SHA-256 of the canonical text, hexadecimal (FIPS 180-4); `in_order` with keys in the order they have.

    >>> digest({"a": 1})[:8]
    '015abd7f'
    >>> one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    >>> digest(one) == digest(other), digest(one, in_order=True) == digest(other, in_order=True)
    (True, False)
    """
    text = _encoded(_IN_ORDER if in_order else _ENCODER, value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
