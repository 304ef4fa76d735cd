"""Arguments of every kind that a tool changes: replay makes the same change to the caller's own object."""

from __future__ import annotations

import collections
import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork import codecs

TOOLS = """
    import collections, dataclasses, threading
    from dataclasses import dataclass, field
    from typing import Any, NamedTuple

    import attrs
    import pydantic
    from pydantic import v1

    bodies = []

    @dataclass
    class State:
        todo: list = field(default_factory=list)
        done: list = field(default_factory=list)
        step: Any = 0
        inner: Any = None

    @dataclass(slots=True)
    class Slots:
        a: Any = 1
        b: Any = 2

    @dataclass(frozen=True)
    class Frozen:
        rows: Any

    @dataclass(eq=False)
    class Item:
        n: Any

    @dataclass
    class Locked:
        name: Any
        def __post_init__(self):
            self.lock = threading.Lock()

    @attrs.define
    class Attrs:
        a: Any
        _b: Any = None

    class Model(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        title: Any = ""
        rows: list = []
        inner: Any = None
        _seen: Any = pydantic.PrivateAttr(default_factory=list)

    class Old(v1.BaseModel):
        a: Any = 1
        b: Any = 2

    class Point(NamedTuple):
        x: Any
        y: Any = 0

    class Log(list):
        note = ""

    class Money:
        def __init__(self, cents):
            self.cents = cents
        def __eq__(self, other):
            return isinstance(other, Money) and vars(self) == vars(other)

    class Box:
        def __init__(self, items=(), note=None):
            self.items, self.note, self.seen = list(items), note, []
            self.lock = threading.Lock()
        def __repr__(self):
            return f"Box({self.items!r}, {self.note!r})"
        def __eq__(self, other):
            return isinstance(other, Box) and repr(self) == repr(other)

    @dataclass
    class LockedRows:
        rows: Any
        def __post_init__(self):
            self.lock = threading.Lock()

    def edit(root, program):
        known = holders(root)
        for op, at, to, place in program:
            found = holders(root)
            if op == "put" and not any(found[to % len(found)] is item for item in known):
                continue  # that two places hold one new object is lost
            change(found[at % len(found)], op, found[to % len(found)], place)

    def holders(value):
        found = []
        def walk(value):
            if isinstance(value, (int, str)) or value is None or any(value is known for known in found):
                return
            if not isinstance(value, (tuple, Point)):
                found.append(value)
            for item in parts(value):
                walk(item)
        walk(value)
        return found

    def parts(value):
        if isinstance(value, dict):
            return list(value.values())
        if isinstance(value, (list, tuple, collections.deque)):
            return list(value)
        return list(vars(value).values())

    def change(target, op, other, place):
        new = [place] if place % 2 else State(step=place)
        inside = any(target is known for known in holders(other))
        copy = {} if isinstance(other, dict) else type(other)()
        item = {"put": 7 if inside else other, "copy": copy, "wrap": new}.get(op)
        if isinstance(target, (list, collections.deque)):
            if op == "pop" and target:
                del target[place % len(target)]
            elif op == "turn" and target:
                target.append(target[0])
                del target[0]
            elif target and place % 3:
                target[place % len(target)] = item
            elif op != "turn":
                target.append(item)
            return
        space = target if isinstance(target, dict) else vars(target)
        key = "abc"[place % 3]
        if isinstance(target, (State, Model)):
            key = ["todo", "done", "step", "inner"][place % 4] if isinstance(target, State) else "inner"
        if op == "pop" and isinstance(target, dict):
            space.pop(key, None)
        elif op == "turn" and space:
            keys = list(space)
            space[keys[0]], space[keys[-1]] = space[keys[-1]], space[keys[0]]
        elif isinstance(target, dict):
            target[key] = item
        else:
            setattr(target, key, item)

    def mark(value, text):
        if isinstance(value, (list, collections.deque)):
            value.append(text)
        elif isinstance(value, dict):
            value["mark"] = text
        else:
            value.inner = text

    def do(value, program):
        bodies.append("do")
        exec(program, {**globals(), "v": value})
        return "done"
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def both(tools: Any, path: Path) -> Callable[[Callable[[], Any]], Any]:
    """Runs an agent as it is, records and replays it: the same each time, and no body runs on replay."""

    def run(agent: Callable[[], Any]) -> Any:
        plain = repr(agent())
        with stepfork.record(path, tools=[f"{tools.__name__}:do"], allow_classes=[f"{tools.__name__}.*"]):
            assert repr(agent()) == plain
        tools.bodies.clear()
        for _ in range(2):
            with stepfork.replay(path, allow_classes=[f"{tools.__name__}.*"]):
                assert repr(agent()) == plain
        assert tools.bodies == []
        return plain

    return run


def made(text: str, names: dict[str, Any]) -> Any:
    """What an expression of this file gives."""
    return eval(text, dict(names))  # noqa: S307


def shown(value: Any) -> Any:
    """All that an object holds, also what its `repr` does not show."""
    if isinstance(value, np.ndarray):
        return ["array", value.dtype, value.shape, value.tolist()]
    if isinstance(value, pd.DataFrame | pd.Series):
        return [type(value).__name__, value.to_dict(), repr(value)]
    if isinstance(value, io.BytesIO | io.StringIO):
        return [value.getvalue(), value.tell()]
    if type(value).__name__ == "lock":
        return "lock"
    found: list[Any] = [type(value).__name__]
    if isinstance(value, dict):
        found += [[shown(key), shown(item)] for key, item in value.items()]
    elif isinstance(value, list | tuple | collections.deque):
        found += map(shown, value)
    elif isinstance(value, set):
        found += [sorted(map(repr, value))]
    elif type(value).__module__.startswith("mod_") or isinstance(value, SimpleNamespace):
        slots = [name for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)]
        found += [[name, shown(getattr(value, name))] for name in (*getattr(value, "__dict__", ()), *slots)]
    else:
        return repr(value)
    if type(value).__name__ == "Old":
        found += [sorted(value.__fields_set__)]
    elif hasattr(value, "model_fields_set"):
        extra, private = value.__pydantic_extra__, value.__pydantic_private__
        found += [sorted(value.model_fields_set), shown(extra), shown(private)]
    return [*found, getattr(value, "default_factory", None)]


ROWS: list[tuple[str, str, str]] = [
    ("State(['a'])", "v.done.append(v.todo.pop()); v.step += 1", "v.todo, v.done"),
    ("State(inner=State(step=1))", "v.inner.step = 2; v.inner.todo.append(v.step)", "v.inner"),
    ("State()", "v.extra = [1]", ""),
    ("State()", "del v.step", ""),
    ("State(['a'])", "v.todo = v.todo + ['b']", "v.todo"),
    ("Slots()", "v.a = [1]; del v.b", ""),
    ("Frozen([1])", "v.rows.append(2)", "v.rows"),
    ("Frozen([1])", "object.__setattr__(v, 'rows', 7)", ""),
    ("[Frozen([1]), Frozen([2])]", "v[0] = dataclasses.replace(v[1], rows=v[0].rows + [5])", "v[0], v[1]"),
    ("Attrs(1, [2])", "v.a = 3; v._b.append(4)", "v._b"),
    ("Model(title='t')", "v.title = 'u'; v.rows.append(1)", "v.rows"),
    ("Model(title='t')", "v.title = v.title; v.rows = v.rows", ""),
    ("Model()", "v.more = {'a': 1}; v._seen.append(1)", "v._seen"),
    ("Model(inner=Model(more=[1]))", "v.inner.more.append(2); v.inner._seen = 5", "v.inner, v.inner.more"),
    ("Old()", "v.b = 5", ""),
    ("SimpleNamespace(a=1, b=[2])", "v.c = v.b; v.b.append(3); del v.a", "v.b"),
    ("SimpleNamespace(a=1, b=[2])", "a = v.a; del v.a; v.a = a; v.b.append(3)", "v.b"),
    ("Model(c=1, d=[2])", "v.__pydantic_extra__['c'] = v.__pydantic_extra__.pop('c'); v.d.append(3)", "v.d"),
    ("collections.deque([1, 2], 2)", "v.append(3)", ""),
    ("collections.deque([[1], [2]])", "v.rotate(); v[0].append(9)", "v[0], v[1]"),
    ("collections.OrderedDict(a=1, b=2)", "v.move_to_end('a')", ""),
    ("collections.OrderedDict(a=[1], b=2)", "v.move_to_end('a'); v['a'].append(3)", "v['a']"),
    ("collections.defaultdict(list, a=[1])", "v['b'].append(2); v.default_factory = None", "v['a']"),
    ("collections.Counter('ab')", "v.update('bc')", ""),
    ("{1: 'a', None: [2], (1, 2): {}}", "v[None].append(3); v[(1, 2)]['k'] = v.pop(1)", "v[None], v[(1, 2)]"),
    ("{float('nan'): [1], -0.0: 2}", "list(v.values())[0].append(2); v['s'] = 1", "list(v.values())[0]"),
    ("{'a': 1}", "v[2] = 'b'", ""),
    ("Point([1], {})", "v.x.append(2); v.y['a'] = v.x", "v.x, v.y"),
    ("[Point([1])]", "v[0] = v[0]._replace(y=[2])", "v[0].x"),
    ("(State(), [State()])", "v[0].step = 7; v[1][0].step = 8", "v[0], v[1][0]"),
    ("{(1, 2), 'a'}", "v.add('b'); v.discard((1, 2))", ""),
    ("bytearray(b'abc')", "v[:] = b'x'", ""),
    ("{'b': bytearray(b'a'), 'out': io.BytesIO(b'abc')}", "v['out'].seek(0, 2); v['out'].write(b'd')", ""),
    ("SimpleNamespace(out=io.StringIO('abc'))", "v.out.read(2); v.out.truncate(); v.out.write('X')", "v.out"),
    ("np.arange(4.0)", "v[1] = 9; v *= 2", ""),
    ("np.arange(6).reshape(2, 3)", "v[:, 0] = 7", ""),
    ("[np.zeros(3)]", "v[0][1] = 1", "v[0]"),
    ("State(inner=np.array([1, 2], dtype='>i2'))", "v.inner[0] = 5", "v.inner"),
    ("np.array(1.5)", "v[...] = 2.5", ""),
    ("pd.DataFrame({'a': [3, 1], 'b': ['x', 'y']})", "v['c'] = v['a'] * 2; v.loc[0, 'b'] = 'z'", ""),
    ("pd.DataFrame({'a': [3, 1]})", "v.insert(0, 'z', [True, None]); del v['a']; v.index = ['x', 'y']", ""),
    ("pd.DataFrame({'a': [3, 1]}, index=['x', 'y'])", "v.columns = ['b']; v.loc['z'] = 5", ""),
    ("{'rows': pd.Series([1, 2])}", "v['rows'][0] = 9", "v['rows']"),
    ("Money(5)", "v.cents = 7", ""),
    ("[Money(5), Money(6)]", "v.pop(0).cents; v[0].cents = 7", "v[1]"),
    ("State(inner=Locked('a'))", "v.inner.name = 'b'", "v.inner, v.inner.lock"),
    ("Box([1])", "v.items.append('x')", "v.items, v.lock"),
    ("Box([1])", "v.items = v.items + ['x']", "v.items"),
    ("Box([1])", "v.note = 'b'", "v.items"),
    ("Box([1])", "v.note = {'b': [1]}; v.note['b'].append(2)", "v.items"),
    ("Box([[1], {'a': [2]}])", "v.items[0].append(3); v.items[1]['a'] = [4]", "*v.items, v.items[1]['a']"),
    ("Box([1], {'a': []})", "v.items.pop(); v.note['a'].append(v.items)", "v.items, v.note, v.note['a']"),
    ("Box([1], State())", "v.note.todo.append(1); v.note.step = 2", "v.note, v.note.todo"),
    ("Box([Box([1])])", "v.items[0].items.append(2); v.items.append(3)", "v.items, v.items[0].items"),
    ("[Box([1]), Box([2])]", "v.reverse(); v[0].items.append(3)", "v[0], v[0].items, v[1].items"),
    ("{'b': Box([1]), 'r': [2]}", "v['b'].items = v['r']; v['r'].append(3)", "v['r'], v['b'].items"),
    ("{'b': Box([1])}", "it = Box([], 'n'); it.items = v['b'].items; v['b'] = it", "v['b'].items, v['b']"),
    ("LockedRows([1])", "v.rows.append(2)", "v.rows, v.lock"),
    ("LockedRows([1])", "v.rows = [1, 2]", "v.rows, v.lock"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "program", "held"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_the_change_is_made_to_the_callers_object(
    tools: Any, both: Any, make: str, program: str, held: str
) -> None:
    """`held` are objects inside of it that the caller holds on to."""
    codecs.register(tools.Money, "test-money", lambda it: it.cents, tools.Money)
    codecs.register(tools.Box, "test-box", lambda it: [it.items, it.note], lambda held: tools.Box(*held))
    names = {**vars(tools), "np": np, "pd": pd, "io": io, "SimpleNamespace": SimpleNamespace}

    def agent() -> Any:
        value = made(make, names)
        mine = made(f"[{held}]", {**names, "v": value})
        untouched = shown(value)
        tools.do(value, program)
        now = [] if "pop" in program else made(f"[{held}]", {**names, "v": value})
        assert shown(value) != untouched
        return [shown(value), shown(mine), [old is new for old, new in zip(mine, now, strict=False)]]

    try:
        both(agent)
    finally:
        codecs.unregister("test-money")
        codecs.unregister("test-box")


@pytest.fixture
def box(tools: Any) -> Any:
    codecs.register(tools.Box, "test-box", lambda it: [it.items, it.note], lambda held: tools.Box(*held))
    yield tools.Box
    codecs.unregister("test-box")


def test_what_a_codec_does_not_tell_is_neither_refused_nor_done_again(
    tools: Any, path: Path, box: Any
) -> None:
    programs = {
        "v.seen.append(1)": "Box([1], None)",
        "it = v.items; v.items = []; it.append(2)": "Box([], None)",
        "v.items.append(2); v.seen.append(v.items)": "Box([1, 2], None)",
        "v.lock = None; v.seen = v.items; v.items.append(2)": "Box([1, 2], None)",
    }

    def agent() -> list[str]:
        values = [box([1]) for _ in programs]
        for value, program in zip(values, programs, strict=True):
            tools.do(value, program)
        return list(map(repr, values))

    with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
        assert agent() == list(programs.values())
    with stepfork.replay(path):
        assert agent() == list(programs.values())
    first = path.read_text("utf-8").split("---\n")[1]
    assert "changed" not in first
    assert "replaced" not in first


def test_a_list_in_an_object_with_a_codec_and_among_the_arguments_is_one(
    tools: Any, path: Path, box: Any
) -> None:
    def agent() -> list[Any]:
        rows: list[Any] = [1]
        held = {"rows": rows, "box": box()}
        held["box"].items = rows
        tools.do(held, "v['box'].items.append(2)")
        return [rows, held["box"].items is rows, held["rows"] is rows]

    with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
        assert agent() == [[1, 2], True, True]
    with stepfork.replay(path):
        assert agent() == [[1, 2], True, True]


def test_objects_with_codecs_that_make_each_other_have_an_end(make_module: Any, path: Path) -> None:
    tools = make_module(
        """
        class Node:
            def __init__(self, name, rows=(), up=None):
                self.name, self.rows, self.up = name, list(rows), up or []
        def do(node):
            node.rows.append("x")
        def again(held):
            node = Node(*held)
            node.up = [Node(node.name, node.rows)]
            node.up[0].up = [node]
            return node
        """
    )
    codecs.register(tools.Node, "test-node", lambda node: [node.name, node.rows], tools.again)

    def agent() -> list[str]:
        node = tools.again(["a", []])
        rows = node.rows
        tools.do(node)
        return rows

    try:
        with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
            assert agent() == ["x"]
        with stepfork.replay(path):
            assert agent() == ["x"]
    finally:
        codecs.unregister("test-node")


REFUSED: list[tuple[str, str]] = [
    ("np.arange(4)", "v.resize((2, 2), refcheck=False)"),
    ("[ValueError('a')]", "v[0].add_note('b')"),
    ("[[1]]", "v.pop().append(2)"),
    ("State(inner=State())", "it = v.inner; v.inner = None; it.step = 4"),
    ("{Item([1])}", "next(iter(v)).n.append(2)"),
    ("frozenset({Item(1)})", "next(iter(v)).n = 2"),
    ("{Item(1): 'a'}", "next(iter(v)).n = 2"),
    ("np.array([[1], None], dtype=object)", "v[0].append(2)"),
    ("pd.DataFrame({'a': [[1], None]})", "v['a'][0].append(2)"),
    ("Log([1])", "v.note = 'b'"),
    ("{'b': Box([1])}", "v['b'].items.append(2); v['b'] = Box(['x'])"),
]


@pytest.mark.parametrize(("make", "program"), REFUSED, ids=[" ".join(row) for row in REFUSED])
def test_a_change_that_cannot_be_made_again_is_refused(
    tools: Any, path: Path, box: Any, make: str, program: str
) -> None:
    value = made(make, {**vars(tools), "np": np, "pd": pd})
    with pytest.raises(stepfork.RecordingError) as caught:  # noqa: SIM117
        with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
            assert tools.do(value, program) == "done"
    assert "tool 'do' cannot be recorded: argument 'value' is of type" in str(caught.value)
    assert "changed in a way that cannot be done again in place" in str(caught.value)
    assert "return what it changes" in str(caught.value)


def test_items_of_a_set_stay_the_callers_own(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        first, second = tools.Item(1), tools.Item(2)
        items = {first, second}
        tools.do(items, "v.discard(next(it for it in v if it.n == 2)); v.add('new')")
        return [first in items, second in items, len(items)]

    assert both(agent) == "[True, False, 2]"


def test_a_secret_in_an_object_stays_the_callers(make_module: Any, path: Path) -> None:
    module = make_module(
        """
        from dataclasses import dataclass, field
        from pydantic import BaseModel, SecretStr
        @dataclass
        class State:
            api_key: str
            log: list = field(default_factory=list)
        class Settings(BaseModel):
            token: SecretStr
            calls: int = 0
        def note(state, settings):
            state.log.append("noted")
            settings.calls += 1
        """
    )

    def agent(key: str) -> list[Any]:
        state, settings = module.State(key), module.Settings(token=key)
        module.note(state, settings)
        return [state.api_key, state.log, settings.token.get_secret_value(), settings.calls]

    with stepfork.record(path, tools=[module.__name__]):
        agent("sk-live-0123456789abcdef")
    assert "sk-live" not in path.read_text("utf-8")
    with stepfork.replay(path):
        assert agent("a dummy key") == ["a dummy key", ["noted"], "a dummy key", 1]


def test_what_did_not_change_is_not_written(tools: Any, path: Path) -> None:
    value = [tools.State(), tools.Model(), np.arange(3), pd.DataFrame({"a": [1]}), tools.Point(1), {"k": {1}}]
    with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
        tools.do(value, "len(v), repr(v)")
    assert "changed" not in path.read_text("utf-8")


def test_the_methods_of_a_subclass_are_not_asked(tools: Any, make_module: Any, path: Path) -> None:
    module = make_module(
        """
        class Counting(dict):
            sets = []
            def __setitem__(self, key, value):
                self.sets.append(key)
                super().__setitem__(key, value)
            def clear(self):
                raise AssertionError("asked")
        def put(box):
            box["a"] = 1
        """
    )
    with stepfork.record(path, tools=[module.__name__]):
        module.put(module.Counting())
    module.Counting.sets.clear()
    with stepfork.replay(path):
        box = module.Counting()
        module.put(box)
    assert (box, module.Counting.sets) == ({"a": 1}, [])


def test_the_state_of_an_agent_through_several_steps(make_module: Any, path: Path) -> None:
    """The usual shape of an agent: one state object that each tool reads and changes."""
    module = make_module(
        """
        from pydantic import BaseModel
        class Step(BaseModel):
            name: str
            result: str | None = None
        class State(BaseModel):
            steps: list[Step] = []
            current: Step | None = None
        def plan(state):
            state.steps = [Step(name="look"), Step(name="write")]
        def work(state):
            state.current = next(step for step in state.steps if step.result is None)
            state.current.result = f"{state.current.name}: done"
        """
    )

    def agent() -> str:
        state = module.State()
        module.plan(state)
        steps = state.steps
        module.work(state)
        assert state.current is steps[0]
        module.work(state)
        assert state.current is steps[1]
        assert state.steps is steps
        return repr(state)

    with stepfork.record(path, tools=[module.__name__]):
        live = agent()
    assert 'kept: {state.current: "state.steps[1]"}\n' in path.read_text("utf-8")
    with stepfork.replay(path):
        assert agent() == live


@pytest.mark.parametrize(
    "program",
    [
        "v.reverse()",
        "v.pop(0)",
        "v.insert(0, {'n': -1})",
        "[row.update(n=row['n'] + 1) for row in v]",
        "v[:] = [{'m': row} for row in v]",
        "v[:] = [[row['n']] for row in v]",
    ],
)
def test_large_lists_take_no_quadratic_step(tools: Any, path: Path, program: str) -> None:
    """Counted in steps of the interpreter: four times as many rows take about four times as many."""

    def steps(count: int) -> int:
        rows = [{"n": at, "tags": ["a"]} for at in range(count)]
        made = 0

        def count_it(*_: Any) -> None:
            nonlocal made
            made += 1

        sys.setprofile(count_it)
        try:
            with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
                tools.do(rows, program)
            rows = [{"n": at, "tags": ["a"]} for at in range(count)]
            with stepfork.replay(path):
                tools.do(rows, program)
        finally:
            sys.setprofile(None)
        return made

    steps(10)  # what is done once
    assert steps(400) < 5 * steps(100)


def test_a_deque_of_the_users_own_kind_is_refused(tools: Any, path: Path) -> None:
    class Own(collections.deque):  # type: ignore[type-arg]
        pass

    with pytest.raises(stepfork.RecordingError, match="argument 'value' is of type"):  # noqa: SIM117
        with stepfork.record(path, tools=[f"{tools.__name__}:do"]):
            tools.do(Own([1]), "v.append(2)")


def test_beside_an_iterator_among_the_positional_arguments(make_module: Any, path: Path) -> None:
    module = make_module(
        """
        def first(*args, **options):
            args[1].append(next(args[0]))
            options["found"].append(5)
        def each(*args):
            for item in args[0]:
                args[1].append(item)
                yield item
        """
    )

    def agent() -> Any:
        items, into, found, seen = iter([1, 2]), [], [], []  # type: ignore[var-annotated]
        module.first(items, into, found=found)
        return [list(items), into, found, list(module.each(iter([1, 2, 3]), seen)), seen]

    plain = agent()
    with stepfork.record(path, tools=[module.__name__]):
        assert agent() == plain
    with stepfork.replay(path):
        assert agent() == plain


def test_a_generator_with_a_large_argument_encodes_it_once(tools: Any, make_module: Any, path: Path) -> None:
    """Counted in steps of the interpreter: what a step costs does not go with what the argument holds."""
    module = make_module("def stream(rows, count):\n    for at in range(count):\n        yield at\n")

    def steps(size: int) -> int:
        made = 0

        def count_it(*_: Any) -> None:
            nonlocal made
            made += 1

        rows = [{"n": at, "tags": ["a"]} for at in range(size)]
        sys.setprofile(count_it)
        try:
            with stepfork.record(path, tools=[module.__name__]):
                list(module.stream(rows, 300))
        finally:
            sys.setprofile(None)
        return made

    steps(1)  # what is done once
    assert steps(40) - steps(1) < 300 * 39 * 80  # each row is looked at, twice a step


KINDS = ["list", "deque", "dict", "ordered", "State", "Model", "namespace", "tuple", "Point"]
TREES = st.recursive(
    st.integers(0, 2),
    lambda inner: st.tuples(st.sampled_from(KINDS), st.lists(inner, max_size=3)),
    max_leaves=8,
)
PROGRAMS = st.lists(
    st.tuples(
        st.sampled_from(["put", "copy", "wrap", "pop", "turn"]),
        *(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
    ),
    max_size=4,
)


def built(tools: Any, tree: Any) -> Any:
    if isinstance(tree, int):
        return tree
    kind, inner = tree
    items = [built(tools, item) for item in inner]
    named = dict(zip("abc", items, strict=False))
    first = items[0] if items else None
    makers: dict[str, Callable[[], Any]] = {
        "list": lambda: items,
        "deque": lambda: collections.deque(items),
        "dict": lambda: named,
        "ordered": lambda: collections.OrderedDict(named),
        "State": lambda: tools.State(todo=items, inner=first),
        "Model": lambda: tools.Model(inner=first, rows=items),
        "namespace": lambda: SimpleNamespace(**named),
        "tuple": lambda: tuple(items),
        "Point": lambda: tools.Point(first),
    }
    return makers[kind]()


@examples(100)
@given(tree=TREES, program=PROGRAMS)
def test_any_change_of_any_kind_replays_or_is_refused(
    tools: Any, path: Path, tree: Any, program: Any
) -> None:
    """The argument, and every object in it that the caller may hold on to, are what they are live."""

    def agent() -> Any:
        mine = [built(tools, tree)]
        held = tools.holders(mine)
        tools.edit(mine, [list(each) for each in program])
        held += [item for item in tools.holders(mine) if not any(item is known for known in held)]
        before = [shown(item) for item in held]
        for at, item in enumerate(held):  # from now on each of them says where it stands
            tools.mark(item, f"mark {at}")
        return before, [shown(item) for item in held]

    plain = agent()
    try:
        with stepfork.record(path, tools=[f"{tools.__name__}:edit"]):
            assert agent() == plain
    except stepfork.RecordingError:
        assume(False)
    with stepfork.replay(path):
        assert agent() == plain
