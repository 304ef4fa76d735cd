"""The calls of a recording in progress, which stand in order of completion, as a finished one has them.

Knows calls and their places; knows no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from stepfork.cassette.schema import Document, Place
from stepfork.core.canonical import canonical_text
from stepfork.core.lanes import Mark
from stepfork.core.layout import layout
from stepfork.core.lines import DEEPEST, Line, Scope
from stepfork.core.model import Incoming, Recorded


def sort_key(call: Incoming) -> tuple[str, str, str]:
    """What calls of lines that nobody ordered are sorted by: kind, name, arguments."""
    return call.kind, call.name, canonical_text(call.args)


def bases(calls: Iterable[Document]) -> dict[int, int]:
    """Which call each one extends that extends one, by their places among those given, in the file's order.

    A call may only extend one that stands above it and was made by the same line of control.

    >>> bases([])
    {}
    """
    lines: dict[tuple[int | None, int | None], list[int]] = {}
    found: dict[int, int] = {}
    for at, call in enumerate(calls):
        place = call.place or Place(at)
        before = lines.setdefault((place.parent, place.line), [])
        if call.extension is not None and call.extension.back <= len(before):
            found[at] = before[-call.extension.back]
        if call.recorded.call.kind == "llm":
            before.append(at)
    return found


class Partial:
    """The calls of a partial file, by the number of their start.

    A call inside one that never ended has no parent in the file; it is left out, and counted in `lost`.
    """

    def __init__(
        self, calls: list[tuple[Recorded, Place]], key: Callable[[int], tuple[str, str, str]]
    ) -> None:
        """`key` is the `sort_key` of the call at a place among those given."""
        self._key = key
        self._calls = {place.start: (at, recorded, place) for at, (recorded, place) in enumerate(calls)}
        self._inside: dict[int | None, list[int]] = {}
        for start in sorted(self._calls):
            self._inside.setdefault(self._calls[start][2].parent, []).append(start)

    def ordered(self) -> list[tuple[int, Recorded]]:
        """The calls in their final order, each with its place among those given and with its mark."""
        found: list[tuple[int, Recorded]] = []
        ways = [self._of(None)]  # how deep calls are nested is the program's affair
        while ways:
            row = next(ways[-1], None)
            if row is None:
                ways.pop()
                continue
            start, mark = row
            at, recorded, _ = self._calls[start]
            found.append((at, replace(recorded, mark=mark)))
            ways.append(self._of(start))
        return found

    def _of(self, parent: int | None) -> Iterator[tuple[int, Mark | None]]:
        """The calls made directly inside one, by the number of their start."""
        starts = self._inside.get(parent, [])
        return iter(layout(self._scope(starts), lambda start: self._key(self._calls[start][0])))

    def _scope(self, starts: list[int]) -> Scope:
        """The lines that made these calls."""
        scope = Scope()
        lines: dict[int | None, Line] = {None: scope.main}
        told = [started for start in starts for started in self._calls[start][2].lines]
        for started in sorted(told, key=lambda started: started.line):
            if started.starter == -1 or started.starter not in lines:
                lines[started.line] = scope.stranger()
                continue
            starter = lines[started.starter]
            if starter.depth == DEEPEST:
                lines[started.line] = starter
                continue
            line = lines[started.line] = Line(scope, starter)
            line.born = (started.calls, started.forks)
            line.after = tuple(lines[other] for other in started.after if other in lines)
        for start in starts:
            line = lines.get(self._calls[start][2].line) or scope.main
            line.add(start)
        for line in sorted(dict.fromkeys(lines.values()), key=lambda line: line.born):
            if line.parent is not None:
                line.parent.children[line.born] = line
        return scope
