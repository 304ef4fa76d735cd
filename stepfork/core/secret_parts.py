"""How the value of a secret key is put together: a scheme, a user and a password, cookies. Knows no session.

A header may hold more than one secret, or one that is known by itself from elsewhere: each of its parts gets
a placeholder of its own, so that replay can tell which one the program used.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

from stepfork.core.placeholder_texts import MARK, PLACEHOLDER
from stepfork.core.secret_names import COOKIES
from stepfork.core.secret_shapes import RUN

_SCHEME: Final = re.compile(r"(?i)(bearer|basic|token|apikey|bot)([ \t]+)(\S.*)", re.DOTALL)
_TOLD: Final = re.compile(rf"({PLACEHOLDER.pattern}|[^:<>\s]*):({PLACEHOLDER.pattern}|[^<>\s]*)")
_COOKIE: Final = re.compile(r"\s*[\w!#$%&'*+.^|~-]{1,128}=[ \t]*\"?")
_ATTRIBUTE: Final = re.compile(
    r"(?i)\s*(?:(?:path|domain|max-age|samesite|priority)=[^,;<>]*"
    r"|expires=\w{3,9}, [\w -]{1,20} [\d:]{1,8} \w{1,5}|secure|httponly|partitioned|)\s*"
)
"""What a ``Set-Cookie`` says of its cookie."""


class Part(NamedTuple):
    """A part of a value; without a `label` it stays as it is. If it `spreads` it is secret wherever it is."""

    text: str
    label: str = ""
    spreads: bool = True


def parts_of(label: str, value: str, *, in_text: bool = False) -> list[Part]:
    """The parts of what stands under a secret key. The scheme of a token counts `in_text` only.

    >>> [part.text for part in parts_of("authorization", "Bearer q7Zx4mW9") if part.label]
    ['q7Zx4mW9']
    >>> [part.text for part in parts_of("authorization", "Basic Ym9iOmh1bnRlcjI=") if part.label]
    ['bob', 'hunter2']
    >>> [part.text for part in parts_of("cookie", "sid=q7Zx4mW9; theme=dark") if part.label]
    ['q7Zx4mW9', 'dark']
    """
    if label in COOKIES and "=" in value:
        return _cookies(label, value)
    scheme = _SCHEME.fullmatch(value) if "authorization" in label else None
    if scheme is None:
        return [Part(value, label)]
    pair = _pair(scheme[3]) if scheme[1].lower() == "basic" else None
    before = Part(scheme[1] + scheme[2])
    if pair is None:
        return [*([before] if in_text else []), Part(scheme[3], label)]
    user, password = pair
    return [
        before,
        Part(user, label, not password or RUN.search(user) is not None),
        Part(":"),
        Part(password, "password"),
    ]


def _cookies(label: str, value: str) -> list[Part]:
    parts: list[Part] = []
    for at, piece in enumerate(value.split(";")):
        parts += [Part(";")] if at else []
        name = _COOKIE.match(piece)
        if not piece.strip() or (at and label == "set_cookie" and _ATTRIBUTE.fullmatch(piece)):
            parts.append(Part(piece))
        elif name is None:
            bare = piece.lstrip()
            parts += [Part(piece[: len(piece) - len(bare)]), Part(bare, label)]
        else:
            end = max(name.end(), len(piece.rstrip().removesuffix('"')))
            parts += [Part(name[0]), Part(piece[name.end() : end], label), Part(piece[end:])]
    return parts


def _pair(credentials: str) -> tuple[str, str] | None:
    """The user and the password of ``Basic`` credentials: in base64, or as a cassette has them."""
    if MARK in credentials:
        told = _TOLD.fullmatch(credentials)
        return None if told is None else (told[1], told[4])
    try:
        pair = base64.b64decode(credentials + "=" * (-len(credentials) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    user, colon, password = _split(pair)
    return (user, password) if colon and pair.isprintable() else None


def _split(pair: str) -> tuple[str, str, str]:
    """The same for what the base64 says; a placeholder has colons of its own."""
    told = PLACEHOLDER.match(pair)
    at = told.end() if told else 0
    user, colon, password = pair[at:].partition(":")
    return pair[:at] + user, colon, password


def basic_password(credentials: str) -> str | None:
    """The password in the base64 of ``user:password``; None for anything else.

    >>> basic_password("dXNlcjpodW50ZXIy")
    'hunter2'
    """
    pair = None if MARK in credentials else _pair(credentials)
    return None if pair is None else pair[1]


_BETWEEN: Final = re.compile(r"(?i)(?:basic[ \t]+)?(?:[\w!#$%&'*+.^|~-]{1,128}+=|\0|[^A-Za-z0-9\0])*+")


def holds_only_secrets(text: str) -> bool:
    """Whether a text is put together of placeholders, as `parts_of` takes values apart.

    >>> holds_only_secrets("sid=<secret:cookie:1>; theme=<secret:cookie:2>"), holds_only_secrets("a b")
    (True, False)
    """
    if MARK not in text:
        return False
    bare = PLACEHOLDER.sub("\0", text)
    return bare != "\0" and "\0" in bare and _BETWEEN.fullmatch(bare) is not None
