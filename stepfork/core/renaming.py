"""Which placeholder of a recording stands for which secret of a run. Knows placeholders; finds no secrets.

A dummy value may stand where a real secret did, but the same placeholder always stands for the same one, one
to one. What a run has that the recording was not seen to have yet is ``<secret:LABEL:other-N>``; once a
comparison has shown which placeholder it is, the run's redactor writes that one (see `bindings`), and
equal texts say the same.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from stepfork.core.changed_texts import changed
from stepfork.core.model import Plain, texts_in

OTHER: Final = "other-"
"""Begins the number of a secret of a run that is none of the recording's so far."""
PLACEHOLDER: Final = re.compile(r"<secret:(\w{1,64}):((?:other-)?[1-9][0-9]{0,8})>")
"""What stands for a secret: its label and its number."""
MARK: Final = "<secret:"
SHORTEST: Final = 8
"""A secret of fewer characters is replaced only where its key or context says that it is one."""
_LOOKALIKE: Final = re.compile(r"<(=*)secret:\w{1,64}:(?:other-)?[1-9][0-9]{0,8}>")
_SPELLED: Final = re.compile(
    r"(?:%3[Cc]|\\u003[Cc]|&lt;)secret(?::|%3[Aa])(\w{1,64})(?::|%3[Aa])([1-9][0-9]{0,8})(?:%3[Ee]|\\u003[Ee]|&gt;)"
)
_SPELLINGS: Final = ("%3csecret", "003csecret", "&lt;secret")
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
    return "secret:" in text and _LOOKALIKE.search(text) is not None


def escaped(text: str, brought: set[str]) -> str:
    """A text of a program as the file has it: what looks like a placeholder and is none has a ``=`` more.

    >>> escaped("see <secret:token:1> and <=secret:token:1>", set())
    'see <=secret:token:1> and <==secret:token:1>'
    """
    if "secret:" not in text:
        return text
    return _LOOKALIKE.sub(lambda found: found[0] if found[0] in brought else f"<={found[0][1:]}", text)


def unescaped(text: str) -> str:
    """The text of the program again.

    >>> unescaped("see <=secret:token:1> and <secret:token:1>")
    'see <secret:token:1> and <secret:token:1>'
    """
    if "=secret:" not in text:
        return text
    return _LOOKALIKE.sub(lambda found: f"<{found[0][2:]}" if found[1] else found[0], text)


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


class Bound(Protocol):
    """What is known of a run's secrets by now."""

    def was_brought(self, placeholder: str) -> bool:
        """Whether the program was given a placeholder."""

    def may_be(self, recorded: str, here: str) -> bool:
        """Whether a placeholder or text of the run may be what a recorded one stands for."""

    def is_that_dummy(self, recorded: str, here: str) -> bool:
        """Whether a short dummy of the run is the one that a recorded placeholder stands for already."""

    def is_dummy_for(self, recorded: str, here: str) -> bool:
        """Whether a dummy of the run stands for a recorded value that is put together otherwise."""


class Apart:
    """Nothing is known of the run but that its secrets were numbered independently, or by a replay."""

    def __init__(self, replays: bool = False) -> None:
        self._replays = replays

    def was_brought(self, placeholder: str) -> bool:
        """Nothing is known."""
        return False

    def may_be(self, recorded: str, here: str) -> bool:
        """A placeholder with the same label, of a replay one that is none of the recording's."""
        is_one = PLACEHOLDER.fullmatch(here) is not None and label_of(recorded) == label_of(here)
        return is_one and (not self._replays or is_other(here))

    def is_that_dummy(self, recorded: str, here: str) -> bool:
        """Nothing is known."""
        return False

    def is_dummy_for(self, recorded: str, here: str) -> bool:
        """Nothing is known."""
        return False


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


class Renaming:
    """The pairs that a comparison has found so far. `fork` it to try a further one.

    Without `bound` two values are compared whose secrets were numbered independently of each other.

    >>> renaming = Renaming()
    >>> renaming.unify("Bearer <secret:token:1>", "Bearer <secret:token:3>")
    True
    >>> renaming.unify("<secret:token:2>", "<secret:token:3>")
    False
    >>> renaming.unify("log in with <secret:password:1>", "log in with hunter2hunter2")
    False
    """

    __slots__ = ("_bound", "_incoming", "_pairs")

    def __init__(self, bound: Bound | None = None) -> None:
        self._bound = bound or Apart()
        self._pairs: dict[str, str] = {}
        self._incoming: dict[str, str] = {}

    @property
    def pairs(self) -> Mapping[str, str]:
        """Each recorded placeholder, and the placeholder or text of the run that it stands for."""
        return self._pairs

    def fork(self) -> Renaming:
        """An independent copy."""
        copy = Renaming(self._bound)
        copy._pairs = self._pairs.copy()
        copy._incoming = self._incoming.copy()
        return copy

    def unify(self, recorded: str, incoming: str) -> bool:
        """Whether two texts are equal up to what the placeholders stand for; if not, nothing is kept."""
        if "=secret:" in recorded:  # the program was given what looks like a placeholder: it may be the one
            recorded = _LOOKALIKE.sub(self._given, recorded)
        recorded, incoming = opened_alike(recorded, incoming)
        if MARK not in recorded:
            return recorded == incoming
        pairs = self._align(recorded, incoming)
        if pairs is None:
            return self._bound.is_dummy_for(recorded, incoming)
        fresh: dict[str, str] = {}
        back: dict[str, str] = {}
        for placeholder, here in pairs:
            if placeholder != here and self._bound.is_that_dummy(placeholder, here):
                continue
            was = self._pairs.get(placeholder) or fresh.setdefault(placeholder, here)
            owner = self._incoming.get(here) or back.setdefault(here, placeholder)
            if was != here or owner != placeholder:
                return False
            if placeholder != here and not self._bound.may_be(placeholder, here):
                return False
        self._pairs |= fresh
        self._incoming |= back
        return True

    def _given(self, found: re.Match[str]) -> str:
        shown = f"<{found[0][2:]}"
        return shown if found[1] == "=" and self._bound.was_brought(shown) else found[0]

    def _align(self, recorded: str, incoming: str) -> list[tuple[str, str]] | None:
        """What each placeholder of `recorded` stands for in `incoming`, read from left to right.

        Of several side by side that a text stands for, nothing tells where one ends: they are one pair.
        """
        pairs: list[tuple[str, str]] = []
        at = start = 0  # in `incoming`, in `recorded`
        for found in PLACEHOLDER.finditer(recorded):
            if found.start() < start:
                continue  # told with the one before
            literal = recorded[start : found.start()]
            if not incoming.startswith(literal, at):
                return None
            at += len(literal)
            there = PLACEHOLDER.match(incoming, at)
            start, text = (found.end(), there[0]) if there else _text_at(incoming, at, found, recorded)
            if not text:
                return None
            pairs.append((recorded[found.start() : start], text))
            at += len(text)
        return pairs if incoming[at:] == recorded[start:] else None


_SEVERAL: Final = re.compile(rf"(?:{PLACEHOLDER.pattern})+")


def _text_at(incoming: str, at: int, found: re.Match[str], recorded: str) -> tuple[int, str]:
    """Where what a text stands for ends in `recorded`, and the text; "" if it cannot be a secret."""
    several = _SEVERAL.match(recorded, found.start())
    assert several is not None
    following = PLACEHOLDER.search(recorded, several.end())
    literal = recorded[several.end() : following.start() if following else len(recorded)]
    after = several.end()
    if following is None:
        end = len(incoming) - len(literal)
    else:
        end = incoming.find(literal, at + SHORTEST)
    mark = incoming.find(MARK, at, max(end, at))
    if mark > at and after > found.end():  # the next one is known
        after, end = found.end(), mark
    count = recorded.count(MARK, found.start(), after)
    text = incoming[at:end] if end >= at + SHORTEST * count else ""
    return after, "" if MARK in text or looks_like_one(text) else text
