"""docs/matching.md: its program gives its recording, its orders pass and fail as it says."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepfork

PAGE = (Path(__file__).parents[2] / "docs" / "matching.md").read_text("utf-8")
SHOP = """
async def search(topic):
    return f"about {topic}"
def answer(found):
    return ", ".join(found)
def plan():
    return 1
def audit():
    return 2
"""


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_program_gives_the_recording(make_module: Any, tmp_path: Path) -> None:
    make_module(SHOP, "shop")
    agent = make_module(block("python"))
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=["shop"]):
        asyncio.run(agent.agent())
    documents = path.read_text().split("---\n")[1:-1]
    assert "---\n".join(documents) == block("yaml")


@pytest.mark.parametrize("order", list(itertools.permutations(["plan", "audit", "answer"])))
def test_the_orders_of_the_third_picture(make_module: Any, tmp_path: Path, order: tuple[str, ...]) -> None:
    shop = make_module(SHOP, "shop")
    path = tmp_path / "run.yaml"

    def run(order: tuple[str, ...]) -> None:
        """The background thread calls where the order says; the main line in the order that is left."""
        go, done = threading.Event(), threading.Event()

        def background() -> None:
            go.wait(10)
            with contextlib.suppress(stepfork.ReplayMismatchError):  # where the main line has drifted already
                shop.audit()
            done.set()

        thread = threading.Thread(target=background)
        thread.start()
        calls: dict[str, Callable[[], Any]] = {"plan": shop.plan, "answer": lambda: shop.answer(["x"])}
        try:
            for name in order:
                if name == "audit":
                    go.set()
                    done.wait(10)
                else:
                    calls[name]()
        finally:
            go.set()
            thread.join()

    with stepfork.record(path, tools=["shop"]):
        run(("plan", "audit", "answer"))
    if order.index("plan") < order.index("answer"):
        with stepfork.replay(path):
            run(order)
    else:
        expected = "expected tool 'plan' but the agent called"
        with pytest.raises(stepfork.ReplayMismatchError, match=expected), stepfork.replay(path):
            run(order)
