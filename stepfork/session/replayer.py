"""Answers calls from a stored cassette, strictly. Knows order and matching; knows no SDK and no live call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stepfork.cassette.store import StoredCassette
from stepfork.core.matching import match
from stepfork.core.model import Call, Incoming, Plain, Recorded, Tagged
from stepfork.core.order import Order
from stepfork.core.redaction import Redactor
from stepfork.core.renaming import PLACEHOLDER, Renaming
from stepfork.core.secret_names import normalise
from stepfork.errors import ReplayMismatchError
from stepfork.session import faults


class PastRecording(BaseException):
    """Ends a run that went on past a recorded failure. No ``except Exception`` of an agent sees it."""


class Replayer:
    """One replay of one cassette."""

    def __init__(
        self, cassette: StoredCassette, redactor: Redactor, hints: faults.Hints, past_failure: str
    ) -> None:
        self.cassette = cassette
        self._redactor = redactor
        self._renaming = Renaming(self._shown_later)
        self._trying = 0
        self._shown: dict[str, int] | None = None  # placeholder -> the last call that holds it as its secret
        self._tops = cassette.tops
        self._order = Order(len(self._tops), lambda at: cassette.recorded(self._tops[at]).unfinished)
        self._made: list[int] = []
        self._where = faults.Where(cassette.path, len(self._tops), hints)
        self._stop_past = past_failure == "stop" and cassette.status != "completed"

    def answer(self, call: Incoming) -> Recorded:
        """The recorded call that this one is.

        Raises:
            ReplayMismatchError: if it is not the one that comes next.
            PastRecording: if all recorded calls of a failed run are used up and the run may go on.
            CassetteError: if the next document cannot be read.
        """
        __tracebackhide__ = True
        call = replace(call, args=self._redactor.redact(call.args), target=self._redact_target(call))
        first: ReplayMismatchError | None = None
        for at in self._order.candidates():
            recorded = self.cassette.recorded(self._tops[at])
            trial = self._renaming.fork()
            self._trying = at
            mismatch = match(recorded.call, call, trial.unify)
            if mismatch is None:
                if recorded.unfinished or (recorded.outcome.get("cancelled") and self.cassette.interrupted):
                    raise faults.no_answer(self._where, at + 1, call)
                self._commit(trial)
                self._order.take(at)
                self._made.append(at)
                if self.cassette.holds_secrets(self._tops[at]):
                    self._redactor.reserve(recorded.outcome)
                return recorded
            if not recorded.unfinished or first is None:
                first = faults.differs(self._where, at + 1, recorded.call, call, mismatch, self._others())
        if first is not None and self._order.left_over():
            raise first
        if self._stop_past:
            raise PastRecording
        raise faults.one_more(self._where, call, self._count_same(call))

    def _shown_later(self, placeholder: str) -> bool:
        """Whether a call after the one at hand has this placeholder as the value of a secret argument."""
        if self._shown is None:
            self._shown = {}
            for at, top in enumerate(self._tops):
                if self.cassette.holds_secrets(top):
                    for secret in _secret_arguments(self.cassette.recorded(top).call.args):
                        self._shown[secret] = at
        return self._shown.get(placeholder, -1) > self._trying

    def _commit(self, trial: Renaming) -> None:
        self._renaming = trial
        for value, label in trial.learned.items():
            trial.know(value, self._redactor.learn(value, label))

    def refuse(self, kind: str, name: str, path: str, type_: str) -> ReplayMismatchError:
        """The error for an argument that has no plain form."""
        return faults.not_comparable(self._where, self._order.taken + 1, kind, name, path, type_)

    def read_further(self, recorded: Recorded) -> ReplayMismatchError:
        """The error for an agent that reads more of a stream than was recorded of it."""
        index = next((at + 1 for at in self._made if self.cassette.recorded(self._tops[at]) == recorded), 0)
        return faults.read_further(self._where, index, recorded.call)

    def left_over(self) -> list[tuple[int, Incoming]]:
        """The recorded calls that had to be made and were not, numbered from 1."""
        return [(at + 1, self.cassette.recorded(self._tops[at]).call) for at in self._order.left_over()]

    def left_over_error(self, left: list[tuple[int, Incoming]]) -> ReplayMismatchError:
        """The error for them."""
        return faults.left_over(self._where, left)

    def left_over_note(self, left: list[tuple[int, Incoming]]) -> str:
        """The note for them, where another error is reported already."""
        return faults.left_over_note(self._where, left)

    def calls(self) -> list[Call]:
        """The calls answered so far."""
        return [self.cassette.call(at) for at in self._made]

    @property
    def recorded(self) -> int:
        """How many top-level calls the cassette holds."""
        return len(self._tops)

    @property
    def substituted(self) -> int:
        """How many calls were answered from it."""
        return len(self._made)

    def _redact_target(self, call: Incoming) -> dict[str, Plain]:
        redacted = self._redactor.redact(call.target) if call.target else call.target
        assert isinstance(redacted, dict)
        return redacted

    def _others(self) -> list[tuple[int, Incoming]]:
        return [(at + 1, self.cassette.recorded(top).call) for at, top in enumerate(self._tops)]

    def _count_same(self, call: Incoming) -> int:
        return sum(match(other, call, self._renaming.fork().unify) is None for _, other in self._others())


def _secret_arguments(value: Plain) -> Iterator[str]:
    """The placeholders that stand as whole values under the key they are labelled with."""
    if isinstance(value, dict):
        for key, item in value.items():
            found = PLACEHOLDER.fullmatch(item) if isinstance(item, str) else None
            if found is not None and found[1] == normalise(key):
                yield found[0]
            else:
                yield from _secret_arguments(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secret_arguments(item)
    elif isinstance(value, Tagged):
        yield from _secret_arguments(value.value)
