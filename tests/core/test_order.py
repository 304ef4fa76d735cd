"""The order rule on simulated fork-join programs: every legal schedule passes, no swapped program does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.core.lanes import BadMark, Lane, Mark, assemble
from stepfork.core.layout import layout
from stepfork.core.lines import DEEPEST, Line, Scope
from stepfork.core.order import Order

Program = list[Any]  # ("call", what) | ("start", Program) | ("join", index of the start)


class Refused(Exception):
    """A call that may not come now, or calls that were left out."""


def programs(depth: int = 0) -> st.SearchStrategy[Program]:
    call = st.tuples(st.just("call"), st.sampled_from("abcdefgh"))
    if depth == 3:
        return st.lists(call, max_size=3)
    start = st.tuples(st.just("start"), st.deferred(lambda: programs(depth + 1)))
    join = st.tuples(st.just("join"), st.integers(0, 3))
    return st.lists(st.one_of(call, call, start, join), max_size=6)


def run(program: Program, choose: random.Random, call: Callable[[Line, str], None], scope: Scope) -> None:
    """Runs a program under a schedule that `choose` makes up: fair, or favouring the first or the last."""
    threads: list[dict[str, Any]] = []

    def start(body: Program, line: Line) -> dict[str, Any]:
        thread = {"body": body, "at": 0, "line": line, "started": []}
        threads.append(thread)
        return thread

    def ended(thread: dict[str, Any]) -> bool:
        return bool(thread["at"] == len(thread["body"]))

    def can_go(thread: dict[str, Any]) -> bool:
        if ended(thread):
            return False
        kind, what = thread["body"][thread["at"]]
        return kind != "join" or what >= len(thread["started"]) or ended(thread["started"][what])

    start(program, scope.main)
    favour = choose.random()
    while ready := [thread for thread in threads if can_go(thread)]:
        at = choose.choice([0, -1, choose.randrange(len(ready))]) if choose.random() < favour else -1
        thread = ready[at]
        kind, what = thread["body"][thread["at"]]
        thread["at"] += 1
        if kind == "call":
            call(thread["line"], what)
        elif kind == "start":
            inner = start(what, thread["line"].fork())
            thread["started"].append(inner)
            if not what:
                inner["line"].end()
        if ended(thread) and thread["line"] is not scope.main:
            thread["line"].end()


Rows = list[tuple[Any, Mark | None]]


def recorded(program: Program, choose: random.Random) -> Rows:
    scope = Scope()
    run(program, choose, Line.add, scope)
    return layout(scope, str)


def order_of(rows: Rows, scope: Scope) -> Order:
    calls = [call for call, _ in rows]
    lanes = assemble((at, mark) for at, (_, mark) in enumerate(rows))
    return Order(
        lanes, scope, lambda at: False, lambda at: False, lambda at: calls[at].encode(), lambda at: b""
    )


def make(order: Order, rows: Rows, line: Line, what: str) -> int:
    """The line makes a call; gives which recorded one it was."""
    for step in order.steps(line, what.encode):
        if rows[step.at][0] == what and order.missing(step) is None:
            order.take(line, step)
            step.line.add(what)
            return step.at
    raise Refused(what)


def replay(program: Program, rows: Rows, choose: random.Random) -> None:
    scope = Scope()
    order = order_of(rows, scope)
    run(program, choose, lambda line, what: void(make(order, rows, line, what)), scope)
    left = order.left_over()
    if left.missing or left.running:
        raise Refused(left)


def void(_: object) -> None:
    return None


@examples(150)
@given(programs(), st.integers(0, 2**32))
def test_every_legal_schedule_passes(program: Program, seed: int) -> None:
    rows = recorded(program, random.Random(seed))
    for number in range(10):
        replay(program, rows, random.Random(seed + number + 1))


def in_order(program: Program) -> list[tuple[Program, int, Program, int]]:
    """Pairs of different calls, the second of which can only come after the first in any schedule."""
    found: list[tuple[Program, int, Program, int]] = []
    starts: list[tuple[int, Program]] = []
    for at, (kind, what) in enumerate(program):
        before = [(program, earlier) for earlier in range(at) if program[earlier][0] == "call"]
        for step, (_, joined) in enumerate(program[:at]):
            known = [body for where, body in starts if where < step]
            if program[step][0] == "join" and joined < len(known):
                body = known[joined]
                before += [(body, inner) for inner in range(len(body)) if body[inner][0] == "call"]
        here = [(program, at)] if kind == "call" else []
        if kind == "start":
            here = [(what, inner) for inner in range(len(what)) if what[inner][0] == "call"]
            starts.append((at, what))
            found += in_order(what)
        found += [(*first, *second) for first in before for second in here if at_(first)[1] != at_(second)[1]]
    return found


def at_(place: tuple[Program, int]) -> Any:
    return place[0][place[1]]


@examples(150)
@given(programs(), st.integers(0, 2**32), st.data())
def test_a_program_with_two_sequential_calls_swapped_is_refused(
    program: Program, seed: int, data: st.DataObject
) -> None:
    number = 0

    def number_all(body: Program) -> Program:
        """Calls that are all different: of equal ones a swap may mean nothing."""
        nonlocal number
        made: Program = []
        for kind, what in body:
            number += 1
            made.append(
                (kind, number_all(what) if kind == "start" else f"{what}{number}" if kind == "call" else what)
            )
        return made

    program = number_all(program)
    pairs = in_order(program)
    rows = recorded(program, random.Random(seed))
    for one, at, other, there in pairs[:5]:
        one[at], other[there] = other[there], one[at]
        for schedule in range(5):
            with pytest.raises(Refused):
                replay(program, rows, random.Random(seed + schedule))
        one[at], other[there] = other[there], one[at]


@examples(150)
@given(programs(), st.integers(0, 2**32))
def test_marks_say_what_the_lines_were(program: Program, seed: int) -> None:
    scope = Scope()
    run(program, random.Random(seed), Line.add, scope)
    rows = layout(scope, str)
    lanes = assemble((at, mark) for at, (_, mark) in enumerate(rows))

    def compare(line: Line, lane: Lane) -> None:
        assert [rows[at][0] for at in lane.calls] == line.calls
        assert set(lane.children) <= set(line.children)
        for born, child in line.children.items():
            if born in lane.children:
                compare(child, lane.children[born])
            else:
                assert not any_calls(child)

    def any_calls(line: Line) -> bool:
        return bool(line.calls) or any(map(any_calls, line.children.values()))

    compare(scope.main, lanes.main)
    assert sorted(call for call, _ in rows) == sorted(all_calls(scope.main))
    if all(not child.calls for child in scope.main.children.values()) and not any_below(scope.main):
        assert all(mark is None for _, mark in rows)


def any_below(line: Line) -> bool:
    return any(child.calls or any_below(child) for child in line.children.values())


def all_calls(line: Line) -> list[str]:
    return line.calls + [call for child in line.children.values() for call in all_calls(child)]


@examples(150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "b", "a.a", "b.a", "A", "A.a"]),
            st.integers(0, 3),
            st.sampled_from(["", "a", "b", "a.a"]),
        )
    )
)
def test_any_marks_are_read_or_refused_with_their_place(given_marks: list[tuple[str, int, str]]) -> None:
    marks = [
        Mark(name, (started,) if started else (), (after,) if after else ()) if name else None
        for name, started, after in given_marks
    ]
    refused: BadMark | None = None
    try:
        lanes = assemble(enumerate(marks))
    except BadMark as bad:
        refused = bad
    if refused is not None:
        assert 0 <= refused.at < len(marks)
        assert refused.field in ("lane", "started", "after")
        return
    found = list(lanes.main.calls)
    stack = [*lanes.main.children.values(), *lanes.strangers]
    while stack:
        lane = stack.pop()
        found += lane.calls
        stack += lane.children.values()
    assert sorted(found) == list(range(len(marks)))


def test_a_started_line_may_come_in_any_order_where_a_set_starts_them() -> None:
    """The lines of a loop over a set: started in another order, told apart by what they call."""
    scope = Scope()
    for what in ("rust", "go", "zig"):
        scope.main.fork().add(what)
    scope.main.add("done")
    rows = layout(scope, str)
    assert [mark and mark.started for _, mark in rows] == [(2,), (1,), (3,), None]
    again = Scope()
    order = order_of(rows, again)
    lines = [again.main.fork() for _ in range(3)]
    for line, what in zip(lines, ("zig", "rust", "go"), strict=True):
        make(order, rows, line, what)
        line.end()
    make(order, rows, again.main, "done")
    assert not order.left_over().missing


def test_lanes_with_equal_calls_and_other_answers_stay_apart() -> None:
    """Who got the first answer goes on as the recording did with it."""
    scope = Scope()
    first, second = scope.main.fork(), scope.main.fork()
    for line, city in ((first, "Rome"), (second, "Oslo")):
        line.add("config")
        line.add(city)
    rows = layout(scope, str)
    lanes = assemble((at, mark) for at, (_, mark) in enumerate(rows))
    for answers, passes in (([b"1", b"", b"2", b""], False), ([b"1", b"", b"1", b""], True)):
        again = Scope()
        order = Order(
            lanes,
            again,
            lambda at: False,
            lambda at: False,
            lambda at: rows[at][0].encode(),
            answers.__getitem__,
        )
        one, other = again.main.fork(), again.main.fork()
        took = {make(order, rows, one, "config"), make(order, rows, other, "config")}
        assert len(took) == 2
        swapped = rows[order.expected(other) or 0][0], rows[order.expected(one) or 0][0]
        if passes:
            for line, city in zip((one, other), swapped, strict=True):
                make(order, rows, line, city)
        else:
            with pytest.raises(Refused):
                make(order, rows, one, swapped[0])


def test_a_line_without_a_lane_continues_its_starter() -> None:
    rows: Rows = [("a", None), ("b", None), ("c", None)]
    scope = Scope()
    order = order_of(rows, scope)
    make(order, rows, scope.main, "a")
    helper = scope.main.fork()
    assert make(order, rows, helper, "b") == 1
    with pytest.raises(Refused):
        make(order, rows, scope.main, "b")
    helper.end()
    assert make(order, rows, scope.main, "c") == 2


def test_what_lines_nested_too_deep_do_is_done_by_their_starter() -> None:
    scope = Scope()
    line = scope.main
    for number in range(3 * DEEPEST):
        line = line.fork()
        line.last().add(f"{number:04}")
    rows = layout(scope, str)
    assert [call for call, _ in rows] == [f"{number:04}" for number in range(3 * DEEPEST)]
    assert max(len(mark.lane) for _, mark in rows if mark) <= 2 * DEEPEST + 4
    again = Scope()
    order = order_of(rows, again)
    line = again.main
    for number in range(3 * DEEPEST):
        line = line.fork()
        make(order, rows, line, f"{number:04}")
    assert not order.left_over().missing


@pytest.mark.parametrize("lines", [200, 2000])
def test_the_work_grows_with_the_calls(lines: int) -> None:
    """Counted, not timed: how often the order looks at a lane for each call of a large fan-out."""
    scope = Scope()
    for number in range(lines):
        scope.main.fork().add(f"{number * 7919 % lines:05}")
    scope.main.add("done")
    rows = layout(scope, str)
    again = Scope()
    order = order_of(rows, again)
    looks = 0
    lookup = order._map.lane

    def counting(line: Line) -> Lane | None:
        nonlocal looks
        looks += 1
        return lookup(line)

    order._map.lane = counting  # type: ignore[method-assign]
    started = [again.main.fork() for _ in range(lines)]
    for number in reversed(range(lines)):
        make(order, rows, started[number], f"{number * 31 % lines:05}")
        started[number].end()
    make(order, rows, again.main, "done")
    assert looks < 12 * lines
