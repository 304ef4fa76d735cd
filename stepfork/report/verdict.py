"""What became of the calls of one test, added up over its sessions. Knows closed sessions, no pytest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stepfork.report.answers import Answer, answers_of
from stepfork.session.run import Run
from stepfork.session.spending import Spending


@dataclass(slots=True)
class Verdict:
    """One test's.

    Attributes:
        cassettes: those that it replayed or wrote, in order.
        replayed: top-level calls answered from them.
        recorded: top-level calls newly recorded.
        live: top-level calls really made.
        escaped: connections that were about to leave the process on replay and were refused.
        left_over: recorded calls that had to be made and were not.
        tokens: what the replayed answers had cost when they were recorded.
        spending: what live LLM calls took.
        answers: where each answer came from, if some may have been live.
        drifted: whether a session found a fault of the trajectory.
    """

    cassettes: list[Path] = field(default_factory=list)
    replayed: int = 0
    recorded: int = 0
    live: int = 0
    escaped: int = 0
    left_over: int = 0
    tokens: int = 0
    spending: Spending = field(default_factory=Spending)
    answers: list[Answer] = field(default_factory=list)
    drifted: bool = False

    def add(self, run: Run) -> None:
        """Counts a session that has closed."""
        self.escaped += sum(run.blocked.values())
        if not run.touched:
            return
        counts = run.counts
        self.cassettes.append(run.path if run.written is None else run.written.path)
        self.replayed += counts.substituted
        self.recorded += counts.recorded if run.action == "record" else 0
        self.live += counts.live
        self.left_over += run.missing
        self.tokens += run.tokens
        self.spending.add(run.spending)
        self.answers += answers_of(run)
        self.drifted = self.drifted or run.fault is not None

    @property
    def has_traffic(self) -> bool:
        """Whether any patched call was made, or any recorded one missed."""
        return bool(self.cassettes)

    @property
    def word(self) -> str:
        """``drifted``, ``recorded``, ``hybrid``, ``replayed`` or ``no traffic``.

        >>> Verdict().word, Verdict([Path("a.yaml")], replayed=3).word
        ('no traffic', 'replayed')
        """
        if self.drifted:
            return "drifted"
        if not self.has_traffic:
            return "no traffic"
        if self.recorded:
            return "recorded"
        return "hybrid" if any(answer.answer == "live" for answer in self.answers) else "replayed"

    def properties(self, shown: Callable[[Path], str] = str) -> list[tuple[str, str]]:
        """Name and value of each property for ``--junitxml``.

        >>> Verdict([Path("a.yaml")], replayed=3).properties()[:3]
        [('stepfork.verdict', 'replayed'), ('stepfork.cassette', 'a.yaml'), ('stepfork.replayed', '3')]
        """
        return [
            ("stepfork.verdict", self.word),
            *(("stepfork.cassette", shown(path)) for path in dict.fromkeys(self.cassettes)),
            *((f"stepfork.{name}", str(getattr(self, name))) for name in _COUNTED),
            ("stepfork.requests", str(self.spending.requests)),
            ("stepfork.tokens_spent", self.spending.tokens_shown),
            *([("stepfork.cost", self.spending.cost_text)] if self.spending.cost_text else []),
        ]

    def line(self) -> str:
        """All of it in a line.

        >>> Verdict([Path("a.yaml")], replayed=3, left_over=1).line()
        'replayed 3, left over 1'
        """
        counts = [(name.replace("_", " "), getattr(self, name)) for name in _COUNTED if name != "tokens"]
        line = ", ".join(f"{name} {count}" for name, count in counts if count) or "no traffic"
        spent = self.spending.text()
        return f"{line}; {spent}" if spent else line


_COUNTED = ("replayed", "recorded", "live", "escaped", "left_over", "tokens")
