"""A stream cut into its documents. Knows where documents begin and on which line; not what they hold.

YAML forbids ``---`` at the start of a line inside a value, so cutting there is exact. The stream is cut as
bytes (one emoji makes every character of a str four bytes wide), and what a slice costs is paid when it is
asked for: its text, and the lines before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final, overload

_MARK: Final = re.compile(r"^(?:---(?=[ \t\n]|\Z).*|\.\.\.[ \t]*(?:#.*)?$)\n?", re.MULTILINE)
_END_MARK: Final = re.compile(r"^\.\.\.[ \t]*(?:#.*)?$", re.MULTILINE)
_NO_CONTENT: Final = re.compile(r"(?:[ \t]*(?:#.*)?\n|%.*\n)*+(?:[ \t]*(?:#.*)?|%.*)")


class Slices(Sequence[tuple[int, str]]):
    r"""The documents of a stream as pairs of first line and text.

    `text` and `line` give one half of a pair. `line` has to count the lines before it the first time, so
    it is best asked only where an error needs it.

    >>> slices = split("stepfork: 1\n---\nend: completed\n")
    >>> len(slices), slices[1], slices.text(0)
    (2, (3, 'end: completed\n'), 'stepfork: 1\n')
    """

    __slots__ = ("_lines", "_parts")

    def __init__(self, parts: list[bytes], lines: list[int] | None = None) -> None:
        """Takes what stands between separators without their line ends: all but the first begin with one."""
        self._parts = parts
        self._lines = lines or [1]

    def text(self, at: int) -> str:
        """The text of one document, with its last newline, which a literal block at its end needs."""
        at = range(len(self._parts))[at]
        part = self._parts[at].decode("utf-8", "surrogatepass")
        if at:
            part = part[1:]
        return part if at == len(self._parts) - 1 else f"{part}\n"

    def begins(self, at: int, word: str) -> bool:
        """Whether the text of one document begins so; cheaper than asking for the text."""
        at = range(len(self._parts))[at]
        return self._parts[at].startswith(word.encode(), 1 if at else 0)

    def has(self, at: int, words: bytes) -> bool:
        """Whether the text of one document has these words; cheaper than asking for the text."""
        return words in self._parts[range(len(self._parts))[at]]

    def holds(self, at: int, pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern is found in the text of one document."""
        return pattern.search(self._parts[range(len(self._parts))[at]]) is not None

    def line(self, at: int) -> int:
        """The line of the stream on which a document starts, from 1."""
        at = range(len(self._parts))[at]
        lines = self._lines
        for part in self._parts[len(lines) - 1 : at]:
            lines.append(lines[-1] + part.count(b"\n") + (1 if len(lines) > 1 else 2))
        return lines[at]

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, at: int) -> tuple[int, str]: ...
    @overload
    def __getitem__(self, at: slice) -> list[tuple[int, str]]: ...
    def __getitem__(self, at: int | slice) -> tuple[int, str] | list[tuple[int, str]]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        return self.line(at), self.text(at)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return (self[at] for at in range(len(self)))


def split(text: str) -> Slices:
    r"""The documents of a stream, not parsed, each with the line it starts on.

    CRLF, a byte order mark, a first ``---``, comments on a separator and ``%`` directives before it are
    understood; what follows a ``...`` inside a slice is left to `reader.parse_document`.

    >>> list(split("stepfork: 1\n---\nend: completed\n"))
    [(1, 'stepfork: 1\n'), (3, 'end: completed\n')]
    """
    text = normal(text)
    if text[:1] not in "%-.# \t\n":
        parts = text.encode("utf-8", "surrogatepass").split(b"\n---")
        if all(map(bytes.startswith, parts[1:], repeat(b"\n"))):
            return Slices(parts)
    return _split_marked(text)


def normal(text: str) -> str:
    """The text with LF line ends and without a byte order mark."""
    if text[:1] == "\ufeff":
        text = text[1:]
    return text.replace("\r\n", "\n") if "\r" in text else text


def without_tail(text: str) -> str:
    r"""One document without the ``...`` that ends it and the comments and directives that may follow.

    >>> without_tail("a: 1\n...\n# the end\n")
    'a: 1\n'
    """
    mark = _END_MARK.search(text) if "\n..." in text else None
    return text[: mark.start()] if mark and _NO_CONTENT.fullmatch(text, mark.end()) else text


def _split_marked(text: str) -> Slices:
    """The same for a stream that uses more of YAML's marks than the emitter does."""
    pieces: list[str] = []
    lines: list[int] = []
    start, line = 0, 1
    opened = False  # whether a "---" announced what comes, so that it counts even if it is empty
    ends = [(mark.start(), mark.end(), mark[0]) for mark in _MARK.finditer(text)]
    for end, after, mark in [*ends, (len(text), len(text), "")]:
        piece = text[start:end]
        if opened or not _NO_CONTENT.fullmatch(piece):
            pieces.append(piece)
            lines.append(line)
        line += piece.count("\n")
        opened = mark.startswith("---")
        start = end
        if not opened or mark.rstrip() == "---":
            start = after
            line += mark.count("\n")
    if not pieces:
        return Slices([text.encode("utf-8", "surrogatepass")])
    raw = [piece.removesuffix("\n") for piece in pieces[:-1]] + pieces[-1:]
    parts = [f"\n{piece}" if at else piece for at, piece in enumerate(raw)]
    return Slices([part.encode("utf-8", "surrogatepass") for part in parts], lines)
