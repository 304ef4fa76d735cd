"""What a replay came to: the dependencies, the outcome, the verdict. Pure: objects in, a report out.

Knows what was recorded and what happened now; runs nothing and reads no file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from stepfork.cassette.frame import End
from stepfork.cassette.values import IMPORTED, ClassPolicy, Unsupported, encode
from stepfork.core.likeness import Likeness
from stepfork.core.matching import match
from stepfork.core.model import Incoming, Plain
from stepfork.core.redaction import Redactor
from stepfork.core.renaming import Apart
from stepfork.core.volatile import Rules
from stepfork.core.wording import spell, spell_pair
from stepfork.errors import ReplayMismatchError
from stepfork.report.answers import Answer, answers_json, answers_text
from stepfork.report.as_json import json_value
from stepfork.report.calls import error_text
from stepfork.session.expectation import expect
from stepfork.session.faults import incomplete
from stepfork.session.recorder import described, end_of
from stepfork.session.run import Counts
from stepfork.session.spending import Spending

Verdict: TypeAlias = Literal["PASSED", "REPRODUCED", "DIFFERS"]
_LEAF: Final = 200  # characters of a value in the report


@dataclass(frozen=True, slots=True)
class Happened:
    """What a run came to.

    Attributes:
        output: what it returned, if `returned`.
        error: what it raised, if it did; a `ReplayMismatchError` is kept apart as `mismatch`.
        went_past: whether it went on past a recorded failure and was stopped there.
        counts: the session's counts.
        missing: how many recorded calls it should have made and did not.
        notes: what else is worth saying.
        answers: where each answer came from, if some may have been live.
        spending: what live LLM calls took.
        classes: what cassettes may do with the classes that they name.
    """

    counts: Counts
    returned: bool = False
    output: Any = None
    error: BaseException | None = None
    mismatch: ReplayMismatchError | None = None
    went_past: bool = False
    missing: int = 0
    notes: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    spending: Spending = field(default_factory=Spending)
    classes: ClassPolicy = IMPORTED


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict and what led to it; `fault` says in words what differs, "" if nothing does."""

    verdict: Verdict
    outcome: str
    fault: str
    happened: Happened
    output: Plain
    error: dict[str, Plain] | None


def judge(
    happened: Happened,
    recorded: End | None,
    expected: Any,
    *,
    has_expectation: bool,
    past_failure: str,
    redactor: Redactor,
    rules: Rules | None = None,
) -> Report:
    """Compares what happened with the expectation, else with what was recorded (`recorded`: the end).

    `rules` say what differs between any two runs.
    """
    alike = Likeness(rules, bound=Apart(redactor.replays))
    output, unsupported = _plain(happened, redactor)
    error = None
    if happened.error is not None:
        error = end_of(happened.error, None, False, redactor, True, happened.classes).error

    def report(verdict: Verdict, outcome: str, fault: str = "") -> Report:
        return Report(verdict, outcome, fault, happened, output, error)

    if happened.mismatch is not None:
        return report("DIFFERS", "not compared, since the calls differ", str(happened.mismatch))
    refused = incomplete(recorded)
    failed = recorded is None or recorded.status == "failed"
    if happened.went_past:
        return report("PASSED", "went on past the recorded failure and was stopped there")
    if error is not None:
        ended = None if refused else recorded
        return report(*_judge_error(error, ended, has_expectation, happened.missing, alike))
    if has_expectation:
        fault = redactor.redact_text(_expectation_fault(happened, expected))
        outcome = "differs from the expectation" if fault else "equals the expectation"
        return report("DIFFERS" if fault else "PASSED", outcome, fault)
    if refused:
        mend = "when that is mended, record again; or say what should come out: --expect-output"
        return report("DIFFERS", "the recording is incomplete", f"{refused}; {mend}")
    if failed and recorded is not None and recorded.error is not None:
        was = error_text(recorded.error)
        if past_failure == "stop":
            return report("PASSED", f"no longer raises {was}")
        fault = f"the recorded run raised {was}, and this one did not raise"
        return report("DIFFERS", "the recorded failure did not come back", fault)
    if recorded is None or not recorded.has_output:
        return report("PASSED", "none was recorded, so there is nothing to compare")
    if unsupported:
        return report("DIFFERS", "cannot be compared", unsupported)
    fault = "the run ended without an output"
    if happened.returned:
        fault = _difference(recorded.output, output, alike)
    outcome = "differs from the recorded output" if fault else "equals the recorded output"
    return report("DIFFERS" if fault else "PASSED", outcome, fault)


def _plain(happened: Happened, redactor: Redactor) -> tuple[Plain, str]:
    if not happened.returned:
        return None, ""
    try:
        return redactor.redact(encode(happened.output, "output", happened.classes), raw=True), ""
    except Unsupported as problem:
        return None, f"the output cannot be compared: {described(problem)}"


def _judge_error(
    error: dict[str, Plain], recorded: End | None, has_expectation: bool, missing: int, alike: Likeness
) -> tuple[Verdict, str, str]:
    now = error_text(error)
    if has_expectation:
        return "DIFFERS", "the run raised", f"the run raised {now}, so it had no output to expect anything of"
    was = None if recorded is None else recorded.error
    if was is None:
        return "DIFFERS", "the run raised", f"the run raised {now}, and the recorded one did not"
    if not _is_again(was, error, alike):
        return "DIFFERS", "another failure", f"the recorded run raised {error_text(was)}, and this one {now}"
    if missing:
        fault = f"the recorded failure came back, but {missing} recorded call(s) were not made before it"
        return "DIFFERS", "the recorded failure came back earlier", fault
    return "REPRODUCED", f"the recorded failure came back: {now}", ""


def _is_again(recorded: dict[str, Plain], now: dict[str, Plain], alike: Likeness) -> bool:
    """Whether two exceptions are of one class and say the same, secrets apart."""
    if recorded.get("class") != now.get("class"):
        return False
    return _difference(recorded.get("args", []), now.get("args", []), alike) == ""


def _expectation_fault(happened: Happened, expected: Any) -> str:
    if not happened.returned:
        return "the run ended without an output"
    try:
        expect(happened.output, expected)
    except AssertionError as fault:
        return str(fault)
    return ""


def _difference(recorded: Plain, now: Plain, alike: Likeness) -> str:
    trial = alike.trial()
    then, here = Incoming("tool", "", recorded), Incoming("tool", "", now)
    mismatch = match(then, here, trial.same_text, asks_all=trial.asks_all)
    if mismatch is None:
        return ""
    old, new = spell_pair(mismatch.expected, mismatch.actual, _LEAF)
    place = f" at {mismatch.path!r}" if mismatch.path else ""
    if mismatch.order_only:
        return f"behavior mismatch{place}: the items are the same but their order differs"
    return f"behavior mismatch{place}: expected {old}, got {new}"


# -- the report as text and as JSON -----------------------------------------------------------------


def report_text(report: Report, cassette: str, entrypoint: str) -> str:
    """The report for people."""
    happened, counts = report.happened, report.happened.counts
    bodies = "body" if counts.tool_bodies_executed == 1 else "bodies"
    if happened.mismatch is not None:
        dependencies = "MISMATCH"
    elif happened.missing:
        dependencies = f"{happened.missing} recorded call(s) not made"
    else:
        dependencies = "matched"
    rows = [
        (
            "calls",
            f"{counts.recorded} recorded, {counts.substituted} substituted, {counts.live} live; "
            f"{counts.tool_bodies_executed} tool {bodies} executed",
        ),
        *([("live calls", happened.spending.text() or "no request sent")] if happened.answers else []),
        *(("", line) for line in answers_text(happened.answers)),
        ("dependencies", dependencies),
        ("outcome", report.outcome),
    ]
    if happened.returned and report.verdict == "DIFFERS":
        rows.append(("output", _cut(spell(report.output))))
    rows += [("note", note) for note in happened.notes]
    rows.append(("verdict", report.verdict))
    return "\n".join([f"replayed {entrypoint} from {cassette}", *(f"  {k:<13} {v}" for k, v in rows)])


def report_json(report: Report, cassette: str, entrypoint: str, recorded: End | None) -> dict[str, Any]:
    """The report for programs."""
    happened, counts, mismatch = report.happened, report.happened.counts, report.happened.mismatch
    return {
        "cassette": cassette,
        "entrypoint": entrypoint,
        "status": "partial" if recorded is None else recorded.status,
        "recorded": counts.recorded,
        "substituted": counts.substituted,
        "live": counts.live,
        "tool_bodies_executed": counts.tool_bodies_executed,
        **happened.spending.json(),
        "answers": answers_json(happened.answers),
        "dependencies_matched": mismatch is None and not happened.missing,
        "went_past": happened.went_past,
        "notes": list(happened.notes),
        "outcome": report.outcome,
        "output": json_value(report.output),
        "error": None if report.error is None else json_value(report.error),
        "fault": report.fault or None,
        "mismatch": None if mismatch is None else mismatch_json(mismatch),
        "verdict": report.verdict,
    }


def mismatch_json(mismatch: ReplayMismatchError) -> dict[str, Any]:
    """The attributes of a mismatch and its whole text."""
    return {
        "message": str(mismatch),
        "index": mismatch.index,
        "kind": mismatch.kind,
        "path": mismatch.path,
        "expected": _leaf(mismatch.expected),
        "actual": _leaf(mismatch.actual),
    }


def _leaf(value: Any) -> Any:
    try:
        return json_value(encode(value))
    except Unsupported:
        return repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LEAF else text[: _LEAF - 1] + "…"
