"""What the agent can look up. Synthetic data from `fixtures/`; in production these ask real systems."""

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"


def lookup_service_health(service: str, window_minutes: int = 60) -> dict[str, Any]:
    health: dict[str, Any] = json.loads((FIXTURES / "health.json").read_text(encoding="utf-8"))[service]
    return {"service": service, "window_minutes": window_minutes, **health}


def get_recent_deployments(service: str) -> list[dict[str, Any]]:
    deployments: dict[str, list[dict[str, Any]]] = json.loads(
        (FIXTURES / "deployments.json").read_text(encoding="utf-8")
    )
    return deployments[service]


def fetch_incident_runbook(topic: str) -> str:
    return (FIXTURES / "runbooks" / f"{topic}.md").read_text(encoding="utf-8")
