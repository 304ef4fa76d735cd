"""What an attacker found on values, classes and odd use: a wrong answer is an error that says what to do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import textwrap
import weakref
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.command import Project

import stepfork
from stepfork.core.model import Tagged
from stepfork.errors import CassetteError, ConfigError, RecordingError, ReplayMismatchError

HEAD = """
    import dataclasses, enum, typing
    import attrs, pydantic
    from pydantic import v1
"""


def module_of(make_module: Any, before: str, made: str) -> Any:
    head, tail = textwrap.dedent(HEAD), f"def give():\n    return {made}\n"
    return make_module(head + textwrap.dedent(before) + tail)


def record_it(path: Path, module: Any, name: str = "give") -> Any:
    with stepfork.record(path, tools=[module.__name__]):
        return getattr(module, name)()


def replay_it(path: Path, module: Any, name: str = "give") -> Any:
    with stepfork.replay(path):
        return getattr(module, name)()


def become(module: Any, after: str) -> None:
    """The class is another one now; the tool stays the function that it is."""
    exec(textwrap.dedent(after), vars(module))  # noqa: S102 - as an edit and an import would


KINDS = {
    "dataclass": "@dataclasses.dataclass\nclass Order:\n",
    "dataclass with slots": "@dataclasses.dataclass(slots=True)\nclass Order:\n",
    "pydantic dataclass": "@pydantic.dataclasses.dataclass\nclass Order:\n",
    "attrs": "@attrs.define\nclass Order:\n",
    "attrs without slots": "@attrs.define(slots=False)\nclass Order:\n",
    "model": "class Order(pydantic.BaseModel):\n",
    "model of version 1": "class Order(v1.BaseModel):\n",
}
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@both
@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("    ident: int\n", "no longer has the recorded field 'id' and has the field 'ident'"),
        ("    ident: int = 0\n", "no longer has the recorded field 'id' and has the field 'ident'"),
        ("    id: int\n    note: str\n", "has the field 'note' that was not recorded"),
        ("    other: int = 1\n    id: int = 2\n", None),
        ("    note: str = 'none'\n", "no longer has the recorded field 'id'"),
    ],
    ids=["renamed", "renamed with default", "new and required", "new with default", "removed"],
)
def test_fields_of_a_class_changed(
    make_module: Any, path: Path, kind: str, after: str, said: str | None
) -> None:
    module = module_of(make_module, kind + "    id: int\n", "Order(id=42)")
    record_it(path, module)
    become(module, kind + after)
    if said is None:
        again = replay_it(path, module)
        assert type(again) is module.Order
        assert (again.id, again.other) == (42, 1)
        assert repr(again) == repr(module.Order(id=42))
    else:
        with pytest.raises(CassetteError, match=said) as caught:
            replay_it(path, module)
        assert f"{module.__name__}:Order" in str(caught.value)
        assert "record again" in str(caught.value)
        found = stepfork.load(path).calls[0].result
        assert isinstance(found, Tagged)
        assert found.value["fields"] == {"id": 42}  # type: ignore[index, call-overload]


@pytest.mark.parametrize("kind", ["dataclass", "pydantic dataclass", "attrs without slots"])
def test_attributes_that_are_not_declared_come_back(make_module: Any, path: Path, kind: str) -> None:
    hook = "__attrs_post_init__" if "attrs" in kind else "__post_init__"
    kind = KINDS[kind]
    body = f"    id: int\n    def {hook}(self):\n        self.double = self.id * 2\n"
    module = module_of(make_module, kind + body, "Order(id=4)")
    record_it(path, module)
    again = replay_it(path, module)
    assert (again.id, again.double) == (4, 8)


FACTORIES = {
    "dataclass": "    tags: list = dataclasses.field(default_factory={})\n",
    "attrs": "    tags: list = attrs.field(factory={})\n",
    "model": "    tags: list = pydantic.Field(default_factory={})\n",
    "model of version 1": "    tags: list = v1.Field(default_factory={})\n",
}


@pytest.mark.parametrize("kind", FACTORIES)
def test_a_new_field_gets_what_a_builtin_factory_makes_and_no_other_runs(
    make_module: Any, path: Path, kind: str
) -> None:
    module = module_of(make_module, KINDS[kind] + "    id: int\n", "[Order(id=1), Order(id=2)]")
    record_it(path, module)
    become(module, KINDS[kind] + "    id: int\n" + FACTORIES[kind].format("list"))
    first, second = replay_it(path, module)
    first.tags.append("changed")
    assert (first.id, second.id, second.tags) == (1, 2, [])
    become(module, "ran = []\ndef made():\n    ran.append(1)\n    return []\n")
    become(module, KINDS[kind] + "    id: int\n" + FACTORIES[kind].format("made"))
    with pytest.raises(CassetteError, match="'tags' that was not recorded"):
        replay_it(path, module)
    assert not module.ran


def test_models_that_take_extras_and_private_attributes(make_module: Any, path: Path) -> None:
    before = """
        class Open(pydantic.BaseModel):
            model_config = {"extra": "allow"}
            id: int
            old: int = 1
        class Closed(pydantic.BaseModel):
            id: int
            _seen: list = pydantic.PrivateAttr(default_factory=list)
    """
    module = module_of(make_module, before, "Open(id=1, more=[2], old=5), Closed(id=2)")
    record_it(path, module)
    after = """
        class Open(pydantic.BaseModel):
            model_config = {"extra": "allow"}
            id: int
            more: list = [0]
        class Closed(pydantic.BaseModel):
            id: int
            _seen: list = pydantic.PrivateAttr(default_factory=list)
            _count: int = pydantic.PrivateAttr(default=3)
    """
    become(module, after)
    opened, closed = replay_it(path, module)
    assert (opened.id, opened.more, opened.model_extra) == (1, [2], {"old": 5})
    assert (closed._seen, closed._count) == ([], 3)
    become(module, "class Closed(pydantic.BaseModel):\n    id: int\n")
    with pytest.raises(CassetteError, match="no longer has the recorded field '_seen'"):
        replay_it(path, module)


def test_a_field_that_was_never_set_stays_so(make_module: Any, path: Path) -> None:
    before = """
        @dataclasses.dataclass
        class Job:
            id: int
            started: float = dataclasses.field(init=False)
            tags: list = dataclasses.field(default_factory=list)
        def bare():
            job = Job(1)
            del job.tags
            return job
    """
    module = module_of(make_module, before, "bare()")
    record_it(path, module)
    assert vars(replay_it(path, module)) == {"id": 1}


CHANGED = {
    "an enum's member": (
        "class It(enum.Enum):\n    A = 1\n    B = 2\n",
        "It.B",
        "class It(enum.Enum):\n    A = 1\n",
    ),
    "a flag": (
        "class It(enum.Flag):\n    A = 1\n    B = 2\n    C = 4\n",
        "It.A | It.C",
        "class It(enum.Flag, boundary=enum.STRICT):\n    A = 1\n    B = 2\n",
    ),
    "a named tuple's fields": (
        "class It(typing.NamedTuple):\n    x: int\n",
        "It(1)",
        "class It(typing.NamedTuple):\n    y: int\n",
    ),
    "the kind of class": (
        "@dataclasses.dataclass\nclass It:\n    x: int\n",
        "It(1)",
        "class It(pydantic.BaseModel):\n    x: int\n",
    ),
    "its name": (
        "class It(enum.Enum):\n    A = 1\n",
        "It.A",
        "class Other(enum.Enum):\n    A = 1\nIt = Other\n",
    ),
}


@pytest.mark.parametrize("change", CHANGED)
def test_what_changed_stays_as_it_stands_where_it_is_only_looked_at(
    make_module: Any, path: Path, change: str
) -> None:
    before, made, after = CHANGED[change]
    module = module_of(make_module, before, f"[{made}]")
    record_it(path, module)
    become(module, after)
    (found,) = stepfork.load(path).calls[0].result
    assert isinstance(found, Tagged)
    with pytest.raises(CassetteError) as caught:
        replay_it(path, module)
    line = 1 + path.read_text().splitlines().index(
        next(it for it in path.read_text().splitlines() if found.tag in it)
    )
    assert str(caught.value).startswith(f"{path}:{line}: result[0]: call #1, tool 'give': ")
    assert str(caught.value).count("\n") == 0
    assert (caught.value.file, caught.value.field) == (path, "result[0]")
    assert "record again" in str(caught.value)


DAMAGED = {
    "array": ("!array {dtype: int64, values: [1], shape: [9]}", True),
    "array of bytes": ("!array {dtype: int64, values: !bytes AAAA, shape: [9]}", True),
    "array of nothing known": ("!array {dtype: nonsense, values: [1]}", True),
    "array in an order": ("!array {dtype: int64, values: [1], order: Q}", True),
    "numpy": ("!numpy {dtype: nonsense, value: 1}", True),
    "numpy of bytes": ("!numpy {dtype: float64, value: !bytes AAAA}", True),
    "series": (
        "!series {name: a, values: !array {dtype: int64, values: [1, 2]}, index: {range: [0, 9, 1]}}",
        True,
    ),
    "frame": (
        "!dataframe {columns: [{name: a, values: !array {dtype: int64, values: [1]}}], "
        "index: {range: [0, 9, 1]}}",
        True,
    ),
    "index": ("!index {range: [0, 9, 0]}", True),
    "index of nothing": ("!index {}", True),
    "index of names": ("!index {tuples: [!tuple [1, 2]], names: [a, b, c]}", False),
    "pandas": ("!pandas {type: Stamp, value: x}", True),
    "a moment": ("!pandas {type: Timestamp, value: long ago}", False),
}


def damaged(spelled: str) -> str:
    return f"stepfork: 1\nname: a\n---\ntool: f\nresult:\n- {spelled}\n---\nend: completed\n"


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_contents_are_an_error_with_file_line_and_field(path: Path, what: str) -> None:
    path.write_text(damaged(DAMAGED[what][0]), "utf-8")
    assert pd.DataFrame().empty  # pandas is imported, so that contents are built
    with pytest.raises(CassetteError) as caught:
        stepfork.load(path)
    assert str(caught.value).startswith(f"{path}:6: result[0]: ")


def test_validate_finds_what_can_be_found_without_the_library(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    for number, (spelled, _) in enumerate(DAMAGED.values()):
        project.write(f"{number}.yaml", damaged(spelled))
    done = project.run("validate", *(f"{number}.yaml" for number in range(len(DAMAGED))))
    assert done.status == 2
    assert "Traceback" not in done.err
    found = {int(line.partition(".yaml:6: result[0]: ")[0]) for line in done.err.splitlines()}
    assert found == {number for number, (_, seen) in enumerate(DAMAGED.values()) if seen}


def test_an_error_without_args_replays(make_module: Any, path: Path) -> None:
    module = make_module("def give():\n    raise ValueError()\n")
    with stepfork.record(path, tools=[module.__name__]), pytest.raises(ValueError, match=r"\A\Z"):
        module.give()
    text = path.read_text("utf-8")
    assert 'class: "builtins:ValueError", args: []' in text or "args: []" in text
    path.write_text(text.replace(", args: []", ""), "utf-8")
    with pytest.warns(UserWarning, match="was changed"), stepfork.replay(path), pytest.raises(ValueError):
        module.give()


STORES = """
    bodies = []

    class Base:
        @classmethod
        def query(cls, text):
            bodies.append(cls.__name__)
            return f"{cls.__name__}: {text}"
        def fetch(self, key):
            return f"{type(self).__name__}: {key}"
        async def afetch(self, key):
            return f"{type(self).__name__}: {key}"
        def pages(self, key):
            yield f"{type(self).__name__}: {key}"

    class Prod(Base):
        pass

    class Staging(Base):
        pass

    class Heir(Staging):
        def fetch(self, key):
            return super().fetch(key)
"""


def ask(kind: Any, how: str) -> Any:
    if how == "query":
        return kind.query("q")
    if how == "afetch":
        return asyncio.run(kind().afetch("q"))
    return list(kind().pages("q")) if how == "pages" else kind().fetch("q")


@pytest.mark.parametrize("how", ["query", "fetch", "afetch", "pages"])
@pytest.mark.parametrize(
    ("named", "names"),
    [
        (["Prod", "Staging"], ["Prod", "Staging", "Base"]),
        (["Base", "Prod", "Staging"], ["Prod", "Staging", "Base"]),
        (["Staging", "Base"], ["Base", "Staging", "Base"]),
        (["Base"], ["Base", "Base", "Base"]),
    ],
    ids=["heirs", "all", "two", "base"],
)
def test_a_call_is_named_after_the_class_it_is_called_on(
    make_module: Any, path: Path, how: str, named: list[str], names: list[str]
) -> None:
    module = make_module(STORES)
    tools = [f"{module.__name__}:{name}" for name in named]
    kinds = [module.Prod, module.Staging, module.Base]
    with stepfork.record(path, tools=tools):
        live = [ask(kind, how) for kind in kinds]
    assert [call.name for call in stepfork.load(path).calls] == [f"{name}.{how}" for name in names]
    with stepfork.replay(path, tools=tools) as run:
        assert [ask(kind, how) for kind in kinds] == live
    assert run.counts.live == 0
    if names[0] != names[1]:
        said = pytest.raises(ReplayMismatchError, match=rf"expected tool '{names[0]}\.{how}'")
        with said, stepfork.replay(path, tools=tools):
            ask(module.Staging, how)


def test_an_overridden_method_is_told_from_the_one_it_calls(make_module: Any, path: Path) -> None:
    module = make_module(STORES)
    tools = [f"{module.__name__}:{name}" for name in ("Base", "Heir.fetch")]
    with stepfork.record(path, tools=tools):
        module.Heir().fetch("k")
    (call,) = stepfork.load(path).calls
    assert (call.name, [inner.name for inner in call.children]) == ("Heir.fetch", ["Base.fetch"])


def test_names_that_a_pattern_leaves_out_are_tools_where_they_are_named(make_module: Any, path: Path) -> None:
    source = """
        def _count(): return 1
        def count(): return _count()
        class Warehouse:
            def _count(self): return 2
            def __getitem__(self, key): return key
            def __call__(self): return 3
            @property
            def size(self): return 4
            def fetch(self): return self._count() + self.size
    """
    module = make_module(source)
    house = module.Warehouse()

    def run(*tools: str) -> list[str]:
        with stepfork.record(path, tools=[module.__name__ + tool for tool in tools]) as run:
            module.count(), house.fetch(), house["a"], house(), house.size
        return [inner.name for call in run.calls for inner in (call, *call.children)]

    assert run("", ":Warehouse") == ["count", "Warehouse.fetch", "Warehouse.__call__"]
    named = [":_count", ":Warehouse._count", ":Warehouse.__getitem__"]
    assert run(*named) == [name[1:] for name in named]


ENDS = """
    import asyncio, pytest
    class Abort(BaseException):
        def __init__(self, why):
            super().__init__(why)
            self.why = why
    class Group(BaseExceptionGroup):
        pass
    def raises(how):
        if how == "abort":
            raise Abort("no more")
        if how == "exit":
            raise SystemExit(3)
        if how == "generator":
            raise GeneratorExit
        if how == "group":
            raise BaseExceptionGroup("two", [Abort("in it"), ValueError("v")])
        if how == "skip":
            pytest.skip("not today")
        if how == "fail":
            pytest.fail("not so")
        if how == "interrupt":
            raise KeyboardInterrupt
        if how == "group of interrupts":
            raise BaseExceptionGroup("g", [KeyboardInterrupt()])
    async def araises(how):
        await asyncio.sleep(0)
        raises(how)
    def after():
        return 1
"""


def caught(module: Any, how: str, sync: bool) -> Any:
    try:
        module.raises(how) if sync else asyncio.run(module.araises(how))
    except BaseException as error:
        if isinstance(error, stepfork.StepforkError):
            raise
        inner = [repr(it) for it in getattr(error, "exceptions", ())]
        return type(error), str(error), getattr(error, "why", None), inner, module.after()


HOWS = [(how, sync) for how in ("abort", "exit", "group") for sync in (True, False)]


@pytest.mark.parametrize(("how", "sync"), [*HOWS, ("generator", True)])
def test_what_a_tool_raises_and_the_agent_catches_is_raised_again(
    make_module: Any, path: Path, how: str, sync: bool
) -> None:
    module = make_module(ENDS)
    tools = [f"{module.__name__}:{name}" for name in ("raises" if sync else "araises", "after")]
    with stepfork.record(path, tools=tools):
        live = caught(module, how, sync)
    assert live is not None
    with stepfork.replay(path) as run:
        assert caught(module, how, sync) == live
    assert run.counts.live == 0


@pytest.mark.parametrize("how", ["interrupt", "group of interrupts", "skip", "fail"])
def test_an_interrupt_that_did_not_end_the_run_is_refused(make_module: Any, path: Path, how: str) -> None:
    module = make_module(ENDS)
    said = pytest.raises(RecordingError, match=r"tool 'raises' cannot be recorded: it was broken off by \w+")
    with said, stepfork.record(path, tools=[module.__name__]):
        caught(module, how, True)
    with pytest.raises(BaseException) as ended, stepfork.record(path, tools=[module.__name__]):
        module.raises(how)
    assert not isinstance(ended.value, stepfork.StepforkError)
    assert not hasattr(ended.value, "__notes__")


def test_inspect_shows_long_numbers_and_many_calls(make_module: Any, tmp_path: Path) -> None:
    module = make_module("def f(n):\n    return n\n")
    project = Project(tmp_path / "project")
    with stepfork.record(project.folder / "run.yaml", tools=[module.__name__]):
        for number in range(101):
            module.f(number)
        module.f(10**5000)
    done = project.run("inspect", "run.yaml", "--json")
    assert done.status == 0
    assert done.json["calls"][101]["result"] == {"!int": hex(10**5000)}
    assert "#100 tool f" in project.run("inspect", "run.yaml").out


ODD: dict[str, Any] = {
    "a name that is no text": lambda: stepfork.record("a.yaml", name=5),  # type: ignore[arg-type]
    "a surrogate": lambda: stepfork.record("\ud800.yaml").__enter__(),
    "bytes": lambda: stepfork.record(b"x").__enter__(),  # type: ignore[arg-type]
    "a number": lambda: stepfork.record(5).__enter__(),  # type: ignore[arg-type]
    "nothing to load": lambda: stepfork.load(None),  # type: ignore[arg-type]
    "a NUL": lambda: stepfork.replay("a.yaml", cassette_dir="a\0b").__enter__(),
    "an end without a beginning": lambda: stepfork.record("a.yaml").__exit__(None, None, None),
}


@pytest.mark.parametrize("use", ODD)
def test_odd_use_is_a_config_error_of_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        ODD[use]()
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_session_ends_once_and_takes_no_output_afterwards(make_module: Any, path: Path) -> None:
    module = make_module("def f():\n    return 1\n")
    session = stepfork.record(path, tools=[module.__name__])
    with session as run:
        module.f()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="is not open"):
        session.__exit__(None, None, None)
    with pytest.raises(ConfigError, match="the session has closed"):
        run.set_output(1)
    assert path.read_bytes() == before


def test_an_error_thrown_into_a_generator_leaves_nothing_alive(make_module: Any, path: Path) -> None:
    module = make_module("def g():\n    yield 1\n")

    class Held:
        pass

    def consume() -> weakref.ref[Held]:
        held = Held()
        generator = module.g()
        next(generator)
        try:
            raise ValueError("thrown")
        except ValueError as error:
            with contextlib.suppress(ValueError):
                generator.throw(error)
        return weakref.ref(held)

    gc.disable()
    try:
        with stepfork.record(path, tools=[module.__name__]):
            assert consume()() is None
        with stepfork.replay(path):
            assert consume()() is None
    finally:
        gc.enable()


def test_adopting_a_changed_recording_says_so_or_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    good = "stepfork: 1\nname: a\n---\ntool: f\nresult: 1\n---\nend: completed\n"
    project.write("run.yaml", good)
    changed = project.write("run.failed.yaml", good + f'sha256: "{"0" * 64}"\n')
    refused = project.run("adopt", "run.failed.yaml", "--integrity", "error")
    assert (refused.status, project.read("run.yaml"), changed.exists()) == (2, good, True)
    assert "does not fit its checksum" in refused.complaint
    done = project.run("adopt", "run.failed.yaml")
    assert done.status == 0
    assert "was changed since it was recorded" in done.complaint


def test_a_class_that_moved_and_is_still_there_under_its_old_name(path: Path, make_module: Any) -> None:
    before = "@dataclasses.dataclass\nclass Order:\n    number: int\n"
    module = module_of(make_module, before, "Order(1)")
    record_it(path, module)
    new = make_module(textwrap.dedent(HEAD) + before)
    become(module, f"from {new.__name__} import Order")
    with pytest.raises(CassetteError) as fault:
        replay_it(path, module)
    said = f"the class '{module.__name__}:Order' has moved to '{new.__name__}:Order'; record again"
    assert said in str(fault.value)
