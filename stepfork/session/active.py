"""Which session a call belongs to. Knows the open sessions of this process, not what they do with a call.

A call belongs to the session of its strand (`control`): the one it opened, or was started in. Where nothing
is known of a strand, the innermost of the only chain of open sessions takes its calls, as those of a line
that came from outside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepfork.errors import ConfigError, NoCassetteError
from stepfork.session import control
from stepfork.session.control import Frame, Strand
from stepfork.session.ticket import Ticket

if TYPE_CHECKING:
    from stepfork.session.run import Run

_lock = threading.RLock()
_counting = threading.RLock()
_open: list[Run] = []
_lingering = 0  # strands that outlive their session: their calls are refused
_open_listeners: list[Callable[[Run], None]] = []
_closed_listeners: list[Callable[[Run], None]] = []
_refuse_reason: str | None = None
_replaying_outside = False
_patched = False
_refusals = 0
_may_be_tool: Callable[[str], bool] = lambda name: True  # noqa: E731 - nobody knows yet
_tool_names: Callable[[], set[str]] = set


@dataclass(frozen=True, slots=True)
class Entered:
    """What `leave` needs to end what `enter` began."""

    strand: Strand
    frame: Frame


def enter(run: Run) -> Entered:
    """Makes `run` the session of the strand that runs here, and of those it starts; tells the listeners.

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
    for listener in list(_open_listeners):
        listener(run)
    frame = Frame(run, None, run.scope.main)
    return Entered(control.push(frame), frame)


def leave(run: Run, entered: Entered) -> None:
    """Ends what `enter` began and tells the listeners."""
    control.end_dropped()
    control.pop(entered.strand, entered.frame)
    with _lock:
        if run in _open:
            _open.remove(run)
    run.report_strands(_linger)
    for listener in list(_closed_listeners):
        listener(run)


def _linger(number: int) -> None:
    global _lingering
    with _counting:
        _lingering += number


def current() -> Frame | None:
    """Where the current call belongs, or None where there is no session.

    Raises:
        NoCassetteError: if the call's session is closed, if it cannot be told, or if calls outside
            every session are refused.
    """
    control.end_dropped()
    strand = control.here()
    frame = strand.top()
    caller = control.scheduler() if frame is None else None
    if caller is not None and caller.frames:  # a callback: nothing says what it comes after
        known = caller.frames[-1].run
        frame = Frame(known, None, known.scope.stranger())
    if frame is not None:
        if frame.run.is_open:
            return frame
        if not frame.run.hands_over:
            raise NoCassetteError(
                f"a call came after the session of {frame.run.path} had closed: "
                "a task or thread was left running; wait for it inside the session"
            )
    if _open:
        with _lock:
            run = _innermost()
        if run is not None:
            return Frame(run, None, run.stranger(strand))
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
    chain: set[Run] = set()
    step = _open[-1] if _open else None
    while step is not None:
        chain.add(step)
        step = step.outer
    return _open[-1] if chain and chain.issuperset(_open) else None


def enclosing() -> Run | None:
    """The session that a new one is opened inside of: that of the strand that opens it, if it has any."""
    frame = control.here().top()
    return frame.run if frame is not None and frame.run.is_open else None


def any_run() -> Run | None:
    """The session of the strand that runs here, or any that is open."""
    known = enclosing()
    with _lock:
        return known or (_open[-1] if _open else None)


def idle() -> bool:
    """Whether calls can simply go through: no session is open, nothing is refused. Costs next to nothing."""
    return not _open and _refuse_reason is None and not _lingering


def any_open() -> bool:
    """Whether any session is open."""
    return bool(_open)


def refuse_outside(reason: str | None, *, replaying: bool = False) -> None:
    """Has calls outside every session raise `NoCassetteError` with this reason; None lets them through.

    `replaying` says that calls inside of sessions are answered from cassettes.
    """
    global _refuse_reason, _replaying_outside
    _refuse_reason = reason
    _replaying_outside = replaying and reason is not None


def patched(yes: bool) -> None:
    """Whether anything is patched at all, so that a call would be noticed."""
    global _patched
    _patched = yes


def guard() -> Run | None:
    """The session on whose replay nothing may leave this process; None where connections are free."""
    if idle():
        return None
    frame = control.here().top()
    if frame is not None and frame.run.is_open:
        live = isinstance(frame.inside, Ticket)
        return frame.run if frame.run.guards_network and not live else None
    with _lock:
        innermost = _open[-1] if _open else None
    return innermost if innermost is not None and innermost.guards_network else None


def on_open(listener: Callable[[Run], None]) -> Callable[[], None]:
    """Calls `listener` with every session that opens; gives a function that ends it."""
    _open_listeners.append(listener)
    return lambda: _open_listeners.remove(listener)


def on_close(listener: Callable[[Run], None]) -> Callable[[], None]:
    """Calls `listener` with every session that closes; gives a function that ends it."""
    _closed_listeners.append(listener)
    return lambda: _closed_listeners.remove(listener)


def ask_for_tools(may_be: Callable[[str], bool], names: Callable[[], set[str]]) -> None:
    """Says who knows whether a name is, or may become, that of a tool, and the names there are."""
    global _may_be_tool, _tool_names
    _may_be_tool, _tool_names = may_be, names


def may_be_tool(name: str) -> bool:
    """Whether a tool of this name is patched, or may be as soon as its module is imported."""
    return _may_be_tool(name)


def tool_names() -> set[str]:
    """The names of the tools that are patched."""
    return _tool_names()


def expects_replay() -> bool:
    """Whether a call made here would be answered from a cassette, or refused for want of one."""
    if not _patched:
        return False
    frame = control.here().top()
    if frame is not None and frame.run.is_open:
        return frame.run.action == "replay"
    with _lock:
        return _open[-1].action == "replay" if _open else _replaying_outside
