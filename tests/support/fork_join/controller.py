"""Lets one line go on at a time, the one that the schedule says. Knows lines, but not what they do.

Before each step a line asks for its turn. A line that joins can go on once its target has really ended (the
thread is dead, the task or future is done). So a program and a schedule give the same run each time, in
threads as in tasks, and no test waits for a clock.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.fork_join.blocking import LIMIT, running_loop
from support.fork_join.programs import Trace
from support.fork_join.schedules import Schedule


class Stuck(Exception):
    """No line can go on, or one was told to and did not; the message shows all of them."""


class Line:
    """A line of a running program, as the controller sees it."""

    def __init__(self, name: str, loop: Any = None) -> None:
        self.name = name
        self.loop = loop  # the event loop that has to outlive it
        self.real: Any = None  # its thread, task or future
        self.started = 0
        self.doing = "not begun"
        self.ready: Callable[[], bool] = lambda: True
        self.lasting = False
        self.done = False
        self._lock = threading.Lock()
        self._told = False
        self._waker: Callable[[], object] | None = None

    def tell(self) -> None:
        """It may go on. Said from any thread, before or after it began to wait."""
        with self._lock:
            self._told, waker, self._waker = True, self._waker, None
        if waker is not None:
            waker()

    async def wait(self) -> bool:
        """Waits until it may go on; False if nobody said so for a very long time."""
        loop = running_loop()
        if loop is None:
            event = threading.Event()
            if self._arm(event.set):
                event.wait(LIMIT)
        else:
            future = loop.create_future()

            def settle() -> None:
                if not future.done():
                    future.set_result(None)

            if self._arm(lambda: loop.call_soon_threadsafe(settle)):
                guard = loop.call_later(LIMIT, settle)
                await future
                guard.cancel()
        with self._lock:
            told, self._told = self._told, False
        return told

    def _arm(self, waker: Callable[[], object]) -> bool:
        with self._lock:
            if not self._told:
                self._waker = waker
            return not self._told


class Controller:
    """The lines of one run, and whose turn it is.

    Attributes:
        trace: the calls, in the order of their starts.
        events: all that happened, for telling runs apart.
        picks: what the schedule chose, out of how many, each time it had a choice.
        lines: all lines, in the order in which they were started; `main` is the first.
        current: the line whose turn it is.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.trace: Trace = []
        self.events: list[str] = []
        self.picks: list[tuple[int, int]] = []
        self.lines: list[Line] = []
        self._choose = schedule.chooser()
        self._broken = ""
        self._dying: queue.SimpleQueue[tuple[threading.Thread, Line] | None] = queue.SimpleQueue()
        self.main = self.current = self.line(None)

    def line(self, parent: Line | None, loop: Any = None) -> Line:
        """A new line, the next that its parent starts."""
        name = "main"
        if parent is not None:
            name = f"{parent.name}.{parent.started}"
            parent.started += 1
        line = Line(name, loop)
        self.lines.append(line)
        return line

    def _next(self) -> Line | None:
        could = [line for line in self.lines if not line.done and line.ready()]
        if not could:
            self._break("no line can go on")
            return None
        choice = 0
        if len(could) > 1:
            choice = self._choose(len(could))
            self.picks.append((choice, len(could)))
        self.current = could[choice]
        return self.current

    def _break(self, why: str) -> None:
        if not self._broken:
            state = [
                f"  {line.name}: {'ended' if line.done else line.doing}"
                f"{'' if line.done or line.ready() else ', cannot go on'}"
                for line in self.lines
            ]
            self._broken = "\n".join(
                [why, *state, "  calls so far:", *(f"    {call}" for call in self.trace)]
            )
            for line in self.lines:
                line.tell()

    async def turn(self, line: Line, doing: str, ready: Callable[[], bool] = lambda: True) -> None:
        """Returns when the line is the one to go on with what it is doing."""
        if self._broken:
            raise Stuck(self._broken)
        line.doing, line.ready = doing, ready
        chosen = self._next()
        if chosen is not line and chosen is not None:
            chosen.tell()
        if chosen is not line:
            await self.told(line)
        line.ready = lambda: True
        self.events.append(f"{line.name} {doing}")

    async def told(self, line: Line) -> None:
        """Returns when a line that has only just begun may go on."""
        if not await line.wait():
            self._break(f"{line.name} was not told to go on for {LIMIT:g} s")
        if self._broken:
            raise Stuck(self._broken)

    def ended(self, line: Line) -> None:
        """The thread, task or item of the line is no more. Nobody else was running, so here is the next."""
        line.done = True
        self.events.append(f"{line.name} ended")
        if not self._broken and (chosen := self._next()) is not None:
            chosen.tell()

    def ends_with_this_thread(self, line: Line) -> None:
        """The line has nothing more to do, and ends when the thread that says so is dead."""
        self._dying.put((threading.current_thread(), line))

    @contextmanager
    def reaping(self) -> Iterator[None]:
        """Meanwhile somebody waits for dying threads."""
        threading.Thread(target=self._reap, daemon=True).start()
        try:
            yield
        finally:
            self._dying.put(None)

    def _reap(self) -> None:
        while (dying := self._dying.get()) is not None:
            thread, line = dying
            thread.join(LIMIT)
            self.ended(line)
