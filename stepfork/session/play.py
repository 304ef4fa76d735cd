"""The calls of one scope on replay, and the bodies that run in it. Knows order; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepfork.cassette.store import StoredCassette
from stepfork.core.lines import Scope
from stepfork.core.model import Incoming, Recorded
from stepfork.core.order import Order


class Play:
    """The calls of one scope on replay: those of the run, or those inside one call whose body runs.

    `number` is the top-level call that they belong to, None for the run's own.
    """

    def __init__(
        self,
        cassette: StoredCassette,
        calls: Sequence[int],
        scope: Scope,
        print_of: Callable[[Incoming], bytes],
        answer_of: Callable[[Recorded], bytes],
        number: int | None = None,
    ) -> None:
        self.calls = calls
        self.number = number
        self._cassette = cassette
        self.order = Order(
            cassette.lanes(calls),
            scope,
            optional=lambda at: self.recorded(at).unfinished,
            cut_off=lambda at: "cancelled" in self.recorded(at).outcome,
            content=lambda at: print_of(self.recorded(at).call),
            answer=lambda at: answer_of(self.recorded(at)),
        )

    def recorded(self, at: int) -> Recorded:
        """The call of that number in this scope."""
        return self._cassette.recorded(self.calls[at])

    def index(self, at: int) -> int:
        """The number of the top-level call that the call of that number is or belongs to, from 1."""
        return at + 1 if self.number is None else self.number


@dataclass(slots=True, eq=False)
class Body:
    """A tool whose body runs on replay: the calls inside of it are answered instead (``through``)."""

    name: str
    scope: Scope
    play: Play
