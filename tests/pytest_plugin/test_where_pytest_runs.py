"""The command that records again, from wherever pytest was started; and what becomes of failed recordings."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.plugin_runs import lone_project, run_pytest

TESTS = """
import os
import pytest
import where_tools

@pytest.mark.parametrize("word", ["plain", "it's $HOME; a [b]"])
def test_look(word):
    assert where_tools.look(os.environ.get("ASKED", "a"), word) != "wrong"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """``sub/`` is pytest's rootdir, with its tests in ``sub/tests/deep``."""
    project = lone_project(pytester, monkeypatch)
    (project.path / "tox.ini").unlink()
    root = project.mkdir("sub")
    (root / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (root / "conftest.py").write_text("import stepfork\nstepfork.autopatch(tools=['where_tools'])\n")
    (root / "where_tools.py").write_text("def look(asked, word):\n    return asked\n")
    deep = root / "tests" / "deep"
    deep.mkdir(parents=True)
    (deep / "test_where.py").write_text(TESTS)
    monkeypatch.setenv("PYTHONPATH", str(root))
    return project


@pytest.mark.parametrize("start", [".", "sub", "sub/tests", "sub/tests/deep"])
def test_C81_the_proposed_command_records_from_where_pytest_was_started(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    here = project.path / start
    monkeypatch.chdir(here)
    tests = os.path.relpath(project.path / "sub" / "tests" / "deep" / "test_where.py", here)
    run_pytest(project, tests, mode="record").assert_outcomes(passed=2)
    monkeypatch.setenv("ASKED", "b")
    said = run_pytest(project, tests).stdout.str()
    assert "2 failed" in said
    commands = sorted(set(re.findall(r"record again: STEPFORK_MODE=record (pytest .*?)\s*$", said, re.M)))
    assert len(commands) == 2
    for command in commands:
        done = subprocess.run(
            [
                "sh",
                "-c",
                f"STEPFORK_MODE=record exec {sys.executable} -m {command} -p stepfork.pytest_plugin",
            ],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "1 passed" in done.stdout, (command, done.stdout, done.stderr)
        assert shlex.split(command)[-1].startswith(tests)
    run_pytest(project, tests).assert_outcomes(passed=2)


def failed_files(project: pytest.Pytester) -> list[Path]:
    return list(project.path.rglob("*.failed.yaml"))


def test_a_newer_good_recording_drops_the_older_failed_one(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = "sub/tests/deep/test_where.py::test_look[plain]"
    for good in ("a", "c"):  # the same behaviour as before, and another
        monkeypatch.setenv("ASKED", "a")
        run_pytest(project, test, mode="record").assert_outcomes(passed=1)
        monkeypatch.setenv("ASKED", "wrong")
        run_pytest(project, test, mode="record").assert_outcomes(failed=1)
        assert len(failed_files(project)) == 1
        monkeypatch.setenv("ASKED", good)
        run_pytest(project, test, mode="record").assert_outcomes(passed=1)
        assert failed_files(project) == []
        run_pytest(project, test).assert_outcomes(passed=1)


HOSTILE = {
    "a depth": "depth: 100000000000\ntool: look\nresult: 1",
    "a type": "tool: look\nargs: {asked: a, word: plain}\nresult: !array {dtype: int64, values: [1.5]}",
    "digits": f"tool: look\nresult: 1\nlate: 0x1{'0' * 9000}",
    "a key": f"tool: look\nresult: 1\n? {'k' * 100_000}\n: 1",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_C90_C94_a_hostile_cassette_fails_its_test_with_one_sentence(
    project: pytest.Pytester, what: str
) -> None:
    folder = project.path / "sub" / "cassettes" / "tests" / "deep" / "test_where"
    folder.mkdir(parents=True)
    file = folder / "test_look[plain].yaml"
    file.write_text(f"stepfork: 1\nname: x\n---\n{HOSTILE[what]}\n---\nend: completed\n")
    before = file.read_bytes()
    for mode in (None, "record"):
        result = run_pytest(project, "sub/tests/deep/test_where.py::test_look[plain]", mode=mode)
        said = result.stdout.str()
        assert "1 failed" in said or "1 error" in said
        assert re.search(r"test_look\[plain\]\.yaml:\d+: ", said)
        assert "RecursionError" not in said
        assert "INTERNALERROR" not in said
        assert "stepfork/cassette" not in said
        assert file.read_bytes() == before
