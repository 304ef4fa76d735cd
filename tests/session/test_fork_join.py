"""The order rule on random programs: every legal schedule replays, and every change of a program is found."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from support.examples import examples
from support.fork_join.controller import Stuck
from support.fork_join.drawing import programs, sequential_programs
from support.fork_join.happens_before import could_be, shape
from support.fork_join.interpreter import Performance
from support.fork_join.mutants import canonical, mutants, rewrite, swap
from support.fork_join.performances import every_schedule, perform, tools_in
from support.fork_join.programs import Call, Fork, Group, Join, Program, tasks, threads
from support.fork_join.schedules import NEWEST, OLDEST, Schedule, schedules

import stepfork

MANY = examples(25)

with_calls = programs().filter(lambda program: bool(shape(program).calls))
_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fork_join")


@pytest.fixture(scope="module")
def tools(folder: Path) -> Iterator[ModuleType]:
    with tools_in(folder) as module:
        yield module


def record(program: Program, schedule: Schedule, tools: ModuleType, folder: Path) -> Path:
    path = folder / f"{next(_numbers)}.yaml"
    perform(program, schedule, tools, stepfork.record(path, tools=[tools.__name__]))
    return path


def replay(program: Program, schedule: Schedule, tools: ModuleType, path: Path) -> Performance:
    return perform(program, schedule, tools, stepfork.replay(path))


def mismatch(
    program: Program, schedule: Schedule, tools: ModuleType, path: Path
) -> stepfork.ReplayMismatchError:
    with pytest.raises(stepfork.ReplayMismatchError) as caught:
        replay(program, schedule, tools, path)
    return caught.value


# -- the harness itself ------------------------------------------------------------------------------


@MANY
@given(program=programs(), picked=st.lists(schedules(), min_size=1, max_size=3))
def test_a_schedule_gives_the_same_run_each_time_and_keeps_the_order_of_the_program(
    program: Program, picked: list[Schedule], tools: ModuleType
) -> None:
    known = shape(program)
    for schedule in [OLDEST, NEWEST, *picked]:
        first, second = (perform(program, schedule, tools) for _ in range(2))
        assert (first.events, first.trace) == (second.events, second.trace)
        assert len(first.trace) == len(first.bodies) == len(known.calls)
        times: dict[int, int] = {}
        seen: Counter[str] = Counter()
        for time, (line, content) in enumerate(first.trace):
            number = [n for n, name in enumerate(known.lines) if name == line][seen[line]]
            seen[line] += 1
            times[number] = time
            assert known.calls[number].content == content
        assert all(times[early] < times[n] for n, before in enumerate(known.before) for early in before)
        assert could_be(first.trace, known, known.parents)


@pytest.mark.parametrize(
    "program",
    [
        threads(Fork(1, (Call("beta", 1), Call("beta", 2)), "thread"), Call("alpha", 1), Call("alpha", 2)),
        tasks(Fork(1, (Call("beta", 1), Call("beta", 2)), "create_task"), Call("alpha", 1), Call("alpha", 2)),
    ],
    ids=["thread", "task"],
)
def test_schedules_reach_both_ends(program: Program, tools: ModuleType) -> None:
    own, lane = [("main", ("alpha", n)) for n in (1, 2)], [("main.0", ("beta", n)) for n in (1, 2)]
    assert perform(program, NEWEST, tools).trace == [*lane, *own]
    assert perform(program, OLDEST, tools).trace == [*own, *lane]
    runs = [perform(program, schedule, tools) for schedule in every_schedule(program, tools)]
    assert {tuple(run.trace) for run in runs} == {
        tuple(own.pop(0) if mine else lane.pop(0) for mine in places)
        for places in set(itertools.permutations([True, True, False, False]))
        for own, lane in [
            ([("main", ("alpha", n)) for n in (1, 2)], [("main.0", ("beta", n)) for n in (1, 2)])
        ]
    }
    ends = {run.events.index("main.0 ended") - run.events.index("main alpha(2)") > 0 for run in runs}
    assert ends == {True, False}, "the lane ends before and after the last call of its starter"


def test_a_controller_that_cannot_go_on_says_what_each_line_does(tools: ModuleType) -> None:
    program = threads(Fork(1, (Call("alpha", 1),), "thread", linger=True), Join(1))
    with pytest.raises(Stuck) as caught:
        perform(program, OLDEST, tools)
    assert "main: join main.0, cannot go on" in str(caught.value)
    assert "main.0: end, cannot go on" in str(caught.value)


def test_equal_forms_and_impossible_runs_are_told() -> None:
    a, b, c = (Call("alpha", n) for n in range(3))
    one, other = tasks(Group(((a, b), (c,)), "gather")), tasks(Group(((c,), (a, b)), "gather"))
    assert canonical(one.main) == canonical(other.main)
    turned = threads(Fork(1, (a,), "thread"), Join(1), Fork(2, (b,), "thread"), Join(2))
    assert canonical(turned.main) != canonical(swap(turned, 0, 1).main)
    loose = threads(Fork(1, (a,), "thread"), Fork(2, (b,), "thread"), Join(2), Join(1))
    assert (
        canonical(loose.main)
        == canonical(rewrite(loose, {0: (b,), 1: (a,)}).main)[:1] + canonical(loose.main)[1:]
    )
    known = shape(turned)
    assert could_be([("main.0", a.content), ("main.1", b.content)], known, known.parents)
    assert not could_be([("main.0", b.content), ("main.1", a.content)], known, known.parents)
    assert could_be([("main.0", b.content), ("main.1", a.content)], shape(loose), known.parents)


# -- what is legal -----------------------------------------------------------------------------------


@MANY
@given(
    program=with_calls,
    recorded=schedules(),
    picked=st.lists(schedules(), min_size=4, max_size=6, unique=True),
)
def test_every_legal_schedule_replays(
    program: Program, recorded: Schedule, picked: list[Schedule], tools: ModuleType, folder: Path
) -> None:
    known = shape(program)
    path = record(program, recorded, tools, folder)
    event("sequential" if known.sequential else "concurrent")
    for schedule in [recorded, OLDEST, NEWEST, *picked]:
        note(f"replayed under {schedule}")
        played = replay(program, schedule, tools, path)
        assert played.bodies == []
        counts = played.run.counts
        assert (counts.recorded, counts.substituted) == (len(known.calls), len(known.calls))
        assert (counts.live, counts.tool_bodies_executed) == (0, 0)
    if known.sequential and not known.parents:
        assert "\nlane:" not in path.read_text("utf-8")


# -- what is not -------------------------------------------------------------------------------------


@pytest.mark.hypothesis
@pytest.mark.parametrize("sort", ["swap", "drop", "add", "change"])
def test_a_changed_program_raises_under_every_schedule(sort: str, tools: ModuleType, folder: Path) -> None:
    tried: Counter[str] = Counter()

    @MANY
    @given(
        program=with_calls,
        recorded=schedules(),
        picked=st.lists(schedules(), min_size=1, max_size=2),
        data=st.data(),
    )
    def every(program: Program, recorded: Schedule, picked: list[Schedule], data: st.DataObject) -> None:
        known = shape(program)
        path = record(program, recorded, tools, folder)
        for mutant in mutants(data.draw, program, sort):
            parents = shape(mutant).parents
            if canonical(mutant.main) == canonical(program.main):
                tried["the same program"] += 1
                continue
            for schedule in [OLDEST, NEWEST, *picked]:
                if could_be(perform(mutant, schedule, tools).trace, known, parents):
                    tried["a possible run of the original"] += 1
                    continue
                tried["sequential" if known.sequential else "concurrent"] += 1
                note(f"{sort}: {mutant}\nreplayed under {schedule}")
                mismatch(mutant, schedule, tools, path)

    every()
    assert tried["concurrent"] > MANY.max_examples, tried
    assert tried["concurrent"] > 20 * tried["a possible run of the original"], tried


@pytest.mark.hypothesis
@pytest.mark.parametrize("sort", ["swap", "drop", "add", "change"])
def test_the_error_of_a_single_line_names_the_call(sort: str, tools: ModuleType, folder: Path) -> None:
    tried: Counter[str] = Counter()

    @MANY
    @given(program=sequential_programs(("wait_for", "to_thread", "asyncio_run")), data=st.data())
    def every(program: Program, data: st.DataObject) -> None:
        path = record(program, OLDEST, tools, folder)
        old = [call.content for call in shape(program).calls]
        for mutant in mutants(data.draw, program, sort):
            new = [call.content for call in shape(mutant).calls]
            at = next(n for n in range(len(old) + 1) if old[n : n + 1] != new[n : n + 1])
            error = mismatch(mutant, OLDEST, tools, path)
            first = str(error).splitlines()[0]
            assert (error.index, error.kind) == (at + 1, "tool")
            assert first.startswith(f"call #{at + 1}: ")
            if at == len(new):
                tried["not made"] += 1
                assert f"expected tool '{old[at][0]}' but the agent never made it" in first
            elif at == len(old):
                tried["one more"] += 1
                assert f"tool '{new[at][0]}'" in first
            elif old[at][0] != new[at][0]:
                tried["wrong tool"] += 1
                assert f"expected tool '{old[at][0]}' but the agent called '{new[at][0]}'" in first
            else:
                tried["wrong argument"] += 1
                assert f"tool '{old[at][0]}' argument 'x': expected {old[at][1]}, got {new[at][1]}" in first

    every()
    assert tried.total() > 0, tried


@pytest.mark.hypothesis
@pytest.mark.parametrize("sort", ["swap", "drop", "add", "change"])
def test_the_error_of_a_sequential_program_names_the_call(sort: str, tools: ModuleType, folder: Path) -> None:
    """However many lines take part: never about one before the change; it may be the next of its own line."""
    tried = 0

    @MANY
    @given(program=sequential_programs(), data=st.data())
    def every(program: Program, data: st.DataObject) -> None:
        nonlocal tried
        calls = shape(program).calls
        program = rewrite(program, {at: (Call(call.tool, 10 + at),) for at, call in enumerate(calls)})
        path = record(program, OLDEST, tools, folder)
        old = [call.content for call in shape(program).calls]
        for mutant in mutants(data.draw, program, sort):
            new = [call.content for call in shape(mutant).calls]
            at = next(n for n in range(len(old) + 1) if old[n : n + 1] != new[n : n + 1])
            error = mismatch(mutant, OLDEST, tools, path)
            first = str(error).splitlines()[0]
            same = [n + 1 for n, content in enumerate(old) if [content] == new[at : at + 1]]
            assert error.index in [*range(at + 1, len(old) + 2), *same], first
            assert first.startswith(f"call #{error.index}: "), first
            assert any(repr(content[0]) in first for content in old[at : at + 1] + new[at : at + 1]), first
            tried += 1

    every()
    assert tried > 0


@MANY
@given(program=with_calls, recorded=schedules(), picked=schedules(), data=st.data())
def test_a_changed_argument_is_told_with_the_recorded_one(
    program: Program,
    recorded: Schedule,
    picked: Schedule,
    data: st.DataObject,
    tools: ModuleType,
    folder: Path,
) -> None:
    number = data.draw(st.integers(0, len(shape(program).calls) - 1))
    original, changed = (rewrite(program, {number: (Call("special", arg),)}) for arg in ("before", "after"))
    path = record(original, recorded, tools, folder)
    for schedule in [OLDEST, NEWEST, picked]:
        error = mismatch(changed, schedule, tools, path)
        assert "tool 'special" in str(error), str(error)
        assert json.dumps("before") in str(error), str(error)
        assert json.dumps("after") in str(error), str(error)


@MANY
@given(
    how=st.sampled_from(
        ["thread", "submit", "map", "gather", "task_group", "gather_to_thread", "run_in_executor"]
    ),
    lines=st.integers(2, 4),
    recorded=schedules(),
    picked=schedules(),
    data=st.data(),
)
def test_a_changed_argument_is_told_with_the_recorded_one_of_its_own_line(
    how: str,
    lines: int,
    recorded: Schedule,
    picked: Schedule,
    data: st.DataObject,
    tools: ModuleType,
    folder: Path,
) -> None:
    """All lines call the same tools; what a line called first tells which one it is."""
    bodies = tuple((Call("alpha", n), Call("beta", f"of line {n}")) for n in range(lines))
    coroutine = how not in ("thread", "submit", "map")
    original = Program((Group(bodies, how),), coroutine)
    line = data.draw(st.integers(0, lines - 1))
    changed = rewrite(original, {2 * line + 1: (Call("beta", "of nobody"),)})
    path = record(original, recorded, tools, folder)
    for schedule in [OLDEST, NEWEST, picked]:
        error = mismatch(changed, schedule, tools, path)
        assert f"tool 'beta' argument 'x': expected \"of line {line}\", got \"of nobody\"" in str(error)
        recorded_calls = [(call.name, call.args) for call in stepfork.load(path).calls]
        assert recorded_calls[error.index - 1] == ("beta", {"x": f"of line {line}"})
