"""The agent: five look-ups, one question to a model, the team's policy.

The OpenAI client takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment, the model is INCIDENT_MODEL.
"""

import json
import os
from collections.abc import Callable
from typing import Any

from openai import OpenAI

from . import tools
from .policy import apply_policy
from .tools import fetch_incident_runbook, lookup_service_health

TOOLS: dict[str, Callable[..., Any]] = {
    "health": lookup_service_health,
    "deployments": tools.get_recent_deployments,
    "runbook": fetch_incident_runbook,
}

DECISION = {
    "type": "object",
    "properties": {
        "severity": {"type": "string", "enum": ["P0", "P1", "P2", "P3"]},
        "escalation_required": {"type": "boolean"},
        "summary": {"type": "string", "maxLength": 120},
    },
    "required": ["severity", "escalation_required", "summary"],
    "additionalProperties": False,
}

PROMPT = """\
Evidence:
{evidence}

Runbook:
{runbook}

Decide severity and escalation_required as the runbook says, and sum the incident up in one sentence."""


def run(service: str = "checkout-api") -> dict[str, Any]:
    health = lookup_service_health(service)
    deployments = TOOLS["deployments"](service)
    dependency = health["depends_on"]
    dependency_health = TOOLS["health"](dependency)
    dependency_deployments = tools.get_recent_deployments(dependency)
    runbook = fetch_incident_runbook("checkout-outage")

    evidence = describe(health, deployments) + describe(dependency_health, dependency_deployments)
    decision = ask_model(PROMPT.format(evidence="\n".join(evidence), runbook=runbook.strip()))
    return apply_policy(decision, deployments)


def describe(health: dict[str, Any], deployments: list[dict[str, Any]]) -> list[str]:
    name, latest = health["service"], deployments[0]
    affected = "customers affected" if health["customers_affected"] else "no customers affected"
    return [
        f"{name} is {health['status']}: error rate {health['error_rate_percent']}%, {affected}.",
        f"{name} {latest['version']} was deployed {latest['minutes_ago']} minutes ago.",
    ]


def ask_model(prompt: str) -> dict[str, Any]:
    completion = OpenAI().chat.completions.create(
        model=os.environ.get("INCIDENT_MODEL", "smollm2-135m"),
        messages=[
            {"role": "system", "content": "You triage incidents. Follow the runbook. Answer in JSON."},
            {"role": "user", "content": prompt},
        ],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "triage", "strict": True, "schema": DECISION},
        },
        temperature=0,
        max_tokens=200,
    )
    decision: dict[str, Any] = json.loads(completion.choices[0].message.content or "")
    return decision
