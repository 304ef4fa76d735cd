"""The command line in a fresh process, the way a user runs it, and a project to run it in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOLS = """
def lookup(service, minutes=60):
    print("BODY lookup")
    return {"service": service, "rate": 72, "minutes": minutes}

def deployments(service):
    print("BODY deployments")
    return [("v2", 15)]
"""

AGENT = """
import os
import sys
import tools

def run(service="checkout"):
    print("the agent speaks")
    health = tools.lookup(service)
    tools.deployments(service)
    return {"severity": "P1", "rate": health["rate"]}

async def arun(service="checkout"):
    return run(service)

def swapped(service="checkout"):
    tools.deployments(service)
    tools.lookup(service)

def wider(service="checkout"):
    tools.lookup(service, 120)

def swallowing(service="checkout"):
    try:
        tools.lookup(service, 120)
    except Exception:
        pass
    return {"severity": "P1", "rate": 72}

def exiting(service="checkout"):
    try:
        tools.lookup(service, 120)
    except Exception:
        sys.exit(0)

def early(service="checkout"):
    sys.exit(0)

def crash(service="checkout"):
    tools.lookup(service)
    tools.deployments(service)
    raise KeyError("owner")

def crash_otherwise(service="checkout"):
    tools.lookup(service)
    tools.deployments(service)
    raise KeyError("another")

def crash_sooner(service="checkout"):
    tools.lookup(service)
    raise KeyError("owner")

def fixed(service="checkout"):
    tools.lookup(service)
    tools.deployments(service)
    return {"severity": "P0"}

def fixed_further(service="checkout"):
    tools.lookup(service)
    tools.deployments(service)
    tools.lookup("payments")
    return {"severity": "P0"}

def ends_with(how, code=None):
    tools.lookup("a")
    tools.deployments("a")
    raise getattr(__import__("builtins"), how)(code)

def variable(name="REGION"):
    return os.environ.get(name)

class Agent:
    pass

def generates():
    yield 1

async def agenerates():
    yield 1

calls = len
number = 3
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The only line on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


class Project:
    """A folder with an agent and tools, and commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.write("tools.py", TOOLS)
        self.write("agent.py", AGENT)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
        return path

    def read(self, name: str) -> str:
        return (self.folder / name).read_text("utf-8")

    def run(self, *arguments: str, cwd: str = ".", **variables: str) -> Ended:
        """``stepfork ARGUMENTS``."""
        return self._run([sys.executable, "-m", "stepfork", *arguments], cwd, variables)

    def record(self, entrypoint: str, *arguments: str, to: str = "cassettes/run.yaml", **env: str) -> Ended:
        return self.run("record", entrypoint, "--tools", "tools", "-o", to, *arguments, **env)

    def pytest(self, *arguments: str, cwd: str = ".", **variables: str) -> Ended:
        """pytest with nothing but stepfork's plugin."""
        plugins = ["-p", "stepfork.pytest_plugin", "-p", "no:cacheprovider"]
        environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
        return self._run([sys.executable, "-m", "pytest", "-q", *plugins, *arguments], cwd, environment)

    def _run(self, command: list[str], cwd: str, variables: dict[str, str]) -> Ended:
        foreign = ("OPENAI_", "STEPFORK_", "PYTEST_", "PYTHONPATH", "CI")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", **variables}
        done = subprocess.run(
            command,
            cwd=self.folder / cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)
