"""asyncio: a task is a strand of whoever created it; the task a loop is started for is its thread's own.

Knows tasks; threads and pools have files of their own. Tasks made without ``loop.create_task`` (by calling
``asyncio.Task``) are not known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from stepfork.instrument.adapter import Patch
from stepfork.session import active, control

_FRAMES_TO_LOOP: Final = 6
_FRAMES_TO_FUTURE: Final = 4


def create_task(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Around ``create_task`` of any event loop."""
    make = partial(wrapped, *args, **kwargs)
    if _starts_loop():
        return control.make_root_task(make)
    strand = None if active.idle() else control.fork(inline=_is_waited_for())
    if strand is None:
        return make()
    try:
        task = control.make_task(make, strand)
    except BaseException:
        strand.end()
        raise
    if task.done():  # an eager one
        strand.end(cancelled=task.cancelled())
    else:
        task.add_done_callback(partial(_ended, strand, control.here(), control.running_task()))
    return task


def run_until_complete(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Around ``run_until_complete`` of a loop that is no Python code, to be seen by `create_task`."""
    return wrapped(*args, **kwargs)


def _run_threadsafe(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """The task begins here, though it is created later, in the thread of the loop."""
    strand = None if active.idle() else control.fork()
    if strand is None:
        return wrapped(*args, **kwargs)
    try:
        with control.handing_over(strand):
            return wrapped(*args, **kwargs)
    except BaseException:
        strand.end()
        raise


def _run_in_executor(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """The work is a strand already; this is about the task that awaits it."""
    if active.idle():
        return wrapped(*args, **kwargs)
    task = control.running_task()
    future = None
    with control.waited_for(task) as waiter:
        try:
            future = wrapped(*args, **kwargs)
        finally:
            waiter.tell(future)
    strand = waiter.strand() if waiter.strand is not None else None
    if strand is not None:
        future.add_done_callback(partial(_seen, strand, control.here(), task))
    return future


def _ended(strand: control.Strand, starter: control.Strand, starter_task: Any, task: Any) -> None:
    strand.end(cancelled=task.cancelled())
    _seen(strand, starter, starter_task, task)


def _seen(strand: control.Strand, starter: control.Strand, starter_task: Any, task: Any) -> None:
    """A task or future is done: was its starter waiting for it, and for nothing else?"""
    waits_for = getattr(starter_task, "_fut_waiter", None)
    if waits_for is task:
        control.joined(strand, by=starter)
    elif waits_for is not None and not waits_for.done():

        def woken() -> None:
            """After all who were told of the end: has that woken the starter?"""
            if waits_for.done():
                control.joined(strand, by=starter)

        task.get_loop().call_soon(woken)


def _starts_loop() -> bool:
    """Whether the task is made for a loop that is about to start in this thread."""
    if sys.modules["asyncio"]._get_running_loop() is not None:
        return False
    starters = (
        _code("asyncio.runners", "Runner", "run"),
        _code("asyncio.base_events", "BaseEventLoop", "run_until_complete"),
        run_until_complete.__code__,
    )
    frame: Any = sys._getframe(2)
    for _ in range(_FRAMES_TO_LOOP):
        if frame is None:
            return False
        if frame.f_code in starters:
            return True
        frame = frame.f_back
    return False


def _is_waited_for() -> bool:
    """Whether `asyncio.wait_for` makes the task and waits for it; before Python 3.12 it always made one."""
    make, wait_for = _code("asyncio.tasks", "ensure_future"), _code("asyncio.tasks", "wait_for")
    frame: Any = sys._getframe(2)
    for _ in range(_FRAMES_TO_FUTURE):
        if frame is None:
            return False
        if frame.f_code is make:
            return frame.f_back is not None and frame.f_back.f_code is wait_for
        frame = frame.f_back
    return False


def _code(module: str, *names: str) -> Any:
    """The code of a function in an imported module; None if there is no such thing."""
    found: Any = sys.modules.get(module)
    for name in (*names, "__code__"):
        found = getattr(found, name, None)
    return found


class _EventLoops:
    module = "asyncio"

    def patches(self) -> Sequence[Patch]:
        return (
            Patch("asyncio.base_events:BaseEventLoop.create_task", create_task),
            Patch("asyncio.base_events:BaseEventLoop.run_in_executor", _run_in_executor),
            Patch("asyncio:run_coroutine_threadsafe", _run_threadsafe),
        )


ADAPTER = _EventLoops()
