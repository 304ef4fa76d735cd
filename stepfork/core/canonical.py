"""Plain values made comparable: a canonical text and its digest. Knows no call, no file and no rule.

Two plain values have the same canonical text exactly when they are equal for matching: keys in any
order, ``1``, ``True`` and ``1.0`` all different, NaN equal to NaN, ``-0.0`` and ``0.0`` different.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from stepfork.core.model import Plain, Tagged


def _tagged(value: Any) -> Any:
    if isinstance(value, Tagged):
        # a JSON object can never look like this: the key holds a control character
        return {"\x00" + value.tag: value.value}
    raise TypeError(f"{type(value).__name__} is not a plain value")


_LONGEST: Final = 2_000
"""Bits of a number that Python spells out under any setting of its limit."""
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_tagged, check_circular=False
)


def canonical_text(value: Plain) -> str:
    """The canonical text of a plain value. Raises TypeError for anything that is not plain.

    >>> canonical_text({"b": 1, "a": [True, 1.0]})
    '{"a":[true,1.0],"b":1}'
    """
    try:
        return _ENCODER.encode(value)
    except ValueError:  # a number of so many digits that Python refuses to spell it out
        return _ENCODER.encode(_in_hex(value))


def _in_hex(value: Any) -> Any:
    if isinstance(value, Tagged):
        return Tagged(value.tag, _in_hex(value.value))
    if isinstance(value, dict):
        return {key: _in_hex(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_hex(item) for item in value]
    return Tagged("int", hex(value)) if type(value) is int and value.bit_length() > _LONGEST else value


def digest(value: Plain) -> str:
    """SHA-256 of the canonical text, hexadecimal (FIPS 180-4).

    >>> digest({"a": 1})[:8]
    '015abd7f'
    """
    return hashlib.sha256(canonical_text(value).encode("utf-8", "surrogatepass")).hexdigest()
