#!/usr/bin/env python3
"""What the recording proves, from the cassette alone: no model, no network, no key.

Replays the recorded run against the buggy agent, the fixed one and a few changed ones, each in a copy of
its own and in a fresh process. Everything printed is what those processes answered.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from variants import apply_variant
from workspace import CASSETTE, EXAMPLE, copy_agent, install_buggy_policy, run

import stepfork

TEST = Path("tests") / "test_incident_triage.py"


def copy_checkout(folder: Path) -> Path:
    """Copy agent, exported test and cassette, placed as in the repository; gives the agent's folder."""
    agent = folder / "examples" / "incident_triage"
    agent.mkdir(parents=True)
    copy_agent(agent)
    (agent / "tests").mkdir()
    (agent / TEST).write_bytes((EXAMPLE / TEST).read_bytes())
    (folder / "cassettes").mkdir()
    (folder / "cassettes" / CASSETTE.name).write_bytes(CASSETTE.read_bytes())
    return agent


def replay(agent: Path) -> dict[str, Any]:
    """Return what `stepfork replay` reports about this version of the agent."""
    cassette = f"../../cassettes/{CASSETTE.name}"
    ended = run(["stepfork", "replay", cassette, "--expect-output", "expected.json", "--json"], agent)
    if ended.returncode > 1:
        raise RuntimeError(f"stepfork replay ended with {ended.returncode}:\n{ended.stderr}")
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def run_regression_test(agent: Path) -> str:
    """Run the exported test under pytest; gives `1 passed`, or `1 failed: ` and why."""
    ended = run(["pytest", "-q", "--junitxml=result.xml", str(TEST)], agent)
    if ended.returncode > 1:
        raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    suite = ElementTree.parse(agent / "result.xml").getroot()[0]
    failures = suite.findall("testcase/failure")
    if not failures:
        return f"{suite.get('tests')} passed"
    reason = failures[0].get("message", "").splitlines()[0].removeprefix("AssertionError: ")
    return f"{len(failures)} failed: {reason}"


def recorded_model_severity() -> str:
    answer = next(call for call in stepfork.load(CASSETTE).calls if call.kind == "llm").result
    return str(json.loads(answer["choices"][0]["message"]["content"])["severity"])


def column(agent: Path) -> dict[str, str]:
    replayed = replay(agent)
    counts = ("recorded", "substituted", "tool_bodies_executed", "live")
    return {
        "recorded model decision": recorded_model_severity(),
        "application decision": replayed["output"]["severity"],
        "escalation": json.dumps(replayed["output"]["escalation_required"]),
        "regression test": run_regression_test(agent),
        "calls recorded, substituted, tool bodies run, live requests": ", ".join(
            str(replayed[count]) for count in counts
        ),
    }


def verdict(variant: str, agent: Path) -> str:
    """Change the agent, replay it, and say what became of it."""
    apply_variant(variant, agent / "incident_triage")
    report = replay(agent)
    if report["mismatch"]:
        return "refused: " + report["mismatch"]["message"].splitlines()[0]
    return "passes" if report["verdict"] == "PASSED" else f"differs: {report['fault']}"


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        before = copy_checkout(folder / "before")
        install_buggy_policy(before)
        buggy, fixed = column(before), column(copy_checkout(folder / "after"))
        rows = [("", "before the fix", "after the fix")]
        rows += [(name, buggy[name], fixed[name]) for name in buggy]
        width, middle = (max(len(row[place]) for row in rows) for place in (0, 1))
        for name, left, right in rows:
            print(f"{name:<{width}} | {left:<{middle}} | {right}")

        print()
        changes = {
            "a harmless refactor": "refactored",
            "two tools swapped": "tools_swapped",
            "window_minutes=120": "wider_window",
            "a changed prompt": "changed_prompt",
        }
        width = max(map(len, changes))
        for change, variant in changes.items():
            print(f"{change:<{width}} | {verdict(variant, copy_checkout(folder / variant))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
