"""Threads that do as they are told, sessions both ways, programs of their own: for tests of sessions."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import stepfork

SEARCH = """
    import asyncio
    bodies = []
    def search(q):
        bodies.append(q)
        return f"{q} found"
    async def asearch(q):
        bodies.append(q)
        await asyncio.sleep(0)
        return f"{q} found"
"""


class Worker:
    """A daemon thread that calls a function for each thing it is given, and hands back what came of it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._given = threading.Semaphore(0)
        self._things: list[tuple[Any, Future[Any]]] = []
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while True:
            self._given.acquire()
            thing, future = self._things.pop()
            if thing is None:
                return
            try:
                future.set_result(self._function(thing))
            except BaseException as error:
                future.set_exception(error)

    def ask(self, thing: Any) -> Any:
        future: Future[Any] = Future()
        self._things.append((thing, future))
        self._given.release()
        return future.result()

    def refused(self, thing: Any) -> str:
        """What the error says that the function raises."""
        with pytest.raises(stepfork.NoCassetteError) as caught:
            self.ask(thing)
        return str(caught.value)

    def stop(self) -> None:
        self._things.append((None, Future()))
        self._given.release()
        self.thread.join()


def asked(source: Any) -> list[str]:
    """What the top-level calls of a run or of a cassette asked for."""
    calls = source.calls if hasattr(source, "calls") else stepfork.load(source).calls
    return [call.args["q"] for call in calls]


def both_ways(path: Path, tools: Any) -> Iterator[Any]:
    """A session that records, then one that replays; no body may run in that."""
    yield stepfork.record(path, tools=[tools.__name__])
    tools.bodies.clear()
    yield stepfork.replay(path)
    assert tools.bodies == []


def others(path: Path, *names: str) -> list[Path]:
    return [path.with_name(f"{name}.yaml") for name in names]


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """What functions give that run in threads of their own, which are started where nothing is known."""
    futures: list[Future[Any]] = [Future() for _ in functions]

    def work(function: Callable[[], Any], future: Future[Any]) -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threads = [
        threading.Thread(target=work, args=pair, daemon=True) for pair in zip(functions, futures, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [future.result() for future in futures]


def script(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, beside a module of tools."""
    folder.joinpath("tools.py").write_text(textwrap.dedent(SEARCH), "utf-8")
    file = folder / "program.py"
    file.write_text(textwrap.dedent(source), "utf-8")
    command = [sys.executable, str(file), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
