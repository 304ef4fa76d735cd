"""Calls inside of tools: whose children they are, who shows them, and ``through``."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.chat_server import ChatServer
from support.command import Project

import stepfork

BODIES = """
    import asyncio, threading
    from concurrent.futures import ThreadPoolExecutor
    bodies = []
    def look(q):
        bodies.append(q)
        return q.upper()
    async def alook(q):
        bodies.append(q)
        await asyncio.sleep(0)
        return q.upper()
    async def gathers(items):
        return await asyncio.gather(*map(alook, items))
    def threads(items):
        found = {}
        started = [threading.Thread(target=lambda q=q: found.update({q: look(q)})) for q in items]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        return [found[q] for q in items]
    def pools(items):
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(look, items))
    def runs(items):
        return asyncio.run(gathers(items))
"""
PLAN = """
    import asyncio
    bodies = []
    steps = ["a", "b"]
    def look(q):
        bodies.append(q)
        return q.upper()
    async def alook(q):
        bodies.append(q)
        await asyncio.sleep(0)
        return q.upper()
    def plan(goal):
        bodies.append("plan")
        return [look(q) for q in steps]
    async def aplan(goal):
        bodies.append("aplan")
        return await asyncio.gather(*map(alook, steps))
    def outer(goal):
        bodies.append("outer")
        return [look("first"), plan(goal), look("last")]
"""
ITEMS = ["a", "b", "c"]


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(BODIES)


@pytest.fixture
def plans(make_module: Any) -> Any:
    return make_module(PLAN)


def names(calls: Any) -> list[Any]:
    """A tree of calls: ``name argument``, and in a tuple with its children what has any."""
    found: list[Any] = []
    for call in calls:
        what = " ".join([call.name, *(str(value) for value in call.args.values())])
        found.append((what, *names(call.children)) if call.children else what)
    return found


def run_tool(function: Any, *args: Any) -> Any:
    return asyncio.run(function(*args)) if asyncio.iscoroutinefunction(function) else function(*args)


# -- whose children ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "inner"),
    [("gathers", "alook"), ("threads", "look"), ("pools", "look")],
)
def test_what_a_tool_calls_in_tasks_threads_and_pools_is_inside_of_it(
    tools: Any, path: Path, tool: str, inner: str
) -> None:
    def agent() -> list[Any]:
        return [tools.look("before"), run_tool(getattr(tools, tool), ITEMS), tools.look("after")]

    with stepfork.record(path, tools=[tools.__name__]) as run:
        live = agent()
    assert live == ["BEFORE", ["A", "B", "C"], "AFTER"]
    assert (run.counts.recorded, run.counts.live, run.counts.tool_bodies_executed) == (3, 3, 3)
    tree = names(stepfork.load(path).calls)
    assert tree == ["look before", (f"{tool} {ITEMS}", *(f"{inner} {q}" for q in ITEMS)), "look after"]
    documents = path.read_text("utf-8").split("---\n")
    assert [(re.findall(r"(?m)^(?:depth|lane): (.*)$", text)) for text in documents[1:-1]] == [
        [],
        [],
        *(sorted(["1", lane]) for lane in "abc"),
        [],
    ]
    tools.bodies.clear()
    with stepfork.replay(path) as run:
        assert agent() == live
    assert tools.bodies == []
    assert (run.counts.recorded, run.counts.substituted, run.counts.live) == (3, 3, 0)


def test_children_of_children_stand_below_their_own_tool(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.runs(ITEMS[:2])
        tools.look("after")
    tree = names(stepfork.load(path).calls)
    assert tree == [("runs ['a', 'b']", ("gathers ['a', 'b']", "alook a", "alook b")), "look after"]
    assert re.findall(r"(?m)^depth: (.*)$", path.read_text("utf-8")) == ["1", "2", "2"]


@pytest.mark.parametrize("how", ["pool", "thread"])
def test_what_a_tool_left_running_calls_inside_of_it_after_it_has_ended(
    make_module: Any, path: Path, how: str
) -> None:
    tools = make_module(
        """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        go, started, bodies = threading.Event(), [], []
        pool = ThreadPoolExecutor(1)
        def look(q):
            bodies.append(q)
            return q.upper()
        def leaves(how):
            bodies.append(how)
            def later():
                go.wait()
                for n in range(2):
                    look(f"late {n}")
            if how == "pool":
                started.append(pool.submit(later).result)
            else:
                thread = threading.Thread(target=later, daemon=True)
                thread.start()
                started.append(thread.join)
            return "left"
        """
    )

    def agent() -> list[Any]:
        tools.go.clear()
        found = [tools.leaves(how), tools.look("between")]
        found.append(tools.pool.submit(tools.look, "of the main line") if how == "pool" else None)
        tools.go.set()
        for wait in tools.started:
            wait()
        tools.started.clear()
        found[2] = found[2] and found[2].result()
        return [*found, tools.look("after")]

    mine = ["look of the main line"] if how == "pool" else []
    tree = [(f"leaves {how}", "look late 0", "look late 1"), "look between", *mine, "look after"]
    with stepfork.record(path, tools=[tools.__name__]):
        live = agent()
    assert names(stepfork.load(path).calls) == tree
    tools.bodies.clear()
    with stepfork.replay(path) as run:
        assert agent() == live
    assert tools.bodies == []
    assert run.counts.substituted == len(tree)
    with stepfork.replay(path, through=["leaves"]) as run:
        assert agent() == live
    assert tools.bodies == [how]
    assert (run.counts.substituted, run.counts.tool_bodies_executed) == (len(tree) - 1, 1)
    tools.pool.shutdown()


def test_a_thread_that_a_tool_leaves_alive_may_leave_its_calls_out(make_module: Any, path: Path) -> None:
    tools = make_module(
        """
        import threading
        def look(q):
            return q.upper()
        def leaves(go):
            def later():
                events[go].wait()
                try:
                    look("late")
                except BaseException as error:
                    refused.append(f"{type(error).__name__}: {error}")
            thread = threading.Thread(target=later, daemon=True)
            thread.start()
            threads.append(thread)
        events, threads, refused = {}, [], []
        """
    )
    tools.events["soon"] = threading.Event()
    tools.events["soon"].set()

    def agent() -> None:
        tools.leaves("soon")
        for thread in tools.threads:
            thread.join()

    with stepfork.record(path, tools=[tools.__name__]):
        agent()
    tools.threads.clear()
    tools.events["soon"].clear()
    with stepfork.replay(path, through=["leaves"]) as run:
        tools.leaves("soon")
    assert run.missing == 0
    tools.events["soon"].set()
    (thread,) = tools.threads
    thread.join()
    (refused,) = tools.refused
    assert refused.startswith(f"NoCassetteError: a call came after the session of {path} had closed")


# -- who shows them ------------------------------------------------------------------------------------


def test_inspect_shows_children_below_their_tool(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.write("tools.py", BODIES)
    project.write("agent.py", "import tools\ndef run():\n    tools.pools(['a', 'b'])\n    tools.look('z')\n")
    assert project.record("agent:run").status == 0
    shown = project.run("inspect", "cassettes/run.yaml")
    assert shown.status == 0, shown.err
    assert "2 calls (2 tool)" in shown.out
    lines = [line for line in shown.out.splitlines() if "tool " in line and "{" in line]
    assert lines == [
        '  #1  tool pools {"items": ["a", "b"]}',
        '          tool look {"q": "a"}',
        '          tool look {"q": "b"}',
        '  #2  tool look {"q": "z"}',
    ]
    calls = project.run("inspect", "cassettes/run.yaml", "--json").json["calls"]
    assert [[child["args"]["q"] for child in call["children"]] for call in calls] == [["a", "b"], []]


ASKING = """
    from openai import OpenAI
    def research(topic):
        client = OpenAI(max_retries=0)
        said = []
        for n in range(2):
            with open("bodies.txt", "a") as file:
                file.write("x")
            messages = [{"role": "user", "content": f"{topic} {n}"}]
            reply = client.chat.completions.create(model="m", messages=messages)
            said.append(reply.choices[0].message.content)
        client.close()
        return said
"""


def test_a_tool_with_llm_calls_inside_is_named_in_inspect_and_by_pytest(
    tmp_path: Path, server: ChatServer
) -> None:
    project = Project(tmp_path / "project")
    project.write("tools.py", ASKING)
    project.write("conftest.py", "import stepfork\nstepfork.autopatch(tools=['tools'])\n")
    project.write(
        "test_it.py",
        "import tools\ndef test_it():\n"
        "    assert tools.research('tea') == ['you said:\\ntea 0', 'you said:\\ntea 1']\n",
    )
    keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
    assert project.pytest("--stepfork-mode=record", **keys).status == 0
    said = "tool 'research': 2 LLM calls inside it not checked; to check them: through = ['research']"
    shown = project.run("inspect", "cassettes/test_it/test_it.yaml")
    assert said in shown.out
    assert "llm chat.completions m" in shown.out
    ended = project.pytest()
    assert ended.status == 0, ended.out
    assert said in ended.out
    assert project.read("bodies.txt") == "xx"
    ended = project.pytest(STEPFORK_THROUGH="research", OPENAI_API_KEY="none")
    assert ended.status == 0, ended.out
    assert "not checked" not in ended.out
    assert project.read("bodies.txt") == "xxxx"
    assert server.hits == 2


# -- through -------------------------------------------------------------------------------------------


@pytest.fixture
def planned(plans: Any, path: Path) -> Callable[..., Any]:
    """Records ``tool("tea")``; gives what replays it through the named tools with the given steps."""

    def record(tool: str, *through: str) -> Any:
        function = getattr(plans, tool)
        with stepfork.record(path, tools=[plans.__name__]):
            live = run_tool(function, "tea")
        plans.bodies.clear()

        def replay(*steps: str) -> Any:
            plans.steps[:] = steps
            with stepfork.replay(path, through=list(through)) as run:
                found = run_tool(function, "tea")
            assert found == live
            return run

        return replay

    return record


@pytest.mark.parametrize("tool", ["plan", "aplan"])
def test_the_body_runs_and_its_children_are_answered(
    planned: Callable[..., Any], plans: Any, tool: str
) -> None:
    run = planned(tool, tool)("a", "b")
    assert plans.bodies == [tool]
    counts = run.counts
    assert (counts.recorded, counts.substituted) == (1, 0)
    assert (counts.live, counts.tool_bodies_executed) == (1, 1)


def test_without_through_no_body_runs_whatever_became_of_it(planned: Callable[..., Any], plans: Any) -> None:
    run = planned("plan")("x", "y", "z")
    assert plans.bodies == []
    assert (run.counts.substituted, run.counts.live, run.counts.tool_bodies_executed) == (1, 0, 0)


DRIFTS = {
    "changed": (("a", "X"), "tool '{}' argument 'q': expected \"b\", got \"X\""),
    "dropped": (("a",), "inside tool '{}': expected tool '{}' but the agent never made it"),
    "dropped-all": ((), "inside tool '{}': expected tool '{}' but the agent never made it"),
    "added": (("a", "b", "c"), "inside of it the agent made tool '{}', but no more calls were recorded"),
}


@pytest.mark.parametrize("tool", ["plan", "aplan"])
@pytest.mark.parametrize("drift", DRIFTS)
def test_a_drifted_child_is_a_mismatch_that_names_it(
    planned: Callable[..., Any], plans: Any, tool: str, drift: str
) -> None:
    steps, said = DRIFTS[drift]
    inner = {"plan": "look", "aplan": "alook"}[tool]
    replay = planned(tool, tool)
    with pytest.raises(stepfork.ReplayMismatchError) as caught:
        replay(*steps)
    first = str(caught.value).splitlines()[0]
    named = (tool, inner) if "inside tool" in said else (inner,)
    assert first.startswith("call #1: ")
    assert said.format(*named) in first
    assert caught.value.index == 1
    assert plans.bodies == [tool]


def test_sequential_children_that_change_places_are_a_mismatch(planned: Callable[..., Any]) -> None:
    replay = planned("plan", "plan")
    with pytest.raises(stepfork.ReplayMismatchError, match='argument \'q\': expected "a", got "b"'):
        replay("b", "a")


def test_a_swallowed_mismatch_of_a_child_comes_out_at_the_end(make_module: Any, path: Path) -> None:
    tools = make_module(
        """
        what = "a"
        def look(q):
            return q.upper()
        def careful():
            try:
                look(what)
            except BaseException:
                pass
            return "fine"
        """
    )
    with stepfork.record(path, tools=[tools.__name__]):
        tools.careful()
    tools.what = "b"
    expected = "tool 'look' argument 'q': expected \"a\", got \"b\""
    with (
        pytest.raises(stepfork.ReplayMismatchError, match=expected),
        stepfork.replay(path, through="careful"),
    ):
        with pytest.raises(stepfork.ReplayMismatchError, match=expected):
            tools.careful()
        with pytest.raises(stepfork.ReplayMismatchError, match=expected):
            tools.look("a")


@pytest.mark.parametrize("tool", ["gathers", "threads", "pools"])
def test_parallel_children_are_answered_in_any_order(tools: Any, path: Path, tool: str) -> None:
    function = getattr(tools, tool)
    with stepfork.record(path, tools=[tools.__name__]):
        live = run_tool(function, ITEMS)
    assert live == ["A", "B", "C"]
    look, alook = tools.look, tools.alook
    order: list[str] = []

    def opens_the_next(q: str, gates: dict[str, threading.Event], wanted: tuple[str, ...]) -> None:
        order.append(q)
        if q != wanted[-1]:
            gates[wanted[wanted.index(q) + 1]].set()

    for wanted in itertools.permutations(ITEMS):
        gates = {q: threading.Event() for q in ITEMS}
        gates[wanted[0]].set()
        order.clear()

        def gated(q: str, gates: Any = gates, wanted: Any = wanted) -> str:
            gates[q].wait()
            answer = str(look(q))
            opens_the_next(q, gates, wanted)
            return answer

        async def agated(q: str, gates: Any = gates, wanted: Any = wanted) -> str:
            while not gates[q].is_set():
                await asyncio.sleep(0)
            answer = str(await alook(q))
            opens_the_next(q, gates, wanted)
            return answer

        tools.bodies.clear()
        tools.look, tools.alook = gated, agated
        try:
            with stepfork.replay(path, through=[tool]) as run:
                assert run_tool(function, ITEMS) == live
        finally:
            tools.look, tools.alook = look, alook
        assert order == list(wanted)
        assert tools.bodies == [], "no child's body ran"
        assert (run.counts.live, run.counts.tool_bodies_executed) == (1, 1)


@pytest.mark.parametrize("through", [("outer", "plan"), ("outer",), ("plan",), ()])
def test_through_goes_as_deep_as_it_is_told(
    planned: Callable[..., Any], plans: Any, through: tuple[str, ...]
) -> None:
    replay = planned("outer", *through)
    run = replay("a", "b")
    ran = [name for name in ("outer", "plan") if name in through] if "outer" in through else []
    assert plans.bodies == ran
    deep = "outer" in through
    assert (run.counts.substituted, run.counts.tool_bodies_executed) == (0 if deep else 1, 1 if deep else 0)
    if len(ran) == 2:
        with pytest.raises(stepfork.ReplayMismatchError, match='expected "b", got "X"'):
            replay("a", "X")
        with pytest.raises(stepfork.ReplayMismatchError, match="inside tool 'plan': expected tool 'look'"):
            replay("a")
    else:
        replay("a", "X")


WRITTEN = """
    steps = ["a", "b"]
    def look(q):
        return q.upper()
    def plan(goal):
        with open("bodies.txt", "a") as file:
            file.write("x")
        return [look(q) for q in steps]
"""


@pytest.mark.parametrize("by", ["nothing", "pyproject", "autopatch", "marker", "environment"])
def test_through_is_a_setting_like_any_other(tmp_path: Path, by: str) -> None:
    project = Project(tmp_path / "project")
    project.write("tools.py", WRITTEN)
    project.write("test_it.py", "import tools\ndef test_it():\n    assert tools.plan('tea') == ['A', 'B']\n")
    if by == "pyproject":
        project.write("pyproject.toml", '[tool.stepfork]\ntools = ["tools"]\nthrough = ["plan"]\n')
    else:
        more = ", through=['plan']" if by == "autopatch" else ""
        project.write("conftest.py", f"import stepfork\nstepfork.autopatch(tools=['tools']{more})\n")
    if by == "marker":
        mark = "import pytest, tools\n@pytest.mark.stepfork(through=['plan'])\n"
        project.write("test_it.py", project.read("test_it.py").replace("import tools\n", mark))
    environment = {"STEPFORK_THROUGH": "tools:plan,plan"} if by == "environment" else {}
    assert project.pytest("--stepfork-mode=record", **environment).status == 0
    assert project.read("bodies.txt") == "x"
    ended = project.pytest(**environment)
    assert ended.status == 0, ended.out
    through = by != "nothing"
    assert project.read("bodies.txt") == "x" + "x" * through
    project.write("tools.py", WRITTEN.replace('["a", "b"]', '["a", "X"]'))
    ended = project.pytest(**environment)
    assert ended.status == (1 if through else 0)
    assert ("call #1: tool 'look' argument 'q': expected \"b\", got \"X\"" in ended.out) is through


def test_through_is_an_option_of_the_command_line(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.write("tools.py", WRITTEN)
    project.write("agent.py", "import tools\ndef run():\n    return tools.plan('tea')\n")
    assert project.record("agent:run").status == 0
    for options, bodies, counts in (
        ((), "x", "1 recorded, 1 substituted, 0 live; 0 tool bodies executed"),
        (("--through", "plan"), "xx", "1 recorded, 0 substituted, 1 live; 1 tool bodies executed"),
        (("--through=tools:plan,plan",), "xxx", "1 recorded, 0 substituted, 1 live; 1 tool bodies executed"),
    ):
        ended = project.run("replay", "cassettes/run.yaml", *options)
        assert ended.status == 0, ended.err
        assert re.sub("tool body ", "tool bodies ", counts) in ended.out.replace("tool body ", "tool bodies ")
        assert project.read("bodies.txt") == bodies
    project.write("tools.py", WRITTEN.replace('["a", "b"]', '["b", "a"]'))
    assert project.run("replay", "cassettes/run.yaml").status == 0
    ended = project.run("replay", "cassettes/run.yaml", "--through", "plan", "--json")
    assert ended.status == 1
    assert json.loads(ended.out)["dependencies_matched"] is False
