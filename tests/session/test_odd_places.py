"""Where a cassette cannot be, or is not what it seems: one clear error, nothing lost, nothing written."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.command import Project
from support.looking import TOOLS, asked, record
from support.unprivileged import as_nobody, in_child, open_folder

import stepfork


@pytest.fixture
def tools(make_module: Any) -> ModuleType:
    made: ModuleType = make_module(TOOLS)
    stepfork.autopatch(tools=[made.__name__])
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "cassettes").mkdir()
    return tmp_path / "cassettes" / "run.yaml"


def everything(folder: Path) -> dict[str, object]:
    """All that is in a folder, with what it holds or leads to."""
    return {
        str(place.relative_to(folder)): os.readlink(place)
        if place.is_symlink()
        else place.read_bytes()
        if place.is_file()
        else place.lstat().st_mode
        for place in folder.rglob("*")
        if "__pycache__" not in place.parts
    }


# -- what stands there is no file ---------------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "inner.yaml").write_text("mine")


def empty(path: Path) -> None:
    path.touch()


def loop(path: Path) -> None:
    path.symlink_to(path)


def to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def to_a_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


ODD = (fifo, folder, empty, loop, to_a_device, to_a_fifo)


@pytest.mark.parametrize("make", ODD)
def test_C90_what_is_no_cassette_is_an_error_in_every_mode_and_stays(
    path: Path, tools: ModuleType, make: Callable[[Path], None]
) -> None:
    make(path)
    before = everything(path.parent)
    sessions = [stepfork.use_cassette(path, mode=mode) for mode in ("replay", "record", "auto")]
    for session in (*sessions, stepfork.record(path), stepfork.replay(path)):
        with pytest.raises(stepfork.StepforkError) as caught, session:
            tools.look(1)
        assert str(path.parent) in str(caught.value)
        assert len(str(caught.value).splitlines()) <= 2
    with pytest.raises(stepfork.StepforkError):
        stepfork.load(path)
    assert tools.bodies == []
    assert everything(path.parent) == before


@pytest.mark.parametrize("make", [fifo, folder, loop, to_a_device, to_a_fifo])
def test_what_stands_in_the_place_of_the_partial_file_is_left_alone(
    path: Path, tools: ModuleType, make: Callable[[Path], None]
) -> None:
    make(path.with_name("run.partial.yaml"))
    before = everything(path.parent)
    with (
        pytest.raises(stepfork.CassetteError, match=r"run\.partial\.yaml: is in the way"),
        stepfork.record(path),
    ):
        tools.look(1)
    assert tools.bodies == []
    assert everything(path.parent) == before


def test_a_folder_in_the_place_of_the_failed_recording_costs_no_recording(
    path: Path, tools: ModuleType
) -> None:
    record(path, tools, 1)
    good = path.read_bytes()
    folder(path.with_name("run.failed.yaml"))
    with pytest.raises(KeyError) as caught, stepfork.record(path):
        tools.look(2)
        raise KeyError("bug")
    assert "what was recorded is in" in caught.value.__notes__[0]
    assert path.read_bytes() == good
    assert asked(path.with_name("run.partial.yaml")) == [2]
    assert (path.with_name("run.failed.yaml") / "inner.yaml").read_text() == "mine"


def test_commands_say_it_in_one_line(recorded_project: Project) -> None:
    project = recorded_project
    fifo(project.folder / "pipe.failed.yaml")
    folder(project.folder / "folder.yaml")
    (project.folder / "folder.failed.yaml").write_text((project.folder / "run.yaml").read_text())
    before = everything(project.folder)
    for command in (
        ("inspect", "pipe.failed.yaml"),
        ("validate", "folder.yaml"),
        ("seal", "pipe.failed.yaml"),
        ("replay", "folder.yaml"),
        ("adopt", "pipe.failed.yaml"),
        ("adopt", "folder.failed.yaml"),
        ("export", "folder.yaml", "--pytest"),
        ("record", "agent:run", "-o", "folder.yaml"),
    ):
        ended = project.run(*command)
        assert ended.status == 2, command
        assert ended.complaint, command
    assert everything(project.folder) == before


@pytest.fixture
def recorded_project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    assert project.record("agent:run", to="run.yaml").status == 0
    return project


# -- permissions, as a user who owns nothing -----------------------------------------------------------


def test_what_may_not_be_written_is_an_error_before_anything_runs(tools: ModuleType) -> None:
    with open_folder() as place:
        path = place / "run.yaml"
        record(path, tools, 1)
        good = path.read_bytes()
        tools.bodies.clear()

        def attempt(to: Path) -> str:
            """As the session says it; and no body ran."""
            try:
                record(to, tools, 2)
            finally:
                assert tools.bodies == [], tools.bodies
            return "recorded"

        path.chmod(0o444)
        assert as_nobody(lambda: attempt(path)) == (
            f"CassetteError: {path}: cannot be written: it is read-only; make it writable first"
        )
        path.chmod(0o000)
        said = as_nobody(lambda: attempt(path))
        assert said == f"CassetteError: {path}: cannot be read: Permission denied"
        assert as_nobody(lambda: stepfork.load(path)) == said
        assert as_nobody(lambda: stepfork.replay(path).__enter__()) == said
        path.chmod(0o666)
        place.chmod(0o555)
        partial = path.with_name("run.partial.yaml")
        assert as_nobody(lambda: attempt(path)) == (
            f"CassetteError: {partial}: cannot be written: Permission denied"
        )
        assert "Permission denied" in as_nobody(lambda: attempt(place / "new.yaml"))
        assert "Permission denied" in as_nobody(lambda: attempt(place / "deeper" / "new.yaml"))
        place.chmod(0o000)
        for mode in ("record", "auto", "replay"):
            said = as_nobody(lambda mode=mode: stepfork.use_cassette(path, mode=mode).__enter__())
            assert "Error" in said.split(":")[0]
            assert str(path) in said
        place.chmod(0o777)
        assert os.listdir(place) == ["run.yaml"]
        assert path.read_bytes() == good
        assert as_nobody(lambda: record(path, tools, 3)) == "AssertionError: [3]" or asked(path) == [3]


def test_a_folder_that_becomes_read_only_meanwhile_keeps_the_partial_file(tools: ModuleType) -> None:
    with open_folder() as place:
        path = place / "run.yaml"
        record(path, tools, 1)
        path.chmod(0o666)
        good = path.read_bytes()
        gate, opened = os.pipe(), os.pipe()

        def attempt() -> str:
            with stepfork.record(path):
                tools.look(5)
                os.write(gate[1], b".")
                os.read(opened[0], 1)
                assert tools.look(6) == [6, "xxxxxx"], "the live run goes on"
            return "recorded"

        def close_it() -> None:
            os.read(gate[0], 1)
            place.chmod(0o555)
            os.write(opened[1], b".")

        closer = threading.Thread(target=close_it)
        closer.start()
        said = as_nobody(attempt)
        closer.join()
        partial = path.with_name("run.partial.yaml")
        assert said.startswith(f"CassetteError: {path}: cannot be written: Permission denied")
        assert f"what was recorded is in {partial}" in said
        assert path.read_bytes() == good
        assert asked(partial) == [5, 6]


def test_the_permissions_of_a_cassette_outlive_a_new_recording(path: Path, tools: ModuleType) -> None:
    record(path, tools, 1)
    for mode in (0o600, 0o664):
        path.chmod(mode)
        record(path, tools, mode)
        assert path.stat().st_mode & 0o777 == mode
        with stepfork.record(path):  # in another order than it grew in
            worker = threading.Thread(target=tools.look, args=(mode + 1,))
            worker.start()
            worker.join()
        assert path.stat().st_mode & 0o777 == mode
        assert asked(path) == [mode + 1]


def test_a_quota_that_is_used_up_is_said_at_the_end(path: Path, tools: ModuleType) -> None:
    """RLIMIT_FSIZE: the system lets no file grow beyond it, whoever writes."""
    record(path, tools, 1)
    good = path.read_bytes()

    def attempt() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
        record(path, tools, 10, 5_000, 8_000, 20)
        return "recorded"

    os.chmod(path.parent, 0o777)
    child_said = in_child(attempt)
    assert child_said.startswith(
        f"CassetteError: {path}: cannot be written: File too large; what was recorded"
    )
    assert path.read_bytes() == good
    assert asked(path.with_name("run.partial.yaml")) == [10, 5_000]
    assert sorted(os.listdir(path.parent)) == ["run.partial.yaml", "run.yaml"]
    record(path, tools, 2)
    assert sorted(os.listdir(path.parent)) == ["run.partial.1.yaml", "run.yaml"]


# -- links ----------------------------------------------------------------------------------------------


def test_nothing_is_written_through_a_link_that_leads_out(tmp_path: Path, tools: ModuleType) -> None:
    inside, outside = tmp_path / "project" / "cassettes", tmp_path / "elsewhere"
    inside.mkdir(parents=True)
    outside.mkdir()
    record(outside / "theirs.yaml", tools, 1)
    theirs = everything(outside)
    (inside / "file.yaml").symlink_to(outside / "theirs.yaml")
    (inside / "dangling.yaml").symlink_to(outside / "new.yaml")
    (inside / "sub").symlink_to(outside)
    tools.bodies.clear()
    for name in ("file.yaml", "dangling.yaml", "sub/theirs.yaml", "sub/new.yaml", "sub/deeper/new.yaml"):
        with (
            pytest.raises(stepfork.CassetteError, match="is not written: a link leads from there to"),
            stepfork.record(name, cassette_dir=str(inside)),
        ):
            tools.look(2)
    assert tools.bodies == []
    assert everything(outside) == theirs
    with stepfork.replay("file.yaml", cassette_dir=str(inside)) as run:
        tools.look(1)
    assert run.counts.live == 0, "reading follows links wherever they lead"
    with stepfork.record("new.yaml", cassette_dir=str(inside / "sub")):
        tools.look(3)
    assert asked(outside / "new.yaml") == [3], "a folder that is named may be a link"


def test_a_link_within_the_folder_is_followed_and_stays(path: Path, tools: ModuleType) -> None:
    record(path, tools, 1)
    link = path.with_name("link.yaml")
    link.symlink_to("run.yaml")
    record(link, tools, 2)
    assert os.readlink(link) == "run.yaml"
    assert asked(path) == [2]
    with pytest.raises(KeyError), stepfork.record(link):
        raise KeyError(tools.look(3)[0])
    assert asked(path) == [2]
    assert asked(path.with_name("run.failed.yaml")) == [3]


def test_a_name_with_a_nul_is_no_path(path: Path, tools: ModuleType) -> None:
    for use in (stepfork.record, stepfork.replay, stepfork.use_cassette):
        with pytest.raises(stepfork.ConfigError, match="NUL"), use("a\0b.yaml"):
            tools.look(1)
    with pytest.raises(stepfork.ConfigError, match="NUL"):
        stepfork.load("a\0b.yaml")
