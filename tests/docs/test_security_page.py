"""docs/security.md: its example runs as told, its figures and its list are those of the corpus."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from support import secret_measure as measuring
from support.command import Project
from support.secret_corpus import CANNOT_BE_TOLD, negatives, positives
from support.servers import ROOT

from stepfork.session import config

PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    for name, source in zip(("bank.py", "agent.py"), blocks("python"), strict=True):
        project.write(name, source)
    return project


def test_the_example_says_what_it_says(project: Project) -> None:
    (console,) = blocks("console")
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        words = shlex.split(command)
        env = dict(word.split("=", 1) for word in words[: words.index("stepfork")])
        words = words[words.index("stepfork") :]
        ended = project.run(*words[1:], **env)
        assert ended.status == 0, ended
        for line in shown:
            assert line.strip() in ended.out, (command, line, ended.out)
    (yaml,) = blocks("yaml")
    assert "---\n".join(project.read("pay.yaml").split("---\n")[1:-1]) == yaml
    assert "correct-horse-battery" not in project.read("pay.yaml")


def test_the_settings_are_settings() -> None:
    (toml,) = blocks("toml")
    given = tomllib.loads(toml)["tool"]["stepfork"]
    layer = config.check(given, "the page")
    redactor = config.Settings(**layer).rules()
    assert redactor.keys == ("customer_number",)
    assert set(given) == {"redact_keys", "redact_patterns", "redact_allow"}


def test_the_list_of_what_cannot_be_told_is_the_corpus() -> None:
    table = PAGE.partition("| what | why |\n|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [f"| {name} | {why} |" for name, (_, why) in CANNOT_BE_TOLD.items()]


def test_the_figures_are_those_of_the_corpus() -> None:
    """Ours are measured again; ``secret_measure.py --docs`` measures the other detector too."""
    assert f"{len(positives())} texts with a secret and {len(negatives())} without" in PAGE
    figures = measuring.measure(measuring.ours)
    assert figures.row("stepfork") in PAGE
    for name in measuring.DETECTORS:
        (row,) = re.findall(rf"^\| {name} \| .*$", PAGE, re.MULTILINE)
        assert f" of {figures.texts} (" in row
        assert f" of {figures.clean_texts} (" in row
