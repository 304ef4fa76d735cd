"""What a program says about the order of its calls, and which runs it allows. Knows no thread and no task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from support.fork_join.programs import Call, Fork, Group, Inline, Join, Program, Step, Trace


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
