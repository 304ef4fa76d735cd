"""Plain Python functions as tools: a call of one becomes plain values. Knows no session and no file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from types import FunctionType
from typing import Any, TypeVar

from stepfork.core.model import Recorded
from stepfork.instrument import driver
from stepfork.instrument.adapters._tool_calls import GeneratorCall, ToolCall
from stepfork.instrument.generators import agenerate, generate
from stepfork.instrument.given import Given, defaults_of
from stepfork.session import active
from stepfork.session.run import Run

Arguments = dict[str, Any]
Names = tuple[str, str]
C = TypeVar("C", bound=ToolCall)


class ToolHandler:
    """What a swapped function hands its calls to.

    `names` gives the tool's name and its alias for what a method is called on (else None). It is asked at
    each call: a name may become ambiguous, and an inherited method is another tool for each class named.
    `skip` is the parameter that stands for ``self``, if the `function` has one.
    """

    def __init__(self, function: FunctionType, names: Callable[[Any], Names], skip: str | None) -> None:
        self._function = function
        self._names = names
        self._self = skip

    def call(self, arguments: Arguments, invoke: Callable[[Arguments], Any]) -> Any:
        """A sync tool was called."""
        __tracebackhide__ = True
        run = None if active.idle() else driver.session()
        if run is None:
            return invoke(arguments)
        target = self._target(ToolCall, arguments, run)
        # what `driver.call` does, without its frame: each level of a recursive tool takes those of all of us
        step = driver.enter(target)
        if step is driver.THROUGH:
            return invoke(arguments)
        if isinstance(step, Recorded):
            return driver.answered(target, step, target.answer)
        try:
            with step.inside():
                value = invoke(arguments)
        except BaseException as error:
            step.raised(error)
            raise
        step.returned(value)
        return value

    async def acall(self, arguments: Arguments, invoke: Callable[[Arguments], Awaitable[Any]]) -> Any:
        """An async tool was called."""
        __tracebackhide__ = True
        run = None if active.idle() else driver.session()
        if run is None:
            return await invoke(arguments)
        target = self._target(ToolCall, arguments, run)

        async def answer(recorded: Recorded) -> Any:
            return target.answer(recorded)

        await target.ready()
        step = driver.enter(target)
        if step is driver.THROUGH:
            return await invoke(arguments)
        if isinstance(step, Recorded):
            return await driver.aanswered(target, step, answer)
        try:
            with step.inside():
                value = await invoke(arguments)
        except GeneratorExit:  # the program closes the coroutine, and does so again on replay
            raise
        except BaseException as error:
            step.raised(error)
            raise
        step.returned(value)
        return value

    def gcall(
        self, arguments: Arguments, invoke: Callable[[Arguments], Generator[Any, Any, Any]]
    ) -> Generator[Any, Any, Any]:
        """A generator tool makes its first step."""
        run = None if active.idle() else driver.session()
        if run is None:
            return invoke(arguments)
        target = self._target(GeneratorCall, arguments, run)
        return generate(target, lambda: invoke(arguments))

    def agcall(
        self, arguments: Arguments, invoke: Callable[[Arguments], AsyncGenerator[Any, Any]]
    ) -> AsyncGenerator[Any, Any]:
        """An async generator tool makes its first step."""
        run = None if active.idle() else driver.session()
        if run is None:
            return invoke(arguments)
        target = self._target(GeneratorCall, arguments, run)
        return agenerate(target, lambda: invoke(arguments))

    def _target(self, kind: type[C], arguments: Arguments, run: Run) -> C:
        names = self._names(None if self._self is None else arguments[self._self])
        skip = frozenset() if self._self is None else frozenset([self._self])
        if run.ignored:
            skip |= run.ignored.arguments(names)
        given = Given(arguments, skip, run.classes, lambda: defaults_of(self._function))
        return kind(names, given, run.classes)
