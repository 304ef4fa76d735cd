"""Schedules: who goes next among the lines that could. Knows only how many those are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st


@dataclass(frozen=True)
class Schedule:
    """Who goes next: given choices first, then a habit.

    Lines stand in the order in which they were started. ``oldest`` lets a line start its work only when those
    before it wait or have ended; ``newest`` runs a line to its end before its starter goes on.
    """

    choices: tuple[int, ...] = ()
    then: str = "oldest"
    seed: int = 0

    def chooser(self) -> Callable[[int], int]:
        """A function from the number of lines that could go on to the place of the one that does."""
        given = iter(self.choices)
        random = Random(self.seed)

        def choose(width: int) -> int:
            choice = next(given, None)
            if choice is not None:
                return choice % width
            return {"oldest": 0, "newest": width - 1}.get(self.then, random.randrange(width))

        return choose


OLDEST, NEWEST = Schedule(), Schedule(then="newest")


def schedules() -> st.SearchStrategy[Schedule]:
    """Any schedule."""
    return st.one_of(
        st.sampled_from([OLDEST, NEWEST]),
        st.builds(Schedule, then=st.just("random"), seed=st.integers(0, 2**20)),
        st.builds(
            Schedule,
            choices=st.lists(st.integers(0, 7), max_size=30).map(tuple),
            then=st.sampled_from(["oldest", "newest"]),
        ),
    )
