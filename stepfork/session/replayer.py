"""Answers calls from a stored cassette, strictly. Knows order and matching; knows no SDK.

Which calls are made live in the place of recorded ones (mode ``hybrid``) is known to `live_answers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from stepfork.cassette.store import StoredCassette
from stepfork.core.bindings import Bindings, Shown
from stepfork.core.canonical import canonical_text
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.core.ignored import Ignored
from stepfork.core.likeness import Likeness, Trial
from stepfork.core.lines import Line, Scope
from stepfork.core.matching import Mismatch, fingerprint, match
from stepfork.core.model import Call, Incoming, Plain, Recorded
from stepfork.core.placeholder_texts import unescaped_value
from stepfork.core.redaction import Redactor
from stepfork.core.volatile import Rules
from stepfork.errors import ReplayMismatchError
from stepfork.session import faults
from stepfork.session.live_answers import LiveAnswer, LiveAnswers, at_its_place, leaf_of
from stepfork.session.play import Body, Play
from stepfork.session.selectors import names_nothing, selects
from stepfork.session.ticket import Ticket


class PastRecording(BaseException):
    """Ends a run that went on past a recorded failure. No ``except Exception`` of an agent sees it."""


class Replayer:
    """One replay of one cassette."""

    def __init__(
        self,
        cassette: StoredCassette,
        redactor: Redactor,
        hints: faults.Hints,
        past_failure: str,
        scope: Scope,
        through: Sequence[str] = (),
        rules: Rules | None = None,
        ignored: Ignored | None = None,
        directories: Directories = AS_THEY_STAND,
        live: LiveAnswers | None = None,
    ) -> None:
        self._live = live or LiveAnswers((), redactor)
        self.cassette = cassette
        self._redactor = redactor
        self._ignored = ignored or Ignored()
        self._bindings = Bindings(redactor, self._shown)
        self._alike = Likeness(rules, directories, self._bindings)
        redactor.bring([cassette.header.args, dict(cassette.header.env)], is_answer=False)
        self._tops = cassette.tops
        self._play = Play(cassette, self._tops, scope, self._print_of, self._answer_of)
        self._through = through
        self._main = scope.main
        self._numbers: dict[int, int] = {}  # id of an answered call -> its number
        self._positions: dict[int, int] = {}  # the same -> its position in the file
        self._bodies: list[Body] = []
        self._inside_live: dict[Ticket, Play] = {}
        self.live = 0  # top-level calls that were made live
        self.unchecked: Counter[str] = Counter()  # LLM calls inside tools that were answered as a whole
        self._made: list[int | LiveAnswer] = []  # the answered calls of the run: a number, or a live one
        self._where = faults.Where(cassette.path, len(self._tops), hints, faults.refusal_of(cassette.end))
        self._stop_past = past_failure == "stop" and cassette.status != "completed"

    def idle_selectors(self) -> dict[str, str]:
        """The selectors of live calls that name none, made or recorded; with each, what to say of it."""
        if not (unnamed := self._live.unnamed()):
            return {}
        recorded = [one.call for one in self.cassette.all_recorded()]
        where = faults.shown(self.cassette.path)
        return {
            selector: names_nothing(selector, recorded, where)
            for selector in unnamed
            if not any(selects(selector, call) for call in recorded)
        }

    def answer(
        self, call: Incoming, line: Line, inside: Body | Ticket | None = None
    ) -> Recorded | Body | Ticket:
        """The recorded call that this one is, the body to run in its place, or a ticket to make it live.

        `line` makes it, `inside` a body that runs or a live call. A call that is made live stands where a
        recorded one of its endpoint does; what it asks may be anything.

        Raises:
            ReplayMismatchError: if it is not one that may come next.
            PastRecording: if all recorded calls of a failed run are used up and the run may go on.
            CassetteError: if the next document cannot be read.
        """
        __tracebackhide__ = True
        call = self._redacted(call)
        play = self._play_of(inside)
        live = self._live.chooses(call)
        differs: tuple[int, Mismatch] | None = None
        early: tuple[int, int] | None = None
        for step in play.order.steps(line, lambda: self._print_of(call)):
            recorded = play.recorded(step.at)
            trial = self._alike.trial()
            self._bindings.at = play.calls[step.at]
            mismatch = self._match(recorded.call, call, trial)
            if mismatch is not None:
                if differs is None or play.recorded(differs[0]).unfinished:
                    differs = step.at, mismatch
                continue
            missing = play.order.missing(step)
            if missing is not None:
                early = early or (step.at, missing)
                continue
            cut_off = recorded.unfinished or recorded.outcome.get("cancelled")
            if not live and (
                (cut_off and self.cassette.interrupted) or (recorded.unfinished and step.line is self._main)
            ):
                raise faults.no_answer(self._where, play.index(step.at), call)
            self._commit(trial)
            play.order.take(line, step)
            step.line.add(step.at)
            return (
                self._goes_live(play, step.at, call, line) if live else self._taken(play, step.at, recorded)
            )
        raise self._refused(play, call, differs, early)

    def _play_of(self, inside: Body | Ticket | None) -> Play:
        if isinstance(inside, Ticket):
            return self._inside_live[inside]
        return self._play if inside is None else inside.play

    def _goes_live(self, play: Play, at: int, call: Incoming, line: Line) -> Ticket:
        """The call is made live in the place of a recorded one; what it calls itself is answered."""
        position = play.calls[at]
        ticket = Ticket(call, None, line)
        made = self._live.begin(ticket, play.index(at))
        self._inside_live[ticket] = Play(
            self.cassette,
            self.cassette.inside(position),
            ticket.scope,
            self._print_of,
            self._answer_of,
            made.index,
        )
        if play is self._play:
            self._made.append(made)
            self.live += 1
        return ticket

    def finish(self, ticket: Ticket, outcome: dict[str, Plain]) -> None:
        """A live call was answered."""
        self._live.finish(ticket, outcome)
        self._alike.brought(outcome)

    def _taken(self, play: Play, at: int, recorded: Recorded) -> Recorded | Body:
        position = play.calls[at]
        if self.cassette.holds_secrets(position):
            self._redactor.bring(recorded.outcome)
        if self.cassette.may_look_secret(position):
            answer = unescaped_value(recorded.outcome)
            assert isinstance(answer, dict)
            if answer is not recorded.outcome:
                recorded = replace(recorded, outcome=answer)
        self._numbers[id(recorded)] = play.index(at)
        self._positions[id(recorded)] = position
        if play is self._play:
            self._made.append(at)
        self._alike.brought(recorded.outcome)
        if recorded.call.kind == "tool" and recorded.call.name in self._through:
            scope = Scope()
            inside = Play(
                self.cassette,
                self.cassette.inside(position),
                scope,
                self._print_of,
                self._answer_of,
                play.index(at),
            )
            body = Body(recorded.call.name, scope, inside)
            self._bodies.append(body)
            return body
        if (
            play is self._play
            and recorded.call.kind == "tool"
            and (hidden := self.cassette.llm_calls_inside(at))
        ):
            self.unchecked[recorded.call.name] += hidden
        return recorded

    def _refused(
        self,
        play: Play,
        call: Incoming,
        differs: tuple[int, Mismatch] | None,
        early: tuple[int, int] | None,
    ) -> ReplayMismatchError | PastRecording:
        """Why this call may not come now."""
        call = self._by_its_rules(call)
        if early is not None:
            at, missing = early
            return self._too_early(play, call, at, missing)
        left = play.order.left_over()
        if differs is None and (left.missing or left.running):
            expected = (left.missing or left.running)[0]
            mismatch = self._match(play.recorded(expected).call, call, self._alike.trial())
            if mismatch is None:
                return self._too_early(play, call, expected, expected)
            differs = expected, mismatch
        if differs is not None and (left.missing or left.running):
            at, mismatch = differs
            return self._differs(play, at, play.recorded(at).call, call, mismatch)
        if self._stop_past and play is self._play:
            return PastRecording()
        if play.number is not None:
            return faults.one_more_inside(self._where, play.number, call)
        same = 0 if self._live.chooses(call) else self._count_same(call)
        return faults.one_more(self._where, call, same, self._live.blame(leaf_of(None, call)))

    def _by_its_rules(self, call: Incoming) -> Incoming:
        """The call as it is shown: without what the recording replaced by rules that the run has not."""
        more = self._bindings.unruled()
        if not more:
            return call
        self._where = replace(self._where, unruled=tuple(more))
        self._redactor.also_keys(more)
        shown = self._redactor.redact([call.target, call.args])
        assert isinstance(shown, list)
        target, args = shown
        assert isinstance(target, dict)
        return replace(call, target=target, args=args)

    def _differs(
        self, play: Play, at: int, recorded: Incoming, call: Incoming, mismatch: Mismatch
    ) -> ReplayMismatchError:
        left = play.order.left_over()
        to_come = {play.index(number) for number in (*left.missing, *left.running)}
        blame = self._live.blame(leaf_of(mismatch, call))
        return faults.differs(
            self._where, play.index(at), recorded, call, mismatch, self._others(play), to_come, blame
        )

    def _too_early(self, play: Play, call: Incoming, at: int, missing: int) -> ReplayMismatchError:
        """The call is recorded, but another has to come first; or it is another line's to make."""
        recorded = play.recorded(missing).call
        mismatch = self._match(recorded, call, self._alike.trial())
        if mismatch is None:
            return faults.too_early(self._where, play.index(missing), play.index(at), recorded, call)
        return self._differs(play, missing, recorded, call, mismatch)

    def body_returned(self, body: Body) -> None:
        """A body that ran has returned.

        Raises:
            ReplayMismatchError: if it left out calls that were recorded inside of it.
        """
        left = self._left_inside(body)
        if left:
            raise faults.left_over_inside(self._where, body.name, left)

    def _left_inside(self, body: Body) -> list[tuple[int, Incoming]]:
        missing = body.play.order.left_over().missing
        return [(body.play.index(at), body.play.recorded(at).call) for at in missing]

    def _shown(self) -> Shown:
        """Where the recording shows which placeholder."""
        cassette, shown = self.cassette, Shown()
        shown.header([cassette.header.args, dict(cassette.header.env)])
        for position in range(len(cassette)) if self._through else self._tops:
            if cassette.shows_secrets(position):
                asked, answered = cassette.said(position)
                shown.question(position, asked)
                shown.answer(position, answered)
        if cassette.end is not None:
            shown.output([cassette.end.output, cassette.end.error])
        return shown

    def _match(self, recorded: Incoming, incoming: Incoming, trial: Trial) -> Mismatch | None:
        """Where two calls differ in what counts of them."""
        if self._live.chooses(incoming):
            return match(at_its_place(recorded), at_its_place(incoming))
        recorded, incoming = self._ignored.without(recorded), self._ignored.without(incoming)
        return match(recorded, incoming, trial.same_text, asks_all=trial.asks_all)

    def _print_of(self, call: Incoming) -> bytes:
        if self._live.chooses(call):
            return fingerprint(at_its_place(call))
        return fingerprint(self._ignored.without(call), self._alike.blur)

    def _answer_of(self, recorded: Recorded) -> bytes:
        """A digest of an answer: what a live call will say is not known."""
        if self._live.chooses(recorded.call):
            return b""
        return canonical_text(recorded.outcome).encode("utf-8", "surrogatepass")

    def _commit(self, trial: Trial) -> None:
        self._alike.commit(trial)
        self._bindings.commit(trial.renaming.pairs)

    def refuse(self, kind: str, name: str, path: str, type_: str, line: Line) -> ReplayMismatchError:
        """The error for an argument that has no plain form."""
        at = self._play.order.expected(line)
        index = len(self._tops) + 1 if at is None else at + 1
        return faults.not_comparable(self._where, index, kind, name, self._redactor.redact_text(path), type_)

    def read_further(self, recorded: Recorded) -> ReplayMismatchError:
        """The error for an agent that reads more of a stream or generator than was recorded of it."""
        return faults.read_further(self._where, self._numbers[id(recorded)], recorded.call)

    def unanswered(self, recorded: Recorded) -> ReplayMismatchError:
        """The error for an answered call that the recording cannot end: it was cancelled, or never ended."""
        index = self._numbers[id(recorded)]
        if recorded.unfinished:
            return faults.no_answer(self._where, index, recorded.call)
        return faults.nobody_cancels(self._where, index, recorded.call)

    def compare(self, recorded: Recorded, place: str, expected: dict[str, Plain], actual: Plain) -> None:
        """Whether the agent gives a call in progress what it gave it when it was recorded.

        Raises:
            ReplayMismatchError: if not.
        """
        index = self._numbers[id(recorded)]
        trial = self._alike.trial()
        self._bindings.at = self._positions[id(recorded)]
        then = replace(recorded.call, args=expected)
        now = replace(recorded.call, args=self._redactor.redact(actual, raw=True))
        mismatch = self._match(then, now, trial)
        if mismatch is not None:
            at_step = replace(mismatch, fault="step", path=f"{place} {mismatch.path}".lstrip())
            raise faults.differs(self._where, index, recorded.call, now, at_step, ())
        self._commit(trial)

    def left_over(self) -> list[tuple[int, Incoming]]:
        """The recorded calls that had to be made and were not, numbered from 1."""
        left = [(at + 1, self._play.recorded(at).call) for at in self._play.order.left_over().missing]
        for body in self._bodies:
            left += self._left_inside(body)
        return sorted(left, key=lambda pair: pair[0])

    def still_running(self) -> list[tuple[int, Incoming]]:
        """The recorded calls that a task or thread that is still running may yet have made."""
        return [(at + 1, self._play.recorded(at).call) for at in self._play.order.left_over().running]

    def left_over_error(self, left: list[tuple[int, Incoming]]) -> ReplayMismatchError:
        """The error for them."""
        return faults.left_over(self._where, left)

    def left_over_note(self, left: list[tuple[int, Incoming]]) -> str:
        """The note for them, where another error is reported already."""
        return faults.left_over_note(self._where, left)

    def running_note(self, running: list[tuple[int, Incoming]]) -> str:
        """The note for calls that something still running may yet have made."""
        return faults.running_note(self._where, running)

    def calls(self) -> list[Call]:
        """The calls answered so far."""
        return [
            self._live.public(made) if isinstance(made, LiveAnswer) else self.cassette.call(made)
            for made in self._made
        ]

    def live_calls(self) -> list[int]:
        """Which of `calls` were made live, by their numbers from 1."""
        return [number for number, made in enumerate(self._made, 1) if isinstance(made, LiveAnswer)]

    @property
    def recorded(self) -> int:
        """How many top-level calls the cassette holds."""
        return len(self._tops)

    @property
    def substituted(self) -> int:
        """How many calls were answered from it."""
        return len(self._made) - self.live

    def _redacted(self, call: Incoming) -> Incoming:
        """The call with its secrets replaced: those that its arguments give away in its target too."""
        redact = self._redactor.redact
        asked = redact([call.target, call.args, call.target] if call.target else [call.args], raw=True)
        assert isinstance(asked, list)
        args, target = asked[1 if call.target else 0], asked[-1] if call.target else call.target
        assert isinstance(target, dict)
        return replace(call, args=args, target=target)

    def _others(self, play: Play | None = None) -> list[tuple[int, Incoming]]:
        play = play or self._play
        return [(play.index(at), play.recorded(at).call) for at in range(len(play.calls))]

    def _count_same(self, call: Incoming) -> int:
        return sum(self._match(other, call, self._alike.trial()) is None for _, other in self._others())
