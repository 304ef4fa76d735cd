"""A call that was cancelled while it was recorded waits on replay to be so again, but not for the clock.

Knows event loops and their timers; knows no call. What cancelled the call then - a timeout, another task -
does so again; where that waits for a timer, the clock of the loop jumps to it.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any, Final

from stepfork.session import control

_PATIENCE: Final = 0.05  # seconds that everything else gets before a timer that is not known to be ours


async def until_cancelled() -> None:
    """Returns never; raises CancelledError once this task is cancelled."""
    await _go_on(asyncio.current_task(), lambda: False)


def until_given_up(future: Any, task: Any) -> None:
    """Blocks this thread until the future of an event loop is done, in which a task waits for it."""
    loop, given_up = future.get_loop(), threading.Event()

    async def wait() -> None:
        try:
            await _go_on(task, future.done)
        finally:
            given_up.set()

    def start() -> None:
        if future.done():
            given_up.set()
            return
        with control.neutral():
            held.append(loop.create_task(wait()))

    held: list[Any] = []  # the loop itself holds its tasks weakly
    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError:  # the loop has closed meanwhile
        return
    given_up.wait()


async def _go_on(task: Any, enough: Callable[[], bool]) -> None:
    """Lets the loop go on, its clock ahead of time, until it is enough."""
    loop = asyncio.get_running_loop()
    while not enough():
        await asyncio.sleep(0)
        if not _jump(loop, lambda timer: _cancels(timer, task)):
            await asyncio.sleep(_PATIENCE)
            if not _jump(loop, lambda timer: True):
                await asyncio.sleep(_PATIENCE)


def _jump(loop: Any, wanted: Any) -> bool:
    """Sets the loop's clock to the earliest of the wanted timers; False if there is none."""
    timers = getattr(loop, "_scheduled", None)  # where loops written in Python keep them
    if timers is None:
        return False
    due = [timer.when() for timer in timers if not timer.cancelled() and wanted(timer)]
    if not due:
        return False
    clock = loop.time
    if not isinstance(clock, _Clock):
        clock = loop.time = _Clock(clock)
    clock.ahead += max(0.0, min(due) - clock())
    return True


class _Clock:
    """A loop's clock that can be put forward; it never goes back."""

    def __init__(self, time: Any) -> None:
        self._time = time
        self.ahead = 0.0

    def __call__(self) -> float:
        now: float = self._time() + self.ahead
        return now


def _cancels(timer: Any, task: Any) -> bool:
    """Whether a timer is a timeout that stands around what the task does now.

    ``asyncio.timeout`` and the library it came from know the task, anyio's scopes all tasks in them; before
    Python 3.12 ``asyncio.wait_for`` made a task and shares a future with it.
    """
    callback, args = timer._callback, timer._args or ()
    owner = getattr(callback, "__self__", None)
    if getattr(owner, "_task", None) is task or any(arg is task for arg in args):
        return True
    tasks = getattr(owner, "_tasks", None)
    if isinstance(tasks, set) and task in tasks:
        return True
    done = [callback for callback, _ in task._callbacks or () if isinstance(callback, functools.partial)]
    return any(arg is future for arg in args for callback in done for future in callback.args)
