"""What many sessions did, added up, and the one line that says it. Knows sessions that have closed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from stepfork.session.run import Run
from stepfork.session.spending import Spending


@dataclass(slots=True)
class Tally:
    """What all sessions of a test run did, for the summary line."""

    tests: int = 0
    replayed: int = 0
    live: int = 0
    newly_recorded: int = 0
    tokens: int = 0
    went_past: int = 0
    spending: Spending = field(default_factory=Spending)
    unchecked: dict[str, int] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Counts a session that has closed."""
        if not run.touched:
            return
        counts = run.counts
        self.replayed += counts.substituted
        self.live += counts.live
        self.newly_recorded += counts.recorded if run.action == "record" else 0
        self.tokens += run.tokens
        self.went_past += run.went_past
        self.spending.add(run.spending)
        self._add_unchecked(run.unchecked)

    def _add_unchecked(self, more: dict[str, int]) -> None:
        for name, calls in more.items():
            self.unchecked[name] = self.unchecked.get(name, 0) + calls

    def merge(self, other: dict[str, Any]) -> None:
        """Adds the tally of another process."""
        self._add_unchecked(other.get("unchecked", {}))
        self.spending.add(Spending(**other.get("spending", {})))
        for one in fields(self):
            if one.name not in ("unchecked", "spending"):
                setattr(self, one.name, getattr(self, one.name) + other.get(one.name, 0))

    def hidden(self) -> list[str]:
        """A line for each tool whose body made LLM calls that were answered with it.

        >>> Tally(unchecked={"research": 2}).hidden()
        ["tool 'research': 2 LLM calls inside it not checked; to check them: through = ['research']"]
        """
        return [unchecked_text(name, calls) for name, calls in self.unchecked.items()]

    def line(self) -> str:
        """The summary line.

        >>> Tally(tests=12, replayed=96, tokens=48_200).line()
        'stepfork: 12 tests, 96 calls replayed, 0 live, 0 newly recorded; 48k tokens not spent'
        """
        text = (
            f"stepfork: {_count(self.tests, 'test')}, {_count(self.replayed, 'call')} replayed, "
            f"{self.live} live, {self.newly_recorded} newly recorded"
        )
        if self.tokens:
            text += f"; {_thousands(self.tokens)} tokens not spent"
        if spent := self.spending.text():
            text += f"; {spent}"
        if self.went_past:
            text += f"; {_count(self.went_past, 'run')} went past the recorded failure"
        return text


def unchecked_text(name: str, calls: int) -> str:
    """What to say of a tool whose body made LLM calls when it was recorded."""
    return (
        f"tool {name!r}: {_count(calls, 'LLM call')} inside it not checked; "
        f"to check them: through = [{name!r}]"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _thousands(number: int) -> str:
    return f"{number // 1000}k" if number >= 10_000 else str(number)
