"""Python values <-> plain values, one row a type. Knows the types and their tags, no call and no file.

Only exact types are taken: what would come back as something else is refused (`Unsupported`), but for
subclasses of str, int, float, list and dict, which come back as the plain type.
"""

from __future__ import annotations

import base64
import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged


class Unsupported(Exception):
    """A value that has no plain form: where it stands, what it is, and what to do if there is more to say."""

    def __init__(self, path: str, type: str, why: str = "", hint: str = "") -> None:
        self.path = path
        self.type = type
        self.why = why
        self.hint = hint
        super().__init__(f"{path}: {type}{why and ' ' + why}")


def type_name(value: object) -> str:
    """How a value's type is named in messages: ``list``, ``decimal.Decimal``.

    >>> type_name([]), type_name(Decimal(1))
    ('list', 'decimal.Decimal')
    """
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class BadValue(ValueError):
    """A tagged value whose content does not fit its tag; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One type and its tag: `encode` gives the tag's plain content, `decode` the value again."""

    tag: str
    kind: type
    encode: Callable[[Any, _Encoder, str], Plain]
    decode: Callable[[Any], Any]


class _Encoder:
    """One encoding: remembers the containers it stands in, so that a cycle is an error and no crash."""

    def __init__(self) -> None:
        self._inside: set[int] = set()

    def encode(self, value: Any, path: str) -> Plain:
        kind = type(value)
        if kind in (str, int, float, bool) or value is None:
            return value  # type: ignore[no-any-return]
        row = _BY_TYPE.get(kind)
        if row is not None:
            return Tagged(row.tag, row.encode(value, self, path))
        if isinstance(value, enum.Enum):
            raise Unsupported(path, type_name(value), "(an enum member)")
        if _is_numpy(kind):
            raise Unsupported(path, type_name(value), "(a numpy value)")
        if isinstance(value, dict):
            return self._mapping(value, path)
        if isinstance(value, list):
            return self.items(value, path)
        for base in (str, int, float):
            if isinstance(value, base):
                return base(value)
        raise Unsupported(path, type_name(value))

    def items(self, values: Any, path: str) -> list[Plain]:
        with _Visit(self._inside, values, path):
            return [self.encode(item, f"{path}[{at}]") for at, item in enumerate(values)]

    def _mapping(self, value: dict[Any, Any], path: str) -> Plain:
        with _Visit(self._inside, value, path):
            if all(type(key) is str for key in value):
                return {key: self.encode(item, f"{path}.{key}") for key, item in value.items()}
            pairs: list[Plain] = []
            for key, item in value.items():
                pairs.append([self.encode(key, f"{path} key"), self.encode(item, f"{path}[{key!r}]")])
            return Tagged("map", pairs)


class _Visit:
    def __init__(self, inside: set[int], value: object, path: str) -> None:
        self._inside, self._value, self._path = inside, value, path

    def __enter__(self) -> None:
        if id(self._value) in self._inside:
            raise Unsupported(self._path, type_name(self._value), "that contains itself")
        if len(self._inside) > 150:
            raise Unsupported(self._path, type_name(self._value), "nested more than 150 levels deep")
        self._inside.add(id(self._value))

    def __exit__(self, *_: object) -> None:
        self._inside.discard(id(self._value))


def encode(value: Any, path: str = "value") -> Plain:
    """The plain form of a Python value; `path` names it in the error.

    Raises:
        Unsupported: for a value that would not come back as itself.

    >>> encode({"p": Decimal("0.10"), "t": (1, 2)})
    {'p': Tagged(tag='decimal', value='0.10'), 't': Tagged(tag='tuple', value=[1, 2])}
    """
    return _Encoder().encode(value, path)


def decode(value: Plain) -> Any:
    """A fresh Python value for a plain one: no container is shared with the argument.

    Raises:
        BadValue: where a tag's content does not fit it.

    >>> decode(Tagged("tuple", [1, Tagged("set", [2])]))
    (1, {2})
    """
    if isinstance(value, dict):
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, Tagged):
        return value
    row = _BY_TAG.get(value.tag)
    if row is None:
        raise BadValue(f"!{value.tag} is not a tag stepfork knows")
    try:
        return row.decode(value.value)
    except BadValue:
        raise
    except Exception as error:
        raise BadValue(f"!{value.tag} cannot be read: {error}") from None


def _is_numpy(kind: type) -> bool:
    return any(base.__module__.partition(".")[0] == "numpy" for base in kind.__mro__)


def _sorted_items(value: Any, encoder: _Encoder, path: str) -> Plain:
    return sorted(encoder.items(value, path), key=canonical_text)


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise BadValue(f"a sequence expected, not {type(content).__name__}")
    return [decode(item) for item in content]


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise BadValue(f"text expected, not {type(content).__name__}")
    return content


def _pairs(content: Any) -> dict[Any, Any]:
    pairs = _list(content)
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise BadValue("pairs of key and value expected")
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise BadValue("a key stands twice")
    return mapping


def _encode_moment(value: datetime | time, encoder: _Encoder, path: str) -> Plain:
    zone = value.tzinfo
    text = value.replace(tzinfo=None, fold=0).isoformat()
    if zone is None and not value.fold:
        return text
    if zone is UTC and not value.fold:
        return text + "Z"
    if type(zone) is timezone and zone.tzname(None).startswith("UTC"):
        return [text, zone.utcoffset(None) // timedelta(microseconds=1), value.fold]
    if zone is None:
        return [text, None, value.fold]
    if type(zone) is ZoneInfo and zone.key:
        return [text, zone.key, value.fold]
    raise Unsupported(path, type_name(value), f"with a time zone of type {type(zone).__name__}")


def _decode_moment(kind: type[datetime] | type[time]) -> Callable[[Any], datetime | time]:
    def decode_moment(content: Any) -> datetime | time:
        if isinstance(content, str):
            if content.endswith("Z"):
                return kind.fromisoformat(content[:-1]).replace(tzinfo=UTC)
            return kind.fromisoformat(content)
        text, zone, fold = content
        naive = kind.fromisoformat(_text(text)).replace(fold=fold)
        if zone is None:
            return naive
        if isinstance(zone, int):
            return naive.replace(tzinfo=timezone(timedelta(microseconds=zone)))
        if not re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", _text(zone)):
            raise BadValue(f"{zone!r} is no time zone")
        return naive.replace(tzinfo=ZoneInfo(zone))

    return decode_moment


def _as_text(value: Any, encoder: _Encoder, path: str) -> Plain:
    return str(value)


def _as_bytes(value: Any, encoder: _Encoder, path: str) -> Plain:
    return base64.b64encode(value).decode("ascii")


def _from_bytes(kind: type) -> Callable[[Any], Any]:
    return lambda content: kind(base64.b64decode(_text(content), validate=True))


def _paths() -> list[_Row]:
    kinds: dict[str, type] = {
        "path": type(Path()),
        "posix-path": PurePosixPath,
        "windows-path": PureWindowsPath,
    }
    return [_Row(tag, kind, _as_text, _from_text(kind)) for tag, kind in kinds.items()]


def _from_text(kind: type) -> Callable[[Any], Any]:
    return lambda content: kind(_text(content))


def _whole(content: Any) -> int:
    if type(content) is not int:
        raise BadValue(f"a whole number of microseconds expected, not {type(content).__name__}")
    return content


_ROWS = (
    _Row("tuple", tuple, lambda value, encoder, path: encoder.items(value, path), lambda c: tuple(_list(c))),
    _Row("set", set, _sorted_items, lambda c: set(_list(c))),
    _Row("frozenset", frozenset, _sorted_items, lambda c: frozenset(_list(c))),
    _Row("bytes", bytes, _as_bytes, _from_bytes(bytes)),
    _Row("bytearray", bytearray, _as_bytes, _from_bytes(bytearray)),
    _Row("decimal", Decimal, _as_text, _from_text(Decimal)),
    _Row("datetime", datetime, _encode_moment, _decode_moment(datetime)),
    _Row("time", time, _encode_moment, _decode_moment(time)),
    _Row("date", date, _as_text, lambda c: date.fromisoformat(_text(c))),
    _Row(
        "timedelta",
        timedelta,
        lambda value, encoder, path: value // timedelta(microseconds=1),
        lambda c: timedelta(microseconds=_whole(c)),
    ),
    _Row("uuid", UUID, _as_text, _from_text(UUID)),
    _Row("complex", complex, lambda v, encoder, path: [v.real, v.imag], lambda c: complex(*_list(c))),
    _Row("map", _Row, lambda value, encoder, path: None, _pairs),  # written by _Encoder._mapping
    _Row("multipart", _Row, lambda value, encoder, path: None, _list),  # written by instrument/multipart
    *_paths(),
)
_BY_TYPE: dict[type, _Row] = {row.kind: row for row in _ROWS if row.kind is not _Row}
_BY_TAG: dict[str, _Row] = {row.tag: row for row in _ROWS}
TAGS = frozenset(_BY_TAG)
"""The tags a cassette may hold."""
