"""Thread pools of `concurrent.futures`: the work item is the strand. Their workers belong to nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from stepfork.instrument.adapter import Patch
from stepfork.session import active, control

_FRAMES_TO_TO_THREAD: Final = 5
_strands: WeakKeyDictionary[Any, control.Strand] = WeakKeyDictionary()


def _submit(wrapped: Callable[..., Any], pool: Any, args: Any, kwargs: Any) -> Any:
    strand = None
    if args and not active.idle() and not _is_isolated(pool):
        strand = control.fork(inline=_is_to_thread())
    if strand is None:
        return wrapped(*args, **kwargs)
    function, *rest = args
    try:
        with control.neutral():
            future = wrapped(partial(control.run_in, strand, function), *rest, **kwargs)
    except BaseException:
        strand.end()
        raise
    future.add_done_callback(partial(_ended, strand))
    _strands[future] = strand
    return future


def _seen(wrapped: Callable[..., Any], future: Any, args: Any, kwargs: Any) -> Any:
    """Around ``result`` and ``exception``, which wait for the work: where they did not, they would have.

    An event loop that copies the result to a future of its own waits for nothing.
    """
    gives_up = any(value is not None for value in (*args, *kwargs.values()))
    strand = None if gives_up or active.idle() or control.in_callback() else _strands.get(future)
    if strand is None:
        return wrapped(*args, **kwargs)
    strand.wanted = True
    try:
        return wrapped(*args, **kwargs)
    finally:
        control.joined(strand)


def _add_done_callback(wrapped: Callable[..., Any], future: Any, args: Any, kwargs: Any) -> Any:
    """What is to be done then runs in whichever thread comes last: it is a strand of who asked for it."""
    if len(args) != 1 or kwargs or active.idle() or _is_machinery(args[0]):
        return wrapped(*args, **kwargs)
    strand = control.fork()
    if strand is None:
        return wrapped(*args, **kwargs)
    return wrapped(partial(control.run_in, strand, args[0]))


def _is_machinery(function: Any) -> bool:
    """Whether a callback is one of the standard library's, or of ours."""
    module = getattr(getattr(function, "func", function), "__module__", None) or ""
    return module.partition(".")[0] in ("anyio", "asyncio", "concurrent", "stepfork")


def _ended(strand: control.Strand, future: Any) -> None:
    """Work that was cancelled before it began, or that the pool gave up, ends here; any other has ended."""
    strand.end(cancelled=future.cancelled())


def _is_isolated(pool: Any) -> bool:
    """Whether the pool pickles its work, for interpreters of their own (Python 3.14)."""
    interpreters = sys.modules.get("concurrent.futures.interpreter")
    return interpreters is not None and isinstance(pool, interpreters.InterpreterPoolExecutor)


def _is_to_thread() -> bool:
    """Whether `asyncio.to_thread` submits, which waits for the result before it does anything else."""
    to_thread = getattr(sys.modules.get("asyncio.threads"), "to_thread", None)
    code = getattr(to_thread, "__code__", None)
    frame = sys._getframe(2) if code is not None else None
    for _ in range(_FRAMES_TO_TO_THREAD):
        if frame is None:
            return False
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


class _ThreadPools:
    module = "concurrent.futures.thread"

    def patches(self) -> Sequence[Patch]:
        return (
            Patch("concurrent.futures.thread:ThreadPoolExecutor.submit", _submit),
            Patch("concurrent.futures._base:Future.result", _seen),
            Patch("concurrent.futures._base:Future.exception", _seen),
            Patch("concurrent.futures._base:Future.add_done_callback", _add_done_callback),
        )


ADAPTER = _ThreadPools()
