"""The lines of a finished run -> the order of its calls in a recording, and their marks. Pure.

The other way is `lanes.assemble`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stepfork.core.lanes import Mark
from stepfork.core.lines import Line, Scope


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
        self._done: dict[Line, tuple[list[Any], list[list[_Started]], int]] = {}

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
        calls, places, _ = self._done_by(line)
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

    def _done_by(self, line: Line) -> tuple[list[Any], list[list[_Started]], int]:
        """The calls of a line, the lines with calls that it started before each of them and at the end, and
        how many lines it started after the last of them.

        A line that it waited for before it did anything else, and that did nothing at the same time as
        others, stands as its own calls: what that one started is started by itself then.
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
                inner, inside, more = self._done_by(child)
                if child.joined and not places[-1] and not any(inside):
                    calls += inner
                    places += [[] for _ in inner]
                    started, waited = more, []
                else:
                    places[-1].append(_Started(child, started, waited))
                    waited = []
            if at < len(line.calls) and self._keep(line.calls[at]):
                calls.append(line.calls[at])
                places.append([])
                started, waited = 0, []
        self._done[line] = calls, places, started
        return calls, places, started

    def _started(
        self,
        place: list[_Started],
        name: str,
        above: tuple[tuple[int, int], ...],
        after: tuple[str, ...],
    ) -> Iterator[tuple[Any, Mark | None]]:
        """The rows of the lines that were started at one place, those that waited for none other sorted."""
        names: dict[Line, str] = {}
        last = 0
        here = {one.line for one in place}
        batches: list[tuple[list[Line], list[_Started]]] = []
        for one in place:
            waited = [other for other in one.waited if other in here]
            if waited or not batches:
                batches.append((waited, []))
            batches[-1][1].append(one)
        for known, together in batches:
            behind = tuple(sorted((names[other] for other in known), key=lambda name: (len(name), name)))
            if len(together) > 1:
                together.sort(key=lambda one: self.content(one.line))
            for one in together:
                letters = _letters(len(names))
                names[one.line] = f"{name}.{letters}" if name else letters
                levels = (*above, (one.number, last + 1))
                last = one.number
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


def ambiguous(
    scope: Scope, key: Callable[[Any], Any], answer: Callable[[Any], Any]
) -> Iterator[tuple[Any, Any]]:
    """Pairs of equal calls that lines started together made, with different answers.

    Nothing but the order in which such lines are started says which of the answers is whose. `key` and
    `answer` of a call say what it asked and how it ended.
    """
    lines = [scope.main, *scope.strangers]
    for line in lines:
        lines += line.children.values()
        together: list[Line] = []
        place = -1
        for child in (*line.children.values(), None):
            if child is None or child.born[0] != place or child.after:
                yield from _told_apart(together, key, answer)
                together = []
            if child is not None:
                place = child.born[0]
                together.append(child)


def _told_apart(
    together: list[Line], key: Callable[[Any], Any], answer: Callable[[Any], Any]
) -> Iterator[tuple[Any, Any]]:
    groups = [together] if len(together) > 1 else []
    index = 0
    while groups:
        further: list[list[Line]] = []
        for group in groups:
            by_call: dict[Any, list[Line]] = {}
            for line in group:
                if len(line.calls) > index:
                    by_call.setdefault(key(line.calls[index]), []).append(line)
            for alike in by_call.values():
                by_answer: dict[Any, list[Line]] = {}
                for line in alike if len(alike) > 1 else ():
                    by_answer.setdefault(answer(line.calls[index]), []).append(line)
                firsts = [lines[0].calls[index] for lines in by_answer.values()]
                yield from pairwise(firsts)
                further += [lines for lines in by_answer.values() if len(lines) > 1]
        groups = further
        index += 1
