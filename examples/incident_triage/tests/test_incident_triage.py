"""Replays the recorded run 'incident_triage'; written by `stepfork export`."""

import sys
from pathlib import Path

import stepfork

CASSETTE = Path(__file__).parent / "../../../cassettes/incident_triage.yaml"
sys.path.append(str(Path(__file__).parent / ".."))


def test_incident_triage() -> None:
    with stepfork.replay(CASSETTE):
        from incident_triage.agent import run as entrypoint

        outcome = entrypoint(service="checkout-api")
    stepfork.expect(outcome, {"escalation_required": True, "severity": "P0"})
