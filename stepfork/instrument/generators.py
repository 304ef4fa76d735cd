"""Record or replay around generators, sync and async. Knows sessions and outcomes, no SDK and no file.

Each step - what the consumer asks for, and what the body yields for it - is taken down when it is made. The
body runs inside of the call, its consumer does not. Sync and async share `GeneratorTarget` and `Playback`;
the shells only differ where Python makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

from stepfork.cassette.values import BadValue
from stepfork.core.model import Recorded
from stepfork.instrument import driver
from stepfork.instrument.adapter import Outcome, Target
from stepfork.instrument.waiting import until_cancelled


class GeneratorTarget(Target, Protocol):
    """One call of a generator, as its steps are taken down. Each method may raise `Unsupported`."""

    def yielded(self, item: Any) -> None:
        """The body yielded this."""

    def sent(self, value: Any) -> None:
        """The consumer asks for the next item, and sends a value (None if it sends nothing)."""

    def thrown(self, error: BaseException) -> None:
        """The consumer throws an error into the body."""

    def closing(self) -> None:
        """The consumer closes the generator."""

    def given_up(self, error: BaseException) -> bool:
        """Whether what the body raised is only that its consumer was cancelled, which is like closing it."""

    async def ready(self) -> None:
        """Comes first of all where one can wait."""

    def playback(self, recorded: Recorded) -> Playback:
        """The recorded steps, to be made again."""


class Playback(Protocol):
    """A recorded generator on replay. Its methods raise what the session says to a consumer that differs."""

    @property
    def recorded(self) -> Recorded:
        """The recorded call."""

    @property
    def cancelled(self) -> bool:
        """Whether its last step was cancelled while it was awaited."""

    @property
    def outcome(self) -> Outcome:
        """What was recorded of it."""

    @property
    def late(self) -> bool:
        """Whether it ended in a thread when nobody waited for it any more."""

    def has_next(self) -> bool:
        """Whether another item was yielded."""

    def item(self) -> Any:
        """The next item, fresh."""

    def sent(self, value: Any) -> None:
        """The consumer asks for the next item, and sends a value."""

    def thrown(self, error: BaseException) -> None:
        """The consumer throws an error."""

    def closed(self) -> None:
        """The consumer closes the generator; raises what the body raised then."""

    def end(self) -> Any:
        """What the body returned; raises what it raised."""


class _Passing:
    """No session wants the call."""

    def inside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note(self, take_down: Callable[[], None]) -> None:
        pass

    def returned(self, value: Any) -> None:
        pass

    def raised(self, error: BaseException) -> None:
        pass

    def closed(self, error: BaseException | None = None) -> None:
        pass


def _begin(target: GeneratorTarget) -> Playback | driver.Live | driver.Running | _Passing:
    __tracebackhide__ = True
    step = driver.enter(target)
    if isinstance(step, Recorded):
        return target.playback(step)
    if isinstance(step, driver.Live):
        step.at_close(step.closed)
    return _Passing() if step is driver.THROUGH else step


def generate(
    target: GeneratorTarget, live: Callable[[], Generator[Any, Any, Any]]
) -> Generator[Any, Any, Any]:
    """A generator in the place of the one that `live` makes: recorded, or answered."""
    __tracebackhide__ = True
    step = _begin(target)
    if not isinstance(step, driver.Live | driver.Running | _Passing):
        return (yield from _replay(step))
    body = live()
    asked: list[Callable[[], Any]] = [partial(next, body)]  # taken out: an error in it would hold this frame
    while True:
        try:
            with step.inside():
                item = asked.pop()()
        except StopIteration as stop:
            value = stop.value
            break
        except BaseException as error:
            if target.given_up(error):
                step.closed()
            elif not isinstance(error, GeneratorExit):
                step.raised(error)
            raise
        step.note(partial(target.yielded, item))
        try:
            sent = yield item
        except GeneratorExit:
            step.note(target.closing)
            try:
                with step.inside():
                    body.close()
            except BaseException as error:
                step.closed(error)
                raise
            step.closed()
            raise
        except BaseException as error:
            step.note(partial(target.thrown, error))
            asked.append(partial(body.throw, error))
        else:
            step.note(partial(target.sent, sent))
            asked.append(partial(body.send, sent))
    step.returned(value)
    return value


def _replay(play: Playback) -> Generator[Any, Any, Any]:
    __tracebackhide__ = True
    try:
        while play.has_next():
            item = play.item()
            try:
                sent = yield item
            except GeneratorExit:
                play.closed()
                raise
            except BaseException as error:
                play.thrown(error)
            else:
                play.sent(sent)
        if play.cancelled:
            raise asyncio.CancelledError
        if play.late:
            driver.wait_to_be_given_up()
        return play.end()
    except BadValue as problem:
        raise driver.unreadable(problem, play.outcome) from None


async def agenerate(
    target: GeneratorTarget, live: Callable[[], AsyncGenerator[Any, Any]]
) -> AsyncGenerator[Any, Any]:
    """The same for an async generator."""
    __tracebackhide__ = True
    await target.ready()
    step = _begin(target)
    if not isinstance(step, driver.Live | driver.Running | _Passing):
        try:
            while step.has_next():
                item = step.item()
                try:
                    sent = yield item
                except GeneratorExit:
                    step.closed()
                    raise
                except BaseException as error:
                    step.thrown(error)
                else:
                    step.sent(sent)
            if step.cancelled:
                await until_cancelled()
            step.end()
        except BadValue as problem:
            raise driver.unreadable(problem, step.outcome) from None
        return
    body = live()
    asked: list[Callable[[], Any]] = [body.__anext__]
    while True:
        try:
            with step.inside():
                item = await asked.pop()()
        except StopAsyncIteration:
            break
        except BaseException as error:
            if target.given_up(error):
                step.closed()
            elif not isinstance(error, GeneratorExit):
                step.raised(error)
            raise
        step.note(partial(target.yielded, item))
        try:
            sent = yield item
        except GeneratorExit:
            step.note(target.closing)
            try:
                with step.inside():
                    await body.aclose()
            except BaseException as error:
                step.closed(error)
                raise
            step.closed()
            raise
        except BaseException as error:
            step.note(partial(target.thrown, error))
            asked.append(partial(body.athrow, error))
        else:
            step.note(partial(target.sent, sent))
            asked.append(partial(body.asend, sent))
    step.returned(None)
