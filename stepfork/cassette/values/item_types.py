"""The types of the items of arrays and columns. Knows the names numpy and pandas have for them; neither one.

What stands in a file under a type must be of that type: numpy would make 1 of 1.5 without a word.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue

NUMBERS: Final = "biuf"
MOMENTS: Final = "mM"
TEXTS: Final = "US"
NOT_A_TIME: Final = "NaT"

_NAME: Final = re.compile(r"(bool|u?int|float|complex|datetime|timedelta|object|str|bytes)(\d*)(\[.+\])?")
_CODE: Final = re.compile(r"[<>|=]?([?bBiufcmMUSVO])(\d*)(\[.+\])?")
_KINDS: Final = {"bool": "b", "int": "i", "uint": "u", "datetime": "M", "timedelta": "m", "object": "O"} | {
    "float": "f",
    "complex": "c",
    "str": "U",
    "bytes": "S",
    "?": "b",
    "B": "u",
}
_FLOATS: Final = {2: "<e", 4: "<f", 8: "<d"}
_MOMENT: Final = re.compile(r"(-\d+|\d{4,})(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,18})?)?)?)?)?)?")
_DAY: Final = re.compile(r"(?!0000)\d{4}-\d\d-\d\d(?=T|\Z)")
_NULLABLE: Final = re.compile(r"(U?Int|Float)(8|16|32|64)")


@dataclass(frozen=True, slots=True)
class ItemType:
    """A type of numpy's: its kind as one letter, and how many bytes an item has (0: it is not said)."""

    kind: str
    size: int


def item_type(spelled: Any) -> ItemType:
    """The type that a name or a code stands for, or pairs of a name and a type.

    Raises:
        BadValue: if it is none.

    >>> item_type("int64"), item_type("<U3"), item_type([["a", "<i4"]])
    (ItemType(kind='i', size=8), ItemType(kind='U', size=12), ItemType(kind='V', size=0))
    """
    if isinstance(spelled, list):
        for item in spelled:
            if not isinstance(item, list) or not 2 <= len(item) <= 3:
                raise BadValue("'dtype' of records must be pairs of a name and a type")
            if not isinstance(item[0], str) or item_type(item[1]).kind in "OV":
                raise BadValue("'dtype' of records must be pairs of a name and a type")
        return ItemType("V", 0)
    if not isinstance(spelled, str):
        raise BadValue("'dtype' must be the name of a type, or pairs of a name and a type")
    if named := _NAME.fullmatch(spelled):
        kind = _KINDS[named[1]]
        bits = int(named[2] or 0) if len(named[2]) < 6 else 0
        return ItemType(kind, 1 if kind == "b" else 0 if kind in "OUS" else bits // 8)
    if coded := _CODE.fullmatch(spelled):
        kind = _KINDS.get(coded[1], "b" if coded[1] == "?" else coded[1])
        size = int(coded[2] or 0) if len(coded[2]) < 10 else 0
        if coded[1] == "b":  # numpy's code of a small number; `b1` is one of truth
            kind = "b" if size else "i"
        return ItemType(kind, 1 if coded[1] in "?bB" else size * 4 if kind == "U" else size)
    raise BadValue(f"{spelled[:40]!r} is the name of no type")


def check_items(spelled: Any, values: list[Any]) -> None:
    """Checks that values that are spelled out are of a type of numpy's.

    Raises:
        BadValue: naming the first that is not.

    >>> check_items("int64", [1, 2])
    >>> check_items("int8", [1, 300])
    Traceback (most recent call last):
    ...
    stepfork.cassette.values.faults.BadValue: values[1] is no int8
    """
    found = item_type(spelled)
    if found.kind == "V":
        raise BadValue("records must stand as !bytes")
    fits = _FITS[found.kind]
    for at, value in enumerate(values):
        if not fits(value, found.size):
            raise BadValue(f"values[{at}] is no {spelled}")


def check_column(dtype: str, values: list[Any], categories: list[Any] | None) -> None:
    """Checks that the values of a column are of a type of pandas'; null is a missing one.

    Raises:
        BadValue: naming the first that is not.
    """
    if dtype == "category":
        if categories is None:
            raise BadValue("'categories' is missing")
        known = list(map(repr, categories))
        names = set(known)
        if len(names) < len(known):
            raise BadValue("a category stands twice")
        fits: Callable[[Any], bool] = lambda value: repr(value) in names  # noqa: E731
    elif number := _NULLABLE.fullmatch(dtype):
        kind, size = number[1][0].lower(), int(number[2]) // 8
        fits = lambda value: _FITS[kind](value, size)  # noqa: E731
    elif dtype == "boolean":
        fits = lambda value: type(value) is bool  # noqa: E731
    elif dtype.startswith(("str", "datetime64", "period")):
        fits = lambda value: isinstance(value, str)  # noqa: E731
    else:
        return
    for at, value in enumerate(values):
        if value is not None and not fits(value):
            what = "no category" if dtype == "category" else f"no {dtype}"
            raise BadValue(f"values[{at}] is {what}")


def _is_whole(value: Any, size: int) -> bool:
    bits = 8 * (size or 8)
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


def _is_natural(value: Any, size: int) -> bool:
    return type(value) is int and 0 <= value < 1 << 8 * (size or 8)


def _is_float(value: Any, size: int) -> bool:
    """Whether a float is one of that size: a shorter one would be rounded."""
    form = _FLOATS.get(size or 8)
    if type(value) is not float or form is None:
        return False
    with suppress(OverflowError):
        again: float = struct.unpack(form, struct.pack(form, value))[0]
        return again == value or value != value
    return False


def _is_moment(value: Any, size: int) -> bool:
    if value == NOT_A_TIME:
        return True
    if not isinstance(value, str) or _MOMENT.fullmatch(value) is None:
        return False
    day = _DAY.match(value)
    with suppress(ValueError):
        return day is None or bool(date.fromisoformat(day[0]))
    return False


_FITS: Final[dict[str, Callable[[Any, int], bool]]] = {
    "b": lambda value, size: type(value) is bool,
    "i": _is_whole,
    "u": _is_natural,
    "f": _is_float,
    "c": lambda value, size: type(value) is complex,
    "m": lambda value, size: value == NOT_A_TIME or _is_whole(value, 8),
    "M": _is_moment,
    "U": lambda value, size: isinstance(value, str) and (not size or len(value) * 4 <= size),
    "S": lambda value, size: isinstance(value, bytes) and (not size or len(value) <= size),
    "O": lambda value, size: True,
}
