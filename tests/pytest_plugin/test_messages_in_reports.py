"""What pytest shows of an error of stepfork's: what is wrong, where, what to do, and none of its source."""

from __future__ import annotations

import pytest

TOOLS = """
import enum

class Level(enum.Enum):
    LOW = 1
    MID = 2

class State:
    pass

def a(x):
    return x

def level(x):
    return {"found": [Level.LOW, {"level": Level.MID}]}

def levels(x):
    yield Level.LOW
    yield Level.MID
"""
TESTS = """
import os
import pytest
import stepfork
import shown_tools as tools

def test_again():
    for x in eval(os.environ.get("CALLS", "[1, 2]")):
        tools.a(x)

def test_refused():
    tools.a(tools.State())

def test_level():
    assert tools.level(1)["found"]

def test_levels():
    assert list(tools.levels(1))

def test_settings():
    with stepfork.replay("a.yaml", nope=1):
        pass

def test_block():
    with stepfork.record("b.yaml"):
        tools.a(tools.State())
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    monkeypatch.delenv("CALLS", raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(shown_tools=TOOLS, test_shown=TESTS)
    pytester.makeconftest("import stepfork\nstepfork.autopatch(tools=['shown_tools'])\n")
    return pytester


def run(project: pytest.Pytester, test: str, *options: str) -> str:
    result = project.runpytest_subprocess("-p", "no:cacheprovider", f"test_shown.py::{test}", *options)
    return result.stdout.str()


def record(project: pytest.Pytester, test: str, *options: str) -> str:
    return run(project, test, "--stepfork-mode=record", *options)


def test_a_call_made_once_more_is_no_change_of_order(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "1 passed" in record(project, "test_again")
    monkeypatch.setenv("CALLS", "[1, 1, 2]")
    said = run(project, "test_again")
    assert "call #2: tool 'a' argument 'x': expected 2, got 1" in said
    assert "this very call is recorded as #1, was made already, and is made one time more now" in said
    assert "the order of the calls changed" not in said
    monkeypatch.setenv("CALLS", "[2, 1]")
    said = run(project, "test_again")
    assert "this very call is recorded as #2: the order of the calls changed" in said
    monkeypatch.setenv("CALLS", "[1, 2, 1]")
    assert "was recorded once with these arguments and is made one time more" in run(project, "test_again")


def test_a_recording_that_was_refused_says_so_on_replay(project: pytest.Pytester) -> None:
    why = "tool 'a' cannot be recorded: argument 'x' is of type shown_tools.State; register a codec"
    assert f"stepfork.errors.RecordingError: {why}" in record(project, "test_refused")
    said = run(project, "test_refused")
    assert f"the file holds a recording that failed with RecordingError: {why}" in said
    assert "call 1 of 0" not in said
    assert "Unsupported" not in said
    assert "during handling" not in said.lower()
    assert "record again: STEPFORK_MODE=record pytest test_shown.py::test_refused" in said


@pytest.mark.parametrize(
    ("test", "field"), [("test_level", "result.found[1].level"), ("test_levels", "yields[1]")]
)
def test_a_value_that_is_gone_is_named_with_line_and_field(
    project: pytest.Pytester, test: str, field: str
) -> None:
    assert "1 passed" in record(project, test)
    tools = project.path / "shown_tools.py"
    tools.write_text(tools.read_text().replace("MID = 2", "TOP = 2").replace("Level.MID", "Level.TOP"))
    text = (project.path / "cassettes" / "test_shown" / f"{test}.yaml").read_text().splitlines()
    line = next(at for at, line in enumerate(text, start=1) if "MID" in line)
    said = run(project, test)
    assert f"{test}.yaml:{line}: {field}: " in said
    assert "'MID'" in said


@pytest.mark.parametrize("test", ["test_refused", "test_settings", "test_block", "test_again"])
def test_no_source_of_stepforks_is_shown(project: pytest.Pytester, test: str) -> None:
    cassette = project.path / "cassettes" / "test_shown" / "test_again.yaml"
    cassette.parent.mkdir(parents=True)
    cassette.write_text("stepfork: [\n")
    said = run(project, test, *([] if test == "test_again" else ["--stepfork-mode=record"]))
    errors = [name for name in ("RecordingError", "ConfigError", "CassetteError") if f".{name}: " in said]
    assert len(errors) == 1, said
    assert len(said.splitlines()) < 40, said
    for own in ("stepfork/api.py", "stepfork/session", "stepfork/cassette/", "pytest_plugin.py", "self = <"):
        assert own not in said, said
    full = run(project, test, "--full-trace", *([] if test == "test_again" else ["--stepfork-mode=record"]))
    assert "stepfork/session" in full or "stepfork/cassette" in full


def test_the_command_that_records_has_the_options_that_were_given(project: pytest.Pytester) -> None:
    said = run(project, "test_again", "--stepfork-cassette-dir=some where")
    command = "STEPFORK_MODE=record pytest '--stepfork-cassette-dir=some where' test_shown.py::test_again"
    assert f"to record it: {command}" in said
    assert "1 passed" in record(project, "test_again", "--stepfork-cassette-dir=some where")
    assert "1 passed" in run(project, "test_again", "--stepfork-cassette-dir=some where")
