"""Runs docs/hybrid.md: its files in an empty folder, its commands against a real model, its code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import ROOT, llama

from stepfork.session.prices import read_prices

PAGE = (ROOT / "docs" / "hybrid.md").read_text("utf-8")
FILE = re.compile(r"`(\w+\.\w+)`[^\n]*:\n\n```\w+\n(.*?)```", re.DOTALL)
ADDRESS = "http://127.0.0.1:8101/v1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILE.findall(PAGE):
        (tmp_path / name).write_text(text)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("stock_tools.py", "stock.py"),
        *("expected.json", "prices.toml"),
    }
    return tmp_path


def test_the_page_does_what_it_says(folder: Path) -> None:
    (console,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    (code,) = re.findall(r"```python\n(with .*?)```", PAGE, re.DOTALL)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "STEPFORK_"))
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def run(command: str, code: int) -> str:
        ended = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        output = ended.stdout + ended.stderr
        assert ended.returncode == code, f"{command}\n{output}"
        return output

    with llama() as url:
        export, *parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
        environment |= dict(word.split("=", 1) for word in export.replace(ADDRESS, url).split()[1:])
        for part in parts:
            command, *shown = part.rstrip("\n").split("\n")
            output = run(command, 1 if command.endswith("# exits with 1") else 0)
            for line in shown:
                assert line in output, f"{command} does not show {line!r}:\n{output}"
        assert re.search(r"1 request sent, \d+ tokens spent, estimated cost 0\.0000\d+ USD", output)
        (folder / "program.py").write_text(f"import stock\nimport stepfork\n\n{code}")
        run(f"{sys.executable} program.py", 0)
    assert len(parts) == 3


def test_the_table_of_prices_is_one(folder: Path) -> None:
    prices = read_prices(folder / "prices.toml")
    assert (prices.currency, list(prices.models)) == ("USD", ["smollm2-135m"])
