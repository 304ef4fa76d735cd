"""What the plugin and a conftest with ``autopatch()`` import: nothing heavy. The time is in benchmarks/."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugin_project import PluginProject

HEAVY = ("openai", "pydantic", "httpx2", "rich", "vcr", "click", "hypothesis")


@pytest.mark.parametrize("mode", ["replay", "record"])
def test_a_conftest_with_autopatch_imports_nothing_heavy(tmp_path: Path, mode: str) -> None:
    project = PluginProject(tmp_path / "project")
    project.write(
        "test_it.py", f"import sys\ndef test_it():\n    assert not set({HEAVY!r}) & set(sys.modules)\n"
    )
    project.test(mode=mode).expect(passed=1)
