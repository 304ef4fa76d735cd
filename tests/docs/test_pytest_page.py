"""docs/pytest.md as a new user would follow it: its files in an empty folder, its commands in order."""

from __future__ import annotations

import configparser
import os
import re
import sys
from pathlib import Path

from support.plugin_project import PluginProject
from support.servers import ROOT

from stepfork.session import config

PAGE = (ROOT / "docs" / "pytest.md").read_text("utf-8")
FILES = re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)
INI = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)


def page_project(folder: Path) -> PluginProject:
    project = PluginProject(folder)
    for name in ("agenttools.py", "conftest.py", "pytest.ini"):
        (project.folder / name).unlink()
    for name, source in FILES:
        project.write(name, source)
    return project


def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    project = page_project(tmp_path / "project")
    assert [name for name, _ in FILES] == ["stock_tools.py", "conftest.py", "test_stock.py"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    count = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            ended = project._run(["sh", "-c", command], ".", {"PATH": path, "COLUMNS": "200"})
            assert ended.status == (1 if command.endswith("# exits with 1") else 0), (command, ended)
            for line in shown:
                assert line in ended.out + ended.err, (command, line, ended.out + ended.err)
            count += 1
    assert count == 8


def test_the_configuration_does_without_a_conftest(tmp_path: Path) -> None:
    project = page_project(tmp_path / "project")
    (project.folder / "conftest.py").unlink()
    (ini,) = INI
    project.write("pytest.ini", ini)
    project.test().expect(passed=2).says("3 newly recorded")
    project.test().expect(passed=2).says("3 calls replayed, 0 live")
    read = configparser.ConfigParser()
    read.read_string(ini)
    assert {f"stepfork_{name}" for name in config.NAMES} >= set(read["pytest"])
