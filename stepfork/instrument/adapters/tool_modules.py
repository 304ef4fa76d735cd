"""Plain Python functions as tools: a call of one becomes plain values. Knows no session and no file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

from stepfork.cassette.exceptions import decode_exception, encode_exception
from stepfork.cassette.values import ClassPolicy, Unsupported, decode, encode
from stepfork.core.model import Incoming, Kind, Recorded
from stepfork.errors import UnsupportedCallError
from stepfork.instrument import driver
from stepfork.instrument.adapter import Outcome
from stepfork.session import active

Arguments = dict[str, Any]
Names = tuple[str, str]


class ToolCall:
    """One call of one tool."""

    kind: Kind = "tool"

    def __init__(self, names: Names, arguments: Arguments, skip: str | None, classes: ClassPolicy) -> None:
        self.name, self._alias = names
        self._arguments = arguments
        self._skip = skip
        self._classes = classes

    def incoming(self) -> Incoming:
        """The bound arguments by name, without ``self``."""
        args = {
            name: encode(value, f"argument {name!r}", self._classes)
            for name, value in self._arguments.items()
            if name != self._skip
        }
        return Incoming("tool", self.name, args, alias=self._alias)

    def returned(self, value: Any) -> Outcome:
        """``{"result": ...}``."""
        return {"result": encode(value, "result", self._classes)}

    def raised(self, error: BaseException) -> Outcome:
        """``{"error": {"class": ..., "args": ...}}``."""
        return {"error": encode_exception(error, classes=self._classes)}

    def answer(self, recorded: Recorded) -> Any:
        """What the recorded call returned, fresh; raises what it raised."""
        error = recorded.outcome.get("error")
        if error is not None:
            raise decode_exception(error, self._classes)
        return decode(recorded.outcome.get("result"), self._classes)

    async def aanswer(self, recorded: Recorded) -> Any:
        """The same for an async tool."""
        return self.answer(recorded)


class ToolHandler:
    """What a swapped function hands its calls to.

    `names` gives the tool's name and its alias, and is asked at each call: a name may become ambiguous.
    """

    def __init__(self, names: Callable[[], Names], skip: str | None) -> None:
        self._names = names
        self._skip = skip

    def call(self, arguments: Arguments, invoke: Callable[[Arguments], Any]) -> Any:
        """A sync tool was called."""
        __tracebackhide__ = True
        run = None if active.idle() else driver.session()
        if run is None:
            return invoke(arguments)
        target = ToolCall(self._names(), arguments, self._skip, run.classes)
        return driver.call(target, lambda: invoke(arguments), target.answer)

    async def acall(self, arguments: Arguments, invoke: Callable[[Arguments], Awaitable[Any]]) -> Any:
        """An async tool was called."""
        __tracebackhide__ = True
        run = None if active.idle() else driver.session()
        if run is None:
            return await invoke(arguments)
        target = ToolCall(self._names(), arguments, self._skip, run.classes)
        return await driver.acall(target, lambda: invoke(arguments), target.aanswer)

    def gcall(
        self, arguments: Arguments, invoke: Callable[[Arguments], Generator[Any, Any, Any]]
    ) -> Generator[Any, Any, Any]:
        """A generator tool was called: recorded as refused, never replayed silently."""
        self._refuse_generator("generator")
        return invoke(arguments)

    def agcall(
        self, arguments: Arguments, invoke: Callable[[Arguments], AsyncGenerator[Any, Any]]
    ) -> AsyncGenerator[Any, Any]:
        """The same for an async generator tool."""
        self._refuse_generator("async_generator")
        return invoke(arguments)

    def _refuse_generator(self, kind: str) -> None:
        run = None if active.idle() else driver.session()
        if run is None:
            return
        name = self._names()[0]
        if run.action == "replay":
            raise run.latch(
                UnsupportedCallError(
                    f"tool {name!r} is a generator, which stepfork cannot replay yet; "
                    "return a list, or leave the tool out with 'exclude'"
                )
            )
        run.refuse("tool", name, Unsupported("result", kind))
