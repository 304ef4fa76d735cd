"""Events grouped by shape: the text that all of a kind share, and the values in it. Knows JSON, no API.

An event is cut into *tokens* (its strings, its numbers, its lists of numbers) and the text between them.
Events with the same text between are of one shape. What tells kinds of events apart stays in that text:
keys, ``null``, ``true``, ``false``, every ``type`` and every index. Nothing is parsed and spelled again, so
whatever the spelling of an event is, it comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from stepfork.cassette.stream.events import head_of

Path: TypeAlias = tuple[str | int, ...]

MOST_SHAPES: Final = 256
"""Past this many shapes the events have little in common; the rest are not looked into."""

_DEPTH: Final = 60
_STRING: Final = r'"(?:[^"\\\x00-\x1f]++|\\.)*+"'
_NUMBER: Final = r"-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_NUMBERS: Final = rf"\[\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*+\s*\]"
_FIXED: Final = (
    rf'"(?:output_|content_|summary_)?index"\s*+:\s*+[0-9]++(?![0-9.eE])|"type"\s*+:\s*+{_STRING}|'
)


def _tokens(fixed: str) -> re.Pattern[str]:
    words = r"null|true|false|NaN|-?Infinity"
    between = rf"(?:[\]{{}},:\s]++|(?!{_NUMBERS})\[|{words}|{fixed}{_STRING}(?=\s*+:))*+"
    # where that fails, the rest is taken as a whole: nothing is tried again further on
    return re.compile(rf"({between})({_NUMBERS}|{_STRING}|{_NUMBER}|\Z)|[\s\S]+")


_STRICT: Final = _tokens(_FIXED)
_LOOSE: Final = _tokens("")
_ID: Final = re.compile(r"^(id: ?)([^\s{}$]+)$", re.MULTILINE)


class Leaf(int):
    """The place of a token in a JSON tree: which one it is."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written."""

    def get(self, key: str) -> Any:
        """The last value of a key, or None.

        >>> Pairs([("a", 1)]).get("a")
        1
        """
        for name, value in reversed(self):
            if name == key:
                return value
        return None


@dataclass(slots=True)
class Shape:
    """Events of one kind.

    Attributes:
        head: the text before the data, or the whole event where it has no JSON.
        texts: the texts around the tokens, one more than there are tokens; the head is part of the first.
        skip: 1 if the first token is the event's ``id:``, which stands before the data.
        at: the places of the events in the stream.
        rows: the tokens of each event.
        tree: the data with a `Leaf` for each token; None where it is no JSON.
        paths: where in the data each token stands.
        marks: what stands in the template for each token; None where that is not known yet.
    """

    head: str
    texts: tuple[str, ...]
    skip: int = 0
    at: list[int] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    tree: Any = None
    paths: tuple[Path, ...] = ()
    marks: list[str | None] = field(default_factory=list)

    def column(self, token: int) -> tuple[str, ...]:
        """One token of every event."""
        return tuple([row[token] for row in self.rows])

    def fill(self, values: Sequence[str | None]) -> str:
        """The text of an event of this shape with the given values."""
        parts = [self.texts[0]]
        for value, text in zip(values, self.texts[1:], strict=True):
            parts += [value or "", text]
        return "".join(parts)

    def part(self, rows: Sequence[int]) -> Shape:
        """A shape of its own for some of the events."""
        return Shape(
            self.head,
            self.texts,
            self.skip,
            [self.at[row] for row in rows],
            [self.rows[row] for row in rows],
            self.tree,
            self.paths,
            list(self.marks),
        )


def group(events: Sequence[str]) -> list[Shape]:
    """The shapes of a stream, each with its events, in the order of their first.

    >>> [shape.texts for shape in group(['data: {"a":1}', 'data: {"a":2}', ": ping"])]
    [('data: {"a":', '}'), (': ping',)]
    """
    shapes = _group(events, _STRICT)
    if len(shapes) > MOST_SHAPES:
        shapes = _group(events, _LOOSE)
    for shape in shapes[:MOST_SHAPES]:
        _look_into(shape)
    return shapes


def verbatim(event: str, at: int) -> Shape:
    """An event on its own, as it is.

    >>> verbatim(": ping", 3).at
    [3]
    """
    return Shape(head_of(event) or event, (event,), at=[at], rows=[()])


def _group(events: Sequence[str], tokens: re.Pattern[str]) -> list[Shape]:
    shapes: dict[tuple[str, ...], Shape] = {}
    for at, event in enumerate(events):
        head = head_of(event)
        texts, row, skip = ((event,), (), 0) if head is None else _cut(event, head, tokens)
        shape = shapes.get(texts)
        if shape is None:
            shape = shapes[texts] = Shape(head or event, texts, skip, marks=[None] * len(row))
        shape.at.append(at)
        shape.rows.append(row)
    return list(shapes.values())


def _cut(event: str, head: str, pattern: re.Pattern[str]) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """The texts and tokens of an event, and how many of the tokens stand in its head."""
    payload = event[len(head) :]
    found = pattern.findall(payload)
    texts, row = zip(*found, strict=True)
    if len("".join(texts)) + len("".join(row)) != len(payload):
        return (event,), (), 0  # no JSON
    last = row.index("")
    texts, row = texts[: last + 1], row[:last]
    found_id = _ID.search(head) if "id" in head else None
    if found_id is None:
        return (head + texts[0], *texts[1:]), row, 0
    rest = head[found_id.end(2) :] + texts[0]
    return (head[: found_id.start(2)], rest, *texts[1:]), (found_id[2], *row), 1


def _look_into(shape: Shape) -> None:
    """Finds the tree and the paths of a shape, if its data is JSON."""
    count = len(shape.texts) - 1 - shape.skip
    if count < 1:
        return
    # tokens are negative numbers here: what stays in the text between has none
    start = len(shape.texts[0]) if shape.skip else len(shape.head)
    filled = shape.fill([""] * shape.skip + [str(-at - 1) for at in range(count)])
    payload = filled[start:] if not shape.skip else filled[filled.index("data:", start) + 5 :]
    try:
        tree = json.loads(payload, object_pairs_hook=Pairs, parse_int=_leaf)
        paths: list[Path] = [()] * count
        _walk(tree, (), paths)
    except (ValueError, RecursionError):
        return
    shape.tree = tree
    shape.paths = ((":id",),) * shape.skip + tuple(paths)


def _leaf(digits: str) -> int:
    return Leaf(-int(digits) - 1) if digits[0] == "-" else int(digits)


def _walk(node: Any, path: Path, paths: list[Path]) -> None:
    if len(path) > _DEPTH:
        raise ValueError("nested too deep")
    if type(node) is Leaf:
        paths[node] = path
    elif type(node) is Pairs:
        for key, value in node:
            _walk(value, (*path, key), paths)
    elif type(node) is list:
        for at, value in enumerate(node):
            _walk(value, (*path, at), paths)
