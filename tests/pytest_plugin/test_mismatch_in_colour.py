"""A mismatch on a terminal: its leaves in colour, in pytest and in the command; in a file without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = """
def look(service, minutes=1):
    return "ok"

def agent(text="The outage of service A began at ten o'clock in the morning of the first of May, it says."):
    return look(text)
"""
TESTS = """
import os
import coloured_tools as tools

def test_look():
    tools.look(os.environ["SERVICE"])
"""
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(coloured_tools=TOOLS, test_coloured=TESTS)
    pytester.makepyprojecttoml('[tool.stepfork]\ntools = ["coloured_tools"]\n')
    monkeypatch.setenv("SERVICE", "search")
    assert pytester.runpytest_subprocess("--stepfork-mode=record").ret == 0
    monkeypatch.setenv("SERVICE", "login")
    return pytester


def test_pytest_shows_the_leaves_in_colour_and_keeps_them_plain(project: pytest.Pytester) -> None:
    shown = project.runpytest_subprocess("--color=yes", "--junitxml=kept.xml").stdout.str()
    assert f'recorded: {PLAIN}{RED}"search"{PLAIN}' in shown
    assert f'now:      {PLAIN}{GREEN}"login"{PLAIN}' in shown
    kept = (project.path / "kept.xml").read_text("utf-8")
    assert "recorded: &quot;search&quot;" in kept
    assert "#x1B" not in kept


def test_pytest_without_colour_shows_none(project: pytest.Pytester) -> None:
    shown = project.runpytest_subprocess("--color=no").stdout.str()
    assert 'recorded: "search"' in shown
    assert "\x1b" not in shown


def test_workers_of_xdist_too(project: pytest.Pytester) -> None:
    shown = project.runpytest_subprocess("--color=yes", "-n1").stdout.str()
    assert f'now:      {PLAIN}{GREEN}"login"{PLAIN}' in shown


def on_a_terminal(*command: str, cwd: Path, **variables: str) -> str:
    """What a command writes to stderr where that is a terminal."""
    ours, theirs = os.openpty()
    env = {**os.environ, **variables}
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=theirs, env=env):
        os.close(theirs)
        told = b""
        while True:
            try:
                told += os.read(ours, 4096)
            except OSError:  # the command has ended
                break
    os.close(ours)
    return told.decode()


def test_the_command_shows_what_differs_in_colour(project: pytest.Pytester) -> None:
    stepfork = (sys.executable, "-m", "stepfork")
    record = (*stepfork, "record", "coloured_tools:agent", "--tools", "coloured_tools", "-o", "run.yaml")
    subprocess.run(record, cwd=project.path, check=True, capture_output=True)
    source = project.path / "coloured_tools.py"
    source.write_text(source.read_text("utf-8").replace("began at ten", "began at eleven"), "utf-8")
    shown = on_a_terminal(*stepfork, "replay", "run.yaml", cwd=project.path)
    assert f"began at {PLAIN}{RED}[-ten-]{PLAIN} o'clock" in shown
    assert f"began at {PLAIN}{GREEN}{{+eleven+}}{PLAIN} o'clock" in shown
    assert "\x1b" not in on_a_terminal(*stepfork, "replay", "run.yaml", cwd=project.path, NO_COLOR="1")
