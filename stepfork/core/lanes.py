"""How concurrency stands in a recording: marks on calls -> a tree of lanes. Pure; knows no document.

A call without a mark was made by the main line. Any other has the name of its *lane*: ``a``, ``b`` for lines
that the main line started, ``b.a`` for one that lane b started, ``A`` for a line that came from outside. The
calls of a lane, and of the lanes it started, stand together, right before the next call of the line that
started it; so names begin anew after each call of that line.

`layout.py` gives calls their order and their marks; `assemble` reads them back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from stepfork.core.lines import DEEPEST, Position

_LONGEST: Final = 1000
_MOST: Final = 10**6
_NAME: Final = re.compile(r"([a-z]+|[A-Z]+)(\.[a-z]+)*\Z")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a call says of its lane; all but the name stand on the lane's first call only.

    Attributes:
        lane: its name.
        started: the how-manieth line it was that its starter started there (from 1), where that is not one
            more than of the lane before; for lanes above it that made no call, theirs come first.
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


class Place:
    """The lanes that were started between two calls of one line.

    Attributes:
        lanes: they, in the order of the file.
        waited: those that had ended before another was started; a lane follows the first `Lane.waits` ones.
    """

    __slots__ = ("known", "lanes", "waited")

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.waited: list[Lane] = []
        self.known: set[Lane] = set()  # the same


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
    if len(mark.lane) > _LONGEST or _NAME.match(mark.lane) is None:
        name = f"{mark.lane[:40]!r}{'...' if len(mark.lane) > 40 else ''}"
        raise BadMark(at, "lane", f"{name} is no name of a lane: letters, with dots between levels")
    if mark.lane.count(".") > DEEPEST:
        raise BadMark(at, "lane", f"lanes are nested at most {DEEPEST} deep")
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
    if any(number > _MOST for number in mark.started):
        raise BadMark(at, "started", f"at most {_MOST} lines are started in one place")
    given = (0,) * (len(fresh) - len(mark.started)) + mark.started
    for lane, number in zip(fresh, given, strict=True):
        parent = lane.parent
        assert parent is not None
        place = lane.place = parent.started
        last = place.lanes[-1].born[1] if place.lanes else -1
        lane.born = (len(parent.calls), number - 1 if number else last + 1)
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
                if other in lane.place.known:
                    raise BadMark(at, "after", f"lane {full!r} is named here or by a lane before it already")
                lane.place.waited.append(other)
                lane.place.known.add(other)
                break
        else:
            raise BadMark(at, "after", f"no lane {full!r} was started before this one there")
    for lane in fresh:
        lane.waits = len(lane.place.waited) if lane.place is not None else 0
