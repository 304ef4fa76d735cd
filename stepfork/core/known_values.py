"""The values known to be secret, found however they are spelled. Knows no rules; replaces nothing."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from stepfork.core.renaming import MARK, SHORTEST
from stepfork.core.secret_names import COOKIES, is_word

_MASK: Final = re.compile(r"[*•._=#-]+\Z|\s+\Z")
_PROBE: Final = re.compile(r"[A-Za-z0-9_./+=~%-]+")
_FEW: Final = 40


class KnownValues:
    """Values, found in other texts as they are, in URLs, in JSON and in base64. Their number only grows.

    Attributes:
        spelling: one more way in which a value may stand in a text.

    >>> known = KnownValues()
    >>> known.add("correct horse", "password"), known.add("required", "password")
    (True, False)
    >>> list(known.find("?q=correct+horse"))
    [(3, 16, 'correct horse', 'password')]
    """

    def __init__(self) -> None:
        self.spelling: Callable[[str], str] = str
        self._labels: dict[str, str] = {}  # what is replaced wherever it stands, and its label
        self._values: dict[str, str] = {}  # the spellings -> the value
        self._index = _Index()
        self._probes: dict[str, int] = {}
        self._probe_index = _Index()
        self._unprobed = 0

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, value: str, label: str) -> bool:
        """Whether the value is new and known from now on: it is not if it is too short or too plain."""
        if len(value) < SHORTEST or value in self._labels or not _may_spread(value, label):
            return False
        self._labels[value] = label
        for form in dict.fromkeys((value, self.spelling(value), *_spellings(value))):
            if form not in self._values:
                self._values[form] = value
                self._index.add(form)
            probe = max(_PROBE.findall(form), key=len, default="")
            if len(probe) < SHORTEST:
                self._unprobed = len(self._labels)
            else:
                if probe not in self._probes:
                    self._probe_index.add(probe)
                self._probes[probe] = len(self._labels)
        return True

    def find(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        """Start, end, value and label of every known value in a text; places may overlap."""
        for at, end, form in self._index.find(text):
            value = self._values[form]
            yield at, end, value, self._labels[value]

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


def _spellings(value: str) -> list[str]:
    """Other forms of a value: in URLs, in JSON, in base64 (of a longer text too)."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    if len(raw) <= 10_000:
        urls = (quote(raw, safe=""), quote(raw), quote_plus(raw))
        forms += urls
        forms += (re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), url) for url in urls)
        for shift in range(3):
            whole = base64.b64encode(b"\0" * shift + raw).decode()
            core = whole[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
            forms += (core, core.replace("+", "-").replace("/", "_"))
    return [form for form in dict.fromkeys(forms) if form != value and len(form) >= SHORTEST]
