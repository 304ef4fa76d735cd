"""Which answers of a run were live and which came from the cassette. Knows sessions; prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from stepfork.session.run import Run
from stepfork.session.selectors import model_of

_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """Where the answer of a top-level call came from: ``"live"`` or ``"substituted"``."""

    number: int
    kind: str
    name: str
    model: str | None
    answer: str

    def text(self) -> str:
        """In a line.

        >>> Answer(1, "llm", "chat.completions", "gpt-4o", "live").text()
        '#1  llm chat.completions gpt-4o  live'
        """
        model = "" if self.model is None else f" {self.model}"
        return f"#{self.number}  {self.kind} {self.name}{model}  {self.answer}"


def answers_of(run: Run) -> tuple[Answer, ...]:
    """Those of a replay some of whose calls may be live; none of any other session."""
    if not run.goes_live:
        return ()
    live = set(run.live_calls)
    return tuple(
        Answer(
            number,
            call.kind,
            call.name,
            str(model) if call.kind == "llm" and (model := model_of(call.args)) is not None else None,
            "live" if number in live else "substituted",
        )
        for number, call in enumerate(run.calls, 1)
    )


def answers_text(answers: Sequence[Answer]) -> list[str]:
    """A line for each of them; of very many only the first."""
    more = len(answers) - _SHOWN
    return [*(answer.text() for answer in answers[:_SHOWN]), *([f"and {more} more"] if more > 0 else [])]


def answers_json(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [asdict(answer) for answer in answers]
