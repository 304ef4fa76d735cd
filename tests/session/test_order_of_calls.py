"""Programs that simpler rules of order get wrong, each recorded under some schedules and replayed under all.

The threads, tasks and pools are real; the controller of `support.fork_join` decides who goes next.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from support.fork_join.happens_before import shape
from support.fork_join.interpreter import Performance
from support.fork_join.mutants import swap
from support.fork_join.performances import every_schedule, perform, tools_in
from support.fork_join.programs import Call, Fork, Group, Inline, Join, Program, Step, tasks, threads
from support.fork_join.schedules import NEWEST, OLDEST, Schedule

import stepfork

A1, A2, A3 = (Call("alpha", n) for n in (1, 2, 3))
B1, B2 = (Call("beta", n) for n in (1, 2))
C1 = Call("gamma", 1)

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("order")


@pytest.fixture(scope="module")
def tools(folder: Path) -> Iterator[ModuleType]:
    with tools_in(folder) as module:
        yield module


class Door:
    """Records and replays programs."""

    def __init__(self, tools: ModuleType, folder: Path) -> None:
        self.tools = tools
        self.folder = folder

    def record(self, program: Program, schedule: Schedule = OLDEST) -> Path:
        path = self.folder / f"{next(_numbers)}.yaml"
        perform(program, schedule, self.tools, stepfork.record(path, tools=[self.tools.__name__]))
        return path

    def replay(self, program: Program, path: Path, schedule: Schedule = OLDEST) -> Performance:
        played = perform(program, schedule, self.tools, stepfork.replay(path))
        calls = len(shape(program).calls)
        assert played.bodies == []
        counts = played.run.counts
        assert (counts.recorded, counts.substituted, counts.live) == (calls, calls, 0)
        return played

    def every(self, program: Program, limit: int = 16) -> dict[Schedule, Performance]:
        """All runs of a program without stepfork."""
        found = [OLDEST, NEWEST, *every_schedule(program, self.tools, limit)]
        return {schedule: perform(program, schedule, self.tools) for schedule in found}

    def legal(self, program: Program, again: Program | None = None, limit: int = 16) -> list[tuple[Any, ...]]:
        """Records under a few schedules, replays each recording under all; gives the orders of the calls."""
        runs = self.every(program, limit)
        under = list(self.every(again or program, limit))
        for recorded in _few(runs, 4):
            path = self.record(program, recorded)
            for schedule in under:
                self.replay(again or program, path, schedule)
        return sorted({tuple(content for _, content in run.trace) for run in runs.values()})

    def refused(self, program: Program, mutant: Program, limit: int = 6) -> None:
        """Whatever schedules the recording of the one and the run of the other have."""
        under = list(self.every(mutant, limit))
        for recorded in _few(self.every(program, limit), 3):
            path = self.record(program, recorded)
            for schedule in under:
                with pytest.raises(stepfork.ReplayMismatchError):
                    self.replay(mutant, path, schedule)


def _few(runs: dict[Schedule, Performance], most: int) -> list[Schedule]:
    """One schedule for each order of calls that can be seen, but no more than that many."""
    kinds = {tuple(run.trace): schedule for schedule, run in runs.items()}
    chosen = list(kinds.values())
    return chosen[:: -(-len(chosen) // most)]


@pytest.fixture
def door(tools: ModuleType, folder: Path) -> Door:
    return Door(tools, folder)


def lanes(path: Path) -> list[str]:
    """The lines that say where a call was made, as they stand in the file."""
    return re.findall(r"(?m)^lane:.*$", path.read_text("utf-8"))


def contents(*calls: Call) -> tuple[Any, ...]:
    return tuple(call.content for call in calls)


# -- programs that are concurrent ----------------------------------------------------------------------


@pytest.mark.parametrize("later", [False, True], ids=["sync-tools", "async-tools"])
@pytest.mark.parametrize(
    "how", ["gather", "task_group", "create_task", "gather_to_thread", "run_in_executor"]
)
def test_gather_where_one_call_started_after_the_other_had_ended(how: str, later: bool, door: Door) -> None:
    program = tasks(Group(((A1,), (B1,)), how), C1, later=later)
    assert door.legal(program) == [contents(A1, B1, C1), contents(B1, A1, C1)]


def test_a_task_beside_two_llm_calls_comes_before_between_or_after_them(door: Door) -> None:
    """Recorded p1 t1 p2 and replayed p1 p2 t1, and every other pair of orders."""
    program = tasks(Fork(1, (B1,), "create_task"), A1, A2)
    runs = door.every(program)
    orders = {tuple(content for _, content in run.trace): schedule for schedule, run in runs.items()}
    assert set(orders) == {contents(A1, B1, A2), contents(A1, A2, B1), contents(B1, A1, A2)}
    for recorded, replayed in itertools.product(orders.values(), repeat=2):
        door.replay(program, door.record(program, recorded), replayed)
    path = door.record(program, orders[contents(A1, B1, A2)])
    played = door.replay(program, path, orders[contents(A1, A2, B1)])
    assert tuple(content for _, content in played.trace) == contents(A1, A2, B1)
    door.legal(program)
    door.refused(program, swap(program, 1, 2))


@pytest.mark.parametrize("how", ["create_task", "to_thread", "run_in_executor", "thread", "submit"])
def test_what_nobody_waits_for_may_come_at_any_time(how: str, door: Door) -> None:
    program = tasks(A1, Fork(1, (B1, B2), how), A2)
    orders = door.legal(program)
    assert len(orders) == 3
    for first, second in shape(program).swappable():
        door.refused(program, swap(program, first, second))


def test_the_items_of_a_pool_change_their_workers(door: Door) -> None:
    program = threads(Group(tuple((Call("alpha", n), Call("beta", n)) for n in range(6)), "map", workers=2))
    shared = set()
    for run in door.every(program).values():
        by_worker: dict[int, set[str]] = {}
        for line, worker in run.threads.items():
            by_worker.setdefault(worker, set()).add(line)
        shared.add(frozenset(map(frozenset, by_worker.values())))
    assert len(shared) > 2
    door.legal(program)
    door.refused(program, swap(program, 4, 5))


def test_more_items_than_calls_are_alike(door: Door) -> None:
    program = threads(Group(((A1,), (A1, A2), (), (A1, A2)), "map", workers=2), A3)
    door.legal(program)
    door.refused(program, threads(Group(((A1,), (A2, A1), (), (A1, A2)), "map", workers=2), A3))


LOOKS = (Call("alpha", "config"), Call("beta", "Bern")), (Call("alpha", "config"), Call("beta", "Oslo"))


@pytest.mark.parametrize("how", ["thread", "submit", "map", "gather", "task_group", "gather_to_thread"])
def test_two_lines_read_the_same_configuration_and_then_differ(how: str, door: Door) -> None:
    program = Program((Group(LOOKS, how),), coroutine=how not in ("thread", "submit", "map"))
    runs = door.every(program, 60)
    orders = {tuple((line, content[0]) for line, content in run.trace): one for one, run in runs.items()}
    assert len(orders) == 6
    for recorded, replayed in itertools.product(orders.values(), repeat=2):
        door.replay(program, door.record(program, recorded), replayed)
    door.refused(program, swap(program, 0, 1))


@pytest.mark.parametrize("how", ["thread", "submit", "map"])
def test_equal_calls_with_differing_answers_keep_each_answer_in_its_line(how: str, door: Door) -> None:
    bodies = tuple((Call("ticket", "config"), look) for _, look in LOOKS)
    program = threads(Group(bodies, how))
    runs = door.every(program, 60)
    orders = {tuple((line, content[0]) for line, content in run.trace): one for one, run in runs.items()}
    assert len(orders) == 6
    for recorded in orders.values():
        answers = perform(program, recorded, door.tools).answers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that equal concurrent calls had differing answers
            path = door.record(program, recorded)
        for replayed in orders.values():
            assert door.replay(program, path, replayed).answers == answers


@pytest.mark.parametrize("how", ["gather", "task_group"])
def test_tasks_are_started_in_another_order_where_they_come_from_a_set(how: str, door: Door) -> None:
    bodies: tuple[tuple[Step, ...], ...] = ((A1, A2), (B1,), (A1, C1))
    for order in (bodies, bodies[::-1], (bodies[1], bodies[2], bodies[0])):
        again = tasks(Group(order, how), B2)
        door.legal(tasks(Group(bodies, how), B2), again, limit=8)
        door.refused(tasks(Group(bodies, how), B2), swap(again, 0, 5), limit=5)


# -- programs that are sequential though they fork -----------------------------------------------------


@pytest.mark.parametrize(
    ("program", "number"),
    [
        pytest.param(threads(Inline((A1,), "submit"), Inline((B1,), "submit")), 2, id="submit-result"),
        pytest.param(threads(Inline((A1,), "thread"), Inline((B1,), "thread")), 2, id="thread-join"),
        pytest.param(
            threads(Fork(1, (A1,), "submit"), Join(1), Fork(2, (B1,), "submit"), Join(2)), 2, id="submit-join"
        ),
        pytest.param(
            threads(Fork(1, (A1,), "submit"), Join(1), Fork(2, (B1,), "submit"), Join(2), C1),
            3,
            id="and-more",
        ),
        pytest.param(
            tasks(Fork(1, (A1,), "create_task"), Join(1), Fork(2, (B1,), "create_task"), Join(2)),
            2,
            id="tasks",
        ),
        pytest.param(tasks(*(Inline((call,), "wait_for") for call in (A1, A2, B1))), 3, id="wait_for"),
        pytest.param(tasks(*(Inline((call,), "to_thread") for call in (A1, A2, B1))), 3, id="to_thread"),
        pytest.param(
            tasks(*(Inline((call,), "run_in_executor") for call in (A1, B1))), 2, id="run_in_executor"
        ),
        pytest.param(threads(*(Inline((call,), "asyncio_run") for call in (A1, B1))), 2, id="asyncio-run"),
        pytest.param(tasks(A1, Group(((A2,),), "gather"), B1), 3, id="gather-of-one"),
    ],
)
def test_calls_that_wait_for_each_other_cannot_be_swapped(program: Program, number: int, door: Door) -> None:
    assert shape(program).sequential
    assert len(door.legal(program)) == 1
    for first, second in itertools.combinations(range(number), 2):
        door.refused(program, swap(program, first, second))


@pytest.mark.parametrize(
    "program",
    [
        threads(A1, A2, B1, A1),
        tasks(A1, A2, B1, later=True),
        tasks(*(Inline((call,), "wait_for") for call in (A1, A2, B1)), later=True),
        tasks(*(Inline((call,), "wait_for") for call in (A1, A2, B1)), inside=True),
        tasks(A1, *(Inline((call,), "to_thread") for call in (A1, A2)), B1),
        tasks(*(Inline((A1, A2), "to_thread") for _ in range(2)), inside=True),
    ],
    ids=["plain", "coroutine", "wait_for", "wait_for-inside", "to_thread", "to_thread-inside"],
)
def test_a_sequential_cassette_shows_nothing_of_lanes(program: Program, door: Door) -> None:
    path = door.record(program)
    assert lanes(path) == []
    door.replay(program, path)
    concurrent = door.record(tasks(Group(((A1,), (B1,)), "gather")))
    assert len(lanes(concurrent)) == 2, "so that the text is what a cassette has"


@pytest.mark.parametrize("silent", ["thread", "create_task"])
@pytest.mark.parametrize("how", ["wait_for", "to_thread", "run_in_executor", "create_task"])
def test_a_silent_line_in_the_background_excuses_no_swap(silent: str, how: str, door: Door) -> None:
    calls = [Inline((call,), how) for call in (A1, A2, B1)]
    program = tasks(Fork(1, (), silent, linger=True), *calls)
    door.legal(program)
    for first, second in itertools.combinations(range(3), 2):
        door.refused(program, swap(program, first, second))


def test_a_silent_thread_excuses_no_swap_of_submitted_items(door: Door) -> None:
    calls = [Inline((call,), "submit") for call in (A1, B1)]
    program = threads(Fork(1, (), "thread", linger=True), *calls)
    door.legal(program)
    door.refused(program, swap(program, 0, 1))


# -- equal calls -------------------------------------------------------------------------------------


def test_equal_calls_are_answered_in_turn_and_one_more_says_so(door: Door) -> None:
    again = Call("ticket", "same")
    path = door.record(threads(again, again))
    assert door.replay(threads(again, again), path).answers == {"main": ["ticket 1", "ticket 2"]}
    with pytest.raises(stepfork.ReplayMismatchError) as caught:
        door.replay(threads(again, again, again), path)
    assert caught.value.index == 3
    assert "tool 'ticket' was recorded 2 times with these arguments and is made one time more" in str(
        caught.value
    )


@pytest.mark.parametrize("how", ["thread", "submit", "map", "gather", "task_group", "gather_to_thread"])
def test_one_more_of_equal_concurrent_calls_says_so(how: str, door: Door) -> None:
    program, more = (
        Program((Group(((A1,),) * n, how),), how not in ("thread", "submit", "map")) for n in (3, 4)
    )
    path = door.record(program)
    door.legal(program, limit=20)
    for schedule in door.every(more, 20):
        with pytest.raises(stepfork.ReplayMismatchError) as caught:
            door.replay(more, path, schedule)
        said = "tool 'alpha' was recorded 3 times with these arguments and is made one time more"
        assert said in str(caught.value)


# -- without a controller ----------------------------------------------------------------------------

FIFTY = """
    import asyncio
    bodies = []
    def look(n):
        bodies.append(n)
        return n * n
    async def look_later(n):
        bodies.append(n)
        await asyncio.sleep(0)
        return n * n
"""


def spin(random: Random) -> None:
    for _ in range(random.randrange(200)):
        pass


def eight_threads(module: Any, seed: int) -> list[int]:
    found: dict[int, int] = {}

    def work(own: int) -> None:
        random = Random(8 * seed + own)
        for n in range(own, 50, 8):
            spin(random)
            found[n] = module.look(n)

    started = [threading.Thread(target=work, args=(own,), daemon=True) for own in range(8)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return [found[n] for n in range(50)]


def a_pool_of_eight(module: Any, seed: int) -> list[int]:
    random = Random(seed)

    def work(n: int) -> int:
        spin(random)
        answer: int = module.look(n)
        return answer

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, range(50)))


def gathered(module: Any, seed: int) -> list[int]:
    random = Random(seed)

    async def work(n: int) -> int:
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        answer: int = await module.look_later(n)
        return answer

    async def main() -> list[int]:
        return await asyncio.gather(*map(work, range(50)))

    return asyncio.run(main())


@pytest.fixture
def fidgety() -> Iterator[None]:
    """Threads are changed as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("fidgety")
@pytest.mark.parametrize("program", [eight_threads, a_pool_of_eight, gathered])
def test_fifty_calls_replay_two_hundred_times(
    program: Callable[[Any, int], list[int]], make_module: Any, tmp_path: Path
) -> None:
    module, path = make_module(FIFTY), tmp_path / "fifty.yaml"
    with stepfork.record(path, tools=[module.__name__]):
        program(module, 0)
    assert sorted(module.bodies) == list(range(50))
    module.bodies.clear()
    for seed in range(1, 201):
        with stepfork.replay(path) as run:
            assert program(module, seed) == [n * n for n in range(50)]
        assert (run.counts.substituted, run.counts.live) == (50, 0)
    assert module.bodies == []
