"""Which line of control runs here, and what it is doing. Knows tasks and threads; no SDK, no file.

A *strand* is a task, a thread or a work item of this process. It carries frames: the sessions it opened, the
calls it is inside of. Who starts a strand hands it the innermost frame, so that its calls belong where they
were started from, whatever thread they run in and whether or not a context travelled along.

The strand is found by what executes: the running task, else what the thread is working on. Context variables
would not do: a copied context says whose it was, not who runs it.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakSet, ref

from stepfork.core.lines import Line

if TYPE_CHECKING:
    from stepfork.session.run import Run

P = ParamSpec("P")
T = TypeVar("T")


class Over(BaseException):
    """Ends a strand whose recording says nothing of what comes now. A thread ends with it without a word."""


@dataclass(slots=True, eq=False)
class Frame:
    """Where a call made now belongs: its session, the call it is made inside of, its line in there."""

    run: Run
    inside: Any
    line: Line


class Strand:
    """One task, thread or work item.

    Attributes:
        frames: from the outermost session to the innermost call; empty where nothing is known.
        owner: the task, or the number of the thread, that nobody announced.
        waiter: who waits for it, if it is work that a task gave to a thread.
        wanted: whether somebody waits for its end, whatever it takes.
    """

    __slots__ = ("__weakref__", "_forked", "_line", "frames", "owner", "waiter", "wanted")

    def __init__(self, frames: list[Frame] | None = None, owner: ref[Any] | int | None = None) -> None:
        self.frames = frames or []
        self.owner = owner
        self._forked: Frame | None = None
        self.waiter: Waiter | None = None
        self.wanted = False
        self._line: Line | None = None  # the line that began with it

    def top(self) -> Frame | None:
        """The innermost frame, or None where nothing is known."""
        return self.frames[-1] if self.frames else None

    def is_alive(self) -> bool:
        """Whether its owner, which nobody announced, goes on."""
        if isinstance(self.owner, int):
            return self.owner in sys._current_frames()
        task = None if self.owner is None else self.owner()
        return task is not None and not task.done()

    def given_up(self) -> bool:
        """Whether the task that gave this work to a thread waits for it no more."""
        future = None if self.waiter is None else self.waiter.future
        return future is not None and bool(future.cancelled())

    def end(self, *, cancelled: bool = False) -> None:
        """It has ended; may be said more than once."""
        frame, self._forked = self._forked, None
        if frame is not None:
            frame.run.line_ended(self._line, cancelled=cancelled)

    def __del__(self) -> None:
        """Nobody can run as it any more: work that was dropped, a task that was collected while it waited.

        The collector may come while any lock is held, so the end is only noted here.
        """
        if self._forked is not None:
            _dropped.append((self._forked, self._line))


class Waiter:
    """The task that gave work to a thread, and the future of its event loop that it waits for."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.future: Any = None
        self.strand: ref[Strand] | None = None
        self._told = threading.Event()

    def tell(self, future: Any) -> None:
        """The work is under way, and this is the future."""
        self.future = future
        if future is not None:
            _works.add(self)
        self._told.set()

    def known_future(self) -> Any:
        """The future; the work may begin before it is known, so this may block for a moment."""
        self._told.wait()
        return self.future


_works: WeakSet[Waiter] = WeakSet()


def works_in_threads(loop: Any, beside: Any) -> bool:
    """Whether a thread works for a task of this loop, another one than for the future `beside`."""
    futures = [work.future for work in list(_works)]
    return any(one is not beside and not one.done() and one.get_loop() is loop for one in futures)


class _Here(threading.local):
    strand: Strand | None = None
    waiter: Waiter | None = None
    pending: Strand | None = None
    neutral: bool = False

    def __init__(self) -> None:
        self.callback = Strand()  # what runs in a callback of an event loop


_here = _Here()
_dropped: deque[tuple[Frame, Line | None]] = deque()
_tasks: WeakKeyDictionary[Any, Strand] = WeakKeyDictionary()
_context: ContextVar[Strand | None] = ContextVar("stepfork_strand", default=None)
_handed_over: ContextVar[list[Strand] | None] = ContextVar("stepfork_handed_over", default=None)


def here() -> Strand:
    """The strand that runs now."""
    task = running_task()
    if task is None:
        return _here.callback if in_callback() else _of_thread()
    strand = _tasks.get(task)
    if strand is None:
        strand = _here.pending or Strand(owner=ref(task))
        _tasks[task] = strand
    return strand


def scheduler() -> Strand | None:
    """In a callback of an event loop, who had it called; None anywhere else."""
    return _starter() if in_callback() else None


def running_task() -> Any:
    """The running asyncio task of this thread, or None; imports nothing."""
    asyncio = sys.modules.get("asyncio")
    get_loop = getattr(asyncio, "_get_running_loop", None)
    if get_loop is None or (loop := get_loop()) is None:
        return None
    return asyncio.current_task(loop)  # type: ignore[union-attr]


def _of_thread() -> Strand:
    strand = _here.strand
    if strand is None:
        strand = _here.strand = Strand(owner=threading.get_ident())
    return strand


# -- what starts strands ----------------------------------------------------------------------------


def end_dropped() -> None:
    """Ends the strands that were dropped without an end."""
    while _dropped:
        frame, line = _dropped.popleft()
        frame.run.line_ended(line, cancelled=True)


def fork(*, inline: bool = False) -> Strand | None:
    """A strand that the one running here starts; None where no session is known, so nothing is to be told.

    An `inline` one continues the line of its starter, which waits for it: ``asyncio.wait_for`` and
    ``asyncio.to_thread`` run their work in another task or thread, but one after the other.
    Whoever forks must see to it that `Strand.end` is called.
    """
    if _here.neutral:
        return None
    handed_over = _handed_over.get()
    if handed_over:
        return handed_over.pop()
    end_dropped()
    frame = _starter().top()
    if frame is None:
        return None
    line = frame.run.line_started(frame, inline=inline)
    strand = Strand([Frame(frame.run, frame.inside, line)])
    strand._forked = strand.frames[0]
    strand._line = None if inline else line
    if _here.waiter is not None and _here.waiter.strand is None:
        strand.waiter = _here.waiter
        _here.waiter.strand = ref(strand)
    return strand


@contextmanager
def waited_for(task: Any) -> Iterator[Waiter]:
    """What is forked inside is work that a task gives to a thread; the waiter is to be told the future."""
    waiter = Waiter(task)
    before, _here.waiter = _here.waiter, waiter
    try:
        yield waiter
    finally:
        _here.waiter = before


def _starter() -> Strand:
    """Who starts something now. In a callback of an event loop it is whoever had it called."""
    if not in_callback():
        return here()
    return _here.callback if _here.callback.frames else _context.get() or _of_thread()


def joined(strand: Strand | None, by: Strand | None = None) -> None:
    """The strand running here (or another) saw the end of one, and would have waited for it."""
    if strand is None or strand._line is None:
        return
    frame = (by or here()).top()
    if frame is not None:
        frame.run.line_joined(strand._line, frame.line)


def in_callback() -> bool:
    """Whether an event loop is running a callback here, and no task."""
    get_loop = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    return get_loop is not None and get_loop() is not None and running_task() is None


@contextmanager
def handing_over(strand: Strand) -> Iterator[None]:
    """The next fork in this context, or in a callback scheduled from here, gives this strand.

    For work that is started now and becomes a task later, in the event loop of another thread.
    """
    token = _handed_over.set([strand])
    try:
        yield
    finally:
        _handed_over.reset(token)


@contextmanager
def running(strand: Strand) -> Iterator[None]:
    """The current thread works as this strand; it may do so again later."""
    before = _here.strand, _here.callback
    if in_callback():
        _here.callback = strand
    else:
        _here.strand = strand
    token = _context.set(strand)
    try:
        yield
    finally:
        _here.strand, _here.callback = before
        _context.reset(token)


def run_in(strand: Strand, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function as this strand in the current thread, and ends the strand."""
    __tracebackhide__ = True
    try:
        with running(strand):
            return function(*args, **kwargs)
    finally:
        strand.end()


def make_task(make: Callable[[], T], strand: Strand) -> T:
    """Makes a task that is this strand. Who made the strand ends it."""
    before, _here.pending = _here.pending, strand  # an eager task runs before it is known
    token = _context.set(strand)  # the task copies it, for its callbacks
    try:
        task = make()
    finally:
        _here.pending = before
        _context.reset(token)
    _tasks[task] = strand
    return task


def make_root_task(make: Callable[[], T]) -> T:
    """Makes the task that an event loop is started for: it runs in place of its thread."""
    return make_task(make, _of_thread())


@contextmanager
def neutral() -> Iterator[None]:
    """Threads started inside belong to nobody: the workers of a pool, which take work from everyone."""
    before, _here.neutral = _here.neutral, True
    try:
        yield
    finally:
        _here.neutral = before


# -- what strands do --------------------------------------------------------------------------------


def push(frame: Frame) -> Strand:
    """The strand running here opens a session or begins a call; gives the strand, for `pop`."""
    strand = here()
    strand.frames.append(frame)
    if _context.get() is None:
        _context.set(strand)
    return strand


def pop(strand: Strand, frame: Frame) -> None:
    """The strand has left that frame."""
    if frame in strand.frames:
        strand.frames.remove(frame)
