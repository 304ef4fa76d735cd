"""Every line of the table that show.py prints, from the committed cassette, without a model or a key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def shown() -> dict[str, list[str]]:
    """The cells of each line, by the first."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLE / "show.py")],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [[cell.strip() for cell in line.split("|")] for line in ended.stdout.splitlines() if line]
    return {cells[0]: cells[1:] for cells in lines}


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("", ["before the fix", "after the fix"]),
        ("recorded model decision", ["P0", "P0"]),
        ("application decision", ["P1", "P0"]),
        ("escalation", ["false", "true"]),
        (
            "regression test",
            ["1 failed: behavior mismatch at 'escalation_required': expected true, got false", "1 passed"],
        ),
        ("calls recorded, substituted, tool bodies run, live requests", ["6, 6, 0, 0", "6, 6, 0, 0"]),
        ("a harmless refactor", ["passes"]),
        (
            "two tools swapped",
            [
                "refused: call #1: expected tool 'lookup_service_health'"
                " but the agent called 'get_recent_deployments'"
            ],
        ),
        (
            "window_minutes=120",
            [
                "refused: call #1: tool 'lookup_service_health' argument 'window_minutes':"
                " expected 60, got 120"
            ],
        ),
    ],
)
def test_table(shown: dict[str, list[str]], line: str, cells: list[str]) -> None:
    assert shown[line] == cells


def test_changed_prompt_is_refused_at_the_llm_call(shown: dict[str, list[str]]) -> None:
    (verdict,) = shown["a changed prompt"]
    assert verdict.startswith("refused: call #6: ")
    assert "messages[1].content" in verdict


def test_nothing_else_is_shown(shown: dict[str, list[str]]) -> None:
    assert len(shown) == 10
