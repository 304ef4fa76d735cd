"""pytest in a process of its own, with stepfork's plugin and, unless asked for, no other. Knows no project.

Each plugin that is installed beside costs every run its import, which is more than most of the runs take.
"""

from __future__ import annotations

import os

import pytest

ALONE = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"


def lone_project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project whose runs load stepfork's plugin alone, and find warnings to be errors."""
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    monkeypatch.setenv(ALONE, "1")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def load_all_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on each run finds its plugins as it does at a user's: by their entry points."""
    monkeypatch.delenv(ALONE)


def run_pytest(project: pytest.Pytester, *args: str, mode: str | None = None) -> pytest.RunResult:
    """``pytest --stepfork-mode=MODE ARGS``; without a mode the option is left out."""
    plugins = (
        ("-p", "stepfork.pytest_plugin")
        if ALONE in os.environ
        else ("-o", "asyncio_default_fixture_loop_scope=function")
    )
    options = () if mode is None else (f"--stepfork-mode={mode}",)
    return project.runpytest_subprocess(*plugins, "-p", "no:cacheprovider", *options, *args)
