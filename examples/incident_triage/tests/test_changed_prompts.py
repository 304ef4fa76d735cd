"""changed_prompts.py: two prompts on recorded evidence, against servers and against the real model."""

import subprocess
import sys
from pathlib import Path

import pytest
from model_server import running_model
from provider import decision, provider

EXAMPLE = Path(__file__).resolve().parents[1]
CASSETTE = EXAMPLE.parents[1] / "cassettes" / "incident_triage.yaml"
HONEST = "One answer each: this is what the model said now, and proves nothing about a prompt."
COUNTS = "5 substituted, 1 sent, 0 tool bodies run"


def run_script(base_url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "changed_prompts.py"), "--base-url", base_url],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def cells(ended: subprocess.CompletedProcess[str]) -> list[list[str]]:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *lines, last = ended.stdout.splitlines()
    assert last == HONEST
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (decision("P0", True), "P0, escalate: as expected"),
        (decision("P2", False), "P2, do not escalate: not as expected"),
    ],
)
def test_what_the_model_says_decides_and_the_evidence_stays(answer: str, verdict: str) -> None:
    before = CASSETTE.read_bytes()
    with provider(answer) as base_url:
        shown = cells(run_script(base_url))
    changes = ["say what happened", "the runbook before the evidence"]
    assert shown == [[change, verdict, COUNTS] for change in changes]
    assert CASSETTE.read_bytes() == before


def test_an_answer_that_is_no_decision_is_told() -> None:
    with provider("I am sorry.") as base_url:
        shown = cells(run_script(base_url))
    assert all(verdict.startswith("no decision (the run raised ") for _, verdict, _ in shown)


def test_a_model_that_cannot_be_asked_is_told() -> None:
    with provider("no such model", status=404) as base_url:
        shown = cells(run_script(base_url))
    assert all("no such model" in verdict for _, verdict, _ in shown)


def test_the_real_model_is_asked_once_for_each_prompt() -> None:
    with running_model() as base_url:
        shown = cells(run_script(base_url))
    assert [counts for *_, counts in shown] == [COUNTS, COUNTS]
