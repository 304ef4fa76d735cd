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
from typing import Final, Literal

from stepfork.core.lane_map import Alike, Digest, LaneMap
from stepfork.core.lanes import Lane, Lanes, Place
from stepfork.core.lines import Line, Scope


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
        self._map = LaneMap(lanes, scope)
        self._alike = Alike(content, answer)
        self._open: dict[Lane, deque[Lane]] = {}  # the lanes it started that are not known to be done
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
            waiting = self._open[lane] = deque(lane.children.values())
        while waiting and waiting[0].born[0] <= index:
            state = self._state(waiting[0], caller)
            if isinstance(state, int):
                return state
            waiting.popleft()  # what may come yet and does not is left over at the end
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
