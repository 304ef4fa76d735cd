"""Values that change from event to event, as short as they can be told. Knows shapes; knows no API.

A column of values becomes a *series* with a name, and each event takes the next of it: ``$value created``.
How a value is taken is said where it is taken:

- ``$next x``: the next piece of a text, ``$this x``: that piece again, ``$bytes x``: its bytes as numbers
- ``$value x``: the next of a list as it is, ``$word x``: in quotes
- ``$item x``: the next text of a list, ``$json x``: the next JSON text of a list
- ``$pad16 x``: so much of a text as fills this event's piece up to a multiple of 16
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from stepfork.cassette.stream.leaves import SAID
from stepfork.cassette.stream.shapes import Path, Shape
from stepfork.cassette.stream.spelling import Style, cuts_text, progression, runs_text
from stepfork.core.model import Plain

Column: TypeAlias = tuple[Shape, int]

PADDING: Final = 16
"""OpenAI pads what a delta says and its ``obfuscation`` to a multiple of this."""

_WORD: Final = re.compile(r"[!-z|~]{1,80}")
_VALUE: Final = re.compile(r"[^\s{}]+")
_LONG: Final = 80
_FEW: Final = 4


class Names:
    """Gives names that are used once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = dict.fromkeys(taken, 1)

    def new(self, hint: str) -> str:
        """A name like the hint that was not given yet.

        >>> names = Names(["text"])
        >>> names.new("text"), names.new("x-y")
        ('text_2', 'x_y')
        """
        hint = re.sub(r"[^A-Za-z0-9_]", "_", hint)[:40].lstrip("_0123456789") or "v"
        name = hint
        while name in self._taken:
            self._taken[hint] = number = self._taken.get(hint, 1) + 1
            name = f"{hint}_{number}"
        self._taken[name] = 1
        return name


class Series:
    """The series of one stream, made while the marks of its shapes are set.

    Attributes:
        values: by name what `wire.series` holds.
        texts: by name what `wire.texts` holds.
        cuts: by name how a text is cut.
        odd: by name the pieces, by number, that are spelled otherwise than the style has it.
    """

    def __init__(self, style: Style) -> None:
        self.values: dict[str, Plain] = {}
        self.texts: dict[str, Plain] = {}
        self.cuts: dict[str, Plain] = {}
        self.odd: dict[str, Plain] = {}
        self._style = style
        self._names = Names(SAID)
        self._same: dict[int, dict[tuple[str, ...], str]] = {}  # by shape: column -> name
        self._piece: dict[int, list[int]] = {}  # by shape: the tokens that are pieces

    def said(self, columns: list[Column], name: str, texts: list[str], literals: list[str]) -> None:
        """These columns are the pieces of a text that the stream says."""
        quote = self._style.quote
        odd = {
            str(at): one
            for at, (text, one) in enumerate(zip(texts, literals, strict=True))
            if quote(text) != one
        }
        if odd:
            self.odd[name] = dict(odd)
        for shape, token in columns:
            shape.marks[token] = f"$next {name}"
            self._same.setdefault(id(shape), {}).setdefault(shape.column(token), name)
            self._piece.setdefault(id(shape), []).append(token)
        if len(texts) > 1:
            self.cuts[name] = cuts_text(map(len, texts))

    def find(self, shapes: list[Shape]) -> None:
        """Sets the mark of every token that changes and has none yet."""
        by_path: dict[Path, list[Column]] = {}
        for shape in shapes:
            for token, path in enumerate(
                shape.paths or [("", id(shape), at) for at in range(len(shape.marks))]
            ):
                if shape.marks[token] is None:
                    by_path.setdefault(path, []).append((shape, token))
        for path, columns in by_path.items():
            self._column(path, columns)

    def _column(self, path: Path, columns: list[Column]) -> None:
        hint = next((key for key in reversed(path) if isinstance(key, str)), "v")
        if sum(len(shape.at) for shape, _ in columns) < 2:
            return
        literals = in_order(columns)
        if steps := progression(literals):
            name = self._take(columns, "value", hint)
            self.values[name] = {"from": steps[0], "step": steps[1]}
            return
        varying = [column for column in columns if len(set(column[0].column(column[1]))) > 1]
        if not varying or self._again(varying) or self._bytes(varying) or self._pad(varying, hint):
            return
        if len(path) > 1:
            columns, literals = varying, in_order(varying)
        self._plain(columns, literals, hint)

    def _plain(self, columns: list[Column], literals: list[str], hint: str) -> None:
        texts = [self._style.unquote(literal) for literal in literals]
        if None not in texts:
            said: list[str] = texts  # type: ignore[assignment]
            if all(map(_WORD.fullmatch, said)):
                self.values[self._take(columns, "word", hint)] = runs_text(said)
            elif len(said) < _FEW or sum(map(len, said)) > _LONG * len(said):
                self.values[self._take(columns, "item", hint)] = list(said)
            else:
                name = self._take(columns, "next", hint)
                self.texts[name] = "".join(said)
                self.cuts[name] = cuts_text(map(len, said))
        elif all(literal[0] != '"' and _VALUE.fullmatch(literal) for literal in literals):
            self.values[self._take(columns, "value", hint)] = runs_text(literals)
        else:
            self.values[self._take(columns, "json", hint)] = list(literals)

    def _take(self, columns: list[Column], how: str, hint: str) -> str:
        name = self._names.new(hint)
        for shape, token in columns:
            shape.marks[token] = f"${how} {name}"
            self._same.setdefault(id(shape), {}).setdefault(shape.column(token), name)
        return name

    def _again(self, columns: list[Column]) -> bool:
        """The same as another column of the same events."""
        return self._all(columns, "this", lambda shape, token: self._same_as(shape, shape.column(token)))

    def _bytes(self, columns: list[Column]) -> bool:
        """The bytes of the token beside it, as log probabilities have them."""

        def name(shape: Shape, token: int) -> str | None:
            path = shape.paths[token] if shape.paths else ()
            if path[-1:] != ("bytes",) or (*path[:-1], "token") not in shape.paths:
                return None
            beside = shape.column(shape.paths.index((*path[:-1], "token")))
            texts = [self._style.unquote(literal) for literal in beside]
            given = shape.column(token)
            if any(
                text is None or self._style.numbers(text.encode("utf-8", "surrogatepass")) != numbers
                for text, numbers in zip(texts, given, strict=True)
            ):
                return None
            return self._same_as(shape, beside)

        return self._all(columns, "bytes", name)

    def _same_as(self, shape: Shape, column: tuple[str, ...]) -> str | None:
        return self._same.get(id(shape), {}).get(column)

    def _all(self, columns: list[Column], how: str, find: Callable[[Shape, int], str | None]) -> bool:
        names = [find(shape, token) for shape, token in columns]
        if None in names:
            return False
        for (shape, token), name in zip(columns, names, strict=True):
            shape.marks[token] = f"${how} {name}"
        return True

    def _pad(self, columns: list[Column], hint: str) -> bool:
        """Random letters that make what a delta says as long as any other."""
        if sum(len(shape.at) for shape, _ in columns) < _FEW:
            return False
        total: int | None = None
        for shape, token in columns:
            pieces = self._piece.get(id(shape), [])
            if len(pieces) != 1:
                return False
            for row in shape.rows:
                pad, piece = row[token], row[pieces[0]]
                if pad[0] != '"' or not 2 < len(pad) < PADDING + 3 or not pad[1:-1].isalnum():
                    return False
                length = (len(pad) + len(piece) - 4) % PADDING
                if total not in (None, length):
                    return False
                total = length
        name = self._take(columns, f"pad{total or PADDING}", hint)
        self.values[name] = "".join(literal[1:-1] for literal in in_order(columns))
        return True


def in_order(columns: list[Column]) -> list[str]:
    """The tokens of several columns in the order of their events.

    >>> in_order([(Shape("", ("", ""), at=[2, 5], rows=[("a",), ("b",)]), 0)])
    ['a', 'b']
    """
    if len(columns) == 1:
        shape, token = columns[0]
        return list(shape.column(token))
    found = [
        (at, token, row[token])
        for shape, token in columns
        for at, row in zip(shape.at, shape.rows, strict=True)
    ]
    found.sort()
    return [literal for _, _, literal in found]
