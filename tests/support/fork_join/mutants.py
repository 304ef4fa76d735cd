"""Programs that differ from a given one in their calls, and which of them do the same. Runs none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from support.fork_join.happens_before import shape
from support.fork_join.programs import TOOLS, Call, Fork, Group, Inline, Join, Program, Step


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


def _another(draw: Any, call: Call) -> Call:
    tool = draw(st.sampled_from(TOOLS[:3]))
    return Call(tool, draw(st.sampled_from([n for n in (0, 1, 2, 7) if (tool, n) != call.content])))


def mutants(draw: Any, program: Program, sort: str) -> Iterator[Program]:
    """Programs that differ in one call; swapped are calls that the program makes one after the other."""
    known = shape(program)
    number = draw(st.integers(0, len(known.calls) - 1))
    call = known.calls[number]
    if sort == "drop":
        yield rewrite(program, {number: ()})
    elif sort == "add":
        new = draw(st.sampled_from([call, _another(draw, call)]))
        yield rewrite(program, {number: (call, new) if draw(st.booleans()) else (new, call)})
    elif sort == "change":
        yield rewrite(program, {number: (_another(draw, call),)})
    elif pairs := known.swappable():
        for first, second in draw(st.lists(st.sampled_from(pairs), max_size=5, min_size=1, unique=True)):
            yield swap(program, first, second)
