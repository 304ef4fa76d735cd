"""Programs of lines that fork and join, and a controller that runs them under any legal schedule.

Knows threads, tasks and pools, which are all real; stepfork is only a context manager around a run.

A *program* is a tree of steps for one line of control. Before each step a line asks the controller for its
turn; one line runs at a time, and the schedule says who is next among those that could go on. A line that
joins can go on once its target has really ended (the thread is dead, the task or future is done). So a
program and a schedule give the same run each time, in threads as in tasks, and no test waits for a clock.

One interpreter serves both: it is a coroutine, and in a thread without a loop every ``await`` in it blocks
instead of suspending, so that a single ``send`` runs it to its end (`Performance.drive`).
"""

from __future__ import annotations

import asyncio
import importlib
import queue
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, TypeAlias

from hypothesis import strategies as st

LIMIT = 30.0
"""Seconds after which a line that nobody woke says so: what is tested hangs, not the program."""

WORKERS = 40
"""More than any generated program has lines, so that a submitted item never waits for a worker."""

TOOLS = ("alpha", "beta", "gamma", "special", "ticket")
"""All but the last answer the same whenever they are asked the same; each ticket has the next number."""


# -- programs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A tool call."""

    tool: str
    arg: Any

    @property
    def content(self) -> tuple[str, Any]:
        return self.tool, self.arg


@dataclass(frozen=True)
class Fork:
    """Starts a line; one that `linger`s stays alive until all others have ended."""

    handle: int
    body: Steps
    how: str
    linger: bool = False


@dataclass(frozen=True)
class Join:
    """Waits for a line that the same line started."""

    handle: int


@dataclass(frozen=True)
class Group:
    """Starts all bodies, makes its own calls `meanwhile`, and waits for all."""

    bodies: tuple[Steps, ...]
    how: str
    meanwhile: tuple[Call, ...] = ()
    workers: int = WORKERS


@dataclass(frozen=True)
class Inline:
    """Runs its body in another task or thread and waits for it at once, so it is sequential."""

    body: Steps
    how: str


Step: TypeAlias = Call | Fork | Join | Group | Inline
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Program:
    """What the main line does.

    Attributes:
        coroutine: whether the main line is a coroutine.
        inside: whether a coroutine opens the session itself, or whoever runs the event loop does.
        pool: the pool for submitted items is made inside the session, outside of it, or outlives all of them.
        overlap: whether other lines may go on while a recorded tool body runs.
        later: whether coroutines call the async tools.
    """

    main: Steps
    coroutine: bool = False
    inside: bool = False
    pool: str = "inside"
    overlap: bool = False
    later: bool = False


def threads(*steps: Step, **settings: Any) -> Program:
    """A program whose main line is plain code."""
    return Program(steps, **settings)


def tasks(*steps: Step, **settings: Any) -> Program:
    """A program whose main line is a coroutine."""
    return Program(steps, coroutine=True, **settings)


COROUTINE_BODIES = frozenset({"create_task", "gather", "task_group", "wait_for", "asyncio_run"})
FORKS = {
    False: ("thread", "submit"),
    True: ("create_task", "create_task", "to_thread", "run_in_executor", "thread", "submit"),
}
GROUPS = {
    False: ("thread", "submit", "map"),
    True: ("gather", "gather", "task_group", "gather_to_thread", "create_task", "run_in_executor"),
}
INLINES = {
    False: ("submit", "thread", "asyncio_run"),
    True: ("wait_for", "to_thread", "run_in_executor", "create_task"),
}


class _Drawing:
    """Draws one program; keeps it small."""

    def __init__(self, draw: Any, calls: int, lines: int) -> None:
        self.draw = draw
        self.calls = calls
        self.lines = lines
        self.handles = 0

    def call(self) -> Call:
        self.calls -= 1
        return Call(self.draw(st.sampled_from(TOOLS[:3])), self.draw(st.integers(0, 2)))

    def body(self, how: str, depth: int, outer: bool) -> Steps:
        return self.steps(how in COROUTINE_BODIES, depth + 1, outer and how != "asyncio_run")

    def steps(self, coroutine: bool, depth: int, outer: bool) -> Steps:
        """The steps of one line; `outer` says that a coroutine of it runs in the main event loop."""
        steps: list[Step] = []
        started: list[int] = []
        kinds = ["call", "call", "call"]
        if depth < 3:
            kinds += ["fork", "fork", "fork", "group", "group", "inline"]
        sizes = [1, 2, 3, 0] if depth else [4, 5, 6, 7, 2]
        for _ in range(self.draw(st.sampled_from(sizes))):
            kind = self.draw(st.sampled_from([*kinds, "join", "join"] if started else kinds))
            if kind == "call" and self.calls > 0:
                steps.append(self.call())
            elif kind == "join":
                steps.append(Join(started.pop(self.draw(st.integers(0, len(started) - 1)))))
            elif kind == "fork" and self.lines > 0:
                fork = self.fork(coroutine, depth, outer)
                steps.append(fork)
                started += [] if fork.linger else [fork.handle]
            elif kind == "group" and self.lines > 1:
                steps.append(self.group(coroutine, depth, outer))
            elif kind == "inline":
                how = self.draw(st.sampled_from(INLINES[coroutine]))
                steps.append(Inline(self.body(how, depth, outer), how))
        while started and self.draw(st.booleans()):
            steps.append(Join(started.pop()))
            if self.calls > 0 and self.draw(st.booleans()):
                steps.append(self.call())
        return tuple(steps)

    def fork(self, coroutine: bool, depth: int, outer: bool) -> Fork:
        self.lines -= 1
        self.handles += 1
        handle = self.handles
        how = self.draw(st.sampled_from(FORKS[coroutine]))
        may_linger = how == "thread" or (how == "create_task" and outer)
        linger = may_linger and self.draw(st.integers(0, 4)) == 0
        return Fork(handle, self.body(how, depth, outer), how, linger)

    def group(self, coroutine: bool, depth: int, outer: bool) -> Group:
        how = self.draw(st.sampled_from(GROUPS[coroutine]))
        size = self.draw(st.integers(1, min(3, self.lines)))
        self.lines -= size
        bodies = tuple(self.body(how, depth, outer) for _ in range(size))
        meanwhile = (self.call(),) if self.calls > 0 and self.draw(st.booleans()) else ()
        return Group(bodies, how, meanwhile, self.draw(st.integers(1, size)) if how == "map" else WORKERS)


@st.composite
def programs(draw: Any, calls: int = 14, lines: int = 8) -> Program:
    """A program of at most that many calls and lines beside the main one."""
    coroutine = draw(st.booleans())
    main = _Drawing(draw, calls, lines).steps(coroutine, 0, coroutine)
    pool = draw(st.sampled_from(["inside", "outside", "lasting"]))
    inside, overlap, later = (draw(st.booleans()) for _ in range(3))
    return Program(main, coroutine, inside, pool, overlap, later)


@st.composite
def sequential_programs(draw: Any, hows: tuple[str, ...] = INLINES[False] + INLINES[True]) -> Program:
    """A program whose calls all come one after the other, however many threads and tasks take part."""
    coroutine = draw(st.booleans())
    drawing = _Drawing(draw, calls=0, lines=0)
    steps: list[Step] = []
    for _ in range(draw(st.integers(2, 5))):
        how = draw(st.sampled_from(["", "", *(how for how in INLINES[coroutine] if how in hows)]))
        body = tuple(drawing.call() for _ in range(draw(st.integers(1, 2))))
        steps += [Inline(body, how)] if how else body
    return Program(tuple(steps), coroutine, draw(st.booleans()))


# -- what a program says about its calls --------------------------------------------------------------


@dataclass
class Shape:
    """The calls of a program, numbered from its start to its end as written.

    Attributes:
        calls: the calls; `lines` has the name of each call's line.
        before: for each call those that the program orders before it, by its own line, forks and joins.
        parents: who started each line.
    """

    calls: list[Call] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    before: list[frozenset[int]] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)

    def swappable(self) -> list[tuple[int, int]]:
        """Pairs of differing calls that the program makes one after the other."""
        return [
            (first, second)
            for second, before in enumerate(self.before)
            for first in sorted(before)
            if self.calls[first].content != self.calls[second].content
        ]

    @property
    def sequential(self) -> bool:
        return all(len(before) == at for at, before in enumerate(self.before))


def shape(program: Program) -> Shape:
    """Reads off a program what is ordered in it."""
    found = Shape()
    counts: dict[str, int] = {"main": 0}

    def child(line: str) -> str:
        name = f"{line}.{counts[line]}"
        counts[line] += 1
        counts[name] = 0
        found.parents[name] = line
        return name

    def walk(steps: Sequence[Step], line: str, known: frozenset[int]) -> frozenset[int]:
        ends: dict[int, frozenset[int]] = {}
        for step in steps:
            match step:
                case Call():
                    found.calls.append(step)
                    found.lines.append(line)
                    found.before.append(known)
                    known |= {len(found.calls) - 1}
                case Fork():
                    ends[step.handle] = walk(step.body, child(line), known)
                case Join():
                    known |= ends[step.handle]
                case Group():
                    names = [child(line) for _ in step.bodies]
                    bodies = [walk(body, name, known) for name, body in zip(names, step.bodies, strict=True)]
                    known = walk(step.meanwhile, line, known).union(*bodies)
                case Inline():
                    known = walk(step.body, line, known)
        return known

    walk(program.main, "main", frozenset())
    return found


def rewrite(program: Program, changes: dict[int, tuple[Call, ...]]) -> Program:
    """The program with some calls, by their numbers, replaced by none, one or more."""
    numbers = iter(range(10**6))

    def call(step: Call) -> tuple[Call, ...]:
        return changes.get(next(numbers), (step,))

    def walk(steps: Sequence[Step]) -> Iterator[Step]:
        for step in steps:
            match step:
                case Call():
                    yield from call(step)
                case Fork() | Inline():
                    yield replace(step, body=tuple(walk(step.body)))
                case Group():
                    bodies = tuple(tuple(walk(body)) for body in step.bodies)
                    meanwhile = tuple(new for own in step.meanwhile for new in call(own))
                    yield replace(step, bodies=bodies, meanwhile=meanwhile)
                case Join():
                    yield step

    return replace(program, main=tuple(walk(program.main)))


def swap(program: Program, first: int, second: int) -> Program:
    """The program with the contents of two calls exchanged."""
    calls = shape(program).calls
    return rewrite(program, {first: (calls[second],), second: (calls[first],)})


def canonical(steps: Sequence[Step]) -> Any:
    """What is left of a line if lines started in one go count as a multiset, and how they were started not.

    Programs of equal form do the same. (The contrary does not hold: it is only used to sort out mutants.)
    """
    blocks: list[tuple[str, list[Any]]] = []
    forks: dict[int, tuple[int, int]] = {}

    def block(kind: str) -> list[Any]:
        if not blocks or blocks[-1][0] != kind or kind not in ("forks", "joins"):
            blocks.append((kind, []))
        return blocks[-1][1]

    def add(steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Call():
                    block("call").append(step.content)
                case Fork():
                    items = block("forks")
                    items.append((canonical(step.body), step.linger, -1))
                    forks[step.handle] = len(blocks) - 1, len(items) - 1
                case Join():
                    block("joins")
                    at, item = forks[step.handle]
                    blocks[at][1][item] = (*blocks[at][1][item][:2], len(blocks) - 1)
                case Group():
                    bodies = sorted((canonical(body) for body in step.bodies), key=repr)
                    block("group").extend([bodies, canonical(step.meanwhile)])
                case Inline():
                    add(step.body)

    add(steps)
    return [(kind, sorted(items, key=repr) if kind == "forks" else items) for kind, items in blocks]


Trace: TypeAlias = list[tuple[str, tuple[str, Any]]]
"""The calls of one run in the order of their starts: which line, which content."""


def could_be(trace: Trace, original: Shape, parents: dict[str, str]) -> bool:
    """Whether this could be a run of the original, whoever its lines are: by brute force.

    That is: the lines can be mapped to lines of the original so that parents stay parents, each makes the
    same calls, and no call comes before one that the original orders before it. This asks for less than
    stepfork may know (when a line was started is left out), so where it says no, a replay has to fail.
    """
    made: dict[str, list[tuple[int, Any]]] = {name: [] for name in ["main", *parents]}
    for time, (line, content) in enumerate(trace):
        made[line].append((time, content))
    wanted: dict[str, list[int]] = {name: [] for name in ["main", *original.parents]}
    for number, line in enumerate(original.lines):
        wanted[line].append(number)
    if len(trace) != len(original.calls):
        return False
    names = [
        name for name in made if any(f"{other}.".startswith(f"{name}.") for other in made if made[other])
    ]
    times: dict[int, int] = {}
    taken: dict[str, str] = {}

    def fits(name: str, target: str) -> bool:
        return [content for _, content in made[name]] == [original.calls[n].content for n in wanted[target]]

    def place(at: int) -> bool:
        if at == len(names):
            return all(times[b] < times[n] for n, before in enumerate(original.before) for b in before)
        name = names[at]
        for target in wanted:
            same_parent = name == "main" or (
                target != "main" and original.parents[target] == taken[parents[name]]
            )
            if target in taken.values() or (name == "main") != (target == "main") or not same_parent:
                continue
            if fits(name, target):
                taken[name] = target
                times.update(
                    zip(wanted[target], (time for time, _ in made[name]), strict=True)
                )  # the numbers of a target are its own, so what an earlier trial left is overwritten
                if place(at + 1):
                    return True
                del taken[name]
        return False

    return place(0)


# -- schedules --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """Who goes next: given choices first, then a habit.

    Lines stand in the order in which they were started. ``oldest`` lets a line start its work only when those
    before it wait or have ended; ``newest`` runs a line to its end before its starter goes on.
    """

    choices: tuple[int, ...] = ()
    then: str = "oldest"
    seed: int = 0

    def chooser(self) -> Callable[[int], int]:
        """A function from the number of lines that could go on to the place of the one that does."""
        given = iter(self.choices)
        random = Random(self.seed)

        def choose(width: int) -> int:
            choice = next(given, None)
            if choice is not None:
                return choice % width
            return {"oldest": 0, "newest": width - 1}.get(self.then, random.randrange(width))

        return choose


OLDEST, NEWEST = Schedule(), Schedule(then="newest")


def schedules() -> st.SearchStrategy[Schedule]:
    """Any schedule."""
    return st.one_of(
        st.sampled_from([OLDEST, NEWEST]),
        st.builds(Schedule, then=st.just("random"), seed=st.integers(0, 2**20)),
        st.builds(
            Schedule,
            choices=st.lists(st.integers(0, 7), max_size=30).map(tuple),
            then=st.sampled_from(["oldest", "newest"]),
        ),
    )


def every_schedule(program: Program, tools: ModuleType, limit: int = 200) -> list[Schedule]:
    """All schedules of a small program that differ in what happens when; of a larger one as many as asked.

    Every choice of a run is tried otherwise in another; in between come random runs, which are less alike.
    """
    found: dict[Any, Schedule] = {}
    waiting: list[tuple[int, ...]] = [()]
    for number in range(5 * limit):
        if not waiting or len(found) >= limit:
            break
        prefix = waiting.pop(0)
        run = perform(program, Schedule(prefix), tools)
        taken = tuple(choice for choice, _ in run.picks)
        found.setdefault(tuple(run.events), Schedule(taken))
        for at in range(len(prefix), len(taken)):
            waiting += [(*taken[:at], other) for other in range(run.picks[at][1]) if other != taken[at]]
        run = perform(program, Schedule(then="random", seed=number), tools)
        found.setdefault(tuple(run.events), Schedule(tuple(choice for choice, _ in run.picks)))
    return list(found.values())


# -- the controller and the interpreter ---------------------------------------------------------------


class Stuck(Exception):
    """No line can go on, or one was told to and did not; the message shows all of them."""


class Line:
    """A line of a running program, as the controller sees it."""

    def __init__(self, name: str, loop: Any = None) -> None:
        self.name = name
        self.loop = loop  # the event loop that has to outlive it
        self.real: Any = None  # its thread, task or future
        self.started = 0
        self.doing = "not begun"
        self.ready: Callable[[], bool] = lambda: True
        self.lasting = False
        self.done = False
        self._lock = threading.Lock()
        self._told = False
        self._waker: Callable[[], object] | None = None

    def tell(self) -> None:
        """It may go on. Said from any thread, before or after it began to wait."""
        with self._lock:
            self._told, waker, self._waker = True, self._waker, None
        if waker is not None:
            waker()

    async def wait(self) -> bool:
        """Waits until it may go on; False if nobody said so for a very long time."""
        loop = running_loop()
        if loop is None:
            event = threading.Event()
            if self._arm(event.set):
                event.wait(LIMIT)
        else:
            future = loop.create_future()

            def settle() -> None:
                if not future.done():
                    future.set_result(None)

            if self._arm(lambda: loop.call_soon_threadsafe(settle)):
                guard = loop.call_later(LIMIT, settle)
                await future
                guard.cancel()
        with self._lock:
            told, self._told = self._told, False
        return told

    def _arm(self, waker: Callable[[], object]) -> bool:
        with self._lock:
            if not self._told:
                self._waker = waker
            return not self._told


def running_loop() -> Any:
    """The event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _MapPool(ThreadPoolExecutor):
    """Tells when an item of its `map` is really done: `map` gives no future away."""

    def __init__(self, workers: int, ended: Callable[[Line], None]) -> None:
        super().__init__(workers)
        self._tell = ended

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        line = next(arg for arg in args if isinstance(arg, Line))
        future: Future[Any] = super().submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: self._tell(line))
        return future


class Performance:
    """One run of a program.

    Attributes:
        trace: the calls, in the order of their starts.
        events: all that happened, for telling runs apart.
        picks: what the schedule chose, out of how many, each time it had a choice.
        answers: what each line was answered, in order.
        threads: the thread that each line ran in.
        bodies: the tool bodies that ran.
        run: what the session gave, if there was one.
    """

    def __init__(self, program: Program, schedule: Schedule, tools: ModuleType, pool: ThreadPoolExecutor):
        self.program = program
        self.tools = tools
        self.trace: Trace = []
        self.events: list[str] = []
        self.picks: list[tuple[int, int]] = []
        self.answers: dict[str, list[Any]] = {}
        self.threads: dict[str, int] = {}
        self.bodies: list[tuple[str, Any]] = []
        self.run: Any = None
        self._choose = schedule.chooser()
        self._pool = pool
        self._lines: list[Line] = []
        self._errors: list[BaseException] = []
        self._broken = ""
        self._main = self._line(None)
        self._current = self._main
        self._dying: queue.SimpleQueue[tuple[threading.Thread, Line] | None] = queue.SimpleQueue()

    # the controller

    def _line(self, parent: Line | None, loop: Any = None) -> Line:
        name = "main"
        if parent is not None:
            name = f"{parent.name}.{parent.started}"
            parent.started += 1
        line = Line(name, loop)
        self._lines.append(line)
        return line

    def _next(self) -> Line | None:
        could = [line for line in self._lines if not line.done and line.ready()]
        if not could:
            self._break("no line can go on")
            return None
        choice = 0
        if len(could) > 1:
            choice = self._choose(len(could))
            self.picks.append((choice, len(could)))
        self._current = could[choice]
        return self._current

    def _break(self, why: str) -> None:
        if not self._broken:
            state = [
                f"  {line.name}: {'ended' if line.done else line.doing}"
                f"{'' if line.done or line.ready() else ', cannot go on'}"
                for line in self._lines
            ]
            self._broken = "\n".join(
                [why, *state, "  calls so far:", *(f"    {call}" for call in self.trace)]
            )
            for line in self._lines:
                line.tell()

    async def turn(self, line: Line, doing: str, ready: Callable[[], bool] = lambda: True) -> None:
        """Returns when the line is the one to go on with what it is doing."""
        if self._broken:
            raise Stuck(self._broken)
        line.doing, line.ready = doing, ready
        chosen = self._next()
        if chosen is not line and chosen is not None:
            chosen.tell()
        if chosen is not line:
            await self._told(line)
        line.ready = lambda: True
        self.events.append(f"{line.name} {doing}")

    async def _told(self, line: Line) -> None:
        if not await line.wait():
            self._break(f"{line.name} was not told to go on for {LIMIT:g} s")
        if self._broken:
            raise Stuck(self._broken)

    def ended(self, line: Line) -> None:
        """The thread, task or item of the line is no more. Nobody else was running, so here is the next."""
        line.done = True
        self.events.append(f"{line.name} ended")
        if not self._broken and (chosen := self._next()) is not None:
            chosen.tell()

    def _reap(self) -> None:
        while (dying := self._dying.get()) is not None:
            thread, line = dying
            thread.join(LIMIT)
            self.ended(line)

    # lines

    async def _live(self, line: Line, body: Steps, linger: bool = False) -> None:
        try:
            await self._told(line)
            self.events.append(f"{line.name} began")
            self.threads[line.name] = threading.get_ident()
            await self._steps(line, body)
            line.lasting = linger
            others = [self._main] if linger else []
            await self.turn(
                line,
                "end",
                lambda: not others or all(other.done or other.lasting for other in self._lines),
            )
        except BaseException as error:
            self._errors.append(error)

    async def _task(self, line: Line, body: Coroutine[Any, Any, None]) -> None:
        """A body in a task that something else makes, as ``gather`` does."""
        task: Any = asyncio.current_task()
        task.add_done_callback(lambda _: self.ended(line))
        await body

    def drive(self, body: Coroutine[Any, Any, None]) -> None:
        """Runs a body in a thread that has no event loop: nothing in it ever suspends."""
        try:
            body.send(None)
        except StopIteration:
            return
        raise AssertionError("the body suspended outside an event loop")

    def _thread_body(self, line: Line, body: Steps, linger: bool = False) -> None:
        self.drive(self._live(line, body, linger))

    def _own_thread(self, line: Line, body: Steps, linger: bool) -> None:
        try:
            self._thread_body(line, body, linger)
        finally:
            self._dying.put((threading.current_thread(), line))

    # steps

    async def _steps(self, line: Line, steps: Sequence[Step]) -> None:
        started: dict[int, Line] = {}
        for step in steps:
            match step:
                case Call():
                    await self.turn(line, f"{step.tool}({step.arg})")
                    await self._call(line, step)
                case Fork():
                    await self.turn(line, f"fork by {step.how}")
                    started[step.handle] = self._fork(line, step.body, step.how, step.linger)
                case Join():
                    child = started[step.handle]
                    await self.turn(line, f"join {child.name}", lambda child=child: child.done)  # type: ignore[misc]
                    await self._join(child)
                case Group():
                    await self._group(line, step)
                case Inline():
                    await self.turn(line, f"inline by {step.how}")
                    await self._inline(line, step)

    async def _call(self, line: Line, step: Call) -> None:
        later = self.program.later and running_loop() is not None
        self.trace.append((line.name, step.content))
        tool = getattr(self.tools, f"{step.tool}_later" if later else step.tool)
        answer = await tool(step.arg) if later else tool(step.arg)
        self.answers.setdefault(line.name, []).append(answer)
        if step.tool != "ticket":
            assert answer == f"{step.tool} of {step.arg}", f"{line.name}: {step} was answered {answer!r}"

    def _fork(self, parent: Line, body: Steps, how: str, linger: bool = False) -> Line:
        loop = running_loop() if how in ("create_task", "to_thread", "run_in_executor") else None
        line = self._line(parent, loop)
        if how == "thread":
            line.real = threading.Thread(target=self._own_thread, args=(line, body, linger), daemon=True)
            line.real.start()
            return line
        if how == "submit":
            line.real = self._pool.submit(self._thread_body, line, body, linger)
        elif how == "create_task":
            line.real = asyncio.create_task(self._live(line, body, linger))
        elif how == "to_thread":
            line.real = asyncio.create_task(asyncio.to_thread(self._thread_body, line, body, linger))
        elif how == "run_in_executor":
            line.real = asyncio.get_running_loop().run_in_executor(
                self._pool, self._thread_body, line, body, linger
            )
        else:
            raise ValueError(how)
        line.real.add_done_callback(lambda _: self.ended(line))
        return line

    async def _join(self, line: Line) -> None:
        if isinstance(line.real, threading.Thread):
            line.real.join(LIMIT)
        elif isinstance(line.real, Future):
            line.real.result(LIMIT)
        else:
            await line.real

    async def _group(self, line: Line, step: Group) -> None:
        await self.turn(line, f"group by {step.how}")
        children: list[Line] = []
        error: BaseException | None = None

        async def finish() -> None:
            nonlocal error
            try:  # an error now would cancel the others, or wait for them without leaving them a turn
                await self._steps(line, step.meanwhile)
            except BaseException as caught:
                error = caught
            await self.turn(line, "wait for the group", lambda: all(child.done for child in children))

        if step.how == "map":
            with _MapPool(step.workers, self.ended) as pool:
                children += [self._line(line) for _ in step.bodies]
                for child in children:
                    child.ready = lambda child=child: self._has_worker(child, children, step.workers)  # type: ignore[misc]
                results = pool.map(self._thread_body, children, step.bodies)
                await finish()
                assert list(results) == [None] * len(children)
        elif step.how in ("gather", "gather_to_thread"):
            children += [self._line(line) for _ in step.bodies]
            gathered = asyncio.gather(*self._coroutines(children, step))
            await finish()
            await gathered
        elif step.how == "task_group":
            async with asyncio.TaskGroup() as group:
                for number, body in enumerate(step.bodies):
                    if number:
                        await self.turn(line, "start the next")
                    children.append(self._line(line))
                    group.create_task(self._task(children[-1], self._live(children[-1], body)))
                await finish()
        else:
            for number, body in enumerate(step.bodies):
                if number:
                    await self.turn(line, "start the next")
                children.append(self._fork(line, body, step.how))
            await finish()
            for child in children:
                await self._join(child)
        if error is not None:
            raise error

    def _coroutines(self, children: list[Line], step: Group) -> Iterator[Awaitable[None]]:
        for child, body in zip(children, step.bodies, strict=True):
            if step.how == "gather":
                yield self._task(child, self._live(child, body))
            else:
                yield self._task(child, asyncio.to_thread(self._thread_body, child, body))

    @staticmethod
    def _has_worker(child: Line, children: list[Line], workers: int) -> bool:
        return child in [other for other in children if not other.done][:workers]

    async def _inline(self, line: Line, step: Inline) -> None:
        steps = self._steps(line, step.body)
        if step.how == "submit":
            self._pool.submit(self.drive, steps).result(LIMIT)
        elif step.how == "thread":
            self._in_a_thread(steps)
        elif step.how == "asyncio_run":
            asyncio.run(self._in_a_loop(line, steps))
        elif step.how == "wait_for":
            await asyncio.wait_for(steps, LIMIT)
        elif step.how == "to_thread":
            await asyncio.to_thread(self.drive, steps)
        elif step.how == "run_in_executor":
            await asyncio.get_running_loop().run_in_executor(self._pool, self.drive, steps)
        elif step.how == "create_task":
            await asyncio.create_task(steps)
        else:
            raise ValueError(step.how)

    def _in_a_thread(self, steps: Coroutine[Any, Any, None]) -> None:
        errors: list[BaseException] = []

        def body() -> None:
            try:
                self.drive(steps)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        thread.join(LIMIT)
        if errors:
            raise errors[0]

    async def _in_a_loop(self, line: Line, steps: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(WORKERS))
        try:
            await steps
        finally:  # the loop would cancel what nobody waited for
            await self.turn(
                line, "close the loop", lambda: all(o.done for o in self._lines if o.loop is loop)
            )

    # the main line

    async def _whole(self) -> None:
        main = self._main
        with ExitStack() as opened:
            if self.program.pool == "inside":
                self._pool = opened.enter_context(ThreadPoolExecutor(WORKERS))
            try:
                await self._steps(main, self.program.main)
            except BaseException as error:
                self._errors.append(error)
            main.lasting = True
            await self.turn(main, "close", lambda: all(line.done for line in self._lines if line is not main))
        if self._errors:
            raise self._errors[0]

    async def _in_the_outer_loop(self, session: Any) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(WORKERS))
        if session is None:
            await self._whole()
            return
        async with session as self.run:
            await self._whole()

    def play(self, session: Any) -> None:
        """Runs the program; raises the first error of any line, or what the session raises."""
        reaper = threading.Thread(target=self._reap, daemon=True)
        reaper.start()
        try:
            if self.program.coroutine and self.program.inside:
                asyncio.run(self._in_the_outer_loop(session))
            else:
                with session or nullcontext() as self.run:
                    if self.program.coroutine:
                        asyncio.run(self._in_the_outer_loop(None))
                    else:
                        self.drive(self._whole())
        finally:
            self._dying.put(None)


_lasting = ThreadPoolExecutor(WORKERS)
_performing: Performance | None = None


def perform(program: Program, schedule: Schedule, tools: ModuleType, session: Any = None) -> Performance:
    """Runs a program under a schedule; a session, if given, is a context manager that is entered here."""
    global _performing
    with ExitStack() as opened:
        pool = _lasting
        if program.pool == "outside":
            pool = opened.enter_context(ThreadPoolExecutor(WORKERS))
        _performing = performance = Performance(program, schedule, tools, pool)
        performance.play(session)
    return performance


# -- tools ------------------------------------------------------------------------------------------


def _answer(running: Performance, tool: str, arg: Any) -> str:
    running.bodies.append((tool, arg))
    return f"{tool} {len(running.bodies)}" if tool == "ticket" else f"{tool} of {arg}"


def body(tool: str, arg: Any) -> str:
    """The body of every tool."""
    running = _performing
    assert running is not None
    answer = _answer(running, tool, arg)
    if running.program.overlap and running_loop() is None:
        running.drive(running.turn(running._current, f"inside {tool}({arg})"))
    return answer


async def body_later(tool: str, arg: Any) -> str:
    """The body of every async tool."""
    running = _performing
    assert running is not None
    answer = _answer(running, tool, arg)
    if running.program.overlap:
        await running.turn(running._current, f"inside {tool}({arg})")
    return answer


@contextmanager
def tools_in(folder: Path) -> Iterator[ModuleType]:
    """A module of the tools, written there and imported; forgotten afterwards."""
    source = ["from session import fork_join"]
    for tool in TOOLS:
        source += [f"def {tool}(x):", f"    return fork_join.body({tool!r}, x)"]
        source += [f"async def {tool}_later(x):", f"    return await fork_join.body_later({tool!r}, x)"]
    (folder / "fork_join_tools.py").write_text("\n".join(source) + "\n", "utf-8")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module("fork_join_tools")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("fork_join_tools", None)
