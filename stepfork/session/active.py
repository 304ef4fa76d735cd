"""Which session a call belongs to. Knows the open sessions of this process, not what they do with a call.

A context variable says whose task or thread this is. Plain threads inherit none, so the open sessions
are also kept for the whole process: where nothing is known, the innermost of the only chain takes the call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from stepfork.errors import ConfigError, NoCassetteError

if TYPE_CHECKING:
    from stepfork.session.run import Run

_lock = threading.RLock()
_open: list[Run] = []
_known: ContextVar[Run | None] = ContextVar("stepfork_session", default=None)
_closed_listeners: list[Callable[[Run], None]] = []
_refuse_reason: str | None = None
_refusals = 0


def enter(run: Run, *, ambient: bool = False) -> Token[Run | None] | None:
    """Makes `run` the session of this task or thread; an `ambient` one only that of the process.

    Raises:
        ConfigError: if the same cassette is open already.
    """
    with _lock:
        for other in _open:
            if other.file == run.file and other.action != "off":
                raise ConfigError(
                    f"{run.path} is open already: the same cassette cannot be used by two sessions at once"
                )
        _open.append(run)
    return None if ambient else _known.set(run)


def leave(run: Run, token: Token[Run | None] | None) -> None:
    """Ends what `enter` began and tells the listeners."""
    with _lock:
        if run in _open:
            _open.remove(run)
    if token is not None:
        try:
            _known.reset(token)
        except ValueError:  # left in another context than entered: an async generator fixture does so
            if _known.get() is run:
                _known.set(run.outer)
    for listener in list(_closed_listeners):
        listener(run)


def current() -> Run | None:
    """The session that the current call belongs to, or None where there is none.

    Raises:
        NoCassetteError: if the call's session is closed, if it cannot be told, or if calls outside
            every session are refused.
    """
    known = _known.get()
    if known is not None:
        if known.is_open:
            return known
        raise NoCassetteError(
            f"a call came after the session of {known.path} had closed: a task or thread was left running; "
            "wait for it inside the session"
        )
    if _open:
        with _lock:
            return _innermost()
    if _refuse_reason is not None:
        global _refusals
        _refusals += 1
        raise NoCassetteError(_refuse_reason)
    return None


def refusals() -> int:
    """How many calls were refused so far because they were made outside every session."""
    return _refusals


def _innermost() -> Run | None:
    last = _chain_end()
    if last is None and _open:
        names = ", ".join(str(run.path) for run in _open)
        raise NoCassetteError(
            f"a call from a thread that belongs to no session, while several are open ({names}); "
            "start the thread inside the session it belongs to"
        )
    return last


def _chain_end() -> Run | None:
    """The innermost open session, if all open ones were opened inside one another."""
    chain: list[Run] = []
    step = _open[-1] if _open else None
    while step is not None:
        chain.append(step)
        step = step.outer
    return _open[-1] if chain and all(run in chain for run in _open) else None


def enclosing() -> Run | None:
    """The session that a new one is opened inside of."""
    known = _known.get()
    if known is not None and known.is_open:
        return known
    with _lock:
        return _chain_end()


def idle() -> bool:
    """Whether calls can simply go through: no session is open, nothing is refused. Costs next to nothing."""
    return not _open and _refuse_reason is None and _known.get() is None


def refuse_outside(reason: str | None) -> None:
    """Has calls outside every session raise `NoCassetteError` with this reason; None lets them through."""
    global _refuse_reason
    _refuse_reason = reason


def on_close(listener: Callable[[Run], None]) -> Callable[[], None]:
    """Calls `listener` with every session that closes; gives a function that ends it."""
    _closed_listeners.append(listener)
    return lambda: _closed_listeners.remove(listener)


def expects_replay() -> bool:
    """Whether a call made here would be answered from a cassette, or refused for want of one."""
    known = _known.get()
    if known is not None and known.is_open:
        return known.action == "replay"
    with _lock:
        return _open[-1].action == "replay" if _open else _refuse_reason is not None
