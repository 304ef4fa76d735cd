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

from stepfork.cassette.values.faults import BadValue, Unsupported, type_name
from stepfork.cassette.values.walk import Decoder, Encoder, Row, parts, text
from stepfork.core.model import Plain, Tagged


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
        return [spelled, encode_zone(zone, encoder, path), value.fold]
    except Unsupported:
        why = f"with a time zone of type {type(zone).__name__}"
        raise Unsupported(path, type_name(value), why) from None


def _moment_of(kind: type[datetime] | type[time]) -> Callable[[Any, Decoder], datetime | time]:
    def decode_moment(content: Any, decoder: Decoder) -> datetime | time:
        if isinstance(content, str):
            if content.endswith("Z"):
                return kind.fromisoformat(content[:-1]).replace(tzinfo=UTC)
            return kind.fromisoformat(content)
        spelled, zone, fold = content
        naive = kind.fromisoformat(text(spelled)).replace(fold=fold)
        if zone is None:
            return naive
        return naive.replace(tzinfo=decode_zone(zone, decoder))

    return decode_moment


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
        return timezone(timedelta(microseconds=_whole(count)), text(name))
    if isinstance(content, int):
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
    return re.compile(decoder.decode(fields["pattern"]), _whole(fields.get("flags", 0)))


def _encode_struct_time(value: struct_time, encoder: Encoder, path: str) -> Plain:
    reduced: Any = value.__reduce__()
    numbers, more = reduced[1]
    return encoder.items([*numbers, *more.values()], path)


def _decode_struct_time(content: Any, decoder: Decoder) -> struct_time:
    return struct_time(decoder.items(content))


def _as_text(value: Any, encoder: Encoder, path: str) -> Plain:
    return str(value)


def _from_text(kind: type) -> Callable[[Any, Decoder], Any]:
    return lambda content, decoder: kind(text(content))


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


def _whole(content: Any) -> int:
    if type(content) is not int:
        raise BadValue(f"a whole number expected, not {type(content).__name__}")
    return content


def _encode_stream(value: io.BytesIO, encoder: Encoder, path: str) -> Plain:
    """By content, and without reading it: the stream stays where it is."""
    _check_open(value, path)
    content = Tagged("bytes", base64.b64encode(value.getvalue()).decode("ascii"))
    return {"content": content, "position": value.tell()} if value.tell() else {"content": content}


def _decode_stream(content: Any, decoder: Decoder) -> io.BytesIO:
    fields = parts(content, ("content",), ("position",))
    stream = io.BytesIO(decoder.decode(fields["content"]))
    stream.seek(_whole(fields.get("position", 0)))
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
    stream.__setstate__((text(fields["content"]), newline, _whole(fields.get("position", 0)), None))  # type: ignore[attr-defined]
    return stream


def _check_open(value: io.BytesIO | io.StringIO, path: str) -> None:
    if value.closed or vars(value):
        why = "that is closed" if value.closed else "with attributes of its own"
        raise Unsupported(path, type_name(value), why)


STANDARD = (
    Row("bytes", bytes, _as_bytes, _from_bytes(bytes)),
    Row("bytearray", bytearray, _as_bytes, _from_bytes(bytearray)),
    Row("memoryview", memoryview, _encode_view, lambda c, d: memoryview(_from_bytes(bytes)(c, d))),
    _row("decimal", Decimal),
    Row(
        "fraction",
        Fraction,
        lambda value, encoder, path: [value.numerator, value.denominator],
        lambda content, decoder: Fraction(*map(_whole, decoder.items(content))),
    ),
    _row("uuid", UUID),
    _row("path", type(Path())),
    _row("posix-path", PurePosixPath),
    _row("windows-path", PureWindowsPath),
    Row("datetime", datetime, _encode_moment, _moment_of(datetime)),
    Row("time", time, _encode_moment, _moment_of(time)),
    Row("date", date, _as_text, lambda content, decoder: date.fromisoformat(text(content))),
    Row(
        "timedelta",
        timedelta,
        lambda value, encoder, path: value // timedelta(microseconds=1),
        lambda content, decoder: timedelta(microseconds=_whole(content)),
    ),
    Row(
        "complex",
        complex,
        lambda value, encoder, path: [value.real, value.imag],
        lambda content, decoder: complex(*decoder.items(content)),
    ),
    Row(
        "range",
        range,
        lambda value, encoder, path: [value.start, value.stop, value.step],
        lambda content, decoder: range(*map(_whole, decoder.items(content))),
    ),
    Row("timezone", timezone, encode_zone, decode_zone),
    Row("timezone", ZoneInfo, encode_zone, decode_zone),
    Row("regex", re.Pattern, _encode_regex, _decode_regex),
    Row("struct-time", struct_time, _encode_struct_time, _decode_struct_time),
    Row(
        "slice",
        slice,
        lambda value, encoder, path: encoder.items([value.start, value.stop, value.step], path),
        lambda content, decoder: slice(*decoder.items(content)),
    ),
    *(
        Row(tag, kind, _as_text, lambda content, decoder, read=read: read(text(content)))  # type: ignore[misc]
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
