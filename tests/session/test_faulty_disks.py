"""A disk that fails at every step there is: the live run goes on, no good cassette is lost, all is said."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.faulty_disk import FOR_EVER, Disk

import stepfork
from stepfork.cassette.store import StoredCassette

TOOLS = "def look(n):\n    return [n, 'é' * 40]\ndef outer(n):\n    return look(n)\n"
ANSWERS = [[n, "é" * 40] for n in range(3)]


class Crash(Exception):
    """What the block raises where it fails."""


def in_order(tools: ModuleType, seen: list[Any]) -> None:
    seen.extend(tools.look(n) for n in range(3))


def from_a_thread(tools: ModuleType, seen: list[Any]) -> None:
    """The finished file is in another form than the one that grew."""
    thread = threading.Thread(target=in_order, args=(tools, seen))
    thread.start()
    thread.join()


def nested(tools: ModuleType, seen: list[Any]) -> None:
    seen.extend(tools.outer(n) for n in range(3))


def crashes(tools: ModuleType, seen: list[Any]) -> None:
    in_order(tools, seen)
    raise Crash


PROGRAMS: dict[str, tuple[Callable[[ModuleType, list[Any]], None], dict[str, Any]]] = {
    "in order": (in_order, {}),
    "from a thread": (from_a_thread, {}),
    "nested": (nested, {}),
    "crashes": (crashes, {}),
    "fsync": (in_order, {"fsync": True}),
}


@pytest.fixture
def tools(make_module: Any) -> ModuleType:
    made: ModuleType = make_module(TOOLS)
    stepfork.autopatch(tools=[made.__name__])
    return made


def run(path: Path, tools: ModuleType, program: str) -> tuple[list[Any], BaseException | None]:
    """What the program saw, and what the session raised."""
    body, options = PROGRAMS[program]
    seen: list[Any] = []
    try:
        with stepfork.record(path, **options):
            body(tools, seen)
    except (stepfork.StepforkError, Crash, KeyboardInterrupt) as error:
        return seen, error
    return seen, None


def asked(path: Path) -> list[int]:
    return [call.args["n"] for call in stepfork.load(path).calls]


def good_one(folder: Path, tools: ModuleType) -> bytes:
    folder.mkdir()
    with stepfork.record(folder / "run.yaml") as session:
        tools.look(77)
        session.set_output("good")
    return (folder / "run.yaml").read_bytes()


def check_place(folder: Path, good: bytes, program: str) -> bool:
    """The good cassette is as it was, or the new one has its place; gives whether that is so."""
    path = folder / "run.yaml"
    if path.read_bytes() == good:
        return False
    assert program != "crashes", "a failed recording never takes the place of a good one"
    assert StoredCassette(path).verdict == "ok"
    assert asked(path) == [0, 1, 2]
    return True


def check_recordable(folder: Path, tools: ModuleType) -> None:
    """Nothing that was left is in the way of the next recording, or stays for ever."""
    before = {file.name: file.read_bytes() for file in folder.glob("*.partial*.yaml")}
    seen, error = run(folder / "run.yaml", tools, "in order")
    assert (seen, error) == (ANSWERS, None)
    assert asked(folder / "run.yaml") == [0, 1, 2]
    kept = {file.name: file.read_bytes() for file in folder.glob("*.partial*.yaml")}
    assert "run.partial.yaml" not in kept
    if before.get("run.partial.yaml"):
        assert kept["run.partial.1.yaml"] == before["run.partial.yaml"]
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("how", ["ENOSPC", "EIO", "EINTR", "short", "torn"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_step_that_fails_costs_nothing_that_is_not_said(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch, program: str, how: str
) -> None:
    at, reached, said = 0, True, 0
    while reached:
        folder = tmp_path / f"{at}"
        good = good_one(folder, tools)
        open_before = len(os.listdir("/proc/self/fd"))
        disk = Disk(folder, how, at)
        with monkeypatch.context() as patch:
            disk.insert(patch)
            seen, error = run(folder / "run.yaml", tools, program)
        reached = disk.reached
        assert len(os.listdir("/proc/self/fd")) == open_before, "no file stays open, so no lock is held"
        replaced = check_place(folder, good, program)
        notes = getattr(error, "__notes__", [])
        if isinstance(error, stepfork.StepforkError) or notes:
            said += 1
            assert isinstance(error, stepfork.CassetteError | Crash), error
            assert str(folder) in str(error) + str(notes)
            assert seen in ([], ANSWERS), "it is said before anything runs, or at the end"
            if seen and not replaced and not (folder / "run.failed.yaml").exists():
                assert "what was recorded is in" in str(error) + str(notes)
                assert asked(folder / "run.partial.yaml") == [0, 1, 2]
        else:
            assert seen == ANSWERS
            assert replaced or asked(folder / "run.failed.yaml") == [0, 1, 2]
            assert not (folder / "run.partial.yaml").exists() or how != "short"
        check_recordable(folder, tools)
        at += 1
    assert at > 10, disk.steps
    assert said or how == "short"


@pytest.mark.parametrize("program", PROGRAMS)
def test_C92_whoever_is_interrupted_at_any_step_loses_no_good_cassette_and_no_call(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Control-C in the middle of a write: what it interrupted was not seen yet."""
    at, reached = 0, True
    while reached:
        folder = tmp_path / f"{at}"
        good = good_one(folder, tools)
        open_before = len(os.listdir("/proc/self/fd"))
        disk = Disk(folder, "interrupts", at)
        with monkeypatch.context() as patch:
            disk.insert(patch)
            seen, error = run(folder / "run.yaml", tools, program)
        reached = disk.reached
        assert len(os.listdir("/proc/self/fd")) == open_before
        assert isinstance(error, KeyboardInterrupt) == reached or program == "from a thread"
        check_place(folder, good, program)
        places = [folder / f"run.{name}yaml" for name in ("failed.", "partial.", "")]
        kept = [asked(place) for place in places if place.exists()]
        assert not seen or any(set(each) >= set(range(len(seen))) for each in kept)
        check_recordable(folder, tools)
        at += 1
    assert at > 10


@pytest.mark.parametrize("program", PROGRAMS)
def test_C92_whoever_dies_at_any_step_leaves_what_was_seen(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    at, status = 0, 9
    while status == 9:
        folder = tmp_path / f"{at}"
        good = good_one(folder, tools)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                Disk(folder, "dies", at).insert(monkeypatch)

                class Told(list[Any]):
                    def extend(self, answers: Any) -> None:
                        for _ in answers:
                            os.write(write, b".")

                body, options = PROGRAMS[program]
                with stepfork.record(folder / "run.yaml", **options):
                    body(tools, Told())
            finally:
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(write)
        with open(read, "rb") as pipe:
            seen = len(pipe.read())
        replaced = check_place(folder, good, program)
        partial, failed = folder / "run.partial.yaml", folder / "run.failed.yaml"
        if not replaced and seen and not failed.exists():
            assert asked(partial)[:seen] == list(range(seen))
            stored = StoredCassette(partial)
            assert stored.status == "partial" or (seen == 3 and stored.verdict == "ok")
        if failed.exists():
            assert asked(failed) == [0, 1, 2]
        check_recordable(folder, tools)
        at += 1
    assert at > 10


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_disk_that_stays_full_is_said_at_the_end_and_one_that_recovers_is_not(
    tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    for at in range(1, 4):
        for times in (2, FOR_EVER):
            folder = tmp_path / f"{at}-{times}"
            good = good_one(folder, tools)
            with monkeypatch.context() as patch:
                Disk(folder, "torn", at, times, only="write").insert(patch)
                seen, error = run(folder / "run.yaml", tools, program)
            assert seen == ANSWERS
            replaced = check_place(folder, good, program)
            if times == FOR_EVER:
                said = str(error) + str(getattr(error, "__notes__", ""))
                assert "No space left" in said
                assert not replaced
                assert (
                    asked(folder / "run.partial.yaml")
                    == list(range(3))[: len(asked(folder / "run.partial.yaml"))]
                )
            elif error is None:
                assert replaced
            check_recordable(folder, tools)


def test_a_partial_file_cut_at_any_byte_reads_up_to_its_last_whole_call(
    tmp_path: Path, tools: ModuleType
) -> None:
    """The end and its checksum included, in the middle of a character too."""
    path = tmp_path / "run.yaml"
    with stepfork.record(path) as session:
        nested(tools, [])
        session.set_output("é\n" * 3)
    whole = path.read_bytes()
    partial = tmp_path / "cut.partial.yaml"
    head = whole.index(b"---\n") + 4
    for at in range(head, len(whole)):
        partial.write_bytes(whole[:at])
        stored = StoredCassette(partial)
        *before, last = re.split(rb"\n---(?:\n|\Z)", whole[:at])
        assert stored.status == "partial"
        assert len(stored) == len(before) - 1
        assert ["cut off" in said for said in stored.warnings] == [True] * (last != b"")
        assert list(stored.problems()) == []
    partial.write_bytes(whole)
    assert StoredCassette(partial).status == "completed", "only its name was not changed yet"
    for at in range(head):
        partial.write_bytes(whole[:at])
        with contextlib.suppress(stepfork.CassetteError):
            assert stepfork.load(partial).calls == ()
