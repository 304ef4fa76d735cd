"""Runs a program as real threads, tasks and pools, each step at its turn. Knows no tool and no stepfork.

A session is only a context manager around the run. One interpreter serves threads and tasks: it is a
coroutine, and in a thread without a loop every ``await`` in it blocks (`blocking.drive`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from types import ModuleType
from typing import Any

from support.fork_join.blocking import LIMIT, drive, in_a_thread, running_loop
from support.fork_join.controller import Controller, Line
from support.fork_join.programs import WORKERS, Call, Fork, Group, Inline, Join, Program, Step, Steps
from support.fork_join.schedules import Schedule


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


class Performance(Controller):
    """One run of a program.

    Attributes:
        answers: what each line was answered, in order.
        threads: the thread that each line ran in.
        bodies: the tool bodies that ran.
        run: what the session gave, if there was one.
    """

    def __init__(self, program: Program, schedule: Schedule, tools: ModuleType, pool: ThreadPoolExecutor):
        super().__init__(schedule)
        self.program = program
        self.tools = tools
        self.answers: dict[str, list[Any]] = {}
        self.threads: dict[str, int] = {}
        self.bodies: list[tuple[str, Any]] = []
        self.run: Any = None
        self._pool = pool
        self._errors: list[BaseException] = []

    # lines

    async def _live(self, line: Line, body: Steps, linger: bool = False) -> None:
        try:
            await self.told(line)
            self.events.append(f"{line.name} began")
            self.threads[line.name] = threading.get_ident()
            await self._steps(line, body)
            line.lasting = linger
            others = [self.main] if linger else []
            await self.turn(
                line,
                "end",
                lambda: not others or all(other.done or other.lasting for other in self.lines),
            )
        except BaseException as error:
            self._errors.append(error)

    async def _task(self, line: Line, body: Coroutine[Any, Any, None]) -> None:
        """A body in a task that something else makes, as ``gather`` does."""
        task: Any = asyncio.current_task()
        task.add_done_callback(lambda _: self.ended(line))
        await body

    def _thread_body(self, line: Line, body: Steps, linger: bool = False) -> None:
        drive(self._live(line, body, linger))

    def _own_thread(self, line: Line, body: Steps, linger: bool) -> None:
        try:
            self._thread_body(line, body, linger)
        finally:
            self.ends_with_this_thread(line)

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
        line = self.line(parent, loop)
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
                children += [self.line(line) for _ in step.bodies]
                for child in children:
                    child.ready = lambda child=child: self._has_worker(child, children, step.workers)  # type: ignore[misc]
                results = pool.map(self._thread_body, children, step.bodies)
                await finish()
                assert list(results) == [None] * len(children)
        elif step.how in ("gather", "gather_to_thread"):
            children += [self.line(line) for _ in step.bodies]
            gathered = asyncio.gather(*self._coroutines(children, step))
            await finish()
            await gathered
        elif step.how == "task_group":
            async with asyncio.TaskGroup() as group:
                for number, body in enumerate(step.bodies):
                    if number:
                        await self.turn(line, "start the next")
                    children.append(self.line(line))
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
            self._pool.submit(drive, steps).result()  # one that may give up waits for nothing
        elif step.how == "thread":
            in_a_thread(steps)
        elif step.how == "asyncio_run":
            asyncio.run(self._in_a_loop(line, steps))
        elif step.how == "wait_for":
            await asyncio.wait_for(steps, LIMIT)
        elif step.how == "to_thread":
            await asyncio.to_thread(drive, steps)
        elif step.how == "run_in_executor":
            await asyncio.get_running_loop().run_in_executor(self._pool, drive, steps)
        elif step.how == "create_task":
            await asyncio.create_task(steps)
        else:
            raise ValueError(step.how)

    async def _in_a_loop(self, line: Line, steps: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(WORKERS))
        try:
            await steps
        finally:  # the loop would cancel what nobody waited for
            await self.turn(line, "close the loop", lambda: all(o.done for o in self.lines if o.loop is loop))

    # the main line

    async def _whole(self) -> None:
        main = self.main
        with ExitStack() as opened:
            if self.program.pool == "inside":
                self._pool = opened.enter_context(ThreadPoolExecutor(WORKERS))
            try:
                await self._steps(main, self.program.main)
            except BaseException as error:
                self._errors.append(error)
            main.lasting = True
            await self.turn(main, "close", lambda: all(line.done for line in self.lines if line is not main))
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
        with self.reaping():
            if self.program.coroutine and self.program.inside:
                asyncio.run(self._in_the_outer_loop(session))
                return
            with session or nullcontext() as self.run:
                if self.program.coroutine:
                    asyncio.run(self._in_the_outer_loop(None))
                else:
                    drive(self._whole())
