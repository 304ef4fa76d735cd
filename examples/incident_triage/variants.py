"""The agent as somebody might change it: each variant is a few exact text replacements in the package."""

from pathlib import Path
from typing import NamedTuple


class Edit(NamedTuple):
    """Text that stands exactly once in a file of the package, and what takes its place."""

    file: str
    old: str
    new: str


FIRST_TWO_CALLS = """\
    health = lookup_service_health(service)
    deployments = TOOLS["deployments"](service)
"""

VARIANTS: dict[str, list[Edit]] = {
    # Harmless: the same calls from other code.
    "refactored": [
        Edit(
            "agent.py",
            FIRST_TWO_CALLS
            + """\
    dependency = health["depends_on"]
    dependency_health = TOOLS["health"](dependency)
    dependency_deployments = tools.get_recent_deployments(dependency)
""",
            """\
    health, deployments = look_up(service)
    dependency_health, dependency_deployments = look_up(health["depends_on"])
""",
        ),
        Edit(
            "agent.py",
            "def describe(",
            """\
def look_up(service: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return TOOLS["health"](service=service, window_minutes=60), tools.get_recent_deployments(service)


def describe(""",
        ),
    ],
    "tools_swapped": [
        Edit("agent.py", FIRST_TWO_CALLS, "".join(reversed(FIRST_TWO_CALLS.splitlines(keepends=True))))
    ],
    "wider_window": [
        Edit(
            "agent.py",
            "health = lookup_service_health(service)\n    deployments",
            "health = lookup_service_health(service, window_minutes=120)\n    deployments",
        )
    ],
    "changed_prompt": [Edit("agent.py", "sum the incident up in one sentence", "say what happened")],
    "runbook_first": [
        Edit(
            "agent.py",
            "Evidence:\n{evidence}\n\nRunbook:\n{runbook}\n",
            "Runbook:\n{runbook}\n\nEvidence:\n{evidence}\n",
        )
    ],
}


def apply_variant(name: str, package: Path) -> None:
    """Turn the agent in `package` into the variant."""
    for file, old, new in VARIANTS[name]:
        text = (package / file).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"variant {name}: text stands {text.count(old)} times in {file}, not once")
        (package / file).write_text(text.replace(old, new), encoding="utf-8")
