"""A copy of the agent in a folder of its own, and commands run there as a user runs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent
CASSETTE = EXAMPLE.parents[1] / "cassettes" / "incident_triage.yaml"
TOOLS = "incident_triage.tools"


def copy_agent(folder: Path) -> None:
    """Copy what a team would have in its repository: the agent and the expected outcome."""
    shutil.copytree(
        EXAMPLE / "incident_triage", folder / "incident_triage", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(EXAMPLE / "expected.json", folder)


def install_buggy_policy(folder: Path) -> None:
    shutil.copy(EXAMPLE / "buggy" / "policy.py", folder / "incident_triage" / "policy.py")


def install_fixed_policy(folder: Path) -> None:
    shutil.copy(EXAMPLE / "incident_triage" / "policy.py", folder / "incident_triage" / "policy.py")


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `stepfork ...` or `pytest ...` in a fresh process with no key and no settings but `variables`."""
    program = shutil.which(command[0], path=str(Path(sys.executable).parent))
    if program is None:
        raise FileNotFoundError(f"{command[0]} is not installed beside {Path(sys.executable).name}")
    foreign = ("OPENAI_", "INCIDENT_", "STEPFORK_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    # Two policies may have equal size and time: never leave compiled files behind.
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
