"""The cells of a table in a text that stand below the name of a secret: CSV, tab separated values, Markdown.

Knows lines and cells; what a name or a value has to look like is asked. Takes time linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, NamedTuple

_MARKS: Final = ("|", "\t", ",", ";")
_LONGEST_HEAD: Final = 2_000


class Cell(NamedTuple):
    """A cell: where it stands, without blanks, quotes and marks of emphasis around it."""

    start: int
    end: int


def cells_below(
    text: str, places: Iterable[int], label: Callable[[str], str]
) -> Iterator[tuple[int, int, str]]:
    """Where the values stand below the names at some of these `places`, and the label of each.

    >>> text = "user,token\\nbob,q7Zx\\nalice,Zk9q\\n\\nend"
    >>> found = cells_below(text, [5], lambda name: name if name == "token" else "")
    >>> [(text[start:end], label) for start, end, label in found]
    [('q7Zx', 'token'), ('Zk9q', 'token')]
    """
    done = 0
    for start in sorted({text.rfind("\n", 0, place) + 1 for place in places}):
        end = _end(text, start)
        if start < done or not start < end < min(len(text), start + _LONGEST_HEAD):
            continue
        for mark in _MARKS:
            if text.find(mark, start, end) >= 0:
                if text.find(mark, end + 1, _end(text, end + 1)) < 0:
                    break
                names = list(_cells(text, start, end, mark))
                labels = [label(text[name.start : name.end]) for name in names]
                if len(names) > 1 and any(labels):
                    done = yield from _below(text, end + 1, mark, labels)
                break


def _below(text: str, at: int, mark: str, labels: list[str]) -> Generator[tuple[int, int, str], None, int]:
    """The same for the rows of one table; gives where it ends."""
    while at < len(text):
        end = _end(text, at)
        row = list(_cells(text, at, end, mark))
        if len(row) != len(labels):
            break
        for cell, label in zip(row, labels, strict=True):
            if label and cell.start < cell.end:
                yield *cell, label
        at = end + 1
    return at


def _end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _cells(text: str, start: int, end: int, mark: str) -> Iterator[Cell]:
    """The cells of a line; a mark between double quotes ends none."""
    while start < end and text[end - 1] in " \r":
        end -= 1
    if mark == "|" and start < end and text[end - 1] == "|":
        start = text.find("|", start, end) + 1  # what stands before the first one is no cell
        end = max(start, end - 1)
    at = start
    while True:
        quote = at
        while quote < end and text[quote] == " ":
            quote += 1
        closing = text.find('"', quote + 1, end) if text[quote : quote + 1] == '"' else -1
        while closing >= 0 and text[closing + 1 : closing + 2] == '"':
            closing = text.find('"', closing + 2, end)
        stop = text.find(mark, max(at, closing), end)
        stop = end if stop < 0 else stop
        yield _bare(text, at, stop)
        if stop == end:
            return
        at = stop + 1


def _bare(text: str, start: int, end: int) -> Cell:
    while start < end and text[start] in " \t\"'`*":
        start += 1
    while start < end and text[end - 1] in " \t\"'`*":
        end -= 1
    return Cell(start, end)
