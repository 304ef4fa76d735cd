"""A call that was cancelled while it was recorded waits on replay to be so again, but not for the clock.

Knows event loops and their timers; knows no call. What cancelled the call then - a timeout, another task -
does so again; where that waits for a timer, the clock of the loop jumps to it. Timers that are not known to
cancel the call are jumped to only while the loop has nothing real to wait for: no socket, no child process,
no work in a thread.
"""

from __future__ import annotations

import asyncio
import functools
import heapq
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from stepfork.session import active, control

_PATIENCE: Final = 0.05  # seconds that everything else gets before a timer that is not known to be ours
_ROUNDS: Final = 10  # of patience, in which nothing can happen any more, before it is given up
_LIMIT: Final = 30.0  # seconds that a thread waits for a session to close


class NothingLeft(Exception):
    """Nothing is left in the loop that could cancel the call."""


async def until_cancelled(*, jump: bool = True) -> None:
    """Returns never; raises CancelledError once this task is cancelled, and `NothingLeft` if nothing can.

    Without `jump` timers take their time.
    """
    trio = sys.modules.get("trio")
    if trio is not None and control.running_task() is None:
        await trio.sleep_forever()
    await _go_on(asyncio.current_task(), lambda: False, jump=jump)


def until_given_up(future: Any, task: Any) -> None:
    """Blocks this thread until the future of an event loop is done, in which a task waits for it."""
    loop, given_up = future.get_loop(), threading.Event()

    async def wait() -> None:
        try:
            await _go_on(task, future.done, beside=future)
        except NothingLeft:
            pass
        finally:
            given_up.set()

    def start() -> None:
        with control.neutral():
            held.append(loop.create_task(wait()))

    held: list[Any] = []  # the loop itself holds its tasks weakly
    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError:  # the loop has closed meanwhile
        return
    while not future.done() and not given_up.wait(0.01):  # the loop's thread may be waiting for this one
        pass


def until_closed(is_open: Callable[[], bool], strand: control.Strand) -> bool:
    """Blocks this thread until a session is closed; False if somebody waits for the thread before that."""
    end = time.monotonic() + _LIMIT
    while is_open():
        if strand.wanted or time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


async def _go_on(task: Any, enough: Callable[[], bool], *, beside: Any = None, jump: bool = True) -> None:
    """Lets the loop go on, its clock ahead of time, until it is enough."""
    loop = asyncio.get_running_loop()
    idle = 0
    while not enough():
        await asyncio.sleep(0)
        if jump and _fire(loop, task):
            idle = 0
            continue
        await _nap(loop)
        if _is_busy(loop, beside):
            idle = 0
        elif not jump or not _jump(loop, _timers(loop)):
            idle = 0 if _timers(loop) else idle + 1
        if idle > _ROUNDS:
            raise NothingLeft


def _is_busy(loop: Any, beside: Any) -> bool:
    """Whether the loop waits for something real: a socket, a pipe, a child, work in a thread."""
    selector = getattr(loop, "_selector", None)
    return selector is None or len(selector.get_map()) > 1 or control.works_in_threads(loop, beside)


async def _nap(loop: Any) -> None:
    """Lets a moment of real time pass."""
    woken = loop.create_future()
    timer = loop.call_later(_PATIENCE, lambda: woken.done() or woken.set_result(None))
    _naps.add(timer)
    try:
        await woken
    finally:
        _naps.discard(timer)
        timer.cancel()


_naps: set[Any] = set()


def _timers(loop: Any) -> list[Any]:
    """The timers of a loop that are not our own; only loops written in Python show them."""
    timers = getattr(loop, "_scheduled", ())
    return [timer for timer in timers if not timer.cancelled() and timer not in _naps]


def _fire(loop: Any, task: Any) -> bool:
    """Makes the timeout around a task due, the first if there are several; False if there is none."""
    ours = [timer for timer in _timers(loop) if _cancels(timer, task)]
    if not ours:
        return False
    timer = min(ours, key=lambda timer: timer.when())
    if _looks_at_the_clock(timer):
        return _jump(loop, [timer])
    timer._when = min(timer.when(), loop.time())
    heapq.heapify(loop._scheduled)
    return True


def _jump(loop: Any, timers: list[Any]) -> bool:
    """Sets the loop's clock to the earliest of these timers; False if there is none."""
    if not timers:
        return False
    clock = loop.time
    if not isinstance(clock, _Clock):
        clock = loop.time = _Clock(loop)
    clock.ahead += max(0.0, min(timer.when() for timer in timers) - clock())
    return True


class _Clock:
    """A loop's clock that was put forward. It goes back when the session closes, and all timers with it."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._time = loop.time
        self.ahead = 0.0
        self._stop = active.on_close(lambda run: self._close())

    def __call__(self) -> float:
        now: float = self._time() + self.ahead
        return now

    def _close(self) -> None:
        self._stop()
        if self._loop is asyncio._get_running_loop() or not self._loop.is_running():
            self._put_back()
        else:
            self._loop.call_soon_threadsafe(self._put_back)

    def _put_back(self) -> None:
        for timer in self._loop._scheduled:
            timer._when -= self.ahead
        heapq.heapify(self._loop._scheduled)
        del self._loop.time


def _cancels(timer: Any, task: Any) -> bool:
    """Whether a timer is a timeout that stands around what the task does now.

    ``asyncio.timeout`` and the library it came from know the task, anyio's scopes all tasks in them; before
    Python 3.12 ``asyncio.wait_for`` made a task and shares a future with it.
    """
    callback, args = timer._callback, timer._args or ()
    owner = getattr(callback, "__self__", None)
    if getattr(owner, "_task", None) is task or any(arg is task for arg in args):
        return True
    if owner is not None and _looks_at_the_clock(timer):
        return task in owner._tasks
    done = [callback for callback, _ in task._callbacks or () if isinstance(callback, functools.partial)]
    return any(arg is future for arg in args for callback in done for future in callback.args)


def _looks_at_the_clock(timer: Any) -> bool:
    """Whether a timer does nothing before its time, whoever calls it: that of a scope of anyio."""
    return isinstance(getattr(getattr(timer._callback, "__self__", None), "_tasks", None), set)
