"""Generators as users hold them: nested, in threads and tasks, abandoned, closed late, cut off."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOOLS = """
    import asyncio, contextlib, functools, time
    bodies = []

    def rows(name, count=3):
        bodies.append(f"rows {name}")
        for at in range(count):
            yield f"{name} {at}"
        return count

    def outer(name):
        bodies.append("outer")
        got = yield from rows(name, 2)
        yield f"then {got}"
        yield from rows(f"{name}!", 1)

    async def arows(name, count=3):
        bodies.append(f"arows {name}")
        for at in range(count):
            await asyncio.sleep(0.001)
            yield f"{name} {at}"

    async def aouter(name):
        bodies.append("aouter")
        async for row in arows(name, 2):
            yield f"<{row}>"

    def swallows(log):
        bodies.append("swallows")
        try:
            yield 1
            yield 2
        except GeneratorExit:
            log.append("told to stop")
        return "stopped"

    async def aswallows(log):
        bodies.append("aswallows")
        try:
            yield 1
            yield 2
        except GeneratorExit:
            log.append("told to stop")

    async def cleans(log):
        bodies.append("cleans")
        try:
            for at in range(5):
                await asyncio.sleep(0.001)
                yield at
        finally:
            await asyncio.sleep(0)
            log.append("cleaned")

    @contextlib.contextmanager
    def session(name, log):
        bodies.append("session")
        log.append(f"open {name}")
        try:
            yield name.upper()
        finally:
            log.append(f"close {name}")

    @contextlib.asynccontextmanager
    async def asession(name, log):
        bodies.append("asession")
        log.append(f"open {name}")
        yield name.upper()
        log.append(f"close {name}")

    def secret(token):
        bodies.append("secret")
        yield {"api_key": "sk-live-0123456789abcdef"}
        yield "the key is sk-live-0123456789abcdef"

    def many(count):
        bodies.append("many")
        yield from range(count)

    def ask(question):
        bodies.append("ask")
        return f"about {question}"

    def grows(found, count):
        bodies.append("grows")
        for at in range(count):
            found.total += at
            found.seen.append(at)
            yield found

    class Shop:
        def __init__(self, name):
            self.name = name
        def stock(self, count):
            bodies.append("stock")
            for at in range(count):
                yield f"{self.name} {at}"
        @staticmethod
        def prices():
            bodies.append("prices")
            yield 1.5
            return "end"
        @classmethod
        def names(cls, count):
            bodies.append("names")
            for at in range(count):
                yield f"{cls.__name__} {at}"
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def both(tools: Any, path: Path) -> Callable[..., Any]:
    """Runs an agent as it is, records and replays it: the same each time, and no body runs on replay."""

    def run(agent: Callable[[], Any], *more: str) -> Any:
        plain = agent()
        with stepfork.record(path, tools=[tools.__name__, *more]):
            assert agent() == plain
        tools.bodies.clear()
        for _ in range(2):
            with stepfork.replay(path) as session:
                assert agent() == plain
            assert session.counts.live == 0
        assert tools.bodies == []
        return plain

    return run


def documents(path: Path) -> list[str]:
    return path.read_text("utf-8").split("---\n")[1:-1]


# -- who holds it -----------------------------------------------------------------------------------


def test_a_tool_that_yields_from_another(tools: Any, path: Path, both: Any) -> None:
    assert both(lambda: list(tools.outer("a"))) == ["a 0", "a 1", "then 2", "a! 0"]
    assert [document.partition("\n")[0] for document in documents(path)] == [
        "tool: outer",
        "depth: 1",
        "depth: 1",
    ]


def test_an_agent_that_yields_from_tools(tools: Any, both: Any) -> None:
    def agent() -> Any:
        got = yield from tools.rows("a", 2)
        tools.ask(got)
        yield from tools.outer("b")

    both(lambda: list(agent()))


def test_an_async_tool_over_another(tools: Any, both: Any) -> None:
    async def agent() -> list[str]:
        return [row async for row in tools.aouter("a")]

    assert both(lambda: asyncio.run(agent())) == ["<a 0>", "<a 1>"]


def test_methods_of_every_kind(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        shop = tools.Shop("tea")
        prices = shop.prices()
        found: list[Any] = [next(prices)]
        with pytest.raises(StopIteration) as stop:
            next(prices)
        found.append(stop.value.value)
        return [*found, *shop.stock(2), *tools.Shop.names(1)]

    assert both(agent, f"{tools.__name__}:Shop")[:2] == [1.5, "end"]


def test_wrapped_and_held_elsewhere(tools: Any, both: Any) -> None:
    held = {"rows": tools.rows}
    two = functools.partial(held["rows"], count=2)

    @functools.wraps(tools.rows)
    def wrapped(*args: Any) -> Any:
        yield from tools.rows(*args)

    @functools.cache
    def cached(name: str) -> Any:
        return tools.rows(name, 1)

    def agent() -> list[Any]:
        cached.cache_clear()
        first = [*cached("c"), *cached("c")]
        return [*two("a"), *wrapped("b", 1), *first, *map(str.upper, tools.rows("d", 1))]

    assert both(agent) == ["a 0", "a 1", "b 0", "c 0", "D 0"]


def test_the_decorator_on_a_generator(make_module: Any, path: Path) -> None:
    module = make_module(
        """
        import stepfork
        bodies = []
        @stepfork.tool
        def rows(count):
            bodies.append(1)
            yield from range(count)
        @stepfork.tool
        async def arows(count):
            bodies.append(1)
            for at in range(count):
                yield at
        """
    )

    async def agent() -> list[int]:
        return [*module.rows(2), *[row async for row in module.arows(2)]]

    with stepfork.record(path):
        live = asyncio.run(agent())
    module.bodies.clear()
    with stepfork.replay(path):
        assert asyncio.run(agent()) == live == [0, 1, 0, 1]
    assert module.bodies == []


def test_tools_of_itertools_and_of_the_language(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        first, *rest = tools.rows("a")
        pairs = list(zip(tools.rows("b"), tools.rows("c"), strict=True))
        head = list(itertools.islice(tools.rows("d"), 2))
        found = ["e 1" in tools.rows("e"), any(tools.rows("f")), dict(enumerate(tools.rows("g")))]
        return [first, rest, pairs, head, *found]

    both(agent)


# -- threads and tasks ------------------------------------------------------------------------------


def test_generators_in_parallel_tasks(tools: Any, both: Any) -> None:
    async def read(name: str) -> list[str]:
        found = []
        async for row in tools.arows(name):
            found.append(row)
            tools.ask(row)
        return found

    async def agent() -> list[list[str]]:
        return await asyncio.gather(*(read(name) for name in "abc"))

    both(lambda: asyncio.run(agent()))


def test_generators_in_threads(tools: Any, both: Any) -> None:
    def read(name: str) -> list[str]:
        return [tools.ask(row) for row in tools.rows(name)]

    def agent() -> list[list[str]]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(read, "abc"))

    both(agent)


def test_one_generator_that_several_threads_step_in_turn(tools: Any, both: Any) -> None:
    def agent() -> list[str]:
        generator, found, lock = tools.rows("a", 6), [], threading.Lock()

        def step() -> None:
            with lock:
                found.append(next(generator))

        for _ in range(6):
            thread = threading.Thread(target=step)
            thread.start()
            thread.join()
        return found

    assert both(agent) == [f"a {at}" for at in range(6)]


def test_two_that_take_turns(tools: Any, both: Any) -> None:
    def agent() -> list[str]:
        one, two = tools.rows("a"), tools.rows("b")
        found = [next(one), next(two), tools.ask("x"), next(two), next(one)]
        one.close()
        return [*found, *two]

    both(agent)


def test_a_task_that_is_cancelled_in_the_middle(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        log: list[str] = []
        seen: list[int] = []
        ready = asyncio.Event()

        async def read() -> None:
            async for row in tools.cleans(log):
                seen.append(row)
                if row == 1:
                    ready.set()
                    await asyncio.sleep(30)

        task = asyncio.create_task(read())
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()
        await asyncio.sleep(0.02)
        return [seen, log]

    assert both(lambda: asyncio.run(agent()))[0] == [0, 1]


def test_an_async_generator_closed_by_hand(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        log: list[str] = []
        generator = tools.cleans(log)
        found = [await anext(generator), await generator.asend(None)]
        await generator.aclose()
        other = tools.cleans(log)
        await anext(other)
        with pytest.raises(LookupError):
            await other.athrow(LookupError("no"))
        return [found, log]

    assert both(lambda: asyncio.run(agent())) == [[0, 1], ["cleaned", "cleaned"]]


# -- how it ends ------------------------------------------------------------------------------------


def test_a_body_that_swallows_the_end(tools: Any, both: Any) -> None:
    def agent() -> Any:
        log: list[str] = []
        generator = tools.swallows(log)
        next(generator)
        return [generator.close(), log]

    assert both(agent)[1] == ["told to stop"]


def test_an_async_body_that_swallows_the_end(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        log: list[str] = []
        generator = tools.aswallows(log)
        await anext(generator)
        await generator.aclose()
        return log

    assert both(lambda: asyncio.run(agent())) == ["told to stop"]


def test_one_that_is_abandoned_and_collected_late(tools: Any, both: Any) -> None:
    def agent() -> Any:
        ring: list[Any] = [tools.rows("a")]
        ring.append(ring)
        found = [next(ring[0])]
        del ring
        found.append(tools.ask("between"))
        gc.collect()
        return [*found, *tools.rows("b", 1)]

    both(agent)


def test_one_that_is_still_open_when_the_session_ends(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        open_one = tools.rows("a")
        next(open_one)
    assert list(open_one) == ["a 1", "a 2"]  # the live body goes on, unrecorded
    assert "closed: true\n" in documents(path)[0]
    tools.bodies.clear()
    with stepfork.replay(path):
        again = tools.rows("a")
        assert next(again) == "a 0"
    with pytest.raises(stepfork.StepforkError):
        list(again)
    assert tools.bodies == []


def test_one_made_in_a_session_and_first_stepped_after_it(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.ask("x")
        late = tools.rows("a", 1)
    assert "rows" not in "".join(documents(path))
    assert list(late) == ["a 0"]


def test_one_made_before_a_session_and_stepped_in_it(tools: Any, path: Path) -> None:
    stepfork.autopatch(tools=[tools.__name__], mode="off")

    early = tools.rows("a", 2)
    with stepfork.record(path):
        live = list(early)
    early = tools.rows("a", 2)
    tools.bodies.clear()
    with stepfork.replay(path):
        assert list(early) == live == ["a 0", "a 1"]
    assert tools.bodies == []


def test_one_stepped_in_two_sessions_belongs_to_the_first(tools: Any, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        generator = tools.rows("a")
        next(generator)
        with stepfork.record(other, tools=[tools.__name__]):
            tools.ask("inside")
            next(generator)
        list(generator)
    assert [document.partition("\n")[0] for document in documents(path)] == ["tool: rows"]
    assert [document.partition("\n")[0] for document in documents(other)] == ["tool: ask"]
    tools.bodies.clear()
    with stepfork.replay(path):
        generator = tools.rows("a")
        found = [next(generator)]
        with stepfork.replay(other):
            tools.ask("inside")
            found.append(next(generator))
        assert [*found, *generator] == ["a 0", "a 1", "a 2"]
    assert tools.bodies == []


def test_a_context_manager_replays_what_it_does_to_its_arguments(tools: Any, both: Any) -> None:
    def agent() -> Any:
        log: list[str] = []
        with tools.session("a", log) as name:
            log.append(f"in {name}")
            with tools.session("b", log):
                tools.ask("x")
        with pytest.raises(KeyError), tools.session("c", log):
            raise KeyError("c")
        return log

    assert both(agent)[:4] == ["open a", "in A", "open b", "close b"]


def test_an_async_context_manager(tools: Any, both: Any) -> None:
    async def agent() -> Any:
        log: list[str] = []
        async with tools.asession("a", log) as name:
            log.append(f"in {name}")
        return log

    assert both(lambda: asyncio.run(agent())) == ["open a", "in A", "close a"]


def test_an_object_that_grows_with_each_step(tools: Any, both: Any, make_module: Any) -> None:
    module = make_module(
        "from dataclasses import dataclass, field\n@dataclass\nclass Found:\n"
        "    total: int = 0\n    seen: list = field(default_factory=list)\n"
    )

    def agent() -> Any:
        found = module.Found()
        steps = [(found.total, list(found.seen), item.total) for item in tools.grows(found, 4)]
        return [steps, found.total, found.seen]

    assert both(agent)[1] == 6


# -- mismatches -------------------------------------------------------------------------------------


def test_a_mismatch_in_the_middle_cannot_be_swallowed(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        for row in tools.rows("a"):
            tools.ask(row)
    with pytest.raises(stepfork.ReplayMismatchError, match="call #3: tool 'ask' argument 'question'"):  # noqa: SIM117
        with stepfork.replay(path):
            generator = tools.rows("a")
            tools.ask(next(generator))
            next(generator)
            with contextlib.suppress(Exception):
                tools.ask("other")
            with contextlib.suppress(Exception):
                list(generator)


def test_C112_secrets_in_yields_reach_no_file(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        live = list(tools.secret("x"))
    assert live[0] == {"api_key": "sk-live-0123456789abcdef"}
    assert "0123456789abcdef" not in path.read_text("utf-8")
    with stepfork.replay(path):
        found = list(tools.secret("x"))
    assert found[1] == f"the key is {found[0]['api_key']}"


def test_through_runs_a_nested_body(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        live = list(tools.outer("a"))
    tools.bodies.clear()
    with stepfork.replay(path, through=["outer"]):
        assert list(tools.outer("a")) == live
    assert tools.bodies == ["outer"]
    tools.bodies.clear()
    with stepfork.replay(path, through=["outer", "rows"]):
        assert list(tools.outer("a")) == live
    assert tools.bodies == ["outer", "rows a", "rows a!"]


# -- size and faults --------------------------------------------------------------------------------


def test_many_yields_take_no_quadratic_step(tools: Any, path: Path) -> None:
    def steps(count: int) -> int:
        made = 0

        def count_it(*_: Any) -> None:
            nonlocal made
            made += 1

        sys.setprofile(count_it)
        try:
            with stepfork.record(path, tools=[tools.__name__]):
                assert len(list(tools.many(count))) == count
            with stepfork.replay(path):
                assert len(list(tools.many(count))) == count
        finally:
            sys.setprofile(None)
        return made

    steps(10)  # what is done once
    assert steps(4000) < 5 * steps(1000)


def test_C92_what_was_complete_before_the_process_was_killed_is_kept(tools: Any, path: Path) -> None:
    program = f"""
import sys, time
import stepfork, {tools.__name__} as tools
with stepfork.record({str(path)!r}, tools=[{tools.__name__!r}]):
    list(tools.rows("a"))
    generator = tools.rows("b")
    next(generator)
    print("ready", flush=True)
    time.sleep(60)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path.parent), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=env) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
    found = stepfork.load(path.with_name("run.partial.yaml"))
    assert found.status == "partial"
    assert [call.result for call in found.calls] == [["a 0", "a 1", "a 2"]]
