"""The home, temp and working directories in texts: replaced by their names, and back. Pure: knows texts and
plain values; which directories there are, it is told.

A file says ``<cwd>/data/x.csv`` where the run that it records said ``/home/bob/shop/data/x.csv``. Whoever
reads it gets the directory of today. A text that holds such a name itself is written with a sign more
(``<=cwd>``), so that every text comes back as it was.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from stepfork.core.changed_texts import BYTES, changed
from stepfork.core.model import Plain, Tagged, texts_in

NAMES: Final = ("cwd", "tmp_path", "basetemp", "tmp", "home")
"""The first one counts where two directories are the same."""
HELD: Final = re.compile(
    rb"<=*(?:cwd|tmp_path|basetemp|tmp|home)[:>]|!(?:shared|tagged|bytes|bytearray|memoryview)\b"
)
"""Found in every document that holds a name, or what may hold one."""

_WITHOUT_PYTEST: Final = ("tmp_path", "basetemp")
"""Directories of pytest's; where it does not run, the temp directory stands for them."""
_NAME: Final = re.compile(
    r"<(=*)(cwd|tmp_path|basetemp|tmp|home)((?::real)?)((?::(?:json|ascii|slash|url))?)>"
)
_URL: Final = r"(?<![fF][iI][lL][eE])://[^\s\"'`<>\\{}|^]*"
_BEFORE: Final = r"(?:(?<![\w./~\\])|(?<=[fF][iI][lL][eE]://)|(?<=\\[bfnrt]))"
_AFTER: Final = r"(?!\.*[\w~@+%-]|[\u0300-\u036f]|\\u[0-9a-fA-F]{4})"
_PART: Final = re.compile(r"[^/\\]+")
_DRIVE: Final = re.compile(r"[A-Za-z]:(?=[/\\])")
_DEEPEST: Final = 3  # JSON texts, one in another, in which a directory that needs escapes is told
_KEPT: Final = 4_000_000  # characters of texts whose other form is remembered

_SPELLED: Final[dict[str, Callable[[str], str]]] = {
    "": str,
    ":json": lambda path: json.dumps(path, ensure_ascii=False)[1:-1],
    ":ascii": lambda path: json.dumps(path)[1:-1],
    ":slash": lambda path: path.replace("\\", "/") if _DRIVE.match(path) else path,
    ":url": lambda path: quote(path) if path.startswith("/") else path,
}


class _Memo:
    """A change of texts that remembers what it made of the last ones: a history comes with every request."""

    __slots__ = ("_change", "_made", "_size")

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._made: dict[str, str] = {}
        self._size = 0

    def __call__(self, text: str) -> str:
        made = self._made.get(text)
        if made is None:
            made = self._change(text)
            self._size += len(text) + 50
            if self._size > _KEPT:
                self._made.clear()
                self._size = 0
            self._made[text] = made
        return made


class Directories:
    r"""The directories of one session.

    `paths` has them by name, as the program spells them; `real` the same with every link resolved, where that
    is another spelling. Those of a single component (``/tmp``) are left as they are in texts. Without `paths`
    (see `AS_THEY_STAND`) nothing is changed either way.

    >>> here = Directories({"cwd": "/home/bob/shop", "home": "/home/bob", "tmp": "/tmp"})
    >>> here.normalise({"q": "open /home/bob/shop/x.csv, not /home/bobby or https://a/home/bob"})
    {'q': 'open <cwd>/x.csv, not /home/bobby or https://a/home/bob'}
    >>> Directories({"cwd": "/srv/ci"}).restore("<cwd>/x.csv")
    '/srv/ci/x.csv'
    >>> Directories({"home": r"C:\Users\bob"}).normalise_text(r"C:\Users\bob\x.csv")
    '<home>\\x.csv'
    """

    def __init__(self, paths: Mapping[str, str] | None, real: Mapping[str, str] | None = None) -> None:
        self._on = paths is not None
        paths = paths or {}
        found = {name: _trimmed(paths[name]) for name in NAMES if name in paths}
        links = {name: _trimmed(path) for name, path in (real or {}).items()}
        self._today = {f"{name}{link}": path for name, path in found.items() for link in ("", ":real")}
        self._today |= {f"{name}:real": path for name, path in links.items() if name in found}
        self._names: dict[str, str] = {}  # what stands in texts -> its name
        self._nested: dict[str, str] = {}  # the same of what stands in JSON within JSON
        for link in ("", ":real"):
            for name in found:
                path = self._today[f"{name}{link}"]
                for spelling, spelled in _SPELLED.items() if _is_long(path) else ():
                    self._names.setdefault(spelled(path), f"<{name}{link}{spelling}>")
        for link in ("", ":real"):
            for name in found:
                path = self._today[f"{name}{link}"]
                for level in range(2, _DEEPEST + 1) if _is_long(path) else ():
                    for spelling in (":json", ":ascii"):
                        if (deep := _escaped(path, level, spelling)) not in self._names:
                            self._nested.setdefault(deep, f"<{name}{link}>")
        self.has_links = any(":real" in name for name in self._names.values())
        self._has_escapes = any(_SPELLED[":json"](path) != path for path in self._today.values())
        self._begin = tuple({spelled[0] for spelled in self._names} | {"<"})
        self._longest = longest = sorted((*self._names, *self._nested), key=len, reverse=True)
        places = f"|{_BEFORE}(?:{'|'.join(map(re.escape, longest))}){_AFTER}" if longest else ""
        self._search = re.compile(f"(?P<url>{_URL})|{_NAME.pattern}{places}")
        self.normalise_text = _Memo(self._normalise_text)
        self.restore_text = _Memo(self._restore_text)

    def __repr__(self) -> str:
        return f"<Directories: {', '.join(sorted(set(self._names.values())))}>"

    def normalise(self, value: Plain) -> Plain:
        """The value with names in place of directories; the same object if it holds none."""
        return self._changed(value, self._begin, self.normalise_text)

    def restore(self, value: Plain) -> Plain:
        """The value with the directories of today in place of names; the same object if it holds none."""
        return self._changed(value, ("<",), self.restore_text)

    def _changed(self, value: Plain, begin: tuple[str, ...], change: Callable[[str], str]) -> Plain:
        return changed(value, change) if self._on and _changes(value, begin, change) else value

    @property
    def has_spellings(self) -> bool:
        """Whether a directory may be spelled in several ways: by a link, or escaped as in JSON."""
        return any(":" in name for name in self._names.values())

    def in_one_spelling(self, text: str) -> str:
        """The text with the directories spelled in one way, whichever link they were reached by, and however
        JSON has them.
        """
        if not self.has_spellings or not any(map(text.__contains__, self._longest)):
            return text

        def plain(match: re.Match[str]) -> str:
            name = self._names.get(match[0]) or self._nested.get(match[0])
            return match[0] if name is None else self._today[name[1:-1].partition(":")[0]]

        return self._search.sub(plain, text)

    def _normalise_text(self, text: str) -> str:
        held = any(map(text.__contains__, self._longest)) or ("<" in text and _NAME.search(text))
        if not self._on or not held:
            return text
        is_json = self._has_escapes and _is_json(text)

        def named(match: re.Match[str]) -> str:
            if match["url"] is not None:
                return match[0]
            if match[3] is not None:
                return f"<={match[0][1:]}"
            name = self._names.get(match[0])
            if name is None:
                return self._nested[match[0]] if is_json else match[0]
            return name.replace(":json", "") if is_json else name

        result = self._search.sub(named, text)
        if result != text and self._restore_text(result) != text:  # a path whose name says too little of it
            result = _NAME.sub(lambda match: f"<={match[0][1:]}", text)
        return text if result == text else result

    def _restore_text(self, text: str) -> str:
        if not self._on or "<" not in text or not _NAME.search(text):
            return text
        is_json = self._has_escapes and _is_json(text)

        def shown(match: re.Match[str]) -> str:
            more, name, link, spelling = match.groups()
            if more:
                return f"<{match[0][2:]}"
            path = self._today.get(f"{name}{link}")
            if path is None and name in _WITHOUT_PYTEST:
                path = self._today.get(f"tmp{link}")
            if path is None:
                return match[0]
            if text[match.end() : match.end() + 1] in ("/", "\\"):
                path = path.rstrip("/\\")  # that of a root
            if is_json and not spelling:
                return _escaped(path, _level(text, match.start()))
            return _SPELLED[spelling](path)

        return _NAME.sub(shown, text)


AS_THEY_STAND: Final = Directories(None)
"""No directory has a name, and no name is one."""


def _changes(value: Plain, begin: tuple[str, ...], change: Callable[[str], str]) -> bool:
    """Whether `change` changes any text of the value; `begin` are the characters that such a text holds."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            for character in begin:
                if character in item:
                    if change(item) != item:
                        return True
                    break
        elif isinstance(item, dict):
            stack += item
            stack += item.values()
        elif isinstance(item, list):
            stack += item
        elif isinstance(item, Tagged):
            if item.tag in BYTES:
                return True
            stack.append(item.value)
    return False


def holds_name(value: Plain) -> bool:
    """Whether a value of a file holds the name of a directory, or a text that looks like one.

    >>> holds_name({"path": "<cwd>/x"}), holds_name({"path": "/x"})
    (True, False)
    """
    return any(_NAME.search(text) for text in texts_in(value))


def _escaped(path: str, level: int, spelling: str = ":json") -> str:
    """A path as JSON has it that stands in JSON, and so on."""
    for _ in range(level):
        path = _SPELLED[spelling](path)
    return path


def _level(text: str, at: int) -> int:
    """How many JSON texts a place is in, one in another: the quote before it says so by its backslashes."""
    quote = text.rfind('"', 0, at)
    backslashes = quote - len(text[:quote].rstrip("\\")) if quote > 0 else 0
    return min(int(math.log2(backslashes + 1)) + 1, _DEEPEST)


def _trimmed(path: str) -> str:
    return path.rstrip("/\\") or path


def _is_long(path: str) -> bool:
    """Whether it is absolute and has at least two components."""
    rest = _DRIVE.sub("", path, count=1)
    return rest[:1] in ("/", "\\") and len(_PART.findall(rest)) >= 2


def _is_json(text: str) -> bool:
    """Whether a text is a JSON object or array: paths in it are spelled as JSON has them."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True
