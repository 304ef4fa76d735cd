#!/usr/bin/env python3
"""The whole way of a failure, from nothing: a real model answers, the bug shows, and becomes a test.

Starts the model, records a run of the buggy agent, stops the model, and goes on offline: replays, exports
the test, shows it red, applies the fix, shows it green. Works in a copy; the checkout stays as it is.
"""

import argparse
import difflib
import json
import shutil
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from model_server import MODEL, ModelServerError, running_model
from workspace import (
    CASSETTE,
    EXAMPLE,
    TOOLS,
    copy_agent,
    install_buggy_policy,
    install_fixed_policy,
    run,
)

import stepfork

RECORDING = "cassettes/incident_triage.yaml"
TEST = "tests/test_incident_triage.py"
SHOWN_LINES, SHOWN_WIDTH = 20, 140


class DemoError(Exception):
    """A step did not end as it should; the message says which and how."""


def main() -> int:
    options = argparse.ArgumentParser(description="Record a failing agent run, fix it, keep it as a test.")
    options.add_argument("--base-url", help="use this running server (http://.../v1) instead of starting one")
    options.add_argument("--folder", type=Path, help="work in this new folder and keep it")
    arguments = options.parse_args()
    try:
        if arguments.folder:
            demonstrate(arguments.folder, arguments.base_url)
        else:
            with tempfile.TemporaryDirectory() as temporary:
                demonstrate(Path(temporary) / "incident", arguments.base_url)
    except (DemoError, ModelServerError, OSError, stepfork.StepforkError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    return 0


def demonstrate(folder: Path, base_url: str | None) -> None:
    folder.mkdir(parents=True)
    copy_agent(folder)
    install_buggy_policy(folder)

    record_run(folder, base_url)
    expected = ["--expect-output", "expected.json"]
    heading("Replay: the same answers, and the agent gets it wrong again")
    show(["stepfork", "replay", RECORDING, *expected], folder, exit_code=1)
    heading("Export: the failure becomes a test")
    show(["stepfork", "export", RECORDING, "--pytest", *expected, "--output", TEST], folder)
    heading("Red")
    show(["pytest", "-q", "--tb=short", TEST], folder, exit_code=1, must_say="behavior mismatch")
    heading("The fix")
    print(policy_diff())
    install_fixed_policy(folder)
    heading("Green")
    show(["pytest", "-q", "--tb=short", TEST], folder, must_say="1 passed")
    show(["stepfork", "replay", RECORDING, *expected], folder)


def record_run(folder: Path, base_url: str | None) -> None:
    """Record the buggy agent against a live model; if it answers otherwise, take the committed recording."""
    model: AbstractContextManager[str]
    if base_url:
        model = nullcontext(base_url)
        heading("Record against the given server")
    else:
        model = running_model()
        heading("Start the model (SmolLM2-135M on llama.cpp) and record one run")
    command = ["stepfork", "record", "incident_triage.agent:run", "--tools", TOOLS]
    command += ["--args", '{"service": "checkout-api"}', "-o", RECORDING]
    with model as url:
        # If the model's answer is not even JSON, the agent raises and `record` ends with 1.
        live = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "not-needed", "INCIDENT_MODEL": MODEL}
        show(command, folder, exit_code=None, **live)
    if not base_url:
        print("The model is stopped; from here on everything is offline.")

    answer = model_answer(folder / RECORDING)
    if decision(answer) == json.loads((EXAMPLE / "expected.json").read_text(encoding="utf-8")):
        return
    print(f"Today the model answered otherwise: {answer.strip()}")
    print("The demo goes on from the committed recording, in which it said P0 with escalation.")
    shutil.copy(CASSETTE, folder / RECORDING)


def model_answer(cassette: Path) -> str:
    """Return the text that the model gave in the recorded run."""
    if not cassette.exists():
        raise DemoError("nothing was recorded")
    for call in stepfork.load(cassette).calls:
        if call.kind == "llm" and call.error is None and "choices" in call.result:
            return str(call.result["choices"][0]["message"]["content"])
    raise DemoError("the model gave no answer")


def decision(answer: str) -> dict[str, Any] | None:
    """Return what the answer decides, in the keys of expected.json, if it is a decision at all."""
    try:
        found = json.loads(answer)
        return {name: found[name] for name in ("escalation_required", "severity")}
    except (ValueError, TypeError, KeyError):
        return None


def show(
    command: list[str], folder: Path, *, exit_code: int | None = 0, must_say: str = "", **variables: str
) -> None:
    """Run a command, print it and what it said, and insist on how it ended."""
    print("$", " ".join(f"'{word}'" if " " in word else word for word in command), flush=True)
    ended = run(command, folder, **variables)
    # pytest reports on stdout; its stderr holds other plugins' warnings, of interest only if it broke.
    quiet = command[0] == "pytest" and ended.returncode <= 1
    said = (ended.stdout if quiet else ended.stdout + ended.stderr).strip().splitlines()
    for line in said if len(said) <= SHOWN_LINES else ["...", *said[-SHOWN_LINES:]]:
        print("  " + (line if len(line) <= SHOWN_WIDTH else line[: SHOWN_WIDTH - 1] + "…"))
    if exit_code is not None and ended.returncode != exit_code:
        raise DemoError(f"`{command[0]}` ended with {ended.returncode} where {exit_code} was due")
    if must_say not in ended.stdout:
        raise DemoError(f"`{command[0]}` did not say '{must_say}'")


def policy_diff() -> str:
    buggy, fixed = EXAMPLE / "buggy" / "policy.py", EXAMPLE / "incident_triage" / "policy.py"
    lines = difflib.unified_diff(
        buggy.read_text(encoding="utf-8").splitlines(),
        fixed.read_text(encoding="utf-8").splitlines(),
        "incident_triage/policy.py",
        "incident_triage/policy.py",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)


def heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
