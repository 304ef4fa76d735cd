"""Threads: each one started is a strand of whoever started it. Knows `threading`; no pool, no event loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from stepfork.instrument.adapter import Patch
from stepfork.session import active, control

_MISSING: Final = object()
_strands: WeakKeyDictionary[Any, control.Strand] = WeakKeyDictionary()
_MACHINERY: Final = {
    "asyncio.base_events",  # one that shuts down the default executor
    "asyncio.unix_events",  # one that waits for a child process
    "concurrent.futures.process",
    "logging.handlers",
    "multiprocessing.queues",
}
"""Modules of the standard library whose threads are no business of the program: started when first needed, or
on some versions and platforms only. They belong to nobody."""


def _start(wrapped: Callable[..., Any], thread: Any, args: Any, kwargs: Any) -> Any:
    ours = not active.idle() and sys._getframe(1).f_globals.get("__name__") not in _MACHINERY
    strand = control.fork() if ours else None
    if strand is None:
        return wrapped(*args, **kwargs)
    run = thread.run  # whatever a subclass made of it
    own = vars(thread)
    before = own.get("run", _MISSING)

    def restore() -> None:
        if before is _MISSING:
            own.pop("run", None)
        else:
            own["run"] = before

    def run_as_strand() -> None:
        __tracebackhide__ = True
        restore()
        with suppress(control.Over):
            control.run_in(strand, run)

    own["run"] = run_as_strand
    _strands[thread] = strand
    try:
        return wrapped(*args, **kwargs)
    except Exception:  # not started; after an interrupt it may be running, and ends by itself
        restore()
        strand.end()
        raise


def _join(wrapped: Callable[..., Any], thread: Any, args: Any, kwargs: Any) -> Any:
    gives_up = any(value is not None for value in (*args, *kwargs.values()))
    strand = None if gives_up or active.idle() else _strands.get(thread)
    if strand is not None:
        strand.wanted = True
    result = wrapped(*args, **kwargs)
    control.joined(strand)  # one that may give up proves nothing
    return result


class _Threads:
    module = "threading"

    def patches(self) -> Sequence[Patch]:
        return (Patch("threading:Thread.start", _start), Patch("threading:Thread.join", _join))


ADAPTER = _Threads()
