"""The calls that a replay makes live (mode ``hybrid``): which they are, and what came of them.

Knows selectors and outcomes; knows no order, no file and no SDK.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepfork.cassette.public import public_call
from stepfork.cassette.values import IMPORTED, ClassPolicy
from stepfork.core.matching import Mismatch
from stepfork.core.model import Call, Incoming, Plain, Recorded, texts_in
from stepfork.core.redaction import Redactor
from stepfork.session.final import redacted_outcome
from stepfork.session.selectors import selects
from stepfork.session.ticket import Ticket

_SAID = ("choices", "output", "text", "tool_calls", "content", "raw")
"""Where in a response, or in a stream as it stands in a cassette, is what the model said."""
_QUOTED = 12  # characters from which on a text of an answer that stands in another is no chance


@dataclass(slots=True, eq=False)
class LiveAnswer:
    """A call that was made live in the place of a recorded one.

    Attributes:
        index: the number of the top-level call that it is, or belongs to.
        call: the question, secrets replaced.
        outcome: the answer, secrets replaced; None before it has come.
    """

    index: int
    call: Incoming
    outcome: dict[str, Plain] | None = None


class LiveAnswers:
    """All of them, of one replay; `selectors` name the calls."""

    def __init__(self, selectors: Sequence[str], redactor: Redactor, classes: ClassPolicy = IMPORTED) -> None:
        self._selectors = selectors
        self._redactor = redactor
        self._classes = classes
        self._by_ticket: dict[Ticket, LiveAnswer] = {}
        self._last: LiveAnswer | None = None

    def chooses(self, call: Incoming) -> bool:
        """Whether a call is to be made live."""
        return call.kind == "llm" and any(selects(selector, call) for selector in self._selectors)

    def unnamed(self) -> list[str]:
        """The selectors that name no call which was made live."""
        made = [answer.call for answer in self._by_ticket.values()]
        return [one for one in self._selectors if not any(selects(one, call) for call in made)]

    def begin(self, ticket: Ticket, index: int) -> LiveAnswer:
        """The call of a ticket takes the place of a recorded one."""
        made = self._by_ticket[ticket] = LiveAnswer(index, ticket.call)
        return made

    def finish(self, ticket: Ticket, outcome: dict[str, Plain]) -> None:
        """It was answered."""
        made = self._last = self._by_ticket[ticket]
        made.outcome = redacted_outcome("llm", outcome, self._redactor)

    def public(self, made: LiveAnswer) -> Call:
        """The call as users see it; without a result as long as there is no answer."""
        return public_call(Recorded(made.call, made.outcome or {}), (), self._classes)

    def blame(self, leaf: Any) -> str:
        """What the last live answer may have to do with a call that is not the recorded one; "" if nothing.

        `leaf` is what the agent sent where the recording has something else.
        """
        last = self._last
        if last is None or last.outcome is None:
            return ""
        if isinstance(leaf, str | int | float) and _says(last.outcome, leaf):
            return f"what differs is said in the live answer of call #{last.index}"
        return f"call #{last.index} was answered live; the difference may come of its answer"


def at_its_place(call: Incoming) -> Incoming:
    """What counts of a call that is made live: that it is one, of this endpoint."""
    target = {key: value for key, value in call.target.items() if key == "method"}
    return replace(call, args=None, target=target)


def _says(outcome: dict[str, Plain], leaf: str | float) -> bool:
    """Whether an answer says what stands at a place of a later call, or is quoted there."""
    asked = str(leaf).strip()
    if len(asked) < 2:
        return False
    word = re.compile(rf"(?<!\w){re.escape(asked)}(?!\w)")
    answer = outcome.get("response", outcome.get("stream", outcome.get("text")))
    said = {key: answer[key] for key in _SAID if key in answer} if isinstance(answer, dict) else answer
    return any(word.search(text) or (len(text) >= _QUOTED and text in asked) for text in texts_in(said))


def leaf_of(mismatch: Mismatch | None, call: Incoming) -> Any:
    """What a call has where it differs from the recorded one: its name where nothing is recorded."""
    if mismatch is not None:
        return mismatch.actual
    return call.name if call.kind == "tool" else None
