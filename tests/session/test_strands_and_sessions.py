"""Which session a call belongs to: that of its thread, task or work item, or of who started it."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.chat_server import ChatServer
from support.strands import SEARCH, Worker, asked, both_ways, in_threads, others

import stepfork


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(SEARCH)


def test_a_thread_of_the_outer_session_calls_there_while_an_inner_one_is_open(tools: Any, path: Path) -> None:
    (inner_path,) = others(path, "inner")
    for outer, inner in zip(both_ways(path, tools), both_ways(inner_path, tools), strict=True):
        with outer as run:
            worker = Worker(tools.search)
            starter = Worker(lambda q: in_threads(lambda: tools.search(q)))
            with inner as nested:
                assert worker.ask("outer's") == "outer's found"
                assert tools.search("inner's") == "inner's found"
                starter.ask("of a thread of the outer's")
                within = Worker(tools.search)
                within.ask("of a thread of the inner's")
                within.stop()
                assert asked(nested) == ["inner's", "of a thread of the inner's"]
            tools.search("outer's again")
            for one in (worker, starter):
                one.stop()
            assert sorted(asked(run)) == ["of a thread of the outer's", "outer's", "outer's again"]
    assert asked(inner_path) == ["inner's", "of a thread of the inner's"]


def test_two_sessions_in_two_threads_do_not_see_each_other(tools: Any, path: Path) -> None:
    places = others(path, "left", "right")
    both_open, both_done = threading.Barrier(2), threading.Barrier(2)

    def agent(name: str, session: Any) -> list[str]:
        with session as run:
            both_open.wait()
            answers = [tools.search(f"{name} 1")]
            with ThreadPoolExecutor(1) as pool:
                answers.append(pool.submit(tools.search, f"{name} 2").result())
            in_threads(lambda: tools.search(f"{name} 3"))
            both_done.wait()
            assert answers == [f"{name} {n} found" for n in (1, 2)]
            return asked(run)

    for left, right in zip(both_ways(places[0], tools), both_ways(places[1], tools), strict=True):
        found = in_threads(lambda: agent("left", left), lambda: agent("right", right))
        assert found == [[f"{name} {n}" for n in (1, 2, 3)] for name in ("left", "right")]
    assert [asked(place)[0] for place in places] == ["left 1", "right 1"]


def test_two_sessions_in_two_tasks_do_not_see_each_other(tools: Any, path: Path) -> None:
    places = others(path, "left", "right")

    async def agent(name: str, session: Any) -> list[str]:
        async with session as run:
            for n in (1, 2):
                await tools.asearch(f"{name} {n}")
            await asyncio.create_task(tools.asearch(f"{name} 3"))
            await asyncio.to_thread(tools.search, f"{name} 4")
            return asked(run)

    async def main(left: Any, right: Any) -> list[list[str]]:
        return list(await asyncio.gather(agent("left", left), agent("right", right)))

    for left, right in zip(both_ways(places[0], tools), both_ways(places[1], tools), strict=True):
        found = asyncio.run(main(left, right))
        assert found == [[f"{name} {n}" for n in (1, 2, 3, 4)] for name in ("left", "right")]


def test_a_session_opened_in_a_task_takes_nothing_of_the_tasks_beside_it(tools: Any, path: Path) -> None:
    (inner_path,) = others(path, "inner")

    async def opens(session: Any, is_open: asyncio.Event, go_on: asyncio.Event) -> None:
        await tools.asearch("before")
        async with session:
            is_open.set()
            await go_on.wait()
            await tools.asearch("inside")
        await tools.asearch("after")

    async def beside(is_open: asyncio.Event, go_on: asyncio.Event) -> None:
        await is_open.wait()
        await tools.asearch("beside")
        await asyncio.create_task(tools.asearch("below"))
        go_on.set()

    async def main(session: Any) -> None:
        is_open, go_on = asyncio.Event(), asyncio.Event()
        await asyncio.gather(opens(session, is_open, go_on), beside(is_open, go_on))

    for outer, inner in zip(both_ways(path, tools), both_ways(inner_path, tools), strict=True):
        with outer as run:
            asyncio.run(main(inner))
            assert sorted(asked(run)) == ["after", "before", "below", "beside"]
    assert asked(inner_path) == ["inside"]


def test_a_pool_made_before_the_session_and_one_whose_workers_outlive_it(tools: Any, path: Path) -> None:
    places = others(path, "first", "second")
    with ThreadPoolExecutor(1) as before:
        worker = before.submit(threading.get_ident).result()
        with stepfork.record(path, tools=[tools.__name__]):
            made_in_it = ThreadPoolExecutor(1)
            with made_in_it, stepfork.record(places[0]), made_in_it:
                first = made_in_it.submit(threading.get_ident).result()
                assert before.submit(tools.search, "a").result() == "a found"
                assert made_in_it.submit(tools.search, "b").result() == "b found"
        assert before.submit(threading.get_ident).result() == worker
        assert first != worker
    assert asked(places[0]) == ["a", "b"]
    assert asked(path) == []


@pytest.mark.parametrize("made", ["before", "inside"])
def test_the_workers_of_a_pool_serve_one_session_after_the_other(tools: Any, path: Path, made: str) -> None:
    places = others(path, "first", "second", "third")
    with ThreadPoolExecutor(1) as pool:
        workers = set()
        if made == "before":
            workers.add(pool.submit(threading.get_ident).result())
        for round_of in (0, 1):
            for place in places:
                sessions = list(itertools.islice(both_ways(place, tools), 2))
                with sessions[round_of] as run:
                    workers.add(pool.submit(threading.get_ident).result())
                    assert pool.submit(tools.search, place.stem).result() == f"{place.stem} found"
                    assert list(pool.map(tools.search, "xy")) == ["x found", "y found"]
                    assert asked(run) == [place.stem, "x", "y"]
        assert len(workers) == 1, "the worker never changed"


def test_a_thread_older_than_any_session_serves_the_only_open_one(tools: Any, path: Path) -> None:
    (second,) = others(path, "second")
    worker = Worker(lambda q: tools.search(q))
    for place in (path, second):
        for session in both_ways(place, tools):
            with session as run:
                tools.search("main")
                assert worker.ask(place.stem) == f"{place.stem} found"
                assert sorted(asked(run)) == sorted(["main", place.stem])
        assert "lane: A" in place.read_text("utf-8")
    worker.stop()


def test_an_unknown_thread_is_refused_where_unrelated_sessions_are_open(tools: Any, path: Path) -> None:
    places = others(path, "left", "right")
    worker = Worker(lambda q: tools.search(q))
    for left, right in zip(both_ways(places[0], tools), both_ways(places[1], tools), strict=True):
        left_open, right_open, done = threading.Event(), threading.Event(), threading.Event()

        def agent(session: Any, before: threading.Event | None, is_open: threading.Event) -> list[str]:
            if before is not None:
                before.wait()
            with session as run:
                is_open.set()
                done.wait()
                tools.search("own")
                return asked(run)

        def stranger() -> str:
            right_open.wait()
            try:
                return worker.refused("whose?")
            finally:
                done.set()

        one, other, said = in_threads(
            lambda: agent(left, None, left_open), lambda: agent(right, left_open, right_open), stranger
        )
        assert (one, other) == (["own"], ["own"]), "neither session is touched by it"
        assert "belongs to no session" in said
        assert all(str(place) in said for place in places)
    worker.stop()


def test_the_decorator_opens_a_session_for_each_call(tools: Any, path: Path) -> None:
    def agent() -> str:
        return str(tools.search("a"))

    async def later() -> list[str]:
        return list(await asyncio.gather(*map(tools.asearch, "ab")))

    for session in both_ways(path, tools):
        decorated = session(agent)
        assert [decorated(), decorated()] == ["a found"] * 2
    for session in both_ways(path, tools):
        decorated = session(later)
        assert [asyncio.run(decorated()), asyncio.run(decorated())] == [["a found", "b found"]] * 2


def test_the_same_cassette_twice_at_once_is_refused_from_anywhere(tools: Any, path: Path) -> None:
    def again() -> str:
        with pytest.raises(stepfork.ConfigError) as caught, stepfork.replay(path):
            pass
        return str(caught.value)

    async def later() -> str:
        return again()

    for session in both_ways(path, tools):
        with session as run:
            tools.search("a")
            said = {again(), in_threads(again)[0], asyncio.run(asyncio.wait_for(later(), 60))}
            assert said == {
                f"{path} is open already: the same cassette cannot be used by two sessions at once"
            }
            tools.search("b")
            assert asked(run) == ["a", "b"]
    with stepfork.replay(path):
        in_threads(lambda: tools.search("a"))
        tools.search("b")


# -- calls out of order, calls from pools --------------------------------------------------------------


@pytest.mark.parametrize("how", ["plain", "submit", "to_thread", "wait_for"])
def test_C40_the_same_tool_in_another_order_never_gets_the_others_answer(
    tools: Any, path: Path, how: str
) -> None:
    async def later(q: str) -> Any:
        if how == "to_thread":
            return await asyncio.to_thread(tools.search, q)
        return await asyncio.wait_for(tools.asearch(q), 60)

    def agent(*order: str) -> Iterator[Any]:
        if how == "plain":
            yield from map(tools.search, order)
        elif how == "submit":
            with ThreadPoolExecutor(2) as pool:
                for q in order:
                    yield pool.submit(tools.search, q).result()
        else:
            with asyncio.Runner() as runner:
                for q in order:
                    yield runner.run(later(q))

    with stepfork.record(path, tools=[tools.__name__]):
        assert list(agent("flights", "hotels")) == ["flights found", "hotels found"]
    answers = []
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        for answer in agent("hotels", "flights"):
            answers.append(answer)
    assert answers == []
    assert 'argument \'q\': expected "flights", got "hotels"' in str(caught.value)
    assert "this very call is recorded as #2: the order of the calls changed" in str(caught.value)
    assert caught.value.index == 1


def test_C42_calls_from_pool_threads_never_reach_the_transport(
    tools: Any, path: Path, server: ChatServer
) -> None:
    import openai

    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
    ask = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with ThreadPoolExecutor(2) as old:
        old.submit(threading.get_ident).result()

        async def in_executors() -> list[str]:
            loop = asyncio.get_running_loop()
            return [
                await loop.run_in_executor(None, tools.search, "default"),
                await loop.run_in_executor(old, tools.search, "old"),
            ]

        def agent() -> list[Any]:
            with ThreadPoolExecutor(1) as pool:
                replies = [one.submit(client.chat.completions.create, **ask).result() for one in (pool, old)]
            said = [reply.choices[0].message.content for reply in replies]
            return [*said, *asyncio.run(in_executors())]

        live = []
        for session in both_ways(path, tools):
            with session as run:
                live.append(agent())
            assert server.hits == 2
    assert live[0] == live[1] == ["you said:\nhi"] * 2 + ["default found", "old found"]
    assert (run.counts.substituted, run.counts.live) == (4, 0)
    client.close()


@pytest.mark.parametrize("how", ["gather", "threads", "pool"])
def test_the_same_behaviour_under_other_schedules_gives_the_same_bytes(
    tools: Any, path: Path, how: str
) -> None:
    def agent(seed: int) -> list[str]:
        naps = [random.Random(seed * 10 + n).random() / 500 for n in range(10)]
        started = []
        all_started = threading.Barrier(10)  # that one had ended when another began would be in the file

        def work(n: int) -> str:
            all_started.wait()
            threading.Event().wait(naps[n])
            started.append(n)
            return str(tools.search(f"{n}"))

        async def later(n: int) -> str:
            await asyncio.sleep(naps[n])
            started.append(n)
            return str(await tools.asearch(f"{n}"))

        async def main() -> list[str]:
            return await asyncio.gather(*map(later, range(10)))

        if how == "gather":
            found = asyncio.run(main())
        elif how == "threads":
            found = in_threads(*(lambda n=n: work(n) for n in range(10)))
        else:
            with ThreadPoolExecutor(10) as pool:
                found = list(pool.map(work, range(10)))
        orders.add(tuple(started))
        return found

    orders: set[tuple[int, ...]] = set()
    texts, before = set(), b""
    for seed in range(5):
        place = path.with_name(f"{seed}.yaml")
        with stepfork.record(place, name="same", tools=[tools.__name__]):
            agent(seed)
        texts.add(re.sub(r"(?m)^(recorded_at|sha256):.*\n", "", place.read_text("utf-8")))
        with stepfork.record(path, tools=[tools.__name__]):
            agent(seed)
        assert before in (b"", path.read_bytes()), "nothing changed: the file is left alone"
        before = path.read_bytes()
    assert len(orders) > 1
    assert len(texts) == 1
    with stepfork.replay(path):
        assert agent(99) == [f"{n} found" for n in range(10)]
