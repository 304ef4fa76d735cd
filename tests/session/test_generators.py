"""Generators as tools, sync and async: what passes between body and consumer replays as it was."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples

import stepfork

TOOLS = """
    import asyncio
    import contextlib
    bodies = []
    def pages(query, count=3):
        bodies.append("pages")
        for at in range(count):
            more = yield {"query": query, "page": at}
            if more:
                yield more
        return f"{count} pages"
    async def apages(query, count=3):
        bodies.append("apages")
        for at in range(count):
            await asyncio.sleep(0)
            more = yield {"query": query, "page": at}
            if more:
                yield more
    def nothing():
        return
        yield
    def breaks():
        yield 1
        raise KeyError("page 2")
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2
    def bad_end():
        try:
            yield 1
        finally:
            raise OSError(5, "cannot close")
    def fetch(n):
        bodies.append("fetch")
        return n * 10
    def summarise(n):
        bodies.append("summarise")
        return f"about {n}"
    def crawl(count):
        for at in range(count):
            yield fetch(at)
        fetch(99)
    async def acrawl(count):
        for at in range(count):
            yield fetch(at)
    @contextlib.contextmanager
    def opened(name):
        bodies.append("opened")
        try:
            yield f"<{name}>"
        except ValueError as error:
            bodies.append(f"saw {error}")
            raise
        except KeyError:
            bodies.append("forgave")
    def handles():
        yield object()
    async def slow():
        yield 1
        await asyncio.sleep(30)
        yield 2
    def fills(found, count):
        for at in range(count):
            found.append({"at": at})
            yield at
        found.pop(0)
    def login(user):
        answer = yield "password?"
        yield f"hello {user}, {len(answer)}"
    def play(script):
        for op, value in script:
            if op == "raise":
                raise ValueError(value)
            if op == "return":
                return value
            try:
                got = yield value
                if op == "echo":
                    yield ["got", got]
            except LookupError as error:
                if op == "catch":
                    yield ["caught", str(error)]
                elif op == "change":
                    raise RuntimeError("changed")
                else:
                    raise
            except GeneratorExit:
                if op == "stubborn":
                    yield "no"
                if op == "bad end":
                    raise OSError(5, "no")
                raise
    async def aplay(script):
        for op, value in script:
            await asyncio.sleep(0)
            if op == "raise":
                raise ValueError(value)
            if op == "return":
                return
            try:
                got = yield value
                if op == "echo":
                    yield ["got", got]
            except LookupError as error:
                if op == "catch":
                    yield ["caught", str(error)]
                elif op == "change":
                    raise RuntimeError("changed")
                else:
                    raise
            except GeneratorExit:
                if op == "stubborn":
                    yield "no"
                if op == "bad end":
                    raise OSError(5, "no")
                raise
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


@pytest.fixture
def both(tools: Any, path: Path) -> Callable[[Callable[[], Any]], Any]:
    """Records what a function does and replays it: the same, and no body runs. Gives what it does."""

    def run(agent: Callable[[], Any]) -> Any:
        with stepfork.record(path, tools=[tools.__name__]):
            live = agent()
        tools.bodies.clear()
        with stepfork.replay(path) as session:
            again = agent()
        assert again == live
        assert tools.bodies == []
        assert session.counts.live == 0
        return live

    return run


def documents(path: Path) -> list[str]:
    return path.read_text("utf-8").split("---\n")[1:-1]


# -- what a recording says --------------------------------------------------------------------------


def test_yields_and_the_return_value_come_back(tools: Any, path: Path, both: Any) -> None:
    def returned() -> list[Any]:
        found = []

        def outer() -> Generator[Any]:
            found.append((yield from tools.pages("go", 2)))

        return [*outer(), *found]

    assert both(returned) == [{"query": "go", "page": 0}, {"query": "go", "page": 1}, "2 pages"]
    assert documents(path) == [
        "tool: pages\nargs: {query: go, count: 2}\n"
        'yields: [{query: go, page: 0}, {query: go, page: 1}]\nresult: "2 pages"\n'
    ]


def test_an_empty_generator(tools: Any, path: Path, both: Any) -> None:
    assert both(lambda: list(tools.nothing())) == []
    assert documents(path) == ["tool: nothing\nyields: []\n"]


def test_users_see_the_list_of_what_it_yielded(tools: Any, path: Path, both: Any) -> None:
    both(lambda: list(tools.pages("go", 1)))
    assert stepfork.load(path).calls[0].result == [{"query": "go", "page": 0}]


def test_an_error_in_the_middle(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        found: list[Any] = []
        with pytest.raises(KeyError, match="page 2"):
            for item in tools.breaks():
                found.append(item)
        return found

    assert both(agent) == [1]
    assert "yields: [1]\nerror: " in documents(path)[0]


def test_a_consumer_that_stops_early(tools: Any, path: Path, both: Any) -> None:
    def agent() -> Any:
        for item in tools.pages("go"):
            return item
        return None

    both(agent)
    assert documents(path)[0].endswith("closed: true\n")


def test_errors_while_it_is_closed(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        found = []
        for make in (tools.bad_end, tools.stubborn):
            generator = make()
            next(generator)
            with pytest.raises((OSError, RuntimeError)) as caught:
                generator.close()
            found.append((type(caught.value), str(caught.value), list(generator)))
        return found

    assert both(agent)[1] == (RuntimeError, "generator ignored GeneratorExit", [])
    assert "closed: true\n" in documents(path)[0]


def test_values_that_are_sent(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        generator = tools.pages("go", 1)
        return [next(generator), generator.send(["a"]), list(generator)]

    both(agent)
    assert "steps:\n- {step: 2, sent: [a]}\n" in documents(path)[0]


def test_an_untouched_generator_is_no_call(tools: Any, path: Path, both: Any) -> None:
    def agent() -> None:
        tools.pages("go").close()
        tools.pages("go")
        with pytest.raises(ValueError, match="early"):
            tools.pages("go").throw(ValueError("early"))
        tools.fetch(1)

    both(agent)
    assert len(documents(path)) == 1


def test_the_call_is_on_disk_when_the_generator_ends(tools: Any, path: Path) -> None:
    partial = path.with_suffix(".partial.yaml")
    with stepfork.record(path, tools=[tools.__name__]):
        generator = tools.pages("go", 1)
        next(generator)
        assert not partial.exists() or "yields" not in partial.read_text("utf-8")
        assert list(generator) == []
        assert "yields" in partial.read_text("utf-8")
        closed = tools.pages("rust")
        next(closed)
        closed.close()
        assert partial.read_text("utf-8").count("yields") == 2
        left = tools.pages("zig")
        next(left)
    assert path.read_text("utf-8").count("yields") == 3
    assert documents(path)[2].endswith("closed: true\n")
    assert next(left) == {"query": "zig", "page": 1}  # it still runs, and nothing is recorded


def test_a_value_that_cannot_be_recorded_reaches_the_agent(tools: Any, path: Path) -> None:
    with (
        pytest.raises(stepfork.RecordingError, match=r"tool 'handles'.*yields\[0\] is of type object"),
        stepfork.record(path, tools=[tools.__name__]),
    ):
        assert type(next(iter(tools.handles()))) is object


def test_what_was_yielded_is_taken_down_at_once(tools: Any, path: Path, both: Any) -> None:
    def agent() -> list[Any]:
        found = []
        for item in tools.pages("go", 2):
            found.append(dict(item))
            item["page"] = "mine"
        return found

    assert both(agent)[0] == {"query": "go", "page": 0}


# -- whose calls are whose --------------------------------------------------------------------------


def test_calls_of_the_body_are_its_own_and_those_of_the_consumer_are_not(
    tools: Any, path: Path, both: Any
) -> None:
    both(lambda: [tools.summarise(item) for item in tools.crawl(2)])
    calls = stepfork.load(path).calls
    assert [call.name for call in calls] == ["crawl", "summarise", "summarise"]
    assert [child.name for child in calls[0].children] == ["fetch", "fetch", "fetch"]


def test_the_same_of_an_async_generator(tools: Any, path: Path, both: Any) -> None:
    async def agent() -> list[str]:
        return [tools.summarise(item) async for item in tools.acrawl(2)]

    both(lambda: asyncio.run(agent()))
    calls = stepfork.load(path).calls
    assert [call.name for call in calls] == ["acrawl", "summarise", "summarise"]
    assert [child.name for child in calls[0].children] == ["fetch", "fetch"]


def test_two_at_once(tools: Any, both: Any) -> None:
    assert both(lambda: list(zip(tools.crawl(2), tools.pages("go"), strict=False)))[1][0] == 10


def test_through_runs_the_body_and_answers_its_calls(tools: Any, path: Path) -> None:
    def agent() -> list[Any]:
        return [tools.summarise(item) for item in tools.crawl(2)]

    with stepfork.record(path, tools=[tools.__name__]):
        live = agent()
    tools.bodies.clear()
    with stepfork.replay(path, through=["crawl"]) as run:
        assert agent() == live
    assert tools.bodies == []
    assert run.counts.tool_bodies_executed == 1


def test_order_is_that_of_the_first_steps(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        first, second = tools.pages("a"), tools.pages("b")
        next(second)
        next(first)
    assert [call.args["query"] for call in stepfork.load(path).calls] == ["b", "a"]
    with pytest.raises(stepfork.ReplayMismatchError, match='expected "b", got "a"'), stepfork.replay(path):
        next(tools.pages("a"))


def test_a_generator_stepped_in_a_thread(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        generator = tools.crawl(2)
        found = [next(generator)]
        worker = threading.Thread(target=lambda: found.extend(generator))
        worker.start()
        worker.join()
        return found

    assert both(agent) == [0, 10]


# -- strictness -------------------------------------------------------------------------------------


def started(path: Path, tools: Any, consume: Callable[[Any], Any]) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        consume(tools.pages("go", 2))


def test_reading_further_than_recorded_is_a_mismatch(tools: Any, path: Path) -> None:
    started(path, tools, next)
    with pytest.raises(stepfork.ReplayMismatchError, match="further") as caught, stepfork.replay(path):
        list(tools.pages("go", 2))
    assert caught.value.index == 1


def test_reading_less_than_recorded_is_none(tools: Any, path: Path) -> None:
    started(path, tools, list)
    with stepfork.replay(path):
        next(tools.pages("go", 2))


@pytest.mark.parametrize(
    ("recorded", "now", "message"),
    [
        (lambda g: g.send("a"), lambda g: g.send("b"), 'step 2 sent: expected "a", got "b"'),
        (next, lambda g: g.send("b"), 'step 2 sent: not in the recording, got "b"'),
        (lambda g: g.send("a"), next, 'step 2 sent: expected "a", got nothing'),
        (lambda g: g.send("a"), lambda g: g.throw(ValueError("a")), "step 2 sent"),
    ],
)
def test_what_is_sent_must_be_what_was_sent(
    tools: Any, path: Path, recorded: Any, now: Any, message: str
) -> None:
    def consume(give: Any) -> Callable[[Any], None]:
        def consume(generator: Any) -> None:
            next(generator)
            give(generator)

        return consume

    started(path, tools, consume(recorded))
    with (
        pytest.raises(stepfork.ReplayMismatchError) as caught,
        stepfork.replay(path),
        contextlib.suppress(Exception),  # it cannot be swallowed
    ):
        consume(now)(tools.pages("go", 2))
    assert str(caught.value).startswith(f"call #1: tool 'pages' {message}")
    assert "run.yaml, call 1 of 1" in str(caught.value)


def test_what_is_thrown_must_be_what_was_thrown(tools: Any, path: Path) -> None:
    def agent(error: Exception) -> None:
        with contextlib.suppress(KeyError, IndexError), tools.opened("a"):
            raise error

    with stepfork.record(path, tools=[tools.__name__]):
        agent(KeyError("a"))
    with pytest.raises(stepfork.ReplayMismatchError, match=r"step 2 thrown\.class"), stepfork.replay(path):
        agent(IndexError("a"))


@pytest.mark.parametrize("agent", [lambda tools: list(tools.nothing()), lambda tools: tools.fetch(1)])
def test_a_function_that_has_become_a_generator_is_a_mismatch(tools: Any, path: Path, agent: Any) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        agent(tools)
    text = path.read_text("utf-8")
    other = (
        text.replace("yields: []", "result: []")
        if "yields" in text
        else text.replace("result:", "yields: []\nresult:")
    )
    path.write_text(other)
    with (
        pytest.warns(UserWarning, match="was changed since"),
        pytest.raises(stepfork.ReplayMismatchError, match="kind: expected"),
        stepfork.replay(path),
    ):
        agent(tools)


def test_secrets_that_are_sent_are_replaced_and_compare(tools: Any, path: Path) -> None:
    def agent(key: str) -> list[Any]:
        generator = tools.login("ada")
        return [next(generator), generator.send({"password": key})]

    with stepfork.record(path, tools=[tools.__name__]):
        live = agent("correct-horse-battery")
    assert "horse" not in path.read_text("utf-8")
    with stepfork.replay(path):
        assert agent("a-dummy-in-its-place") == live


# -- context managers, which are generators within --------------------------------------------------


def test_a_context_manager_of_a_tool_module(tools: Any, both: Any) -> None:
    def agent() -> list[Any]:
        found: list[Any] = []
        with tools.opened("a") as name:
            found.append(name)
        error = ValueError("mine")
        with pytest.raises(ValueError, match="mine") as caught, tools.opened("b"):
            raise error
        found.append(caught.value is error)
        with tools.opened("c"):
            raise KeyError("gone")
        return found

    assert both(agent) == ["<a>", True]


def test_a_mismatch_passes_through_a_context_manager(tools: Any, path: Path) -> None:
    def agent(n: int) -> None:
        with tools.opened("a"):
            tools.fetch(n)

    with stepfork.record(path, tools=[tools.__name__]):
        agent(1)
    with pytest.raises(stepfork.ReplayMismatchError, match="'n': expected 1, got 2"), stepfork.replay(path):
        agent(2)


# -- async ------------------------------------------------------------------------------------------


def test_an_async_generator(tools: Any, path: Path, both: Any) -> None:
    async def agent() -> list[Any]:
        found = [item async for item in tools.apages("go", 2)]
        generator = tools.apages("rust")
        found += [await anext(generator), await generator.asend("more")]
        await generator.aclose()
        return found

    assert both(lambda: asyncio.run(agent()))[-1] == "more"
    assert [text.rstrip().rpartition("\n")[2] for text in documents(path)] == [
        "yields: [{query: go, page: 0}, {query: go, page: 1}]",
        "closed: true",
    ]


def test_an_async_generator_that_is_dropped(tools: Any, path: Path, both: Any) -> None:
    async def agent() -> Any:
        async for item in tools.apages("go"):
            return item
        return None

    both(lambda: asyncio.run(agent()))
    gc.collect()
    assert "closed: true" in documents(path)[0]


def test_a_timeout_while_an_item_is_awaited_comes_without_waiting(tools: Any, path: Path, both: Any) -> None:
    async def agent() -> list[Any]:
        found: list[Any] = []
        try:
            async with asyncio.timeout(0.2):
                async for item in tools.slow():
                    found.append(item)
        except TimeoutError:
            found.append("timeout")
        return found

    assert both(lambda: asyncio.run(agent())) == [1, "timeout"]
    assert "cancelled: true" in documents(path)[0]


# -- any protocol -----------------------------------------------------------------------------------

VALUES = st.one_of(st.none(), st.integers(-2, 2), st.text("ab\n", max_size=3))
OPERATIONS = st.sampled_from(["yield", "echo", "catch", "change", "raise", "return", "stubborn", "bad end"])
SCRIPTS = st.lists(st.tuples(OPERATIONS, VALUES).map(list), max_size=5)
STEPS = st.lists(
    st.one_of(
        st.just(("next", None)),
        st.tuples(st.just("send"), VALUES),
        st.tuples(st.just("throw"), st.sampled_from([KeyError, IndexError, ValueError, StopIteration])),
        st.just(("close", None)),
    ),
    max_size=6,
)


def consumed(generator: Generator[Any, Any, Any], steps: list[tuple[str, Any]]) -> list[Any]:
    """What each step of a consumer gives: an item, a return value, an error."""
    found: list[Any] = []
    for step, value in steps:
        try:
            if step == "next":
                found.append(next(generator))
            elif step == "send":
                found.append(generator.send(value))
            elif step == "throw":
                found.append(generator.throw(value("thrown")))
            else:
                found.append(("closed", generator.close()))
        except StopIteration as stop:
            found.append(("returned", stop.value))
        except Exception as error:
            found.append((type(error), str(error)))
            if step == "close":  # what a body that refused to end does next, `yield from` does not say
                break
    with contextlib.suppress(Exception):
        generator.close()
    return found


async def aconsumed(generator: AsyncGenerator[Any, Any], steps: list[tuple[str, Any]]) -> list[Any]:
    found: list[Any] = []
    for step, value in steps:
        try:
            if step == "next":
                found.append(await anext(generator))
            elif step == "send":
                found.append(await generator.asend(value))
            elif step == "throw":
                found.append(await generator.athrow(value("thrown")))
            else:
                found.append(("closed", await generator.aclose()))
        except StopAsyncIteration:
            found.append("ended")
        except Exception as error:
            found.append((type(error), str(error)))
            if step == "close":
                break
    with contextlib.suppress(Exception):
        await generator.aclose()
    return found


PROTOCOLS = examples(100)


@PROTOCOLS
@given(script=SCRIPTS, steps=STEPS)
@example(script=[["stubborn", 1]], steps=[("next", None), ("close", None), ("next", None)])
@example(script=[["yield", 1]], steps=[("next", None), ("throw", StopIteration), ("next", None)])
def test_any_protocol_replays_as_it_was(tools: Any, path: Path, script: Any, steps: Any) -> None:
    plain = consumed(tools.play(script), steps)
    with stepfork.record(path, tools=[tools.__name__]):
        assert consumed(tools.play(script), steps) == plain
    with stepfork.replay(path):
        assert consumed(tools.play(script), steps) == plain


@PROTOCOLS
@given(script=SCRIPTS, steps=STEPS)
@example(script=[["stubborn", 1]], steps=[("next", None), ("close", None), ("next", None)])
def test_any_async_protocol_replays_as_it_was(tools: Any, path: Path, script: Any, steps: Any) -> None:
    async def agent() -> list[Any]:
        return await aconsumed(tools.aplay(script), steps)

    plain = asyncio.run(agent())
    with stepfork.record(path, tools=[tools.__name__]):
        assert asyncio.run(agent()) == plain
    with stepfork.replay(path):
        assert asyncio.run(agent()) == plain


# -- the document -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("tool: t\nyields: 3\n", "yields: sequence expected, found a number"),
        ("tool: t\nresult: 1\nclosed: true\n", "only a generator, a call with 'yields', may say this"),
        ("tool: t\nresult: 1\nsteps: []\n", "only a generator"),
        (
            "tool: t\nyields: [1]\nresult: 1\nclosed: true\n",
            "a generator ends in one way, found result, closed",
        ),
        ("tool: t\nyields: [1]\nsteps: [{step: 3}]\n", "a number from 1 to 2 expected, found 3"),
        ("tool: t\nyields: [1]\nsteps: [{sent: 3}]\n", "missing"),
        ("tool: t\nyields: [1]\nsteps: [2]\n", "mapping expected, found a number"),
        ("tool: t\nyields: [1]\nsteps: [{step: 1, sent: 3}]\n", "before its first step"),
        ("tool: t\nyields: [1]\nsteps: [{step: 2, sent: 3, thrown: {class: a:B}}]\n", "not with both"),
        ("tool: t\nyields: [1]\nsteps: [{step: 2, thrown: {class: 3}}]\n", "text expected"),
        ("tool: t\nresult: 1\nchanged: {a: 1}\n", "'a' is no argument of this call"),
        ("tool: t\nargs: {a: [1]}\nresult: 1\nleft: {a: -1}\n", "a count or 'closed' expected"),
        ("tool: t\nresult: 1\nreplaced: [a]\n", "only what has 'changed' may say this"),
        ("tool: t\nyields: [1]\nunfinished: true\n", "an unfinished call must have no outcome"),
    ],
)
def test_documents_that_make_no_sense(path: Path, document: str, message: str) -> None:
    path.write_text(f"stepfork: 1\nname: run\n---\n{document}---\nend: completed\n")
    with pytest.raises(stepfork.CassetteError) as caught:
        stepfork.load(path)
    assert message in str(caught.value)
    assert caught.value.line is not None
