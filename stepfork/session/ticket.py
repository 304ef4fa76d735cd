"""A live call in progress, and what is known of it once it has ended. Knows no file and answers nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stepfork.cassette.bases import Asked
from stepfork.cassette.shared import Large
from stepfork.core.lines import Line, Scope
from stepfork.core.model import Incoming


@dataclass(slots=True, eq=False)
class Ticket:
    """A live call in progress; handed back with its outcome.

    `line` is who makes it, `scope` the lines that make calls inside of it, `depth` inside of how many calls
    it is made, `start` how many were taken down before it. Once it has ended, `text` is its document, `asked`
    how that tells the question of an LLM call, `large` what of it is worth sharing, `in_pieces` whether it
    has texts in pieces, which only joined give a secret away.
    """

    call: Incoming
    parent: Ticket | None
    line: Line
    scope: Scope = field(default_factory=Scope)
    depth: int = field(init=False)
    start: int = -1
    asked: Asked | None = None
    text: str | None = None
    found: int = 0  # how many secrets were known when the question was written
    large: Sequence[Large] = ()
    in_pieces: bool = False

    def __post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1
