"""anyio on asyncio: its worker threads, and the way back from them. Tasks of its groups are asyncio's.

Knows anyio 4; other backends than asyncio are not known.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from stepfork.instrument.adapter import Patch
from stepfork.session import active, control

_BACKEND: Final = "anyio._backends._asyncio"


async def _run_sync_in_worker_thread(
    wrapped: Callable[..., Awaitable[Any]],
    backend: Any,
    args: Any,
    kwargs: Any,
) -> Any:
    return await _in_worker(wrapped, *args, **kwargs)


async def _in_worker(
    wrapped: Callable[..., Awaitable[Any]],
    func: Callable[..., Any],
    args: tuple[Any, ...],
    abandon_on_cancel: bool = False,
    limiter: Any = None,
) -> Any:
    # who may leave the thread behind does not always wait for it
    strand = None if active.idle() else control.fork(inline=not abandon_on_cancel)
    if strand is None:
        return await wrapped(func, args, abandon_on_cancel, limiter)
    try:
        return await wrapped(partial(control.run_in, strand, func), args, abandon_on_cancel, limiter)
    finally:
        if not abandon_on_cancel:
            strand.end(cancelled=True)


def _worker_start(wrapped: Callable[..., Any], worker: Any, args: Any, kwargs: Any) -> Any:
    with control.neutral():
        return wrapped(*args, **kwargs)


def _run_async_from_thread(wrapped: Callable[..., Any], backend: Any, args: Any, kwargs: Any) -> Any:
    """The caller waits, so the task in the loop continues its line."""
    strand = None if active.idle() else control.fork(inline=True)
    if strand is None:
        return wrapped(*args, **kwargs)
    try:
        with control.handing_over(strand):
            return wrapped(*args, **kwargs)
    finally:
        strand.end()


def _run_sync_from_thread(wrapped: Callable[..., Any], backend: Any, args: Any, kwargs: Any) -> Any:
    """The same for a plain function, which the loop runs between its tasks."""
    strand = None if active.idle() or not args else control.fork(inline=True)
    if strand is None:
        return wrapped(*args, **kwargs)
    func, *rest = args
    try:
        return wrapped(partial(control.run_in, strand, func), *rest, **kwargs)
    finally:
        strand.end()


class _Anyio:
    module = _BACKEND

    def patches(self) -> Sequence[Patch]:
        backend = f"{_BACKEND}:AsyncIOBackend"
        return (
            Patch(f"{backend}.run_sync_in_worker_thread", _run_sync_in_worker_thread, optional=True),
            Patch(f"{backend}.run_async_from_thread", _run_async_from_thread, optional=True),
            Patch(f"{backend}.run_sync_from_thread", _run_sync_from_thread, optional=True),
            Patch(f"{_BACKEND}:WorkerThread.start", _worker_start, optional=True),
        )


ADAPTER = _Anyio()
