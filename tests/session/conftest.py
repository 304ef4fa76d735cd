"""What most tests of sessions need. A file that records elsewhere has a fixture of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's cassette goes."""
    return tmp_path / "run.yaml"
