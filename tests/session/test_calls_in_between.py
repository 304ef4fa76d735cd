"""Tools called from signal handlers and finalisers, while stepfork writes or answers another call."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import second_reader
from support.examples import examples

import stepfork
from stepfork.session import run as run_module

ROOM = str(Path(run_module.__file__).parent.parent)


class Interrupt:
    """Does something at the n-th line that stepfork runs, as a signal handler does; knows whether it did."""

    def __init__(self, at: int, act: Callable[[], Any]) -> None:
        self.left = at
        self.act = act
        self.where = ""
        self.found: Any = None

    def __enter__(self) -> Interrupt:
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if self.left < 0 or not frame.f_code.co_filename.startswith(ROOM):
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                self.where = f"{frame.f_code.co_filename[len(ROOM) :]}:{frame.f_lineno}"
                self.found = self.act()
        return self.trace


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module("def add(a, b=1):\n    return [a, b]\ndef tick(n):\n    return add(n)\n")


def calls_in(path: Path) -> list[tuple[str, Any, Any]]:
    return [(call.name, dict(call.args), call.result) for call in stepfork.load(path).calls]


def agent(tools: Any, said: str = "password=hunter2hunter2") -> list[Any]:
    return [tools.add(number, said) for number in range(3)]


@examples(150)
@given(at=st.integers(0, 4000))
def test_a_call_in_between_disturbs_no_recording(tools: Any, tmp_path: Path, at: int) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]) as run:
        with Interrupt(at, lambda: tools.tick(9)) as between:
            found = agent(tools)
        partial = stepfork.load(path.with_name("run.partial.yaml"))
        assert len(partial.calls) == len(run.calls)
    assert found == [[number, "password=hunter2hunter2"] for number in range(3)]
    calls = calls_in(path)
    assert [call for call in calls if call[0] == "add"] == [
        ("add", {"a": number, "b": "password=<secret:password:1>"}, [number, "password=<secret:password:1>"])
        for number in range(3)
    ]
    if between.where:
        assert between.found == [9, 1]
    ticks = [call for call in calls if call[0] == "tick"]
    assert ticks in ([], [("tick", {"n": 9}, [9, 1])])
    if "/session/" in between.where:
        assert ticks, between.where
    assert len(second_reader.read(path)["calls"]) == 3 + 2 * len(ticks)


@examples(60)
@given(at=st.integers(0, 3000))
def test_a_call_in_between_never_gets_or_takes_a_wrong_answer(tools: Any, tmp_path: Path, at: int) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        live = agent(tools, "x")
    with pytest.raises(stepfork.StepforkError) as caught, stepfork.replay(path):
        with Interrupt(at, lambda: tools.tick(9)) as between:
            assert agent(tools, "x") == live
        assert between.found == [9, 1] or not between.where  # it only ran where stepfork looks at a value
        tools.tick(9)
    assert "'tick'" in str(caught.value).partition("\n")[0]


def test_a_signal_while_a_document_is_written(
    tools: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    real = os.write

    def write(file: int, data: Any) -> int:
        count = real(file, data)
        if b"tool: add" in bytes(data) and not found:
            signal.raise_signal(signal.SIGINT)
        return count

    before = signal.signal(signal.SIGINT, lambda *_: found.append(tools.tick(9)))
    try:
        with stepfork.record(path, tools=[tools.__name__]):
            monkeypatch.setattr(os, "write", write)
            assert agent(tools) == [[number, "password=hunter2hunter2"] for number in range(3)]
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [[9, 1]]
    assert [call[0] for call in calls_in(path)] == ["add", "tick", "add", "add"]


def test_finalisers_that_call_tools(tools: Any, path: Path) -> None:
    class Connection:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            tools.tick(1)

    before = gc.get_threshold()
    gc.set_threshold(5)
    try:
        with stepfork.record(path, tools=[tools.__name__]):
            for number in range(200):
                Connection()
                assert tools.add(number) == [number, 1]
    finally:
        gc.set_threshold(*before)
        gc.collect()
    calls = calls_in(path)
    assert [call[1]["a"] for call in calls if call[0] == "add"] == list(range(200))
    assert any(call[0] == "tick" for call in calls)
