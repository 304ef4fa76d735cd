"""A folder with tools and tests, run by pytest in a process of its own, beside the plugins asked for.

The plugins that change every run beside which they are installed live in an environment of their own.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from support.command import Project
from support.servers import ROOT

PLUGINS = ROOT / ".venv-plugins" / "bin" / "python"
TOOLS = """
def search(q):
    with open("bodies.txt", "a") as file:
        file.write(f"{q}\\n")
    return [q, 1]
"""
CONFTEST = """
import stepfork
stepfork.autopatch(tools=["agenttools"])
"""
_OUTCOME = re.compile(r"(\d+) (passed|failed|error|skipped|xfailed|rerun|deselected)s?\b")


@dataclass(frozen=True)
class Session:
    """How a run of pytest ended."""

    status: int
    out: str

    @property
    def outcomes(self) -> dict[str, int]:
        last = [line for line in self.out.splitlines() if _OUTCOME.search(line) and " in " in line][-1:]
        return {what: int(number) for number, what in _OUTCOME.findall("".join(last))}

    def expect(self, **outcomes: int) -> Session:
        assert self.outcomes == outcomes, self.out
        return self

    def says(self, *texts: str) -> Session:
        for text in texts:
            assert text in self.out, f"{text!r} is not in:\n{self.out}"
        return self


class PluginProject(Project):
    """Tests beside plugins of pytest. `plugins` are names of entry points; None loads all that are there."""

    def __init__(self, folder: Path, *plugins: str, every: bool = False, ini: str = "") -> None:
        self.folder = folder
        self.plugins = plugins
        self.every = every
        folder.mkdir(exist_ok=True)
        self.write("agenttools.py", TOOLS)
        self.write("conftest.py", CONFTEST)
        self.write("pytest.ini", f"[pytest]\nfilterwarnings = error\n{ini}\n")

    def test(self, *arguments: str, mode: str = "", **variables: str) -> Session:
        """pytest; `mode` is that of ``--stepfork-mode``."""
        python = str(PLUGINS) if self.plugins or self.every else sys.executable
        assert Path(python).exists(), "the plugins are not installed: run the tests with 'make test'"
        chosen = [] if self.every else [f"-p{name}" for name in (*self.plugins, "stepfork")]
        options = [f"--stepfork-mode={mode}"] if mode else []
        environment = {"COLUMNS": "200", "PYTHONPATH": str(self.folder), **variables}
        if not self.every:
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        command = [python, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider"]
        ended = self._run([*command, *chosen, *options, *arguments], ".", environment)
        return Session(ended.status, ended.out + ended.err)

    @property
    def bodies(self) -> list[str]:
        """What the tool was really asked, sorted."""
        path = self.folder / "bodies.txt"
        return sorted(path.read_text().split()) if path.exists() else []

    @property
    def files(self) -> dict[str, bytes]:
        """All files in the cassette folder."""
        folder = self.folder / "cassettes"
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}

    def record_and_replay(self, *arguments: str, **outcomes: int) -> None:
        """Both end alike; replay runs no body and leaves the cassettes as they are."""
        self.test(*arguments, mode="record").expect(**outcomes)
        files, bodies = self.files, self.bodies
        assert files
        self.test(*arguments).expect(**outcomes).says(" 0 live, 0 newly recorded")
        assert (self.files, self.bodies) == (files, bodies)
