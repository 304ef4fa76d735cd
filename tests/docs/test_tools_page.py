"""docs/tools.md: its programs give its recordings."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepfork
from stepfork.instrument.contents import LIMIT

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text("utf-8")


def blocks(language: str, heading: str) -> list[str]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


Make = Callable[[str], Any]


def generators(shop: Any, make_module: Make) -> None:
    make_module(f"import {shop.__name__} as shop\n" + blocks("python", "Generators")[1])


def changes(shop: Any, make_module: Make) -> None:
    items: list[int] = [2, 1]
    state: dict[str, Any] = {"items": items, "log": []}
    log = state["log"]
    shop.tidy(state)
    assert (state["items"], items, log) == ([1, 2], [2, 1], ["tidied"])
    assert state["log"] is log


def defaults(shop: Any, make_module: Make) -> None:
    assert shop.setting("tea") == 3


def iterators(shop: Any, make_module: Make) -> None:
    rows = iter([1, 2, 3])
    assert [shop.head(rows), *rows] == [1, 2, 3]


@pytest.mark.parametrize(
    ("heading", "agent"),
    [
        ("Generators", generators),
        ("Defaults that say that nothing was given", defaults),
        ("Arguments that a tool changes", changes),
        ("Iterators and streams as arguments", iterators),
    ],
)
def test_the_programs_give_the_recordings(
    make_module: Make, tmp_path: Path, heading: str, agent: Callable[[Any, Make], None]
) -> None:
    shop = make_module(textwrap.dedent(blocks("python", heading)[0]))
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[shop.__name__]):
        agent(shop, make_module)
    assert ["---\n".join(path.read_text("utf-8").split("---\n")[1:-1])] == blocks("yaml", heading)
    with stepfork.replay(path):
        agent(shop, make_module)


def test_a_cache_before_a_tool_is_emptied_with_each_session(make_module: Make, tmp_path: Path) -> None:
    source = "import functools\nprices = {'tea': 1}\n_asked = []\n"
    source += "def _ask(item):\n    _asked.append(item)\n    return prices[item]\n"
    shop = make_module(source + blocks("python", "Behind caches")[0].replace("ask_the_shop", "_ask"))
    assert shop.price("tea") == 1
    shop.prices["tea"] = 2
    with stepfork.record(tmp_path / "run.yaml", tools=[shop.__name__]) as run:
        assert shop.price("tea") + shop.price("tea") == 4
    assert run.counts.recorded == 1
    shop.prices["tea"] = 3
    with stepfork.replay(tmp_path / "run.yaml"):
        assert shop.price("tea") + shop.price("tea") == 4
    assert (shop.price("tea"), len(shop._asked)) == (3, 3)


def test_the_limit_is_the_real_one() -> None:
    assert f"more than {LIMIT} items" in PAGE
