"""Texts in base64: what they say, and how a change to it is written back. Knows no secret and no rule."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_BREAK: Final = re.compile(r"\r?\n|\\n")
_PIECE: Final = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}+(?:(?:\r?\n|\\n)[A-Za-z0-9+/_-]++)*+={0,2}"
)
"""A piece long enough to tell a secret and its name, cut into lines or not."""
_LINE: Final = re.compile(r"[A-Za-z0-9+/_-]{20,}+={0,2}")
_BLANKS: Final = str.maketrans("", "", "\n\r\t")


class Told(NamedTuple):
    """A piece of base64 in a text that says another one: where, in one line, and what it says."""

    start: int
    end: int
    piece: str
    said: str


def told_in_base64(text: str) -> Iterator[Told]:
    """The pieces of base64 that say a text; images, digests and ids say none.

    >>> [told.said for told in told_in_base64("content: cGFzc3dvcmQ9aHVudGVyMg==, " + "0123456789abcdef" * 2)]
    ['password=hunter2']
    """
    for found in _PIECE.finditer(text):
        lines = _BREAK.split(found[0])
        whole = "".join(lines)
        start = found.start()
        if len(lines) > 1 and (said := _said(whole)):
            yield Told(start, found.end(), whole, said)
            continue
        for line in _LINE.finditer(found[0]):
            if said := _said(line[0]):
                yield Told(start + line.start(), start + line.end(), line[0], said)


def _said(piece: str) -> str:
    """The text that a piece says; "" if it says none."""
    raw = _decoded(piece)
    try:
        said = "" if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return said if said.translate(_BLANKS).isprintable() else ""


def _altchars(body: str) -> bytes:
    return b"-_" if "-" in body or "_" in body else b"+/"


def _decoded(run: str) -> bytes | None:
    """What a piece of base64 without line breaks says, if it is one."""
    body = run.rstrip("=")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), _altchars(body), validate=True)
    except (binascii.Error, ValueError):
        return None


def in_base64(run: str, change: Callable[[str], str]) -> str:
    """A piece of base64 with `change` made to what it says; the same text if that changes nothing.

    >>> in_base64("aHVudGVyMg==", str.upper), in_base64("aHVudGVyMg", str.upper)
    ('SFVOVEVSMg==', 'SFVOVEVSMg')
    """
    body = run.rstrip("=")
    body, tail = (body[:-1], body[-1] + run[len(body) :]) if len(body) % 4 == 1 else (body, "")
    raw = _decoded(body)
    if raw is None:
        return run
    said = raw.decode("utf-8", "surrogateescape")
    changed = change(said)
    if changed == said:
        return run
    again = base64.b64encode(changed.encode("utf-8", "surrogateescape"), _altchars(body)).decode()
    padded = len(body) % 4 == 0 or run.endswith("=")
    return (again if padded else again.rstrip("=")) + tail
