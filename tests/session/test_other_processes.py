"""Forked, spawned and killed processes, and the cassettes that they meet."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from support.strands import SEARCH, Worker, asked, both_ways, script

import stepfork


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(SEARCH)


def test_the_call_of_a_forked_child_is_refused_and_leaves_the_parents_cassette(
    tools: Any, path: Path
) -> None:
    def agent(forks: bool) -> str:
        tools.search("a")
        said = b""
        if forks:
            reader, writer = os.pipe()
            child = os.fork()
            if not child:
                try:
                    tools.search("b")
                except BaseException as error:
                    os.write(writer, f"{type(error).__name__}: {error}".encode())
                finally:
                    os._exit(0)
            os.close(writer)
            os.waitpid(child, 0)
            said = os.read(reader, 10_000)
            os.close(reader)
        tools.search("b")
        return said.decode()

    for session in both_ways(path, tools):
        with session:
            agent(False)
    before = path.read_bytes()
    for session in both_ways(path, tools):
        with session as run:
            said = agent(True)
            assert asked(run) == ["a", "b"]
        assert said.startswith(
            f"UnsupportedCallError: a call was made in a forked process while {path} is open in its parent"
        )
        assert path.read_bytes() == before
    assert list(path.parent.glob("*.yaml")) == [path]


def test_a_spawned_process_is_warned_of_once(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        """
        import multiprocessing, sys, warnings
        import stepfork, tools

        def child():
            sys.exit(tools.search("in the child") != "in the child found")

        def spawn(context):
            process = context.Process(target=child)
            process.start()
            process.join()
            return process.exitcode

        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with stepfork.record("run.yaml", tools=["tools"]):
                    tools.search("a")
                    assert [spawn(context), spawn(context)] == [0, 0]
                    tools.search("b")
                assert spawn(context) == 0
            print([f"{one.category.__name__} {one.message}" for one in caught])
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("RuntimeWarning") == 1
    assert "the calls of a child process that does not start by fork are neither recorded nor" in done.stdout
    assert asked(tmp_path / "run.yaml") == ["a", "b"]


@pytest.mark.parametrize("again", ["record", "replay"])
def test_a_forked_process_may_have_a_session_of_its_own(tmp_path: Path, again: str) -> None:
    program = """
        import multiprocessing, sys, threading
        import stepfork, tools

        def session(name):
            return stepfork.use_cassette(name, mode=sys.argv[1], tools=["tools"])

        def child():
            with session("child.yaml"):
                tools.search("c")
                thread = threading.Thread(target=tools.search, args=("d",))
                thread.start()
                thread.join()

        with session("parent.yaml"):
            tools.search("a")
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            process.join()
            tools.search("b")
        sys.exit(process.exitcode)
    """
    for mode in ("record", again):
        done = script(tmp_path, program, mode)
        assert done.returncode == 0, done.stderr
        assert {file.name: asked(file) for file in tmp_path.glob("*.yaml")} == {
            "parent.yaml": ["a", "b"],
            "child.yaml": ["c", "d"],
        }


def test_what_a_killed_recorder_leaves_loads_keeps_its_lanes_and_replays(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    done = script(
        folder,
        """
        import os, signal, threading, time
        import stepfork, tools

        def hang(q):
            ready.release()
            threading.Event().wait()

        def work(n):
            for step in range(2):
                tools.search(f"{n}{step}")
            hang(n)

        ready = threading.Semaphore(0)
        stepfork.tool(hang)
        with stepfork.record("run.yaml", tools=["tools"]):
            tools.search("first")
            for n in "abc":
                threading.Thread(target=work, args=(n,), daemon=True).start()
            for _ in "abc":
                ready.acquire()
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    (partial,) = folder.glob("*.yaml")
    assert partial.name == "run.partial.yaml"
    before = partial.read_bytes()
    trajectory = stepfork.load(partial)
    assert trajectory.status == "partial"
    assert asked(trajectory) == ["first", "a0", "a1", "b0", "b1", "c0", "c1"]
    sys.path.insert(0, str(folder))
    try:
        import tools  # type: ignore[import-not-found]

        def agent(order: str, steps: str = "01") -> list[str]:
            found = [tools.search("first")]
            workers = {n: Worker(tools.search) for n in "abc"}
            for step in steps:
                found += [workers[n].ask(f"{n}{step}") for n in order]
            for worker in workers.values():
                worker.stop()
            return found

        for order in map("".join, itertools.permutations("abc")):
            with stepfork.replay(partial) as run:
                asked_for = ["first", *(f"{n}{step}" for step in "01" for n in order)]
                assert agent(order) == [f"{q} found" for q in asked_for]
            assert (run.counts.substituted, run.counts.live) == (7, 0)
        with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(partial):
            agent("abc", "10")  # each thread the other way round
        with (
            pytest.raises(stepfork.ReplayMismatchError, match="the recording ends after call #7"),
            stepfork.replay(partial),
        ):
            agent("cba", "012")
        assert tools.bodies == []
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("tools", None)
    assert partial.read_bytes() == before
