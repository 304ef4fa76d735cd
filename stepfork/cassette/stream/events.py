"""Bytes of an event stream <-> its events as text, and how one event is written as a line. Knows no JSON.

An event is here what stands between two empty lines, with its lines joined by LF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from stepfork.cassette.scalars import find_unsafe
from stepfork.cassette.stream.spelling import Misfit

GAP: Final = "\n\n"
"""What ends an event."""

EOLS: Final = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
FRAMES: Final = ("", "tight", "named", "named tight")
"""What stands before an event's data: ``data: `` (``data:`` if tight), after the event's name if named."""

_BOM: Final = "\ufeff"
_HEAD: Final = re.compile(r"(?:(?:event|id|retry)?:[^\n]*\n)*data: ?(?=[\[{])")
_TYPE: Final = re.compile(r'"type"\s*+:\s*+"([^"\\]*+)"')
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|(.?))")
_SIGNS: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "$": "\\$"}
_TO_ESCAPE: Final = re.compile(r"[\\\n\r$]")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a stream has beside its events: a byte order mark, its line ends, what ends the last event.

    `tail` are bytes at the end that are no text: part of a character, of a line end.
    """

    bom: bool = False
    eol: str = "lf"
    end: str = GAP
    tail: bytes = b""


def open_stream(raw: bytes) -> tuple[list[str], Envelope] | None:
    r"""The events of a stream and what is around them; None if it is no UTF-8 text.

    >>> open_stream(b"data: 1\r\n\r\ndata: [DONE]\r\n")
    (['data: 1', 'data: [DONE]'], Envelope(bom=False, eol='crlf', end='\n', tail=b''))
    """
    tail = b""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end != len(raw) or error.reason != "unexpected end of data":
            return None
        tail = raw[error.start :]
        text = raw[: error.start].decode("utf-8")
    bom = text[:1] == _BOM
    text = text[bom:]
    eol = "lf"
    if "\r" in text:
        if text[-1] == "\r" and "\n" in text:  # cut within its last line end
            text, tail = text[:-1], b"\r" + tail
        returns = text.count("\r")
        if returns == text.count("\r\n") == text.count("\n"):
            eol = "crlf"
        elif "\n" not in text:
            eol = "cr"
        text = text.replace(EOLS[eol], "\n")
    if not text:
        return [], Envelope(bom, eol, GAP, tail)
    events = text.split(GAP)
    end = GAP
    if not events[-1]:
        events.pop()
    elif events[-1][-1] == "\n":
        events[-1], end = events[-1][:-1], "\n"
    else:
        end = ""
    return events, Envelope(bom, eol, end, tail)


def close_stream(text: str, envelope: Envelope) -> bytes:
    r"""The bytes of a stream whose events, each with a `GAP` behind it, are `text`.

    >>> close_stream("data: 1\n\n", Envelope(eol="crlf", end=""))
    b'data: 1'
    """
    if text and envelope.end != GAP:
        text = text[: -len(GAP)] + envelope.end
    if envelope.eol != "lf":
        text = text.replace("\n", EOLS[envelope.eol])
    if envelope.bom:
        text = _BOM + text
    return text.encode("utf-8", "surrogatepass") + envelope.tail


def head_of(event: str) -> str | None:
    r"""What stands before the data of an event that has one line of it, if that looks like JSON.

    >>> head_of('event: a\ndata: {"b":1}')
    'event: a\ndata: '
    """
    found = _HEAD.match(event)
    return None if found is None or "\n" in event[found.end() :] else found[0]


def usual_head(frame: str, payload: str) -> str:
    r"""What stands before the data in a frame; `payload` is the data, and names the event by its ``type``.

    >>> usual_head("named", '{"type":"a.b"}')
    'event: a.b\ndata: '
    """
    blank = "" if "tight" in frame else " "
    name = _TYPE.search(payload) if "named" in frame else None
    return f"event:{blank}{name[1]}\ndata:{blank}" if name else f"data:{blank}"


def escape(text: str) -> str:
    r"""A text that can stand in a line, with a sign before whatever else would mean something there.

    >>> print(escape("event: a\ndata: $5"))
    event: a\ndata: \$5
    """
    text = _TO_ESCAPE.sub(lambda found: _SIGNS[found[0]], text)
    while unsafe := find_unsafe(text):
        text = text.replace(unsafe[0], f"\\u{ord(unsafe[0]):04x}")
    return text


def escaped_line(text: str) -> str:
    r"""An escaped text as a line of its own: it cannot be taken for data, and no editor strips its blanks.

    >>> print(escaped_line('{"no": "data"} '), escaped_line(""))
    \{"no": "data"}\u0020 \
    """
    if text[-1:] in (" ", "\t"):
        text = f"{text[:-1]}\\u{ord(text[-1]):04x}"
    return text if text and text[0] not in "{[ \t" else "\\" + text


def unescape(text: str) -> str:
    r"""What `escape` was given.

    >>> unescape(r"event: a\ndata: \$5\u0020")
    'event: a\ndata: $5 '
    """
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return {"n": "\n", "r": "\r"}.get(found[2], found[2])


def read_envelope(wire: dict[str, object]) -> Envelope:
    """The envelope of a ``wire``, its ``tail`` aside.

    Raises:
        Misfit: naming the field.

    >>> read_envelope({"eol": "crlf", "end": ""})
    Envelope(bom=False, eol='crlf', end='', tail=b'')
    """
    bom, eol, end = wire.get("bom") is True, wire.get("eol", "lf"), wire.get("end", GAP)
    if not isinstance(eol, str) or eol not in EOLS:
        raise Misfit("wire.eol", "one of 'lf', 'crlf', 'cr' expected")
    if not isinstance(end, str) or end not in ("", "\n", GAP):
        raise Misfit("wire.end", 'no text ("") or a line end ("\\n") expected')
    return Envelope(bom, eol, end)
