"""Arguments that hold one object at several places: whatever tools do to them, replay does the same.

Objects of all kinds, in one argument or in several, that the caller still holds and shares; tools that change
them one after the other, and may raise at the end. What replay could not do again is refused while recording.
"""

from __future__ import annotations

import collections
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.examples import examples

import stepfork

TOOLS = """
    import collections
    from dataclasses import dataclass, field
    from types import SimpleNamespace
    from typing import Any, NamedTuple

    import attrs
    import pydantic

    bodies = []

    class Failed(Exception):
        pass

    @dataclass
    class State:
        a: Any = None
        b: Any = None
        rows: list = field(default_factory=list)

    @dataclass(slots=True)
    class Slots:
        a: Any = None
        b: Any = None

    @dataclass(frozen=True)
    class Frozen:
        a: Any = None
        b: Any = None

    @attrs.define(eq=False)
    class Attrs:
        a: Any = None
        b: Any = None

    class Model(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        a: Any = None
        b: Any = None

    class Pair(NamedTuple):
        a: Any = None
        b: Any = None

    def parts(value):
        if isinstance(value, dict):
            return list(value.values())
        if isinstance(value, (list, tuple, collections.deque)):
            return list(value)
        if isinstance(value, (set, bytearray)):
            return []
        if isinstance(value, (Slots, Attrs)):
            return [value.a, value.b]
        return list(vars(value).values())

    def holders(value, found=None):
        found = [] if found is None else found
        if isinstance(value, (int, str, frozenset)) or value is None or any(value is one for one in found):
            return found
        if not isinstance(value, tuple):  # one of them is as good as another that is equal
            found.append(value)
        for item in parts(value):
            holders(item, found)
        return found

    def edit(one, two=None, *, program):
        bodies.append("edit")
        known = holders([one, two])[1:]
        for op, at, to, place in program:
            found = [item for item in holders([one, two])[1:] if not isinstance(item, Frozen)]
            if found:
                change(found[at % len(found)], op, known[to % len(known)] if known else 7, place)
        if program and program[-1][-1] == 5:
            raise Failed("at the end", len(program))
        return len(program)

    def change(target, op, other, place):
        if any(target is item for item in holders(other)):
            other = 7  # else it would contain itself
        new = [[place], {"n": place}, State(place), (place, []), {place}, bytearray([place])][place]
        item = {"put": other, "new": new, "copy": empty(other), "wrap": Pair(other, place)}.get(op, place)
        if isinstance(target, set):
            (target.discard if op == "pop" else target.add)(place)
        elif isinstance(target, bytearray):
            target[place:place + 1] = b"" if op == "pop" else b"xy"
        elif isinstance(target, (list, collections.deque)):
            if op == "pop" and target:
                del target[place % len(target)]
            elif op == "turn":
                target.reverse()
            elif op == "twice" and target:
                target.append(target[place % len(target)])
            elif target and place % 3:
                target[place % len(target)] = item
            else:
                target.append(item)
        else:
            key = "ab"[place % 2]
            if op == "turn" and isinstance(target, dict) and target:
                first = next(iter(target))
                target[first] = target.pop(first)
            elif op == "turn" and not isinstance(target, dict):
                target.a, target.b = getattr(target, "b", None), getattr(target, "a", None)
            elif isinstance(target, dict):
                target.pop(key, None) if op == "pop" else target.update({key: item})
            elif op == "pop" and key in getattr(target, "__dict__", ()) and not isinstance(target, Model):
                delattr(target, key)
            else:
                setattr(target, key, item)

    def empty(value):
        if isinstance(value, (int, Pair, tuple, Frozen, Model)):
            return [7]
        return type(value)()

    def mark(value, text):
        if isinstance(value, (list, collections.deque)):
            value.append(text)
        elif isinstance(value, set):
            value.add(text)
        elif isinstance(value, bytearray):
            value.extend(text.encode())
        elif isinstance(value, dict):
            value["mark"] = text
        elif not isinstance(value, Frozen):
            value.b = text
"""
KINDS = ["list", "deque", "dict", "defaultdict", "State", "Slots", "Frozen", "Attrs", "Model"]
KINDS += ["namespace", "tuple", "Pair", "set", "bytearray"]
TREES = st.deferred(lambda: st.tuples(st.sampled_from(KINDS), st.lists(LEAVES | TREES, max_size=3)))
LEAVES = st.integers(0, 2) | st.tuples(st.just("again"), st.integers(0, 5))
STEPS = st.tuples(
    st.sampled_from(["put", "new", "copy", "wrap", "leaf", "pop", "turn", "twice"]),
    *(st.integers(0, 7), st.integers(0, 7), st.integers(0, 5)),
)
CALLS = st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=3)


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def built(tools: Any, tree: Any, made: list[Any]) -> Any:
    """The objects of a tree; ``again`` is one that was made before, so that it stands at several places."""
    if isinstance(tree, int):
        return tree
    kind, inner = tree
    if kind == "again":
        return made[inner % len(made)] if made else inner
    items = [built(tools, item, made) for item in inner]
    named = dict(zip("abc", items, strict=False))
    two = (items + [0, 0])[:2]
    numbers = [item for item in items if isinstance(item, int)]
    found = {
        "list": lambda: items,
        "deque": lambda: collections.deque(items),
        "dict": lambda: named,
        "defaultdict": lambda: collections.defaultdict(list, named),
        "State": lambda: tools.State(*two),
        "Slots": lambda: tools.Slots(*two),
        "Frozen": lambda: tools.Frozen(*two),
        "Attrs": lambda: tools.Attrs(*two),
        "Model": lambda: tools.Model(a=two[0], b=two[1]),
        "namespace": lambda: SimpleNamespace(**named),
        "tuple": lambda: tuple(items),
        "Pair": lambda: tools.Pair(*two),
        "set": lambda: set(numbers),
        "bytearray": lambda: bytearray(numbers),
    }[kind]()
    made.append(found)
    return found


def shown(value: Any) -> Any:
    """All that an object holds; equal only to what is of the same types."""
    if isinstance(value, dict):
        return [type(value).__name__, *([key, shown(item)] for key, item in value.items())]
    if isinstance(value, list | tuple | collections.deque):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, set):
        return ["set", sorted(map(repr, value))]
    if isinstance(value, int | str | bytearray) or value is None:
        return repr(value)
    names = getattr(value, "__dict__", None)
    found = names if names is not None else {name: getattr(value, name) for name in "ab"}
    items = [[name, shown(item)] for name, item in found.items()]
    return [type(value).__name__, *(items if isinstance(value, SimpleNamespace) else sorted(items))]


@examples(200)
@given(first=TREES, second=LEAVES | TREES, calls=CALLS)
@example(first=("namespace", [0, 0]), second=0, calls=[[("pop", 0, 0, 0), ("put", 0, 0, 0)]])
def test_objects_at_several_places_replay_or_are_refused(
    tools: Any, path: Path, first: Any, second: Any, calls: Any
) -> None:
    def agent() -> Any:
        made: list[Any] = []
        one, two = (built(tools, tree, made) for tree in (first, second))
        held = tools.holders([one, two])[1:]
        said: list[Any] = []
        for at, program in enumerate(calls):
            try:
                said.append(tools.edit(one, *[two] * (at != 1), program=program))
            except tools.Failed as problem:
                said.append(problem.args)
            held += [item for item in tools.holders([one, two])[1:] if not any(item is k for k in held)]
        before = [shown(item) for item in held]
        for at, item in enumerate(held):  # from now on each of them says where it stands
            tools.mark(item, f"mark {at}")
        return said, before, [shown(item) for item in held]

    plain = agent()
    try:
        with stepfork.record(path, tools=[f"{tools.__name__}:edit"]):
            assert agent() == plain
    except stepfork.RecordingError:
        event("refused")
        return
    event("changed" if "\nchanged:" in path.read_text("utf-8") else "nothing changed")
    tools.bodies.clear()
    with stepfork.replay(path):
        assert agent() == plain
    assert tools.bodies == []
