"""Draws programs at random. Knows which line can start which; runs none."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.fork_join.programs import TOOLS, WORKERS, Call, Fork, Group, Inline, Join, Program, Step, Steps

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
