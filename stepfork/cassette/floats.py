"""Long lists of floats as one scalar, as embeddings are. Knows numbers and their bytes; knows no YAML.

The bytes are those of IEEE 754, little endian, in base64: four a number where that is exact, else eight.
"""

from __future__ import annotations

import base64
import binascii
import sys
from array import array
from collections.abc import Sequence
from typing import Any, Final

CODES: Final = {"f32": "f", "f64": "d"}
"""The tags of packed lists, and the machine types of their items."""

_MANY: Final = 16  # a list of more may be packed
_TOO_MANY: Final = 64  # a list of more is packed even if its numbers are short
_LONG: Final = 10  # characters of a number that nobody reads


def pack(values: Sequence[Any]) -> tuple[str, str] | None:
    """Tag and text of a list that is all floats, long, and hard to read as numbers; None for any other.

    >>> pack([0.5] * 100)[0], pack([0.5, 0.25] * 10)
    ('f32', None)
    """
    if len(values) <= _MANY or any(type(value) is not float for value in values):
        return None
    if len(values) <= _TOO_MANY and sum(len(repr(value)) for value in values) < _LONG * len(values):
        return None
    small = array("f", values)
    exact = small.tolist() == values  # NaN is equal to nothing, so it is kept in full
    return ("f32", _text(small)) if exact else ("f64", _text(array("d", values)))


def unpack(tag: str, text: str) -> list[float]:
    """The floats of a packed list.

    Raises:
        ValueError: if the text is none.

    >>> unpack(*pack([0.5] * 100)) == [0.5] * 100
    True
    """
    numbers: array[float] = array(CODES[tag])
    try:
        numbers.frombytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise ValueError(f"base64 of numbers of {numbers.itemsize} bytes expected") from None
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _text(numbers: array[float]) -> str:
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode("ascii")
