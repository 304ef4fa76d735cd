"""Child processes: warns where one would make its calls live and unrecorded. Knows how they start, no more.

A forked child refuses its calls by itself; one that is spawned imports everything afresh.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from stepfork.instrument.adapter import Patch
from stepfork.session import active

if TYPE_CHECKING:
    from stepfork.session.run import Run

_warned: WeakSet[Run] = WeakSet()


def _start(wrapped: Callable[..., Any], process: Any, args: Any, kwargs: Any) -> Any:
    if not active.idle() and _start_method(process) != "fork":
        run = active.any_run()
        if run is not None and run not in _warned:
            _warned.add(run)
            warnings.warn(
                "the calls of a child process that does not start by fork are neither recorded nor replayed: "
                "they run live; use threads, or make these calls in this process",
                RuntimeWarning,
                stacklevel=2,
            )
    return wrapped(*args, **kwargs)


def _start_method(process: Any) -> str:
    """Its own, else the one in force."""
    method: str | None = process._start_method
    return method or sys.modules["multiprocessing"].get_start_method()


class _Processes:
    module = "multiprocessing.process"

    def patches(self) -> Sequence[Patch]:
        return (Patch("multiprocessing.process:BaseProcess.start", _start),)


ADAPTER = _Processes()
