"""What the team does with the model's decision."""

from typing import Any

RECENT_MINUTES = 30


def apply_policy(decision: dict[str, Any], deployments: list[dict[str, Any]]) -> dict[str, Any]:
    severity = decision["severity"]
    escalation_required = decision["escalation_required"]
    first_step = "look at the dashboards"

    recent = [each for each in deployments if each["minutes_ago"] <= RECENT_MINUTES]
    if recent:
        # Likely a bad deployment: roll back first, wake people up later.
        first_step = f"roll back {recent[0]['version']}"
        if severity == "P0":
            severity = "P1"
            escalation_required = False

    return {
        "severity": severity,
        "escalation_required": escalation_required,
        "first_step": first_step,
        "summary": decision["summary"],
        "model_severity": decision["severity"],
        "model_escalation": decision["escalation_required"],
    }
