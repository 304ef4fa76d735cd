"""Several processes at one cassette, and what happens to its place meanwhile: nothing is lost or mixed up."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.looking import TOOLS, asked, record
from support.unprivileged import in_child

import stepfork
from stepfork.cassette.store import StoredCassette
from stepfork.session import active


@pytest.fixture
def tools(make_module: Any) -> ModuleType:
    made: ModuleType = make_module(TOOLS)
    stepfork.autopatch(tools=[made.__name__])
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "cassettes").mkdir()
    return tmp_path / "cassettes" / "run.yaml"


def test_two_processes_cannot_record_one_file_and_one_may_replay_it(path: Path, tools: ModuleType) -> None:
    record(path, tools, 1)
    tools.bodies.clear()

    def replay() -> str:
        with stepfork.replay(path) as run:
            assert tools.look(1) == [1, "x"]
        return f"{run.counts.substituted} of {run.counts.recorded}, bodies: {tools.bodies}"

    with stepfork.record(path):
        tools.look(2)
        tools.bodies.clear()
        said = in_child(lambda: fresh(lambda: record(path, tools, 3)))
        assert said.startswith(f"ConfigError: {path} is being recorded by another session or process")
        assert in_child(lambda: fresh(replay)) == "1 of 1, bodies: []"
    assert asked(path) == [2]


def fresh(function: Callable[[], object]) -> object:
    """In a thread that belongs to no session, as in another process."""
    active._open.clear()
    found: list[object] = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    worker.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def test_many_processes_that_start_at_once_are_one_recording_and_clear_errors(
    path: Path, tools: ModuleType
) -> None:
    for attempt in range(8):
        go = os.pipe()
        ready = os.pipe()
        said = os.pipe()
        children = []
        for number in range(5):
            child = os.fork()
            if child == 0:
                try:
                    os.write(ready[1], b".")
                    os.read(go[0], 1)
                    try:
                        record(path, tools, number)
                        word = f"recorded {number}"
                    except stepfork.ConfigError:
                        word = "busy"
                    except BaseException as error:
                        word = f"{type(error).__name__}: {error}"
                    os.write(said[1], f"{word}\n".encode())
                finally:
                    os._exit(0)
            children.append(child)
        for _ in children:
            os.read(ready[0], 1)
        os.write(go[1], b"." * 5)
        for child in children:
            os.waitpid(child, 0)
        os.close(said[1])
        with open(said[0]) as pipe:
            words = pipe.read().splitlines()
        for end in (*go, *ready):
            os.close(end)
        recorded = [int(word.split()[1]) for word in words if word.startswith("recorded")]
        assert len(words) == 5
        assert recorded
        assert set(words) <= {"busy", *(f"recorded {number}" for number in recorded)}, attempt
        assert StoredCassette(path).verdict == "ok"
        assert asked(path)[0] in recorded
        assert os.listdir(path.parent) == ["run.yaml"]


def test_a_folder_that_is_removed_meanwhile_costs_nothing(path: Path, tools: ModuleType) -> None:
    record(path, tools, 9)
    with stepfork.record(path):
        tools.look(1)
        shutil.rmtree(path.parent)
        tools.look(2)
    assert asked(path) == [1, 2]
    assert os.listdir(path.parent) == ["run.yaml"]


def test_a_partial_file_that_another_process_has_taken_over_is_not_touched(
    path: Path, tools: ModuleType
) -> None:
    """Somebody deleted ours and started to record anew: theirs is theirs."""
    partial = path.with_name("run.partial.yaml")
    for ending in ("finished", "discarded"):
        session = stepfork.record(path)
        run = session.__enter__()
        tools.look(1)
        partial.unlink()
        partial.write_text("theirs")
        session.finish(None, "run" if ending == "finished" else "abandoned")
        assert partial.read_text() == "theirs"
        assert run.written is None or asked(path) == [1]
        partial.unlink()


def test_what_somebody_put_there_meanwhile_counts(path: Path, tools: ModuleType) -> None:
    good = path.with_name("good.yaml")
    record(good, tools, 7)
    with pytest.raises(KeyError), stepfork.record(path):
        tools.look(1)
        shutil.copy(good, path)
        raise KeyError("bug")
    assert asked(path) == [7], "a failed recording replaces no completed one"
    assert asked(path.with_name("run.failed.yaml")) == [1]
    with pytest.raises(stepfork.CassetteError, match="what was recorded is in"), stepfork.record(path):
        tools.look(2)
        path.write_text("<<<<<<< ours\n")
    assert path.read_text() == "<<<<<<< ours\n"
    assert asked(path.with_name("run.partial.yaml")) == [2]
