#!/usr/bin/env python3
"""Two changed prompts against a live model: the evidence stays as recorded, only the question is new.

Each change is made in a copy of the fixed agent, which is replayed in mode `hybrid`: the five tools are
answered from the cassette and do not run, the model is really asked. One answer each: it shows what the model
said now, and proves nothing about a prompt.
"""

import argparse
import json
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from model_server import MODEL, ModelServerError, running_model
from show import copy_checkout
from variants import apply_variant
from workspace import CASSETTE, run

CHANGES = {"say what happened": "changed_prompt", "the runbook before the evidence": "runbook_first"}


def ask_live(agent: Path, base_url: str) -> dict[str, Any]:
    """Return what `stepfork replay --mode hybrid` reports about this version of the agent."""
    command = ["stepfork", "replay", f"../../cassettes/{CASSETTE.name}", "--mode", "hybrid", "--live", "llm"]
    command += ["--expect-output", "expected.json", "--json"]
    live = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "not-needed", "INCIDENT_MODEL": MODEL}
    ended = run(command, agent, **live)
    if ended.returncode > 1:
        raise RuntimeError(f"stepfork replay ended with {ended.returncode}:\n{ended.stderr}")
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def said(report: dict[str, Any]) -> str:
    """What the model decided, and what became of it."""
    output = report["output"]
    if output is None:
        return f"no decision ({report['fault']})"
    escalate = "escalate" if output["model_escalation"] else "do not escalate"
    expected = "as expected" if report["verdict"] == "PASSED" else "not as expected"
    return f"{output['model_severity']}, {escalate}: {expected}"


def main() -> int:
    options = argparse.ArgumentParser(description="Ask a model two changed prompts on recorded evidence.")
    options.add_argument("--base-url", help="use this running server (http://.../v1) instead of starting one")
    base_url = options.parse_args().base_url
    model: AbstractContextManager[str] = nullcontext(base_url) if base_url else running_model()
    try:
        with tempfile.TemporaryDirectory() as temporary, model as url:
            for change, variant in CHANGES.items():
                agent = copy_checkout(Path(temporary) / variant)
                apply_variant(variant, agent / "incident_triage")
                report = ask_live(agent, url)
                counts = ", ".join(
                    f"{report[key]} {what}"
                    for key, what in (
                        ("substituted", "substituted"),
                        ("requests", "sent"),
                        ("tool_bodies_executed", "tool bodies run"),
                    )
                )
                print(f"{change:<31} | {said(report)} | {counts}", flush=True)
    except (ModelServerError, RuntimeError) as error:
        print(f"The runs failed: {error}", file=sys.stderr)
        return 1
    print("One answer each: this is what the model said now, and proves nothing about a prompt.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
