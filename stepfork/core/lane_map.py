"""Which recorded lane a running line is, and which lanes are alike. Pure; knows not what may come next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TypeAlias

from stepfork.core.lanes import Lane, Lanes
from stepfork.core.lines import Line, Scope

Digest: TypeAlias = Callable[[int], bytes]
"""Of the call of a number: what it asked, or how it ended."""


class LaneMap:
    """Which lane a line is, and which line a lane.

    A line's *slot* is the lane that was started where the line was, or the line itself where there is none.
    Lanes are dealt out to slots; at first each is its own.
    """

    def __init__(self, lanes: Lanes, scope: Scope) -> None:
        self._lanes = lanes
        self._scope = scope
        self._held: dict[Lane | Line, Lane | None] = {}
        self._slots: dict[Lane, Lane | Line] = {}
        self._known: dict[Line, Lane | None] = {}
        self._nobodys: dict[Lane | Line, Lane | Line] = {}  # who got a lane -> who got none for it

    def lane(self, line: Line) -> Lane | None:
        """The lane that a line is."""
        if line in self._known:
            return self._known[line]
        slot = self._slot(line)
        found = self._held.get(slot, slot if isinstance(slot, Lane) else None)
        self._known[line] = found
        return found

    def _slot(self, line: Line) -> Lane | Line:
        if line is self._scope.main:
            return self._lanes.main
        above = None if line.parent is None else self.lane(line.parent)
        return line if above is None else above.children.get(line.born, line)

    def line(self, lane: Lane) -> Line | None:
        """The line that a lane is; None if it was not started yet."""
        slot = self._slots.get(lane, lane)
        if isinstance(slot, Line):
            return slot
        if slot.parent is None:
            return self._scope.main if slot is self._lanes.main else None
        above = self.line(slot.parent)
        return None if above is None else above.children.get(slot.born)

    def change(self, line: Line, lane: Lane | None) -> None:
        """The line turns out to be this lane (or none); whoever had its place gets the line's."""
        before, mine = self.lane(line), self._slot(line)
        theirs = self._nobodys.pop(mine, line) if lane is None else self._slots.get(lane, lane)
        self._deal(mine, lane)
        self._deal(theirs, before)
        if lane is not None and before is None:
            self._nobodys[mine] = theirs
        self._known.clear()

    def _deal(self, slot: Lane | Line, lane: Lane | None) -> None:
        self._held[slot] = lane
        if lane is not None:
            self._slots[lane] = slot


class Alike:
    """Finds lanes by what they have called so far and what they call next."""

    def __init__(self, content: Digest, answer: Digest) -> None:
        self._content = content
        self._answer = answer
        self._prefixes: dict[Lane, list[bytes]] = {}
        self._tables: dict[int, dict[tuple[bytes, bytes], deque[Lane]]] = {}
        self._places: dict[Lane, dict[int, list[Lane]]] = {}

    def started(self, lane: Lane, calls: int) -> list[Lane]:
        """The lanes that this one started after so many calls."""
        places = self._places.get(lane)
        if places is None:
            places = self._places[lane] = {}
            for child in lane.children.values():
                places.setdefault(child.born[0], []).append(child)
        return places.get(calls, [])

    def so_far(self, lane: Lane, made: int) -> bytes:
        """A digest of the lane's first calls and their answers."""
        prefixes = self._prefixes.setdefault(lane, [b""])
        while len(prefixes) <= made:
            at = lane.calls[len(prefixes) - 1]
            prefixes.append(sha256(prefixes[-1] + self._content(at) + self._answer(at)).digest())
        return prefixes[made]

    def find(self, group: list[Lane], lane: Lane | None, made: int, content: bytes) -> Iterator[Lane]:
        """The lanes of a group that have called the same as `lane` so far and then call this."""
        table = self._tables.get(id(group))
        if table is None:
            table = self._tables[id(group)] = {}
            for other in group:
                for index, at in enumerate(other.calls):
                    key = (self.so_far(other, index), self._content(at))
                    table.setdefault(key, deque()).append(other)
        found = table.get((b"" if lane is None else self.so_far(lane, made), content))
        for _ in range(len(found or ())):
            assert found is not None
            yield found[0]
            found.rotate(-1)  # it was of no use: the others come first from now on
