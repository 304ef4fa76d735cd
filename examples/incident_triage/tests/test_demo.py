"""demo.py against servers that answer as the real model rarely or never does."""

import subprocess
import sys
from pathlib import Path

import demo
import pytest
from provider import decision, provider

EXAMPLE = Path(__file__).resolve().parents[1]
COMMITTED = EXAMPLE.parents[1] / "cassettes" / "incident_triage.yaml"


def run_demo(base_url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), "--base-url", base_url, "--folder", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def assert_red_then_green(output: str) -> None:
    red, green = output.index("== Red"), output.index("== Green")
    assert "behavior mismatch at 'escalation_required': expected true, got false" in output[red:green]
    assert "1 failed" in output[red:green]
    assert "1 passed" in output[green:]


def test_the_expected_answer_is_what_the_demo_goes_on_with(tmp_path: Path) -> None:
    with provider(decision("P0", True)) as base_url:
        ended = run_demo(base_url, tmp_path / "demo")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "answered otherwise" not in ended.stdout
    assert "Said today." in (tmp_path / "demo/cassettes/incident_triage.yaml").read_text(encoding="utf-8")
    assert_red_then_green(ended.stdout)


@pytest.mark.parametrize("answer", [decision("P2", False), "I am sorry."], ids=["P2", "no JSON"])
def test_another_answer_is_told_and_the_committed_recording_used(answer: str, tmp_path: Path) -> None:
    with provider(answer) as base_url:
        ended = run_demo(base_url, tmp_path / "demo")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"Today the model answered otherwise: {answer}" in ended.stdout
    assert (tmp_path / "demo/cassettes/incident_triage.yaml").read_bytes() == COMMITTED.read_bytes()
    assert_red_then_green(ended.stdout)


@pytest.mark.parametrize(
    "answer", [decision("P0", False), decision("P1", True), "[1]", '"P0"', '{"severity": "P0"}', ""]
)
def test_only_p0_with_escalation_is_the_expected_decision(answer: str) -> None:
    expected = {"escalation_required": True, "severity": "P0"}
    assert demo.decision(decision("P0", True)) == expected
    assert demo.decision(answer) != expected


def test_a_server_that_refuses_fails_the_demo(tmp_path: Path) -> None:
    with provider("no such model", status=404) as base_url:
        ended = run_demo(base_url, tmp_path / "demo")
    assert ended.returncode == 1
    assert ended.stderr.strip() == "The demo failed: the model gave no answer"
    assert "no such model" in ended.stdout


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    ended = run_demo("http://127.0.0.1:9/v1", tmp_path)
    assert ended.returncode == 1
    assert "The demo failed: " in ended.stderr
    assert list(tmp_path.iterdir()) == []
