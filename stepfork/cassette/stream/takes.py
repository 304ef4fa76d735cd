"""Gives the events of a stream their values, run by run. Knows series and pieces; knows no template's text.

A text of which an edit changed the length still fits: its pieces are cut as before as far as it goes, pieces
behind its end are empty, and the last piece takes what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from stepfork.cassette.stream.series import PADDING
from stepfork.cassette.stream.spelling import Misfit, Style, read_cuts, read_runs, read_text, shown

TAKEN: Final = ("next", "value", "word", "item", "json")
"""How values are taken one after the other; all but ``next`` from a series."""

_MOST: Final = 10**18


class Hole(NamedTuple):
    """A place in a template: how its value is taken, and of what."""

    how: str
    name: str


class Takes:
    """The values of one stream, given in the order of its events."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._literals: dict[tuple[str, str], list[str]] = {}
        self._texts: dict[tuple[str, str], list[str]] = {}
        self._pads: dict[tuple[str, str], str] = {}
        self._at: dict[tuple[str, str], int] = {}
        self._bytes: dict[str, list[str]] = {}  # of the run at hand

    def pieces(self, hole: Hole, text: Any, cuts: Any, count: int) -> None:
        """A text that the events take in pieces.

        Raises:
            Misfit: if the cuts do not give so many pieces.
        """
        if not isinstance(text, str):
            raise Misfit(f"wire.texts.{hole.name}", "text expected")
        if cuts is None:
            lengths = [0] * (count - 1)
        elif isinstance(cuts, str):
            lengths = read_cuts(f"wire.cuts.{hole.name}", cuts, count)[:-1]
        else:
            raise Misfit(f"wire.cuts.{hole.name}", "text expected; add quotes")
        pieces = []
        at = 0
        for length in lengths:
            pieces.append(text[at : at + length])
            at += length
        pieces.append(text[at:])
        self._keep(hole, pieces)

    def odd(self, hole: Hole, odd: Any) -> None:
        """Pieces with a spelling of their own, as long as they say the same; counted from 0.

        Raises:
            Misfit: if there is no such piece.
        """
        field = f"wire.odd.{hole.name}"
        if not isinstance(odd, dict):
            raise Misfit(field, "a mapping expected")
        texts, literals = self._texts[hole.how, hole.name], self._literals[hole.how, hole.name]
        for number, literal in odd.items():
            at = int(number) if number.isdecimal() and len(number) < 9 else len(texts)
            if at >= len(texts) or not isinstance(literal, str):
                raise Misfit(f"{field}.{shown(number)}", "the number of a piece and a JSON string expected")
            if read_text(literal) == texts[at]:
                literals[at] = literal

    def series(self, hole: Hole, told: Any, count: int) -> None:
        """A series of values.

        Raises:
            Misfit: if it is of another kind than the hole, or does not have so many.
        """
        how, field = hole.how, f"wire.series.{hole.name}"
        if isinstance(told, dict) and how == "value":
            first, step = told.get("from"), told.get("step")
            if {*told} != {"from", "step"} or type(first) is not int or type(step) is not int:
                raise Misfit(field, "two numbers expected, 'from' and 'step'")
            if max(abs(first), abs(step)) > _MOST:
                raise Misfit(field, "a smaller number expected")
            self._literals[how, hole.name] = [str(first + step * at) for at in range(count)]
        elif isinstance(told, str) and how in ("value", "word"):
            values: list[str] = []
            for item, times in read_runs(field, told):
                if times > count - len(values):
                    raise Misfit(field, f"more than the {count} values that the events take")
                values += [item] * times
            self._enough(field, values, count)
            if how == "word":
                self._keep(hole, values)
            else:
                self._literals[how, hole.name] = values
        elif isinstance(told, list) and how in ("item", "json"):
            for at, item in enumerate(told):
                if not isinstance(item, str):
                    raise Misfit(f"{field}[{at}]", "text expected; add quotes")
            self._enough(field, told, count)
            if how == "item":
                self._keep(hole, told)
            else:
                self._literals[how, hole.name] = list(told)
        elif isinstance(told, str) and how.startswith("pad"):
            self._pads[how, hole.name] = told
        else:
            kinds = {"item": "a sequence", "json": "a sequence"}
            raise Misfit(field, f"{kinds.get(how, 'text')} expected")
        self._at[how, hole.name] = 0

    def columns(self, holes: Sequence[Hole], count: int) -> list[list[str]]:
        """What the next `count` events of one template put into its holes, hole by hole.

        Raises:
            Misfit: if a hole refers to a value that this event does not take.
        """
        columns: list[list[str] | None] = [None] * len(holes)
        self._bytes = {}
        taken: dict[str, tuple[list[str], list[str] | None]] = {}
        asked: dict[tuple[str, str], list[int]] = {}
        for at, hole in enumerate(holes):
            if hole.how in TAKEN:
                asked.setdefault((hole.how, hole.name), []).append(at)
        for key, places in asked.items():
            start, many = self._at[key], len(places)
            self._at[key] = end = start + count * many
            literals, texts = self._literals[key], self._texts.get(key)
            for shift, at in enumerate(places):
                columns[at] = column = literals[start + shift : end : many]
                if key[1] not in taken:
                    taken[key[1]] = column, texts and texts[start + shift : end : many]
        for at, hole in enumerate(holes):
            if columns[at] is None:
                columns[at] = self._derived(hole, taken, columns, holes, count)
        return [column or [] for column in columns]

    def _derived(
        self,
        hole: Hole,
        taken: dict[str, tuple[list[str], list[str] | None]],
        columns: Sequence[list[str] | None],
        holes: Sequence[Hole],
        count: int,
    ) -> list[str]:
        if hole.how.startswith("pad"):
            pieces = [at for at, other in enumerate(holes) if other.how == "next"]
            if len(pieces) != 1:
                raise Misfit(
                    "wire.events", f"'${hole.how} {shown(hole.name)}' stands in an event without one piece"
                )
            return self._padded(hole, columns[pieces[0]] or [])
        literals, texts = taken.get(hole.name, (None, None))
        if literals is None or (texts is None and hole.how == "bytes"):
            raise Misfit(
                "wire.events", f"'${hole.how} {shown(hole.name)}' stands in an event that takes no such text"
            )
        if texts is None or hole.how == "this":
            return literals
        if hole.name not in self._bytes:
            encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
            self._bytes[hole.name] = list(map(self._style.numbers, encoded))
        return self._bytes[hole.name]

    def _padded(self, hole: Hole, pieces: list[str]) -> list[str]:
        key = hole.how, hole.name
        text, at, total = self._pads[key], self._at[key], int(hole.how[3:])
        padded = []
        for piece in pieces:
            length = (total - len(piece) + 2) % PADDING or PADDING
            padded.append(self._style.quote(text[at : at + length]))
            at += length
        self._at[key] = at
        return padded

    def _keep(self, hole: Hole, texts: list[str]) -> None:
        self._texts[hole.how, hole.name] = texts
        self._literals[hole.how, hole.name] = list(map(self._style.quote, texts))
        self._at[hole.how, hole.name] = 0

    def _enough(self, field: str, values: Sequence[str], count: int) -> None:
        if len(values) != count:
            raise Misfit(field, f"it holds {len(values)} values, the events take {count}")
