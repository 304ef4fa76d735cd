"""Record or replay around any target, sync and async. Knows sessions and outcomes, no SDK and no file.

Both shells share the decisions: `enter` (what the session says to a call) and `Live` (what becomes of a
call that really runs).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from stepfork.cassette.exceptions import is_outcome
from stepfork.cassette.values import BadValue, Unsupported, is_looking, is_out_of_stack
from stepfork.core.lines import Scope
from stepfork.core.model import Recorded
from stepfork.errors import CassetteError, StepforkError
from stepfork.instrument.adapter import Outcome, Target
from stepfork.instrument.waiting import NothingLeft, until_cancelled, until_closed, until_given_up
from stepfork.session import active, control
from stepfork.session.control import Frame
from stepfork.session.run import Body, Run, Ticket

T = TypeVar("T")

THROUGH: Final = None
"""`enter` gives this where no session wants the call: it runs as if stepfork were not there."""


class Inside:
    """What is called meanwhile is called inside of a call: a live one, or one whose body runs on replay."""

    def __init__(self, run: Run, within: Ticket | Body) -> None:
        self._frame = Frame(run, within, within.scope.main)

    def __enter__(self) -> None:
        self._strand = control.push(self._frame)

    def __exit__(self, *_: object) -> None:
        control.pop(self._strand, self._frame)


class Aside:
    """What is started meanwhile is none of the program's: an SDK at work before its call is known."""

    def __init__(self, where: Frame) -> None:
        self._frame = Frame(where.run, where.inside, Scope().main)

    def __enter__(self) -> None:
        self._strand = control.push(self._frame)

    def __exit__(self, *_: object) -> None:
        control.pop(self._strand, self._frame)


class Live:
    """A call that really runs: its ticket, and who gets its outcome."""

    def __init__(self, run: Run, target: Target, ticket: Ticket, where: Frame) -> None:
        self._run = run
        self._target = target
        self.ticket = ticket
        self._over = False
        self._is_inside = where.inside is not None
        target.begins(ticket, where)
        strand = control.here()
        self._may_be_late = where is strand.frames[0] and not strand.given_up() if strand.frames else False

    def inside(self) -> Inside:
        """For the time its body runs."""
        return Inside(self._run, self.ticket)

    def returned(self, value: Any) -> None:
        """The call returned; it is recorded before its caller sees the value."""
        outcome = self._said(lambda: self._target.returned(value))
        if outcome is not None:
            self.end(outcome)

    def raised(self, error: BaseException) -> None:
        """The call raised. What ends the whole run (KeyboardInterrupt) is no outcome."""
        if is_cancelled(error):
            self.end({"cancelled": True})
        elif self._is_inside and isinstance(error, RecursionError) and is_out_of_stack():
            pass  # the call around it, where there is room again, says what came of it
        elif is_outcome(error):
            outcome = self._said(lambda: self._raised(error))
            if outcome is not None:
                self.end(outcome)
        else:
            self._run.broken_off(self.ticket, error)

    def _raised(self, error: BaseException) -> Outcome | None:
        """What it raised. What cannot be written and is no `Exception` (pytest's) should end the run."""
        try:
            return self._target.raised(error)
        except Unsupported:
            if isinstance(error, Exception | SystemExit):
                raise
        self._run.broken_off(self.ticket, error)
        return None

    def _said(self, outcome: Callable[[], Outcome | None]) -> Outcome | None:
        """An outcome in plain values, or None after it was refused: the live run goes on undisturbed."""
        if self._over:
            return None
        try:
            return outcome()
        except Unsupported as problem:
            self._refuse(problem)
        except Exception as bug:
            self._refuse(Unsupported("outcome", type(bug).__name__, f"(stepfork failed to read it: {bug})"))
        return None

    def note(self, take_down: Callable[[], None]) -> None:
        """Has the target take down what happened while the call goes on."""

        def taken_down() -> Outcome:
            take_down()
            return {}

        self._said(taken_down)

    def closed(self, error: BaseException | None = None) -> None:
        """A generator was closed before its end, by its consumer or because the session ends."""
        if error is None:
            self.end({"closed": True})
        elif isinstance(error, Exception | SystemExit):
            outcome = self._said(lambda: self._target.raised(error))
            if outcome is not None:
                self.end({**outcome, "closed": True})

    def end(self, outcome: Outcome) -> None:
        """The call ended with this outcome; a stream says so when it is read to its end or closed."""
        seen = self._said(self._target.seen)
        if seen is None:
            return
        self._over = True
        outcome = {**seen, **outcome}
        strand = control.here()
        if self._may_be_late and strand.given_up():
            outcome = {**outcome, "late": True}
            self._run.set_apart(strand)
        self._run.finish(self.ticket, outcome)

    def at_close(self, end: Callable[[], None]) -> None:
        """What ends the call if the session ends first."""
        self._run.at_close(end)

    def _refuse(self, problem: Unsupported) -> None:
        self._over = True
        self._run.refuse(self._target.kind, self._target.name, problem, ticket=self.ticket)


class Running:
    """A tool whose body runs on replay; the calls it makes are answered."""

    def __init__(self, run: Run, body: Body) -> None:
        self._run = run
        self._body = body

    def inside(self) -> Inside:
        """For the time its body runs."""
        return Inside(self._run, self._body)

    def returned(self, value: Any) -> None:
        """The body returned; raises if it left out calls that were recorded inside of it."""
        self._run.body_returned(self._body)

    def raised(self, error: BaseException) -> None:
        """The body raised; what it left out is found at the end of the session."""

    def note(self, take_down: Callable[[], None]) -> None:
        """Nothing is taken down."""

    def closed(self, error: BaseException | None = None) -> None:
        """A generator was closed before its end; what it left out is found at the end of the session."""


def frame() -> Frame | None:
    """Where the current call belongs, or None where it should simply run."""
    if is_looking():
        return None
    found = active.current()
    return None if found is None or found.run.action == "off" else found


def session() -> Run | None:
    """The session that wants the current call, or None where it should simply run."""
    found = frame()
    return None if found is None else found.run


def enter(target: Target, where: Frame | None = None) -> Recorded | Live | Running | None:
    """What becomes of a call: a recorded answer, a live call to be recorded, a body to run, or `THROUGH`.

    `where` says where it belongs, if that is not here.

    Raises:
        StepforkError: a mismatch and its kind, from the session.
    """
    __tracebackhide__ = True
    where = where or frame()
    if where is None:
        return THROUGH
    run = where.run
    try:
        incoming = target.incoming()
    except Unsupported as problem:
        if is_out_of_stack():  # whatever it calls next would say so
            raise RecursionError("maximum recursion depth exceeded") from None
        run.refuse(target.kind, target.name, problem, line=where.line)
        return THROUGH
    answer = run.begin(incoming, where)
    if isinstance(answer, Ticket):
        return Live(run, target, answer, where)
    return Running(run, answer) if isinstance(answer, Body) else answer


def call(target: Target, live: Callable[[], T], answer: Callable[[Recorded], T]) -> T:
    """A sync call: live and recorded, or answered by `answer`, which may raise what was recorded."""
    __tracebackhide__ = True
    step = enter(target)
    if step is THROUGH:
        return live()
    if isinstance(step, Recorded):
        return answered(target, step, answer)
    try:
        with step.inside():
            value = live()
    except BaseException as error:
        step.raised(error)
        raise
    step.returned(value)
    return value


async def acall(
    target: Target, live: Callable[[], Awaitable[T]], answer: Callable[[Recorded], Awaitable[T]]
) -> T:
    """The same for an async call."""
    __tracebackhide__ = True
    step = enter(target)
    if step is THROUGH:
        return await live()
    if isinstance(step, Recorded):
        return await aanswered(target, step, answer)
    try:
        with step.inside():
            value = await live()
    except GeneratorExit:  # the program closes the coroutine, and does so again on replay
        raise
    except BaseException as error:
        step.raised(error)
        raise
    step.returned(value)
    return value


def answered(target: Target, recorded: Recorded, answer: Callable[[Recorded], T]) -> T:
    """A sync call as the recorded one: `answer` gives what it returned or raises what it raised."""
    __tracebackhide__ = True
    try:
        target.again(recorded)
        if recorded.outcome.get("cancelled"):
            raise asyncio.CancelledError
        if recorded.unfinished:
            _wait_for_the_end(recorded)
        if recorded.outcome.get("late"):
            wait_to_be_given_up()
        return answer(recorded)
    except BadValue as problem:
        raise unreadable(problem, recorded.outcome) from None


async def aanswered(target: Target, recorded: Recorded, answer: Callable[[Recorded], Awaitable[T]]) -> T:
    """The same for an async call."""
    __tracebackhide__ = True
    try:
        target.again(recorded)
        if recorded.unfinished or recorded.outcome.get("cancelled"):
            await cancelled_again(recorded, jump=not recorded.unfinished)
        return await answer(recorded)
    except BadValue as problem:
        raise unreadable(problem, recorded.outcome) from None


def is_cancelled(error: BaseException) -> bool:
    """Whether an error says that a task or a scope was cancelled."""
    trio = sys.modules.get("trio")
    return isinstance(error, (asyncio.CancelledError, *([trio.Cancelled] if trio is not None else [])))


async def cancelled_again(recorded: Recorded, *, jump: bool = True) -> None:
    """Waits until whoever cancelled this call when it was recorded does so again; raises if nobody will."""
    run = session()
    try:
        await until_cancelled(jump=jump)
    except NothingLeft:
        if run is None:
            raise
        raise run.unanswered(recorded) from None


def _wait_for_the_end(recorded: Recorded) -> None:
    """When it was recorded, this call in a thread was still running at the end of the session."""
    run, strand = session(), control.here()
    if run is None:
        return
    if not until_closed(lambda: run.is_open, strand):
        raise run.unanswered(recorded)
    raise control.Over


def wait_to_be_given_up() -> None:
    """When it was recorded, this call in a thread took longer than the task that waited for it did."""
    strand = control.here()
    future = None if strand.waiter is None else strand.waiter.known_future()
    if strand.waiter is not None and future is not None:
        until_given_up(future, strand.waiter.task)
        run = session()
        if run is not None:
            run.set_apart(strand)


def unreadable(problem: BadValue, outcome: Outcome) -> StepforkError:
    """A recorded outcome that cannot be rebuilt is a fault of the cassette, and stays one to the end."""
    run = session()
    return CassetteError(str(problem)) if run is None else run.unreadable(problem, outcome)
