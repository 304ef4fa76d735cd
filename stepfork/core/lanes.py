"""How concurrency stands in a recording: marks on calls <-> a tree of lanes. Pure; knows no document.

A call without a mark was made by the main line. Any other has the name of its *lane*: ``a``, ``b`` for lines
that the main line started, ``b.a`` for one that lane b started, ``A`` for a line that came from outside. The
calls of a lane, and of the lanes it started, stand together, right before the next call of the line that
started it; so names begin anew after each call of that line.

`layout` gives the calls of a tree their order and their marks, `assemble` reads them back.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stepfork.core.lines import Line, Position, Scope

_NAME: Final = re.compile(r"([a-z]+|[A-Z]+)(\.[a-z]+)*\Z")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a call says of its lane; all but the name stand on the lane's first call only.

    Attributes:
        lane: its name.
        started: the how-manieth line it was that its starter started there (from 1), where the place in the
            file does not say so; for lanes above it that made no call, theirs come first.
        after: lanes started at the same place that had ended before this one was started, beyond those that
            the lane before it names.
    """

    lane: str
    started: tuple[int, ...] = ()
    after: tuple[str, ...] = ()


class BadMark(Exception):
    """A mark that contradicts the others. `at` is its call, `field` the field that is wrong."""

    def __init__(self, at: int, field: str, problem: str) -> None:
        super().__init__(problem)
        self.at, self.field, self.problem = at, field, problem


# -- writing ----------------------------------------------------------------------------------------


def layout(
    scope: Scope, key: Callable[[Any], Any], keep: Callable[[Any], bool] = lambda call: True
) -> list[tuple[Any, Mark | None]]:
    """The calls of a scope in the order of a finished recording, with their marks; only those to `keep`.

    Lines that were started at the same place, and of which none had to wait for another, are sorted by what
    they called (`key` of a call), so that the order says nothing of the schedule.

    >>> scope = Scope()
    >>> left, right = scope.main.fork(), scope.main.fork()
    >>> left.add("b"), right.add("a"), scope.main.add("z")
    (None, None, None)
    >>> [(call, mark and mark.lane) for call, mark in layout(scope, str)]
    [('a', 'a'), ('b', 'b'), ('z', None)]
    """
    writer = _Writer(key, keep)
    rows = list(writer.line(scope.main, "", ()))
    strangers = sorted(filter(writer.has_calls, scope.strangers), key=writer.content)
    for number, line in enumerate(strangers):
        rows += writer.line(line, _letters(number).upper(), ())
    return rows


class _Writer:
    def __init__(self, key: Callable[[Any], Any], keep: Callable[[Any], bool]) -> None:
        self._key = key
        self._keep = keep
        self._done: dict[Line, tuple[list[Any], list[list[_Started]]]] = {}

    def has_calls(self, line: Line) -> bool:
        """Whether there is anything to write of a line."""
        return any(map(self._keep, line.calls)) or any(map(self.has_calls, line.children.values()))

    def content(self, line: Line) -> list[Any]:
        """What a line and those it started called: what lines are sorted by."""
        found = [self._key(call) for call in line.calls if self._keep(call)]
        for child in line.children.values():
            found += self.content(child)
        return found

    def line(
        self, line: Line, name: str, above: tuple[tuple[int, int], ...], after: tuple[str, ...] = ()
    ) -> Iterator[tuple[Any, Mark | None]]:
        """The rows of one line and of those it started. `above`: ``(number, expected number)`` by level."""
        calls, places = self._done_by(line)
        first = True
        for at, place in enumerate(places):
            for row in self._started(place, name, above if first else (), after if first else ()):
                first = False
                yield row
            if at < len(calls):
                mark = None
                if name:
                    mark = Mark(name, _numbers(above), after) if first else Mark(name)
                first = False
                yield calls[at], mark

    def _done_by(self, line: Line) -> tuple[list[Any], list[list[_Started]]]:
        """The calls of a line, and the lines with calls that it started before each of them and at the end.

        A line that it waited for before it did anything else, and that did nothing at the same time as
        others, stands as its own calls.
        """
        known = self._done.get(line)
        if known is not None:
            return known
        calls: list[Any] = []
        places: list[list[_Started]] = [[]]
        started = 0
        waited: list[Line] = []
        children = deque(line.children.values())
        for at in range(len(line.calls) + 1):
            while children and children[0].born[0] == at:
                child = children.popleft()
                started += 1
                waited += child.after
                if not self.has_calls(child):
                    continue
                inner, inside = self._done_by(child)
                if child.joined and not places[-1] and not any(inside):
                    calls += inner
                    places += [[] for _ in inner]
                    started, waited = 0, []
                else:
                    places[-1].append(_Started(child, started, waited))
                    waited = []
            if at < len(line.calls) and self._keep(line.calls[at]):
                calls.append(line.calls[at])
                places.append([])
                started, waited = 0, []
        self._done[line] = calls, places
        return calls, places

    def _started(
        self,
        place: list[_Started],
        name: str,
        above: tuple[tuple[int, int], ...],
        after: tuple[str, ...],
    ) -> Iterator[tuple[Any, Mark | None]]:
        """The rows of the lines that were started at one place, those that waited for none other sorted."""
        names: dict[Line, str] = {}
        here = {one.line for one in place}
        batches: list[tuple[list[Line], list[_Started]]] = []
        for one in place:
            waited = [other for other in one.waited if other in here]
            if waited or not batches:
                batches.append((waited, []))
            batches[-1][1].append(one)
        for known, together in batches:
            behind = tuple(names[other] for other in known)
            if len(together) > 1:
                together.sort(key=lambda one: self.content(one.line))
            for one in together:
                number = len(names)
                names[one.line] = f"{name}.{_letters(number)}" if name else _letters(number)
                levels = (*above, (one.number, number + 1))
                yield from self.line(one.line, names[one.line], levels, (*after, *behind))
                above, after, behind = (), (), ()


@dataclass(frozen=True, slots=True)
class _Started:
    """A line, the how-manieth it was that was started there, and which had ended since the one before."""

    line: Line
    number: int
    waited: list[Line]


def _numbers(levels: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The numbers to write: none where the file's order says them all."""
    wrong = [at for at, (number, expected) in enumerate(levels) if number != expected]
    return tuple(number for number, _ in levels[wrong[0] :]) if wrong else ()


def _letters(number: int) -> str:
    """0 -> a, 25 -> z, 26 -> aa.

    >>> _letters(0), _letters(25), _letters(26), _letters(702)
    ('a', 'z', 'aa', 'aaa')
    """
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


# -- reading ----------------------------------------------------------------------------------------


class Place:
    """The lanes that were started between two calls of one line.

    Attributes:
        lanes: they, in the order of the file.
        waited: those that had ended before another was started; a lane follows the first `Lane.waits` ones.
    """

    __slots__ = ("lanes", "waited")

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.waited: list[Lane] = []


class Lane:
    """One line of control of a recording.

    Attributes:
        name: as in the marks; empty for the main line.
        parent: the lane that started it; None for the main line and for those from outside.
        born: the parent's position when it was started.
        place: with which others it was started.
        waits: how many of `place.waited` it follows.
        calls: what it called, by number.
        children: the lanes it started, by position, in the order of the file.
    """

    __slots__ = ("born", "calls", "children", "name", "named", "parent", "place", "started", "waits")

    def __init__(self, name: str = "", parent: Lane | None = None) -> None:
        self.name = name
        self.parent = parent
        self.born: Position = (0, 0)
        self.place: Place | None = None
        self.waits = 0
        self.calls: list[int] = []
        self.children: dict[Position, Lane] = {}
        self.started = Place()  # since its last call
        self.named: dict[str, Lane] = {}  # the same, by name

    def add(self, call: int) -> None:
        """It made this call; what it starts from now on has names of its own."""
        self.calls.append(call)
        self.started, self.named = Place(), {}


@dataclass(frozen=True, slots=True)
class Lanes:
    """All lanes of a recording: the main line, and those from outside."""

    main: Lane
    strangers: list[Lane]


def assemble(marks: Iterable[tuple[int, Mark | None]]) -> Lanes:
    """The lanes of a recording from the marks of its calls, in the order of the file.

    Raises:
        BadMark: for marks that contradict each other.

    >>> lanes = assemble([(0, Mark("a")), (1, Mark("b")), (2, None)])
    >>> [lane.calls for lane in lanes.main.children.values()], lanes.main.calls
    ([[0], [1]], [2])
    """
    main = Lane()
    strangers: dict[str, Lane] = {}
    for at, mark in marks:
        (main if mark is None else _lane(at, mark, main, strangers)).add(at)
    return Lanes(main, list(strangers.values()))


def _lane(at: int, mark: Mark, main: Lane, strangers: dict[str, Lane]) -> Lane:
    """The lane of a mark; made, with those above it that made no call, where it is new."""
    if _NAME.match(mark.lane) is None:
        raise BadMark(at, "lane", f"{mark.lane!r} is no name of a lane: letters, with dots between levels")
    step, fresh = main, []
    for level, name in enumerate(mark.lane.split(".")):
        outside = level == 0 and name[0].isupper()
        known = strangers if outside else step.named
        if name not in known:
            known[name] = Lane(f"{step.name}.{name}" if step.name else name, None if outside else step)
            if not outside:
                fresh.append(known[name])
        step = known[name]
    if not fresh and (mark.started or mark.after):
        field = "started" if mark.started else "after"
        raise BadMark(at, field, f"lane {mark.lane!r} began before; only its first call may say this")
    _number(at, mark, fresh)
    _wait(at, mark, fresh)
    return step


def _number(at: int, mark: Mark, fresh: Sequence[Lane]) -> None:
    """Says which of the lines started there each new lane was."""
    if len(mark.started) > len(fresh):
        raise BadMark(at, "started", f"at most {len(fresh)} numbers here, found {len(mark.started)}")
    given = (0,) * (len(fresh) - len(mark.started)) + mark.started
    for lane, number in zip(fresh, given, strict=True):
        parent = lane.parent
        assert parent is not None
        place = lane.place = parent.started
        lane.born = (len(parent.calls), (number or len(place.lanes) + 1) - 1)
        if lane.born in parent.children:
            raise BadMark(at, "started", f"another lane was number {lane.born[1] + 1} there already")
        parent.children[lane.born] = lane
        place.lanes.append(lane)


def _wait(at: int, mark: Mark, fresh: Sequence[Lane]) -> None:
    """Adds what the new lanes waited for to what is known there."""
    for full in mark.after:
        above, _, name = full.rpartition(".")
        for lane in fresh:
            assert lane.parent is not None
            assert lane.place is not None
            other = lane.parent.named.get(name)
            if lane.parent.name == above and other is not None and other is not lane:
                if other not in lane.place.waited:
                    lane.place.waited.append(other)
                break
        else:
            raise BadMark(at, "after", f"no lane {full!r} was started before this one there")
    for lane in fresh:
        lane.waits = len(lane.place.waited) if lane.place is not None else 0
