"""Values of the standard library that have a text or a number of their own: one row a type.

Knows their exact types and spellings; knows no container and no class of the user's.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from pathlib import Path, PurePosixPath, PureWindowsPath
from time import struct_time
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from stepfork.cassette import moments
from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
from stepfork.cassette.values.walk import Decoder, Encoder, Row, parts, text, whole
from stepfork.core.model import Plain, Tagged

_GRAMMAR: Any = import_module("re._parser")
"""How `re` reads a pattern before it compiles it."""


def _encode_moment(value: datetime | time, encoder: Encoder, path: str) -> Plain:
    zone = value.tzinfo
    spelled = value.replace(tzinfo=None, fold=0).isoformat()
    if zone is None and not value.fold:
        return spelled
    if zone is UTC and not value.fold:
        return spelled + "Z"
    if zone is None:
        return [spelled, None, value.fold]
    try:
        return moments.spelled([spelled, encode_zone(zone, encoder, path), value.fold])
    except Unsupported:
        why = f"with a time zone of type {type(zone).__name__}"
        raise Unsupported(path, type_name(value), why) from None


def _moment_of(kind: type[datetime] | type[time]) -> Callable[[Any, Decoder], datetime | time]:
    def decode_moment(content: Any, decoder: Decoder) -> datetime | time:
        if isinstance(content, str):
            if content.endswith("Z"):
                return _naive(kind, content[:-1]).replace(tzinfo=UTC)
            parts = moments.in_parts(content)
            if parts is None:
                return _naive(kind, content)
            return _naive(kind, parts[0]).replace(tzinfo=timezone(timedelta(microseconds=parts[1])))
        if not isinstance(content, list) or len(content) != 3 or content[2] not in (0, 1):
            raise BadValue("a text expected, or a text without zone, a zone, and a fold of 0 or 1")
        spelled, zone, fold = content
        naive = _naive(kind, text(spelled)).replace(fold=whole(fold))
        if zone is None:
            return naive
        return naive.replace(tzinfo=decode_zone(zone, decoder))

    return decode_moment


def _naive(kind: type[datetime] | type[time], spelled: str) -> datetime | time:
    made = kind.fromisoformat(spelled)
    if made.tzinfo is not None or (kind is datetime and "T" not in spelled):
        raise BadValue(
            f"{spelled!r} is not as 2024-01-01T10:00:00, with Z or +01:00 behind it, or [text, zone, fold]"
        )
    return made


def encode_zone(zone: Any, encoder: Encoder, path: str) -> Plain:
    """A key of the time zone database, an offset in microseconds, or an offset with a name."""
    if type(zone) is ZoneInfo and zone.key:
        return zone.key
    if type(zone) is not timezone:
        raise Unsupported(path, type_name(zone))
    offset: timedelta = zone.utcoffset(None)
    count = offset // timedelta(microseconds=1)
    return count if repr(zone) == repr(timezone(offset)) else [count, zone.tzname(None)]


def decode_zone(content: Any, decoder: Decoder) -> Any:
    """And back."""
    if isinstance(content, list):
        count, name = content
        return timezone(timedelta(microseconds=whole(count)), text(name))
    if type(content) is int:
        return timezone(timedelta(microseconds=content))
    if not re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", text(content)):
        raise BadValue(f"{content!r} is no time zone")
    return ZoneInfo(content)


def _encode_regex(value: re.Pattern[Any], encoder: Encoder, path: str) -> Plain:
    pattern = encoder.encode(value.pattern, path)
    flags = value.flags & ~(re.UNICODE if isinstance(value.pattern, str) else 0)
    return {"pattern": pattern, "flags": int(flags)} if flags else pattern


def _decode_regex(content: Any, decoder: Decoder) -> re.Pattern[Any]:
    fields = parts(content, ("pattern", "flags")) if isinstance(content, dict) else {"pattern": content}
    pattern, flags = decoder.decode(fields["pattern"]), whole(fields.get("flags", 0))
    if not isinstance(pattern, str | bytes):
        raise BadValue("the pattern must be a text or !bytes")
    if decoder.classes is None:  # compiling `(?i)[\0-\uffff]` takes 100 times as long as reading it
        _GRAMMAR.parse(pattern, flags)
        raise Missing("a pattern is not compiled where only its form is checked")
    return re.compile(pattern, flags)


def _encode_struct_time(value: struct_time, encoder: Encoder, path: str) -> Plain:
    reduced: Any = value.__reduce__()
    numbers, more = reduced[1]
    return encoder.items([*numbers, *more.values()], path)


def _decode_struct_time(content: Any, decoder: Decoder) -> struct_time:
    numbers = decoder.items(content)
    zone, offset = [*numbers[9:], None, None][:2]
    if not 9 <= len(numbers) <= 11 or not isinstance(zone, str | None):
        raise BadValue("nine whole numbers expected, and maybe the zone's name and offset")
    for number in (*numbers[:9], 0 if offset is None else offset):
        whole(number)
    return struct_time(numbers)


def _as_text(value: Any, encoder: Encoder, path: str) -> Plain:
    return str(value)


def _from_text(kind: type) -> Callable[[Any, Decoder], Any]:
    return lambda content, decoder: kind(text(content))


def _as_spelled(read: Callable[[str], Any]) -> Callable[[Any, Decoder], Any]:
    """For what is spelled in one way only: another would be another value to whom compares."""

    def decode_spelled(content: Any, decoder: Decoder) -> Any:
        made = read(text(content))
        if str(made) != content:
            raise BadValue(f"{str(made)!r} is how it is spelled")
        return made

    return decode_spelled


def _numbers(*counts: int) -> Callable[[Any, Decoder], list[int]]:
    """A sequence of so many whole numbers."""

    def decode_numbers(content: Any, decoder: Decoder) -> list[int]:
        numbers = decoder.items(content)
        if len(numbers) not in counts:
            raise BadValue(f"{' or '.join(map(str, counts))} whole numbers expected, not {len(numbers)}")
        return list(map(whole, numbers))

    return decode_numbers


_two, _three = _numbers(2), _numbers(3)


def _decode_complex(content: Any, decoder: Decoder) -> complex:
    numbers = decoder.items(content)
    if len(numbers) != 2 or any(type(number) is not float for number in numbers):
        raise BadValue("two numbers with a fraction expected, as in [1.0, 2.0]")
    return complex(*numbers)


def _decode_slice(content: Any, decoder: Decoder) -> slice:
    places = decoder.items(content)
    if len(places) != 3:
        raise BadValue(f"three values expected: start, stop, step; not {len(places)}")
    return slice(*places)


def _as_bytes(value: Any, encoder: Encoder, path: str) -> Plain:
    return base64.b64encode(value).decode("ascii")


def _from_bytes(kind: type) -> Callable[[Any, Decoder], Any]:
    return lambda content, decoder: kind(base64.b64decode(text(content), validate=True))


def _encode_view(value: memoryview, encoder: Encoder, path: str) -> Plain:
    if not (value.c_contiguous and value.ndim == 1 and value.format == "B" and value.readonly):
        raise Unsupported(path, "memoryview", "of something else than bytes", "pass bytes")
    return _as_bytes(value, encoder, path)


def _row(tag: str, kind: type) -> Row:
    return Row(tag, kind, _as_text, _from_text(kind))


def _encode_stream(value: io.BytesIO, encoder: Encoder, path: str) -> Plain:
    """By content, and without reading it: the stream stays where it is."""
    _check_open(value, path)
    content = Tagged("bytes", base64.b64encode(value.getvalue()).decode("ascii"))
    return {"content": content, "position": value.tell()} if value.tell() else {"content": content}


def _decode_stream(content: Any, decoder: Decoder) -> io.BytesIO:
    fields = parts(content, ("content",), ("position",))
    held = decoder.decode(fields["content"])
    if not isinstance(held, bytes):
        raise BadValue("'content' must be !bytes")
    stream = io.BytesIO(held)
    stream.seek(whole(fields.get("position", 0)))
    return stream


def _encode_text_stream(value: io.StringIO, encoder: Encoder, path: str) -> Plain:
    _check_open(value, path)
    state: Any = value.__getstate__()
    content, newline, position, _ = state
    fields: dict[str, Plain] = {"content": content}
    if newline != "\n":
        fields["newline"] = newline
    if position:
        fields["position"] = position
    return fields


def _decode_text_stream(content: Any, decoder: Decoder) -> io.StringIO:
    fields = parts(content, ("content",), ("newline", "position"))
    stream = io.StringIO()
    newline = fields.get("newline", "\n")
    stream.__setstate__((text(fields["content"]), newline, whole(fields.get("position", 0)), None))  # type: ignore[attr-defined]
    return stream


def _check_open(value: io.BytesIO | io.StringIO, path: str) -> None:
    if value.closed or vars(value):
        why = "that is closed" if value.closed else "with attributes of its own"
        raise Unsupported(path, type_name(value), why)


STANDARD = (
    Row("bytes", bytes, _as_bytes, _from_bytes(bytes)),
    Row("bytearray", bytearray, _as_bytes, _from_bytes(bytearray)),
    Row("memoryview", memoryview, _encode_view, lambda c, d: memoryview(_from_bytes(bytes)(c, d))),
    Row("decimal", Decimal, _as_text, _as_spelled(Decimal)),
    Row(
        "fraction",
        Fraction,
        lambda value, encoder, path: [value.numerator, value.denominator],
        lambda content, decoder: Fraction(*_two(content, decoder)),
    ),
    Row("uuid", UUID, _as_text, _as_spelled(UUID)),
    _row("path", type(Path())),
    _row("posix-path", PurePosixPath),
    _row("windows-path", PureWindowsPath),
    Row("datetime", datetime, _encode_moment, _moment_of(datetime)),
    Row("time", time, _encode_moment, _moment_of(time)),
    Row("date", date, _as_text, _as_spelled(date.fromisoformat)),
    Row(
        "timedelta",
        timedelta,
        lambda value, encoder, path: value // timedelta(microseconds=1),
        lambda content, decoder: timedelta(microseconds=whole(content)),
    ),
    Row(
        "complex",
        complex,
        lambda value, encoder, path: [value.real, value.imag],
        _decode_complex,
    ),
    Row(
        "range",
        range,
        lambda value, encoder, path: [value.start, value.stop, value.step],
        lambda content, decoder: range(*_three(content, decoder)),
    ),
    Row("timezone", timezone, encode_zone, decode_zone),
    Row("timezone", ZoneInfo, encode_zone, decode_zone),
    Row("regex", re.Pattern, _encode_regex, _decode_regex),
    Row("struct-time", struct_time, _encode_struct_time, _decode_struct_time),
    Row(
        "slice",
        slice,
        lambda value, encoder, path: encoder.items([value.start, value.stop, value.step], path),
        _decode_slice,
    ),
    *(
        Row(tag, kind, _as_text, _as_spelled(read))
        for tag, kinds, read in (
            ("ip-address", (IPv4Address, IPv6Address), ip_address),
            ("ip-network", (IPv4Network, IPv6Network), ip_network),
            ("ip-interface", (IPv4Interface, IPv6Interface), ip_interface),
        )
        for kind in kinds
    ),
    Row("bytes-stream", io.BytesIO, _encode_stream, _decode_stream),
    Row("text-stream", io.StringIO, _encode_text_stream, _decode_text_stream),
)
"""In no order: each has one exact type."""
