"""How placeholders are spelled: in a text as they are, in URLs, base64 and other letters, and escaped.

Knows texts; knows no value that a placeholder stands for.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from stepfork.core.changed_texts import changed
from stepfork.core.model import Plain, texts_in

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
OTHER: Final = "other-"
"""Begins the number of a secret of a run that is none of the recording's so far."""
PLACEHOLDER: Final = re.compile(r"<secret:(\w{1,64}):((?:other-)?[1-9][0-9]{0,8})>")
"""What stands for a secret: its label and its number."""
MARK: Final = "<secret:"
SHORTEST: Final = 8
"""A secret of fewer characters is replaced only where its key or context says that it is one."""
LOOKALIKE: Final = re.compile(r"<(=*)secret:\w{1,64}:(?:other-)?[1-9][0-9]{0,8}>")
"""What looks like a placeholder, or like one that was escaped."""
_SPELLED: Final = re.compile(
    r"(?:%(?:25)?3[Cc]|\\u003[Cc]|&lt;)secret(?::|%(?:25)?3[Aa])(\w{1,64})(?::|%(?:25)?3[Aa])"
    r"([1-9][0-9]{0,8})(?:%(?:25)?3[Ee]|\\u003[Ee]|&gt;)"
)
_SPELLINGS: Final = ("%3csecret", "%253csecret", "003csecret", "&lt;secret")
_OTHER_LETTERS: Final = (MARK.upper(), MARK.encode().hex(), MARK.encode().hex().upper())
_CHANGED: Final = re.compile(
    rf"(?i)<secret:\w{{1,64}}:[1-9][0-9]{{0,8}}>|{MARK.encode().hex()}(?:[0-9a-f]{{2}}){{3,150}}?3e"
)
"""A placeholder in capitals or in hexadecimal digits."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
IN_BASE64: Final = ("PHNlY3JldD", "xzZWNyZXQ6", "8c2VjcmV0O")
"""What stands of `MARK` in base64, by the place of its first byte in a group of three."""


def is_spelled(text: str) -> bool:
    """Whether a text may hold a placeholder as URLs, JSON and HTML spell it."""
    lower = text.lower() if "secret" in text else ""
    return any(spelling in lower for spelling in _SPELLINGS) or _is_in_other_letters(text)


def _is_in_other_letters(text: str) -> bool:
    return any(mark in text for mark in _OTHER_LETTERS)


def in_plain(text: str, brought: set[str] | None = None) -> str:
    """A text with each placeholder as itself: on replay an agent puts one into a URL as it would a value.

    With `brought`, only these are placeholders.

    >>> in_plain("https://h/?token=%3Csecret%3Atoken%3A1%3E")
    'https://h/?token=<secret:token:1>'
    """

    def plain(found: re.Match[str]) -> str:
        placeholder = f"{MARK}{found[1]}:{found[2]}>"
        return placeholder if brought is None or placeholder in brought else found[0]

    text = _SPELLED.sub(plain, text) if is_spelled(text) else text
    if not brought or not _is_in_other_letters(text):
        return text
    return _CHANGED.sub(lambda found: _as_it_was(found[0], brought), text)


def _as_it_was(changed: str, brought: set[str]) -> str:
    """The placeholder that a program made another spelling of, if it was given that."""
    placeholder = changed.lower()
    if not placeholder.startswith("<"):
        placeholder = bytes.fromhex(placeholder).decode("utf-8", "replace")
    return placeholder if placeholder in brought else changed


def looks_like_one(text: str) -> bool:
    """Whether a text holds what looks like a placeholder, or like one that was escaped."""
    return "secret:" in text and LOOKALIKE.search(text) is not None


def escaped(text: str, brought: set[str], dummies: Mapping[str, str] = _NONE) -> str:
    """A text of a program as the file has it: what looks like a placeholder and is none has a ``=`` more.

    What serves as a secret all the same is what stands for that (`dummies`).

    >>> escaped("see <secret:token:1> and <=secret:token:1>", set())
    'see <=secret:token:1> and <==secret:token:1>'
    >>> escaped("see <secret:token:1>", set(), {"<secret:token:1>": "<secret:token:2>"})
    'see <secret:token:2>'
    """
    if "secret:" not in text:
        return text

    def shown(found: re.Match[str]) -> str:
        return found[0] if found[0] in brought else dummies.get(found[0], f"<={found[0][1:]}")

    return LOOKALIKE.sub(shown, text)


def unescaped(text: str) -> str:
    """The text of the program again.

    >>> unescaped("see <=secret:token:1> and <secret:token:1>")
    'see <secret:token:1> and <secret:token:1>'
    """
    if "=secret:" not in text:
        return text
    return LOOKALIKE.sub(lambda found: f"<{found[0][2:]}" if found[1] else found[0], text)


def unescaped_value(value: Plain) -> Plain:
    """The same for all texts of a value.

    >>> unescaped_value({"q": ["<=secret:token:1>"]})
    {'q': ['<secret:token:1>']}
    """
    return changed(value, unescaped)


def opened(text: str) -> str:
    """A text with what its pieces of base64 say in their place, where that holds a placeholder.

    >>> opened("see PHNlY3JldDp0b2tlbjoxPg==").split("\\0")
    ['see ', '<secret:token:1>', '']
    """
    if not any(core in text for core in IN_BASE64):
        return text
    return _BASE64.sub(lambda run: _said(run[0], MARK), text)


def opened_alike(recorded: str, incoming: str) -> tuple[str, str]:
    """Both texts opened, `incoming` where `recorded` is: it may not be known yet what is secret there.

    >>> opened_alike("PHNlY3JldDp0b2tlbjoxPg==", "aHVudGVyMmh1bnRlcjI=")[1].split("\\0")
    ['', 'hunter2hunter2', '']
    """
    then = opened(recorded)
    if then == recorded:
        return recorded, opened(incoming)
    holds = iter([_said(run, MARK) != run for run in _BASE64.findall(recorded)])
    return then, _BASE64.sub(lambda run: _said(run[0], "" if next(holds, False) else MARK), incoming)


def _said(run: str, mark: str) -> str:
    """What a piece of base64 says, if it holds `mark`."""
    body = run.rstrip("=")
    altchars = b"-_" if "-" in body or "_" in body else b"+/"
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars, validate=True)
    except (binascii.Error, ValueError):
        return run
    said = raw.decode("utf-8", "surrogateescape")
    cut = "~" if len(run) % 4 else ""  # without its padding
    return f"\0{cut}{said}\0" if mark in said else run


def placeholders_in(value: Plain) -> Iterator[str]:
    """All placeholders in a plain value, in bytes and base64 too.

    >>> list(placeholders_in({"a": "x <secret:token:1>"}))
    ['<secret:token:1>']
    """
    for text in texts_in(value):
        text = opened(text)
        if MARK in text:
            yield from (found[0] for found in PLACEHOLDER.finditer(text))


def is_other(placeholder: str) -> bool:
    """Whether a placeholder stands for a secret of a run that is none of the recording's so far.

    >>> is_other("<secret:api_key:other-1>"), is_other("<secret:api_key:1>")
    (True, False)
    """
    return f":{OTHER}" in placeholder


def label_of(placeholder: str) -> str:
    """The label in a placeholder.

    >>> label_of("<secret:api_key:1>")
    'api_key'
    """
    return placeholder.split(":")[1]
