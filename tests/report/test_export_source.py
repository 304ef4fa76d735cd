"""The source of an exported test, from plans of every shape."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from stepfork.core.model import Tagged
from stepfork.report.export_pytest import Expectation, Plan, function_name, source_of_test

LONG = PurePosixPath("../" * 5, *["a-rather-long-folder-name"] * 4, "run.yaml")
PLAN = Plan("outage", PurePosixPath("cassettes/outage.yaml"), "agent", "run")
PLANS = {
    "plain": PLAN,
    "long paths": Plan("outage", LONG, "agent", "run", sys_path=LONG.parent),
    "long names": Plan(
        "a run with quite a long name, " * 9, PLAN.cassette, ".".join(["package"] * 7), "run_it_all" * 4
    ),
    "wide name": Plan("名前" * 30, PLAN.cassette, "agent", "run"),
    "async": Plan("x", PLAN.cassette, "agent", "run", is_async=True, args=["a" * 50, "b" * 50]),
    "named": Plan("x", PLAN.cassette, "agent", "run", args={"a": 1, "not a name": 2, "class": 3}),
    "one long argument": Plan("x", PLAN.cassette, "agent", "run", args=["word " * 40]),
    "failed": Plan("x", PLAN.cassette, "agent", "run", ending="failed", error='KeyError("""\\")\n' * 40),
    "partial": Plan("x", PLAN.cassette, "agent", "run", ending="partial"),
    "failed, expected": Plan(
        "x", PLAN.cassette, "agent", "run", ending="failed", expectation=Expectation({"a": True})
    ),
    "decimal": Plan(
        "x", PLAN.cassette, "agent", "run", expectation=Expectation(Tagged("decimal", "1.0"), exact=True)
    ),
    "dates": Plan(
        "x",
        PLAN.cassette,
        "agent",
        "run",
        is_async=True,
        expectation=Expectation(
            [
                Tagged("datetime", "2024-01-01T00:00:00Z"),
                Tagged("uuid", "00000000-0000-0000-0000-000000000000"),
            ]
        ),
        sys_path=PurePosixPath("."),
    ),
    "excluded": Plan("x", PLAN.cassette, "agent", "run", exclude=["agent:run", "tools:" + "f" * 70]),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_is_clean_under_ruff(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "test_made.py"
    path.write_text(source_of_test(plan), "utf-8")
    for command in (["check"], ["check", "--select", "E,F,I,B,UP"], ["format", "--diff"]):
        ruff = [sys.executable, "-m", "ruff", command[0], "--isolated", "--no-cache", *command[1:], str(path)]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr + path.read_text("utf-8")


@examples(100)
@given(st.text(max_size=120), st.text(max_size=120))
def test_c152_any_name_gives_a_valid_test(name: str, error: str) -> None:
    source = source_of_test(Plan(name, PLAN.cassette, "agent", "run", ending="failed", error=error))
    compile(source.encode("utf-8"), "test_made.py", "exec")
    made = function_name(name)
    assert made.isidentifier()
    assert made.isascii()
    assert made.startswith("test_")
    assert len(made) <= 70


def test_c152_names_that_mending_would_make_alike_stay_apart() -> None:
    names = ["1 bad/é class", "1 bad/e class", "1 bad/ë class", "é", "è", "", "!", "?", "名", "前"]
    assert len({function_name(name) for name in names}) == len(names)


def test_uses_the_public_api_alone() -> None:
    for plan in PLANS.values():
        for line in source_of_test(plan).splitlines():
            if "stepfork" in line and not line.startswith(('"""', "import stepfork")):
                assert "stepfork.replay(" in line or "stepfork.expect(" in line
