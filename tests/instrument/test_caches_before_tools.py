"""Tools behind caches: what one session heard never reaches another one, nor the program around them."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stepfork

SYNC = {
    "cache": """
        @functools.cache
        def price(item): return _look(item)
    """,
    "lru_cache": """
        @functools.lru_cache
        def price(item): return _look(item)
    """,
    "lru_cache-of-one": """
        @functools.lru_cache(maxsize=1)
        def price(item): return _look(item)
    """,
    "cachetools": """
        @cachetools.cached({})
        def price(item): return _look(item)
    """,
    "cachetools-ttl": """
        @cachetools.func.ttl_cache(ttl=1e9)
        def price(item): return _look(item)
    """,
    "two-caches": """
        @functools.cache
        @functools.cache
        def price(item): return _look(item)
    """,
    "under-a-decorator": """
        @logged
        @functools.cache
        def price(item): return _look(item)
    """,
    "another-name": """
        def _price(item): return _look(item)
        price = functools.cache(_price)
    """,
    "a-private-cache": """
        def fetch(item): return _look(item)
        _kept = functools.cache(fetch)
        def _price(item): return _kept(item)
    """,
    "in-a-registry": """
        TOOLS = {"p": functools.cache(lambda item: _look(item))}
        _price = TOOLS["p"]
    """,
    "static-method": """
        class Shop:
            @staticmethod
            @functools.cache
            def price(item): return _look(item)
    """,
    "class-method": """
        class Shop:
            @classmethod
            @functools.cache
            def price(cls, item): return _look(item)
    """,
    "method": """
        class Shop:
            @functools.cache
            def price(self, item): return _look(item)
        SHOP = Shop()
    """,
    "stepfork.tool": """
        @functools.cache
        @stepfork.tool
        def price(item): return _look(item)
    """,
    "a-cache-of-ones-own": """
        def kept(function):
            answers = {}
            def price(*args, **more):
                if args not in answers:
                    answers[args] = function(*args, **more)
                return answers[args]
            price.cache_clear = answers.clear
            return price
        @kept
        def price(item): return _look(item)
    """,
}
HEAD = """
import functools
import cachetools, cachetools.func
import stepfork
_world = {"price": 1}
_asked = []
_logged = []
def _look(item):
    _asked.append(item)
    return f"{item} for {_world['price']}"
def logged(function):
    @functools.wraps(function)
    def inner(item):
        _logged.append(item)
        return function(item)
    return inner
"""


def shop_of(make_module: Callable[..., ModuleType], kind: str) -> tuple[ModuleType, list[str], Any]:
    """The module, its tool patterns, and what the agent calls."""
    shop = make_module(HEAD + textwrap.dedent(SYNC[kind]))
    name = shop.__name__
    if kind == "in-a-registry":
        return shop, [f"{name}:TOOLS"], shop._price
    if kind == "a-private-cache":
        return shop, [name], shop._price
    if kind == "stepfork.tool":
        return shop, [], shop.price
    if hasattr(shop, "Shop"):
        return shop, [f"{name}:Shop"], (shop.SHOP if kind == "method" else shop.Shop).price
    return shop, [name], shop.price


@pytest.mark.parametrize("kind", SYNC)
def test_an_answer_stays_in_its_session(
    make_module: Callable[..., ModuleType], tmp_path: Path, kind: str
) -> None:
    shop, tools, price = shop_of(make_module, kind)
    path = tmp_path / "run.yaml"
    assert price("tea") == "tea for 1"  # the cache is warm before the recording

    shop._world["price"] = 2
    with stepfork.record(path, tools=tools) as run:
        assert [price("tea"), price("tea")] == ["tea for 2", "tea for 2"]
    assert run.counts.recorded == 1  # as without stepfork: the second call asks the cache

    shop._world["price"] = 3
    assert price("tea") == "tea for 3"
    asked = len(shop._asked)
    shop._world["price"] = 4
    with stepfork.replay(path) as run:
        assert [price("tea"), price("tea")] == ["tea for 2", "tea for 2"]
    assert run.counts.substituted == 1
    assert len(shop._asked) == asked
    assert price("tea") == "tea for 4"


def test_a_replay_that_fails_leaves_no_answer_behind(
    make_module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    shop, tools, price = shop_of(make_module, "cache")
    with stepfork.record(tmp_path / "run.yaml", tools=tools):
        price("tea")
    shop._world["price"] = 2
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(tmp_path / "run.yaml"):
        price("tea")
        price("coffee")
    assert price("tea") == "tea for 2"


def test_a_session_inside_another_one_has_answers_of_its_own(
    make_module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    shop, tools, price = shop_of(make_module, "cache")

    def agent(session: Callable[..., Any]) -> list[str]:
        with session(tmp_path / "outer.yaml", tools=tools):
            said = [price("tea")]
            shop._world["price"] = 2
            with session(tmp_path / "inner.yaml", tools=tools):
                said += [price("tea"), price("tea")]
            shop._world["price"] = 3
            return [*said, price("tea")]

    told = agent(stepfork.record)
    assert told == ["tea for 1", "tea for 2", "tea for 2", "tea for 3"]
    shop._world["price"] = 4
    assert agent(stepfork.replay) == told


def test_a_cache_of_no_tool_and_a_session_that_is_off_are_left_alone(
    make_module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    shop = make_module(
        HEAD + "@functools.cache\ndef price(item): return _look(item)\n"
        "@functools.cache\ndef other(item): return _look(item)"
    )
    shop.price("tea")
    shop.other("tea")
    with stepfork.use_cassette(tmp_path / "run.yaml", tools=[shop.__name__], mode="off"):
        shop.price("tea")
    with stepfork.record(tmp_path / "run.yaml", tools=[shop.__name__], exclude=[f"{shop.__name__}:other"]):
        shop.other("tea")
    assert shop._asked == ["tea", "tea"]
    assert (shop.price.cache_info().currsize, shop.other.cache_info().currsize) == (0, 1)


def test_an_async_tool_behind_a_cache(make_module: Callable[..., ModuleType], tmp_path: Path) -> None:
    shop = make_module(
        HEAD + "import async_lru\n@async_lru.alru_cache\nasync def price(item): return _look(item)"
    )

    async def agent() -> list[str]:
        return [await shop.price("tea"), await shop.price("tea")]

    async def day() -> None:
        with stepfork.record(tmp_path / "run.yaml", tools=[shop.__name__]) as run:
            assert await agent() == ["tea for 1"] * 2
        assert run.counts.recorded == 1
        shop._world["price"] = 2
        assert await agent() == ["tea for 2"] * 2
        with stepfork.replay(tmp_path / "run.yaml"):
            assert await agent() == ["tea for 1"] * 2
        assert await agent() == ["tea for 2"] * 2

    asyncio.run(day())


def test_a_cache_in_each_object_goes_with_the_object(
    make_module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    shop = make_module(
        HEAD
        + """
class Shop:
    def __init__(self):
        self.kept = {}
    @cachetools.cachedmethod(lambda self: self.kept)
    def price(self, item):
        return _look(item)
"""
    )

    def agent() -> list[str]:
        at = shop.Shop()
        return [at.price("tea"), at.price("tea")]

    with stepfork.record(tmp_path / "run.yaml", tools=[f"{shop.__name__}:Shop"]) as run:
        agent()
    assert run.counts.recorded == 1
    shop._world["price"] = 2
    with stepfork.replay(tmp_path / "run.yaml"):
        assert agent() == ["tea for 1"] * 2


def test_tests_do_not_depend_on_their_order(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        agent="import shop\n\ndef price(item):\n    return shop.price(item)\n",
        shop="import functools\n\n@functools.lru_cache\ndef price(item):\n    return str(item)\n",
        test_shop="""
            import agent

            def test_a():
                assert agent.price("tea") == "tea"

            def test_b():
                assert agent.price("tea") == "tea"
        """,
    )
    pytester.makeini("[pytest]\nstepfork_tools = shop\npythonpath = .\n")
    pytester.runpytest_subprocess("--stepfork-mode=record").assert_outcomes(passed=2)
    recorded = sorted(path.name for path in pytester.path.glob("cassettes/**/*.yaml"))
    assert recorded == ["test_a.yaml", "test_b.yaml"]
    pytester.runpytest_subprocess().assert_outcomes(passed=2)
    pytester.runpytest_subprocess("-k", "test_b").assert_outcomes(passed=1, deselected=1)
    backwards = ["test_shop.py::test_b", "test_shop.py::test_a"]
    pytester.runpytest_subprocess(*backwards).assert_outcomes(passed=2)
