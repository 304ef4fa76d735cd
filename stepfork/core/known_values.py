"""The values known to be secret, found however they are spelled. Knows no rules; replaces nothing."""

from __future__ import annotations

import base64
import builtins
import html
import json
import keyword
import re
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

from stepfork.core.placeholder_texts import MARK, SHORTEST
from stepfork.core.secret_names import COOKIES, MODEL, is_word

_MASK: Final = re.compile(r"[*•._=#-]+\Z|\s+\Z")
_WORD: Final = re.compile(r"[A-Za-z][a-z]{7,14}\Z")
_UNSPEAKABLE: Final = re.compile(r"(?i)[^aeiouy]{5}")
_LANGUAGE: Final = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | sys.stdlib_module_names
_PROBE: Final = re.compile(r"[A-Za-z0-9_./+=~%-]+")
_FEW: Final = 40
_DEEPEST_JSON: Final = 3
"""So many levels of JSON inside of JSON are seen through in a text that is none itself."""


class Known(NamedTuple):
    """A known value in a text, as it is or in another spelling.

    Attributes:
        is_base64: whether it stands there in base64, of which a group begins at `start`.
    """

    start: int
    end: int
    value: str
    label: str
    is_base64: bool = False


class KnownValues:
    """Values, found in other texts as they are, in URLs, in JSON and in base64. Their number only grows.

    Attributes:
        spelling: one more way in which a value may stand in a text.

    >>> known = KnownValues()
    >>> known.add("correct horse", "password"), known.add("required", "password")
    (True, False)
    >>> [(found.start, found.end) for found in known.find("?q=correct+horse")]
    [(3, 16)]
    """

    def __init__(self) -> None:
        self.spelling: Callable[[str], str] = str
        self._labels: dict[str, str] = {}  # what is replaced wherever it stands, and its label
        self._values: dict[str, str] = {}  # the spellings -> the value
        self._shifts: dict[str, int] = {}  # those in base64 -> how many characters of its group stand before
        self._index = _Index()
        self._probes: dict[str, int] = {}
        self._probe_index = _Index()
        self._unprobed = 0

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, value: str) -> bool:
        return value in self._labels

    def add(self, value: str, label: str, sure: bool = False) -> bool:
        """Whether the value is new and known from now on: it is not if it is too short or too plain.

        `sure`: the user named it, so it may be a word.
        """
        if len(value) < SHORTEST or value in self._labels or not _may_spread(value, label):
            return False
        if not sure and _is_ordinary(value):
            return False
        self._labels[value] = label
        encoded = _in_base64(value)
        forms = (value, self.spelling(value), *_spellings(value), *_other_letters(value), *encoded)
        for form in dict.fromkeys(forms):
            if form not in self._values:
                self._values[form] = value
                self._index.add(form)
                if form in encoded:
                    self._shifts[form] = encoded[form]
            for written in _in_base64(form) if "\0" in form else (form,):  # a file has such bytes in base64
                self._probe(max(_PROBE.findall(written), key=len, default=""))
        return True

    def _probe(self, probe: str) -> None:
        if len(probe) < SHORTEST:
            self._unprobed = len(self._labels)
            return
        if probe not in self._probes:
            self._probe_index.add(probe)
        self._probes[probe] = len(self._labels)

    def find(self, text: str) -> Iterator[Known]:
        """Every known value in a text; places may overlap."""
        for at, end, form in self._index.find(text):
            value = self._values[form]
            shift = self._shifts.get(form)
            if shift is None:
                yield Known(at, end, value, self._labels[value])
            else:
                yield Known(at - shift, end, value, self._labels[value], True)

    def mentions(self, text: str, since: int) -> bool:
        """Whether a text may hold a value that became known when there were `since` of them or more.

        It may say yes where there is none (a value that is quoted or folded differently in the text cannot be
        ruled out), never no where there is one.
        """
        if since >= len(self._labels):
            return False
        if self._unprobed > since:
            return True
        return any(self._probes[probe] > since for _, _, probe in self._probe_index.find(text))


class _Index:
    """Finds any of many texts of eight characters and more in another; adding one costs the same always."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._grams: dict[str, list[tuple[str, int]]] = {}

    def add(self, text: str) -> None:
        self._texts.append(text)
        # Of five neighbouring places in a text one is looked at below. The last characters tell secrets
        # apart; their first ones are often the same.
        for at in range(len(text) - 8, len(text) - 3):
            self._grams.setdefault(text[at : at + 4], []).append((text, at))

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        if len(self._texts) <= _FEW:
            for known in self._texts:
                at = text.find(known)
                while at >= 0:
                    yield at, at + len(known), known
                    at = text.find(known, at + len(known))
            return
        grams = self._grams
        for middle in range(0, len(text) - 3, 5):
            for known, offset in grams.get(text[middle : middle + 4], ()):
                at = middle - offset
                if at >= 0 and text.startswith(known, at):
                    yield at, at + len(known), known


def _may_spread(value: str, label: str) -> bool:
    """Whether a value can be told from ordinary text, so that it may be replaced wherever it stands."""
    if MARK in value or _MASK.match(value) or is_word(value):
        return False
    return not (label in COOKIES and value.isalpha() and len(value) < 16)  # consent=accepted


def _is_ordinary(value: str) -> bool:
    """Whether a value is a word, a name of the language or of a model: texts and class names hold those."""
    if value in _LANGUAGE or MODEL.match(value):
        return True
    return _WORD.match(value) is not None and _UNSPEAKABLE.search(value) is None


def _spellings(value: str) -> list[str]:
    """Other forms of a value: in HTML, in code, in URLs, in JSON (and in JSON inside of that)."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = [html.escape(value), repr(value)[1:-1]]
    for depth in range(1, _DEEPEST_JSON + 1):
        for ascii_from in range(depth + 1):  # the level from which on it is ASCII
            form = value
            for level in range(depth):
                form = json.dumps(form, ensure_ascii=level >= ascii_from)[1:-1]
            forms.append(form)
    if len(raw) <= 10_000:
        urls = (quote(raw, safe=""), quote(raw), quote_plus(raw))
        forms += urls
        forms += map(quote, urls)  # a URL in a URL
        forms += (re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), url) for url in urls)
    return [form for form in dict.fromkeys(forms) if form != value and len(form) >= SHORTEST]


def _other_letters(value: str) -> list[str]:
    """A value in capitals, in small letters, in hexadecimal digits and as UTF-16 has it."""
    digits = value.encode("utf-8", "surrogatepass").hex() if len(value) <= 1_000 else ""
    wide = "\0".join(value) if value.isascii() else ""
    forms = (value.upper(), value.lower(), digits, digits.upper(), wide)
    return [form for form in forms if len(form) >= SHORTEST and form != value]


def _in_base64(value: str) -> dict[str, int]:
    """What stands of a value in the base64 of any text that holds it, with the characters of the same group
    that stand before."""
    raw = value.encode("utf-8", "surrogatepass")
    forms: dict[str, int] = {}
    for shift in range(3) if len(raw) <= 10_000 else ():
        before = (0, 2, 3)[shift]
        core = base64.b64encode(b"\0" * shift + raw).decode()[before : (shift + len(raw)) * 8 // 6]
        if len(core) >= SHORTEST:
            forms |= {core: before, core.replace("+", "-").replace("/", "_"): before}
    forms.pop(value, None)
    return forms
