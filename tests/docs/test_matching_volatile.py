"""docs/matching.md on directories and rules: its program gives its recording, its rules work."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import stepfork
from stepfork.core import directories, volatile

PAGE = (Path(__file__).parents[2] / "docs" / "matching.md").read_text("utf-8")
SHOP = """
import os
def export(folder):
    assert os.path.isabs(folder)
    return folder + "/today.csv"
def read(path):
    return "tea,3"
"""


def section(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def block(language: str, heading: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", section(heading), re.DOTALL)
    assert found
    return found[1]


def names(heading: str) -> list[str]:
    return re.findall(r"^\| `<?(\w+)>?` \|", section(heading), re.MULTILINE)


def test_the_program_gives_the_recording_and_replays_elsewhere(
    make_module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heading = "Home, temp and working directories"
    make_module(SHOP, "shop")
    agent = make_module(block("python", heading))
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with stepfork.record("run.yaml", tools=["shop"]):
        agent.agent()
    documents = Path("run.yaml").read_text().split("---\n")[1:-1]
    assert "---\n".join(documents) == block("yaml", heading)
    monkeypatch.chdir(tmp_path / "there")
    with stepfork.replay(tmp_path / "here" / "run.yaml"):
        assert agent.agent() == "tea,3"
    assert sorted(names(heading)) == sorted(directories.NAMES)


def test_the_rules_are_those_there_are(tmp_path: Path, make_module: Any) -> None:
    heading = "What is another text in every run"
    rules = tomllib.loads(block("toml", heading))["tool"]["stepfork"]["normalize"]
    assert names(heading) == [name for name in volatile.NAMES if name != volatile.PATHS]
    compiled = volatile.Rules.compile(volatile.read(rules))
    text = "run-17 on 2026-11-29 for 00000000-0000-4000-8000-000000000000"
    assert compiled.blur(text) == "<run> on <date> for <uuid>"
    shop = make_module(SHOP, "shop")
    with stepfork.record(tmp_path / "run.yaml", tools=["shop"]):
        shop.export(f"/{text}")
    with stepfork.replay(tmp_path / "run.yaml", normalize=rules):
        assert shop.export(f"/{text.replace('17', '18').replace('29', '30')}") == f"/{text}/today.csv"


def test_the_longest_counts_as_the_page_says(
    tmp_path: Path, make_module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = block("python", "What is another text in every run")
    make_module(SHOP, "shop")
    monkeypatch.chdir(tmp_path)
    make_module(program)
    with pytest.raises(stepfork.ReplayMismatchError):
        make_module(program.replace("again run-00000000", "again run-10000000"))
