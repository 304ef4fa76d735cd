"""Runs of programs under schedules, and the tools that they call: their bodies take part in the run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from support.fork_join.blocking import drive, running_loop
from support.fork_join.interpreter import Performance
from support.fork_join.programs import TOOLS, WORKERS, Program
from support.fork_join.schedules import Schedule

_lasting = ThreadPoolExecutor(WORKERS)
_performing: Performance | None = None  # the run that is going on: its tools ask for it


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


def _answer(running: Performance, tool: str, arg: Any) -> str:
    running.bodies.append((tool, arg))
    return f"{tool} {len(running.bodies)}" if tool == "ticket" else f"{tool} of {arg}"


def body(tool: str, arg: Any) -> str:
    """The body of every tool."""
    running = _performing
    assert running is not None
    answer = _answer(running, tool, arg)
    if running.program.overlap and running_loop() is None:
        drive(running.turn(running.current, f"inside {tool}({arg})"))
    return answer


async def body_later(tool: str, arg: Any) -> str:
    """The body of every async tool."""
    running = _performing
    assert running is not None
    answer = _answer(running, tool, arg)
    if running.program.overlap:
        await running.turn(running.current, f"inside {tool}({arg})")
    return answer


@contextmanager
def tools_in(folder: Path) -> Iterator[ModuleType]:
    """A module of the tools, written there and imported; forgotten afterwards."""
    source = ["from support.fork_join import performances"]
    for tool in TOOLS:
        source += [f"def {tool}(x):", f"    return performances.body({tool!r}, x)"]
        source += [f"async def {tool}_later(x):", f"    return await performances.body_later({tool!r}, x)"]
    (folder / "fork_join_tools.py").write_text("\n".join(source) + "\n", "utf-8")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module("fork_join_tools")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("fork_join_tools", None)
