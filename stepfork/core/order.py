"""Which recorded calls may come next. Pure; knows lanes and lines, no document and no session.

The rule. A call comes after

1. what its own line called before it;
2. for the first call of a line: what its starter had called before starting it, and the lines that had
   ended by then;
3. what the lines that its own line (or, for 2, the starter) started before it call, unless such a line, or
   one between, is still running on replay: then it may yet make those calls.

Which recorded lane a running line is, is told by where it was started: after which call of its starter, and
as the how-manieth line there. That is a fact of the program and not of the schedule, but not of every one: a
loop over a set starts its tasks in any order. So lanes that were started at the same place and that have made
equal calls with equal answers so far are interchangeable: they change places when a call tells them apart.

A line that has no lane at all continues the line that started it: the recording saw one line where now
something waits for another (a newer framework may run in a task what an older one called).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from stepfork.core.lanes import Lane, Lanes, Place
from stepfork.core.lines import Line, Scope

Digest: TypeAlias = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded call that a line may turn out to make: the `at`-th call, number `index` of `lane`.

    `line` is the line that makes it, the starter's where the calling line continues that.
    """

    at: int
    index: int
    lane: Lane
    line: Line


@dataclass(frozen=True, slots=True)
class LeftOver:
    """Calls that were not made: those that had to be, and those that a line still running may make."""

    missing: list[int]
    running: list[int]


_SETTLED: Final = "settled"
_MAY_COME: Final = "may come"


class Order:
    """What of a recording has been made, and what may be made next.

    Args:
        lanes: the recording.
        scope: the lines of the running program.
        optional: whether a call (by number) may be left out.
        cut_off: whether a call was cancelled; it may be left out where its line was cancelled before it.
        content, answer: digests of what a recorded call asks, and of how it ended.

    >>> from stepfork.core.lanes import assemble
    >>> scope = Scope()
    >>> lanes = assemble([(0, None), (1, None)])
    >>> order = Order(lanes, scope, lambda at: False, lambda at: False, bytes, bytes)
    >>> step = next(order.steps(scope.main, lambda: b""))
    >>> step.at, order.missing(step), order.take(scope.main, step), order.left_over().missing
    (0, None, None, [1])
    """

    def __init__(
        self,
        lanes: Lanes,
        scope: Scope,
        optional: Callable[[int], bool],
        cut_off: Callable[[int], bool],
        content: Digest,
        answer: Digest,
    ) -> None:
        self._lanes = lanes
        self._scope = scope
        self._optional = optional
        self._cut_off = cut_off
        self._made: dict[Line, int] = {}  # how far a line is in its lane
        self._map = _Map(lanes, scope)
        self._alike = _Alike(content, answer)
        self._open: dict[Lane, list[Lane]] = {}  # the lanes it started that are not known to be done
        self._waited: dict[Place, int] = {}  # how many of `Place.waited` are known to be done

    # -- which calls ------------------------------------------------------------------------------------

    def expected(self, line: Line) -> int | None:
        """The call that the line has to make next; None where its lane has ended."""
        line = line.last()
        lane = self._map.lane(line)
        if lane is None:
            above = line.parent or self._scope.main
            return None if above is line else self.expected(above)
        for _, at in self._ahead(line, lane):
            if not self._optional(at):
                return at
        return None

    def steps(self, line: Line, content: Callable[[], bytes]) -> Iterator[Step]:
        """What the line may turn out to call, the likeliest first; `content` is a digest of what it calls."""
        line = line.last()
        lane = self._map.lane(line)
        if lane is not None:
            for index, at in self._ahead(line, lane):
                yield Step(at, index, lane, line)
        made = self._made.get(line, 0)
        if lane is None or lane is not self._lanes.main:
            group = self._beside(line, lane)
            if len(group) > (lane is not None):
                for other in self._alike.find(group, lane, made, content()):
                    if other is not lane and self._may_change(line, lane, other, made):
                        yield Step(other.calls[made], made, other, line)
        if lane is None and not made:
            above, held = line, lane
            while held is None and above is not self._scope.main:
                above = (above.parent or self._scope.main).last()
                held = self._map.lane(above)
            if held is not None:
                for index, at in self._ahead(above, held):
                    yield Step(at, index, held, above)

    def _ahead(self, line: Line, lane: Lane) -> Iterator[tuple[int, int]]:
        """The next call of the lane, and those behind it that may come if it is left out."""
        for index in range(self._made.get(line, 0), len(lane.calls)):
            yield index, lane.calls[index]
            if not self._optional(lane.calls[index]):
                return

    def _beside(self, line: Line, lane: Lane | None) -> list[Lane]:
        """The lanes that were started where this line was."""
        if lane is not None:
            if lane.parent is None:
                return self._lanes.strangers
            return self._alike.started(lane.parent, lane.born[0])
        if line.parent is None:
            return [] if line is self._scope.main else self._lanes.strangers
        above = self._map.lane(line.parent.last())
        if above is None:
            return []
        return self._alike.started(above, line.born[0])

    def _may_change(self, line: Line, lane: Lane | None, other: Lane, made: int) -> bool:
        """Whether the line can turn out to be the other lane: whoever had its place can have this one's."""
        holder = self._map.line(other)
        if (0 if holder is None else self._made.get(holder, 0)) > made:
            return False
        return self._fits(line, other) and (holder is None or lane is None or self._fits(holder, lane))

    def _fits(self, line: Line, lane: Lane) -> bool:
        """Whether what the lines that this one started have called is what the lane's have."""
        for born, child in line.children.items():
            held = self._map.lane(child)
            made = self._made.get(child, 0)
            if made and held is not None:
                there = lane.children.get(born)
                if there is None or self._alike.so_far(held, made) != self._alike.so_far(there, made):
                    return False
            if held is not None and born in lane.children and not self._fits(child, lane.children[born]):
                return False
        return True

    # -- whether it may come now ------------------------------------------------------------------------

    def missing(self, step: Step) -> int | None:
        """A recorded call that has to come before this one and has not been made; None if there is none."""
        lane, line = step.lane, step.line
        before = self._map.lane(line)
        if before is not lane:
            self._change(line, before, lane)
        found = None if self._made.get(line, 0) else self._before(lane, line)
        if found is None:
            found = self._unfinished(lane, step.index, line)
        if before is not lane and found is not None:
            self._change(line, lane, before)
        return found

    def take(self, line: Line, step: Step) -> None:
        """The line makes this call, of which nothing is missing; what is optional before it was left out."""
        line = line.last()
        if line is not step.line:
            line.into = step.line
        self._made[step.line] = step.index + 1

    def _change(self, line: Line, before: Lane | None, lane: Lane | None) -> None:
        """The line becomes another lane; what was known to be done of what they started is asked again."""
        for changed in (before, lane):
            if changed is not None:
                self._open.pop(changed, None)
                for child in changed.children.values():
                    if child.place is not None:
                        self._waited.pop(child.place, None)
        self._map.change(line, lane)

    def _before(self, lane: Lane, caller: Line) -> int | None:
        """What is missing of all that came before the start of the lane."""
        parent = lane.parent
        if parent is None:
            return None
        above = self._map.line(parent)
        made = 0 if above is None else self._made.get(above, 0)
        for at in parent.calls[made : lane.born[0]]:
            if not self._optional(at):
                return at
        if made == 0 and (found := self._before(parent, caller)) is not None:
            return found
        if (found := self._unfinished(parent, lane.born[0] - 1, caller)) is not None:
            return found
        place = lane.place
        if place is not None:
            done = self._waited.get(place, 0)
            for at, other in enumerate(place.waited[done : lane.waits], start=done):
                state = self._state(other, caller)
                if isinstance(state, int):
                    return state
                if state is _SETTLED and at == self._waited.get(place, 0):
                    self._waited[place] = at + 1
        return None

    def _unfinished(self, lane: Lane, index: int, caller: Line) -> int | None:
        """What is missing of the lanes that this one started before its call number `index`."""
        if not lane.children:
            return None
        waiting = self._open.get(lane)
        if waiting is None:
            waiting = list(lane.children.values())
        still: list[Lane] = []
        for at, child in enumerate(waiting):
            if child.born[0] > index:
                still += waiting[at:]
                break
            state = self._state(child, caller)
            if isinstance(state, int):
                return state
            if state is not _SETTLED:
                still.append(child)
        self._open[lane] = still
        return None

    def _state(self, lane: Lane, caller: Line) -> int | Literal["settled", "may come"]:
        """Whether a lane and all it started are done, may go on yet, or left out a call (which)."""
        line = self._map.line(lane)
        if line is not None and line.encloses(caller):
            return _MAY_COME
        if line is None:
            above = None if lane.parent is None else self._map.line(lane.parent)
            if above is not None and above.alive and not above.encloses(caller):
                return _MAY_COME
        elif line.alive:
            return _MAY_COME
        for at in lane.calls[0 if line is None else self._made.get(line, 0) :]:
            if not self._may_be_left_out(at, line):
                return at
        for child in lane.children.values():
            state = self._state(child, caller)
            if state is not _SETTLED:
                return state
        return _SETTLED

    def _may_be_left_out(self, at: int, line: Line | None) -> bool:
        return self._optional(at) or (line is not None and line.cancelled and self._cut_off(at))

    # -- the end ----------------------------------------------------------------------------------------

    def left_over(self) -> LeftOver:
        """The calls that were not made, in the order of the recording."""
        found = LeftOver([], [])
        for lane in (self._lanes.main, *self._lanes.strangers):
            self._collect(lane, running=False, found=found)
        found.missing.sort()
        found.running.sort()
        return found

    def _collect(self, lane: Lane, *, running: bool, found: LeftOver) -> None:
        line = self._map.line(lane)
        if line is not None:
            running = line.alive and line is not self._scope.main
        into = found.running if running else found.missing
        for at in lane.calls[0 if line is None else self._made.get(line, 0) :]:
            if not self._may_be_left_out(at, line):
                into.append(at)
        for child in lane.children.values():
            self._collect(child, running=running, found=found)


class _Map:
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


class _Alike:
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
