"""Which Pythons and SDKs the matrix runs on, and one environment for each. Knows no test.

The oldest and the newest of every major version of the SDK on one Python, the newest SDK on all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "matrix"
PYTHONS = ("3.11", "3.12", "3.13")
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""The Python that `make test` uses."""
SDKS = {
    "1-oldest": ["openai==1.40.0", "httpx<0.28"],  # it hands httpx an argument that 0.28 no longer takes
    "1-newest": ["openai>=1.40,<2"],
    "2-oldest": ["openai==2.0.0"],
    "2-newest": ["openai>=2,<3"],
    "3-oldest": [
        "openai==3.0.0",
        "httpx",
    ],  # httpx2 is what it needs, httpx what it also takes
    "3-newest": ["openai>=3,<4", "httpx"],
}
NEWEST = "3-newest"
TESTING = ["pytest>=8", "pytest-asyncio>=1.0", "hypothesis>=6.100"]


@dataclass(frozen=True)
class Environment:
    """One column of the matrix."""

    python: str
    sdk: str
    interpreter: Path

    @property
    def name(self) -> str:
        return f"openai-{self.sdk}-py{self.python}"

    @property
    def folder(self) -> Path:
        return BUILD / self.name

    @property
    def own(self) -> Path:
        """Its own interpreter."""
        return self.folder / "venv" / "bin" / "python"

    def make(self) -> None:
        """Installs what the tests need, once: a changed list of requirements makes it anew."""
        wanted = "\n".join(sorted([*SDKS[self.sdk], *TESTING, *_dependencies()]))
        stamp = self.folder / "requirements.txt"
        if self.own.exists() and stamp.exists() and stamp.read_text("utf-8") == wanted:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        run([str(self.interpreter), "-m", "venv", str(self.folder / "venv")], self.folder / "install.log")
        install = [str(self.own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*install, *wanted.split("\n")], self.folder / "install.log")
        stamp.write_text(wanted, "utf-8")


def _dependencies() -> list[str]:
    """What stepfork itself needs; it is imported from the checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["dependencies"])


def environments() -> tuple[list[Environment], list[str]]:
    """The environments, and the Pythons that were not found."""
    found = {version: interpreter for version in PYTHONS if (interpreter := _find(version)) is not None}
    base = HERE if HERE in found else next(iter(found))
    columns = [Environment(base, sdk, found[base]) for sdk in SDKS]
    columns += [Environment(python, NEWEST, found[python]) for python in found if python != base]
    return columns, [version for version in PYTHONS if version not in found]


def _find(version: str) -> Path | None:
    """A Python of this version that runs."""
    for place in _places(version):
        asked = [str(place), "-c", "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        except OSError:
            continue
        if said.returncode == 0 and said.stdout.strip() == version:
            return place
    return None


def _places(version: str) -> Iterator[Path]:
    if version == HERE:
        yield Path(sys.executable)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield Path(folder) / f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local" / "share" / "uv" / "python")
    for root in (pyenv, uv):
        yield from sorted(root.glob(f"*{version}*/bin/python{version}"))


def run(command: list[str], log: Path, **variables: str) -> None:
    """A command whose output only matters if it fails.

    Raises:
        SystemExit: with the end of its output.
    """
    if not attempt(command, log, **variables):
        end = log.read_text("utf-8", "replace").splitlines()[-40:]
        raise SystemExit("\n".join([f"failed: {' '.join(command)}", *end]))


def attempt(command: list[str], log: Path, **variables: str) -> bool:
    """Whether a command succeeds; its output goes to the end of `log`."""
    foreign = ("OPENAI_", "STEPFORK_", "PYTEST_", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", **variables}
    with log.open("ab") as output:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    return done.returncode == 0
