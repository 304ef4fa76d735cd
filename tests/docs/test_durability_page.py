"""docs/durability.md: its commands in order, and its line for git."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import ROOT

from stepfork.cassette.store import StoredCassette

PAGE = (ROOT / "docs" / "durability.md").read_text("utf-8")

SHOP = """
import os
import signal

import shop_tools


def once():
    return shop_tools.count_stock("tea")


def killed():
    once()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop_tools.py").write_text("def count_stock(item):\n    return 3\n")
    (tmp_path / "shop.py").write_text(SHOP)
    assert (
        run(tmp_path, "stepfork record shop:once --tools shop_tools -o cassettes/shop.yaml").returncode == 0
    )
    return tmp_path


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = command.partition("  #")[0]
    return subprocess.run(
        ["/bin/sh", "-c", f"exec {words}"],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_C92_every_command_of_the_page_does_what_it_says(folder: Path) -> None:
    count = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            code = -signal.SIGKILL if "# is killed" in command else 1 if "# exits with 1" in command else 0
            done = run(folder, command)
            said = done.stdout + done.stderr
            assert done.returncode == code, f"{command}\n{said}"
            for line in shown:
                assert line in said, f"{command} does not show {line!r}:\n{said}"
            count += 1
    assert count == 9


def test_C06_the_line_for_git_keeps_the_line_ends_and_without_it_nothing_breaks(folder: Path) -> None:
    (line,) = re.findall(r"```\n(.*)\n```", PAGE)
    path = folder / "cassettes" / "shop.yaml"
    recorded = path.read_bytes()
    git = "git -c core.autocrlf=true -c user.name=x -c user.email=x@example.com"
    assert run(folder, "git init -q .").returncode == 0
    for attributes in ("", line + "\n"):
        (folder / ".gitattributes").write_text(attributes)
        assert run(folder, f"{git} add -A").returncode == 0
        assert run(folder, f"{git} commit -q -m x").returncode == 0
        path.unlink()
        assert run(folder, f"{git} checkout cassettes").returncode == 0
        assert path.read_bytes() == (recorded if attributes else recorded.replace(b"\n", b"\r\n"))
        assert StoredCassette(path).verdict == "ok"
        assert run(folder, "stepfork replay cassettes/shop.yaml --integrity error").returncode == 0
