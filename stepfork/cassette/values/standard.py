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
from pathlib import Path, PurePosixPath, PureWindowsPath
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
    if type(zone) is timezone and zone.tzname(None).startswith("UTC"):
        return [spelled, zone.utcoffset(None) // timedelta(microseconds=1), value.fold]
    if zone is None:
        return [spelled, None, value.fold]
    if type(zone) is ZoneInfo and zone.key:
        return [spelled, zone.key, value.fold]
    raise Unsupported(path, type_name(value), f"with a time zone of type {type(zone).__name__}")


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
        if isinstance(zone, int):
            return naive.replace(tzinfo=timezone(timedelta(microseconds=zone)))
        if not re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", text(zone)):
            raise BadValue(f"{zone!r} is no time zone")
        return naive.replace(tzinfo=ZoneInfo(zone))

    return decode_moment


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
    Row("bytes-stream", io.BytesIO, _encode_stream, _decode_stream),
    Row("text-stream", io.StringIO, _encode_text_stream, _decode_text_stream),
)
"""In no order: each has one exact type."""
