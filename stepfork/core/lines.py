"""The lines of control of a running program, and who started whom. Pure: knows no thread, no task, no file.

A *line* is what runs one thing after another: the main program, a task, a thread, a work item of a pool.
Lines of one session form a tree. A line's *position* is how many calls it has made and how many lines it
has started since the last of them: facts of the program's text, whatever the schedule.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Position: TypeAlias = tuple[int, int]
"""``(calls made, lines started since the last of them)``."""

DEEPEST: Final = 100
"""What lines nested deeper than this do counts as done by the line that started them."""


class Line:
    """One line of control.

    Attributes:
        scope: the session, or the call, that it runs in.
        parent: the line that started it; None for the main line and for strangers.
        born: the parent's position when it was started.
        after: lines started at the same call of the parent that had ended since it last started one.
        calls: what it called, in order; whatever the owner of the tree puts there.
        children: the lines it started, by position.
        alive: whether it may still make calls.
        cancelled: whether it ended by being cancelled.
        joined: whether its starter waited for its end before it did anything else.
        into: the line that it continues, if it turned out to be no line of its own.

    >>> scope = Scope()
    >>> first = scope.main.fork()
    >>> first.end()
    >>> second = scope.main.fork()
    >>> second.born, second.after == (first,)
    ((0, 1), True)
    """

    __slots__ = (
        "_ended",
        "after",
        "alive",
        "born",
        "calls",
        "cancelled",
        "children",
        "depth",
        "forks",
        "into",
        "joined",
        "parent",
        "scope",
    )

    def __init__(self, scope: Scope, parent: Line | None = None) -> None:
        self.scope = scope
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.born: Position = (0, 0) if parent is None else parent.position
        self.after: tuple[Line, ...] = ()
        self.calls: list[Any] = []
        self.children: dict[Position, Line] = {}
        self.forks = 0
        self.alive = True
        self.cancelled = False
        self.joined = False
        self.into: Line | None = None
        self._ended: list[Line] = []

    @property
    def position(self) -> Position:
        """How many calls it made, and how many lines it started since the last of them."""
        return len(self.calls), self.forks

    def last(self) -> Line:
        """The line that this one continues, or itself."""
        line = self
        while line.into is not None:
            line = line.into
        return line

    def fork(self) -> Line:
        """Starts a line."""
        if self.into is not None:
            return self.last().fork()
        line = Line(self.scope, self)
        if line.depth > DEEPEST:
            line.into = self
            return line
        line.after, self._ended = tuple(self._ended), []
        self.children[line.born] = line
        self.forks += 1
        return line

    def add(self, call: Any) -> None:
        """It makes a call."""
        self.calls.append(call)
        self.forks = 0
        self._ended = []

    def end(self, *, cancelled: bool = False) -> None:
        """It has ended; a second end is ignored."""
        if self.alive:
            self.alive = False
            self.cancelled = cancelled
            if self.parent is not None and self.parent.position[0] == self.born[0]:
                self.parent._ended.append(self)

    def join(self) -> None:
        """Its starter has just seen its end, and would have waited for it."""
        parent = self.parent
        if parent is not None and not self.alive and parent.position == (self.born[0], self.born[1] + 1):
            self.joined = True

    def encloses(self, other: Line) -> bool:
        """Whether the other is this line, or was started by it or by one that it started."""
        step: Line | None = other
        while step is not None and step.depth > self.depth:
            step = step.parent
        return step is self


class Scope:
    """The lines of one session, or of the body of one call.

    Attributes:
        main: the line that opened it.
        strangers: lines that none of its lines started, in the order in which they first called.
    """

    __slots__ = ("main", "strangers")

    def __init__(self) -> None:
        self.main = Line(self)
        self.strangers: list[Line] = []

    @property
    def in_use(self) -> bool:
        """Whether there can be any call in it."""
        return bool(self.main.calls or self.main.children or self.strangers)

    def stranger(self) -> Line:
        """A line that comes from outside."""
        line = Line(self)
        self.strangers.append(line)
        return line
