"""What the command line says of itself, and what it does not import to say it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Project

from stepfork.cli.settings import NAMES, spelled

COMMANDS = ["record", "replay", "inspect", "validate", "export", "adopt", "seal"]


def test_help_lists_the_commands_and_exit_codes(project: Project) -> None:
    ended = project.run("--help")
    assert ended.status == 0
    listed = [
        line.split()[0] for line in ended.out.partition("Commands:")[2].splitlines() if line[2:3].isalpha()
    ]
    assert sorted(COMMANDS) == [name for name in listed if name in COMMANDS]
    assert "3 nothing to verify" in " ".join(ended.out.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_is_an_option_of_every_command(project: Project, command: str) -> None:
    ended = project.run(command, "--help")
    assert ended.status == 0
    for name in NAMES:
        assert spelled(name) in ended.out


@pytest.mark.parametrize(
    "arguments", [["--help"], ["inspect", "cassettes/run.yaml"], ["validate", "cassettes/run.yaml"]]
)
def test_heavy_libraries_are_not_imported(recorded: Project, arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from stepfork.cli import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0, end.code\n"
        "heavy = {'openai', 'pytest', 'rich', 'vcr', 'pydantic', 'wrapt', 'httpx2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=recorded.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_console_script_is_the_same(recorded: Project) -> None:
    script = Path(sys.executable).with_name("stepfork")
    done = subprocess.run(
        [script, "replay", "cassettes/run.yaml"],
        cwd=recorded.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_seen_enough(recorded: Project) -> None:
    command = f"{sys.executable} -m stepfork inspect cassettes/run.yaml | true"
    done = subprocess.run(
        command, shell=True, cwd=recorded.folder, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_version(project: Project) -> None:
    assert project.run("--version").out.startswith("stepfork ")


def test_without_a_command_it_prints_the_help(project: Project) -> None:
    alone = project.run()
    assert alone.status == 2
    assert alone.err == ""
    assert alone.out == project.run("--help").out
    assert project.run("nonsense").status == 2
