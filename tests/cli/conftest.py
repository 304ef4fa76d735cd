"""A project per test, and one recording of its agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture(scope="session")
def _recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = Project(tmp_path_factory.mktemp("recorded") / "project")
    assert made.record("agent:run", "--args", '{"service": "api"}').status == 0
    assert made.record("agent:crash", to="cassettes/crash.yaml").status == 1
    return str(made.folder)


@pytest.fixture
def recorded(project: Project, _recording: str) -> Project:
    """The project with ``cassettes/run.yaml`` (agent:run) and ``cassettes/crash.yaml`` (agent:crash)."""
    for name in ("run", "crash"):
        project.write(
            f"cassettes/{name}.yaml", Path(_recording, "cassettes", f"{name}.yaml").read_text("utf-8")
        )
    return project
