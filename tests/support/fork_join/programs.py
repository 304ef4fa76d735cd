"""Programs of lines that fork and join, as data. Knows neither how they run nor what is ordered in them.

A *program* is a tree of steps for one line of control. ``how`` names what starts a line: a thread, a task, an
item of a pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

WORKERS = 40
"""More than any generated program has lines, so that a submitted item never waits for a worker."""

TOOLS = ("alpha", "beta", "gamma", "special", "ticket")
"""All but the last answer the same whenever they are asked the same; each ticket has the next number."""


@dataclass(frozen=True)
class Call:
    """A tool call."""

    tool: str
    arg: Any

    @property
    def content(self) -> tuple[str, Any]:
        return self.tool, self.arg


@dataclass(frozen=True)
class Fork:
    """Starts a line; one that `linger`s stays alive until all others have ended."""

    handle: int
    body: Steps
    how: str
    linger: bool = False


@dataclass(frozen=True)
class Join:
    """Waits for a line that the same line started."""

    handle: int


@dataclass(frozen=True)
class Group:
    """Starts all bodies, makes its own calls `meanwhile`, and waits for all."""

    bodies: tuple[Steps, ...]
    how: str
    meanwhile: tuple[Call, ...] = ()
    workers: int = WORKERS


@dataclass(frozen=True)
class Inline:
    """Runs its body in another task or thread and waits for it at once, so it is sequential."""

    body: Steps
    how: str


Step: TypeAlias = Call | Fork | Join | Group | Inline
Steps: TypeAlias = tuple[Step, ...]

Trace: TypeAlias = list[tuple[str, tuple[str, Any]]]
"""The calls of one run in the order of their starts: which line, which content."""


@dataclass(frozen=True)
class Program:
    """What the main line does.

    Attributes:
        coroutine: whether the main line is a coroutine.
        inside: whether a coroutine opens the session itself, or whoever runs the event loop does.
        pool: the pool for submitted items is made inside the session, outside of it, or outlives all of them.
        overlap: whether other lines may go on while a recorded tool body runs.
        later: whether coroutines call the async tools.
    """

    main: Steps
    coroutine: bool = False
    inside: bool = False
    pool: str = "inside"
    overlap: bool = False
    later: bool = False


def threads(*steps: Step, **settings: Any) -> Program:
    """A program whose main line is plain code."""
    return Program(steps, **settings)


def tasks(*steps: Step, **settings: Any) -> Program:
    """A program whose main line is a coroutine."""
    return Program(steps, coroutine=True, **settings)
