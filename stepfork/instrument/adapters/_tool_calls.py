"""One call of a tool, a plain function or a generator, as fields of its document. Knows no patch, no file."""

from __future__ import annotations

import asyncio
from typing import Any

from stepfork.cassette.exceptions import class_name, decode_exception, encode_exception, text_of
from stepfork.cassette.values import ClassPolicy, Unsupported, decode, encode
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Incoming, Kind, Plain, Recorded
from stepfork.errors import StepforkError
from stepfork.instrument import driver
from stepfork.instrument.adapter import Outcome
from stepfork.instrument.given import Given
from stepfork.session.control import Frame
from stepfork.session.run import Run, Ticket


class ToolCall:
    """One call of one tool: the driver's target."""

    kind: Kind = "tool"
    form = "function"

    def __init__(self, names: tuple[str, str], given: Given, classes: ClassPolicy) -> None:
        self.name, self._alias = names
        self.classes = classes
        self.given = given

    async def ready(self) -> None:
        """Reads arguments that can only be awaited, if a session wants the call."""
        if self.given.has_async() and driver.session() is not None:
            await self.given.read_async()

    def incoming(self) -> Incoming:
        """The bound arguments by name, without ``self``."""
        return Incoming("tool", self.name, self.given.plain(), alias=self._alias)

    def begins(self, ticket: Ticket, where: Frame) -> None:
        """From now on the body runs."""
        self.given.watch()
        if self.form == "function":
            self.given.work(self.name, where.run, ticket, where.inside)

    def seen(self) -> Outcome:
        """What the body did to its arguments."""
        return {**self.given.changes(), **self.given.moved()}

    def again(self, recorded: Recorded) -> None:
        """Does it to the caller's."""
        if "yields" in recorded.outcome:
            _check_form(recorded, "generator", self.form)
        self.given.change(recorded.outcome, recorded.call.args)

    def returned(self, value: Any) -> Outcome:
        """``{"result": ...}``."""
        self.given.check_read()
        return {"result": encode(value, "result", self.classes)}

    def raised(self, error: BaseException) -> Outcome:
        """``{"error": {"class": ..., "args": ...}}``."""
        return {"error": encode_exception(error, classes=self.classes)}

    def answer(self, recorded: Recorded) -> Any:
        """What the recorded call returned, fresh; raises what it raised."""
        error = recorded.outcome.get("error")
        if error is not None:
            raise decode_exception(error, self.classes)
        return decode(recorded.outcome.get("result"), self.classes)


class GeneratorCall(ToolCall):
    """One call of a generator, from its first step to its end.

    A step is what the consumer asks for and what the body does then: ``yields`` has what it yielded, and
    ``steps`` what else there was: a value sent, an error thrown, an argument changed.
    """

    form = "generator"

    def __init__(self, names: tuple[str, str], given: Given, classes: ClassPolicy) -> None:
        super().__init__(names, given, classes)
        self._yields: list[Plain] = []
        self._steps: list[Plain] = []
        self._asked: dict[str, Plain] = {}  # what the consumer gave to the step at hand
        self._at_work = True  # whether the body runs, and not its consumer

    def yielded(self, item: Any) -> None:
        """A step ended with an item."""
        self._step_ended()
        self._yields.append(encode(item, f"yields[{len(self._yields)}]", self.classes))

    def sent(self, value: Any) -> None:
        """The next step begins, with a value if one was sent."""
        place = f"the value sent to step {self._next()}"
        asked = {} if value is None else {"sent": encode(value, place, self.classes)}
        self._step_begins(asked)

    def thrown(self, error: BaseException) -> None:
        """The next step begins with an error. One that ends the run is nothing to take down."""
        self._step_begins({} if _passes(error) else {"thrown": _thrown(error)})

    def given_up(self, error: BaseException) -> bool:
        """Whether the body let a cancellation through that its consumer threw: the same as closing it."""
        if "thrown" not in self._asked or not isinstance(error, asyncio.CancelledError):
            return False
        self._asked = {}
        return True

    def closing(self) -> None:
        """The last step begins."""
        self._step_begins({})

    def _step_begins(self, asked: dict[str, Plain]) -> None:
        self._asked = asked
        self._at_work = True
        self.given.watch(again=True)

    def _step_ended(self) -> None:
        self._at_work = False
        said = {**self._asked, **self.given.changes(), **self.given.moved()}
        if said:
            self._steps.append({"step": self._next(), **said})

    def _next(self) -> int:
        return len(self._yields) + 1

    def seen(self) -> Outcome:
        """The steps."""
        if self._at_work:
            self._step_ended()
        steps: Outcome = {"steps": self._steps} if self._steps else {}
        return {"yields": self._yields, **steps}

    def returned(self, value: Any) -> Outcome:
        """``{"result": ...}`` if it returned something."""
        self.given.check_read()
        return {} if value is None else {"result": encode(value, "result", self.classes)}

    def playback(self, recorded: Recorded) -> Playback:
        """The recorded steps, to be made again."""
        if "yields" not in recorded.outcome:
            _check_form(recorded, "function", self.form)
        return Playback(self, recorded)


class Playback:
    """A recorded generator on replay."""

    def __init__(self, call: GeneratorCall, recorded: Recorded) -> None:
        self._call = call
        self.recorded = recorded
        self._run = _session()
        outcome: dict[str, Any] = recorded.outcome
        self.outcome = outcome
        self._steps: dict[int, Any] = {step["step"]: step for step in outcome.get("steps", ())}
        self._made = 0  # steps
        self._thrown: BaseException | None = None
        self.cancelled = bool(outcome.get("cancelled"))
        self.late = bool(outcome.get("late"))

    def has_next(self) -> bool:
        """Whether another item was yielded; if not, what the last step did is done."""
        if self._made < len(self.outcome["yields"]):
            return True
        self._make_step()
        return False

    def item(self) -> Any:
        """The next item, fresh."""
        self._thrown = None
        self._make_step()
        return decode(self.outcome["yields"][self._made - 1], self._call.classes)

    def _make_step(self) -> None:
        self._made += 1
        step = self._steps.get(self._made)
        if step is not None:
            self._call.given.change(step, self.recorded.call.args if self._made == 1 else None)

    def sent(self, value: Any) -> None:
        """The consumer asks for the next item, and sends a value."""
        __tracebackhide__ = True
        self._thrown = None
        step = self._made + 1
        try:
            place = f"the value sent to step {step}"
            self._compare({} if value is None else {"sent": encode(value, place, self._call.classes)})
        except Unsupported as problem:
            self._run.refuse(self._call.kind, self._call.name, problem)

    def thrown(self, error: BaseException) -> None:
        """The consumer throws an error. One that ends the run, or gives the generator up, goes through."""
        __tracebackhide__ = True
        given_up = isinstance(error, asyncio.CancelledError) and "thrown" not in self._next_step()
        if given_up:
            self.closed()
        if given_up or _passes(error):
            raise error
        self._thrown = error
        self._compare({"thrown": _thrown(error)})

    def _compare(self, asked: dict[str, Plain]) -> None:
        __tracebackhide__ = True
        step = self._made + 1
        if self.outcome.get("closed") and step > len(self.outcome["yields"]):
            raise self._run.read_further(self.recorded)
        expected = {key: it for key, it in self._next_step().items() if key in ("sent", "thrown")}
        if expected or asked:
            self._run.compare(self.recorded, f"step {step}", expected, asked)

    def _next_step(self) -> dict[str, Plain]:
        step: dict[str, Plain] = self._steps.get(self._made + 1, {})
        return step

    def closed(self) -> None:
        """The consumer closes the generator; raises what the body raised then."""
        if self.outcome.get("closed") and not self.has_next() and "error" in self.outcome:
            raise decode_exception(self.outcome["error"], self._call.classes)

    def end(self) -> Any:
        """What the body returned; raises what it raised, an error that went through it as the same object."""
        error = self.outcome.get("error")
        thrown, self._thrown = self._thrown, None
        if thrown is not None and _is(error, thrown):
            try:
                raise thrown
            finally:
                del thrown  # a frame that holds the error that holds it is a cycle
        return self._call.answer(self.recorded)


def _session() -> Run:
    run = driver.session()
    if run is None:
        raise StepforkError("the session ended while a generator was being replayed")
    return run


def _check_form(recorded: Recorded, was: str, now: str) -> None:
    if was != now:
        _session().compare(recorded, "", {"kind": was}, {"kind": now})


def _passes(error: BaseException) -> bool:
    """Whether an error is none of the program's own: it ends the run, or comes from stepfork."""
    return isinstance(error, StepforkError) or not isinstance(
        error, Exception | SystemExit | asyncio.CancelledError
    )


def _thrown(error: BaseException) -> dict[str, Plain]:
    """An error that a consumer throws in; it is compared and never rebuilt."""
    try:
        args = [encode(value) for value in error.args]
    except Unsupported:
        args = [text_of(error)]
    return {"class": class_name(type(error)), "args": args}


def _is(form: Any, error: BaseException) -> bool:
    """Whether a recorded error is the one that was thrown."""
    if not isinstance(form, dict):
        return False
    thrown = _thrown(error)
    return form["class"] == thrown["class"] and canonical_text(form.get("args", [])) == canonical_text(
        thrown["args"]
    )
