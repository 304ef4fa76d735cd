"""Every way a program can hold a tool, before and after the patch: each call must reach the session."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOOLS = """
    import functools
    bodies = []
    REGISTRY = {}
    def register(function):
        REGISTRY[function.__name__] = function
        return function
    def attribute(x):
        bodies.append("attribute")
        return ["attribute", x]
    @register
    def registered(x):
        bodies.append("registered")
        return ["registered", x]
    async def asynchronous(x):
        bodies.append("asynchronous")
        return ["asynchronous", x]
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)
        return wrapper
    @counted
    def decorated(x):
        bodies.append("decorated")
        return ["decorated", x]
    TOOLS = {"attribute": attribute, "lambda": lambda x: bodies.append("lambda") or ["lambda", x]}
    class Search:
        def __init__(self, base):
            self.base = base
        def find(self, x):
            bodies.append("find")
            return ["find", x]
        @staticmethod
        def static(x):
            bodies.append("static")
            return ["static", x]
        @classmethod
        def made(cls, x):
            bodies.append("made")
            return ["made", x]
        async def afind(self, x):
            bodies.append("afind")
            return ["afind", x]
    def _private(x):
        bodies.append("_private")
        return x
"""
HOLDER = """
    import functools
    from {tools} import attribute, asynchronous
    import {tools} as tools
    partial = functools.partial(attribute)
    in_list, in_tuple, in_set, in_dict = [attribute], (attribute,), {{attribute}}, {{"f": attribute}}
    def default(x, f=attribute):
        return f(x)
    def make(f):
        def closure(x):
            return f(x)
        return closure
    closure = make(attribute)
    class Agent:
        tool = staticmethod(attribute)
        def __init__(self):
            self.own = attribute
    agent = Agent()
    search = tools.Search("b")
    bound, abound = search.find, search.afind
"""
REFERENCES = {
    "module attribute": "tools.attribute(1)",
    "from-import": "attribute(1)",
    "partial": "partial(1)",
    "list": "in_list[0](1)",
    "tuple": "in_tuple[0](1)",
    "set": "next(iter(in_set))(1)",
    "dict": "in_dict['f'](1)",
    "registry in the tool module": "tools.TOOLS['attribute'](1)",
    "lambda in a registry": "tools.TOOLS['lambda'](1)",
    "@register in the tool module": "tools.REGISTRY['registered'](1)",
    "decorated": "tools.decorated(1)",
    "default argument": "default(1)",
    "closure": "closure(1)",
    "staticmethod of another class": "agent.tool(1)",
    "instance attribute": "agent.own(1)",
    "bound method": "bound(1)",
    "method": "search.find(1)",
    "method of a new object": "tools.Search('c').find(1)",
    "static method of a named class": "tools.Search.static(1)",
    "class method of a named class": "tools.Search.made(1)",
    "async": "asyncio.run(tools.asynchronous(1))",
    "async from-import": "asyncio.run(asynchronous(1))",
    "async bound method": "asyncio.run(abound(1))",
}


def make_both(make_module: Any) -> tuple[Any, Any]:
    tools = make_module(TOOLS)
    return tools, make_module(HOLDER.format(tools=tools.__name__))


def ask(holder: Any, expression: str) -> Any:
    return eval(expression, {**vars(holder), "asyncio": asyncio})  # noqa: S307 - our own table


@pytest.mark.parametrize("expression", REFERENCES.values(), ids=REFERENCES)
@pytest.mark.parametrize("held", ["before the patch", "after the patch"])
def test_every_kind_of_reference_is_caught(
    make_module: Any, tmp_path: Path, held: str, expression: str
) -> None:
    path = tmp_path / "run.yaml"
    if held == "before the patch":
        tools, holder = make_both(make_module)
        stepfork.autopatch(tools=[tools.__name__, f"{tools.__name__}:Search"])
    else:
        stepfork.autopatch(tools=["later_tools", "later_tools:Search"])
        tools = make_module(TOOLS, "later_tools")
        holder = make_module(HOLDER.format(tools="later_tools"))
    with stepfork.record(path):
        live = ask(holder, expression)
    assert len(tools.bodies) == 1
    with stepfork.replay(path) as run:
        assert ask(holder, expression) == live
    assert len(tools.bodies) == 1, "the body ran on replay"
    assert run.counts.substituted == 1
    stepfork.unpatch()
    ask(holder, expression)
    assert len(tools.bodies) == 2, "after unpatch the body runs again"


def test_a_method_is_named_after_its_class_and_self_is_no_argument(make_module: Any, tmp_path: Path) -> None:
    tools, _ = make_both(make_module)
    with stepfork.record(tmp_path / "run.yaml", tools=[f"{tools.__name__}:Search.find"]):
        tools.Search("b").find(3)
        tools.Search.static(4)
    (call,) = stepfork.load(tmp_path / "run.yaml").calls
    assert (call.name, call.args) == ("Search.find", {"x": 3})


def test_private_and_excluded_functions_are_no_tools(make_module: Any, tmp_path: Path) -> None:
    tools, _ = make_both(make_module)
    name = tools.__name__
    with stepfork.record(tmp_path / "run.yaml", tools=[name], exclude=[f"{name}:attribute"]):
        tools._private(1)
        tools.attribute(1)
        tools.decorated(1)
    assert [call.name for call in stepfork.load(tmp_path / "run.yaml").calls] == ["decorated"]


def test_two_tools_of_one_name_are_told_apart(make_module: Any, tmp_path: Path) -> None:
    one, two = make_module("def search(q):\n    return 1\n"), make_module("def search(q):\n    return 2\n")
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[one.__name__, two.__name__]):
        assert [one.search("a"), two.search("a")] == [1, 2]
    names = [call.name for call in stepfork.load(path).calls]
    assert names == [f"{one.__name__}:search", f"{two.__name__}:search"]
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        two.search("a")


def test_a_name_that_becomes_ambiguous_is_never_answered_by_the_wrong_tool(
    make_module: Any, tmp_path: Path
) -> None:
    one = make_module("def find(q):\n    return 1\n")
    path, both = tmp_path / "one.yaml", tmp_path / "both.yaml"
    with stepfork.record(path, tools=[one.__name__]):
        one.find("a")
    two = make_module("def find(q):\n    return 2\n")
    with stepfork.record(both, tools=[one.__name__, two.__name__]):
        one.find("a")
    stepfork.unpatch()
    with stepfork.replay(both, tools=[one.__name__]):
        assert one.find("a") == 1, "recorded under its full name, alone now"
    with (
        pytest.raises(stepfork.ReplayMismatchError, match="two tools are called 'find' now"),
        stepfork.replay(path, tools=[two.__name__]),
    ):
        two.find("a")


def test_unpatch_restores_the_identical_code(make_module: Any) -> None:
    tools, _ = make_both(make_module)
    functions = [tools.attribute, tools.registered, tools.asynchronous, tools.Search.find]
    before = [function.__code__ for function in functions]
    for _ in range(2):
        stepfork.autopatch(tools=[tools.__name__, f"{tools.__name__}:Search"])
    assert all(function.__code__ is not code for function, code in zip(functions, before, strict=True))
    stepfork.unpatch()
    assert all(function.__code__ is code for function, code in zip(functions, before, strict=True))
    assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("stepfork")]


def test_C67_everything_is_restored_after_a_session_that_failed(make_module: Any, tmp_path: Path) -> None:
    tools, _ = make_both(make_module)
    code = tools.attribute.__code__
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), stepfork.record(tmp_path / "run.yaml", tools=[tools.__name__]):
            assert tools.attribute.__code__ is not code
            raise error
        assert tools.attribute.__code__ is code


def test_a_reloaded_module_is_patched_again(make_module: Any, tmp_path: Path) -> None:
    tools = make_module(TOOLS)
    stepfork.autopatch(tools=[tools.__name__])
    tools = importlib.reload(tools)
    with stepfork.record(tmp_path / "run.yaml"):
        tools.attribute(1)
    assert len(stepfork.load(tmp_path / "run.yaml").calls) == 1


def test_a_wildcard_reaches_submodules(make_module: Any, tmp_path: Path) -> None:
    stepfork.autopatch(tools=["wild.*"])
    make_module("", "wild.__init__", load=False)
    module = make_module("def deep(x):\n    return x\n", "wild.tools.web")
    with stepfork.record(tmp_path / "run.yaml"):
        module.deep(1)
    assert [call.name for call in stepfork.load(tmp_path / "run.yaml").calls] == ["deep"]


def test_nothing_is_patched_by_importing_stepfork() -> None:
    from openai._base_client import SyncAPIClient

    assert type(vars(SyncAPIClient)["request"]).__name__ == "function"


def test_a_named_object_that_is_no_function_is_refused() -> None:
    with pytest.raises(stepfork.ConfigError, match="sqrt"):
        stepfork.autopatch(tools=["math:sqrt"])
    with pytest.raises(stepfork.ConfigError, match="pattern"):
        stepfork.autopatch(tools=["not a module"])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"recrod_mode": 1}, "recrod_mode"),
    ({"mode": "rekord"}, "rekord"),
    ({"redact_keys": None}, "redact_keys"),
    ({"tools": [1]}, "tools"),
]


@pytest.mark.parametrize(("given", "named"), WRONG)
def test_C85_misspelt_settings_and_modes_are_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(stepfork.ConfigError, match=named) as caught:
        stepfork.autopatch(**given)
    if named in ("recrod_mode", "rekord"):
        assert "replay" in str(caught.value) or "redact_keys" in str(caught.value), (
            "the valid ones are listed"
        )
