"""That the random tests draw what they are told to, and the same each time. Knows no code of stepfork."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

TESTS = Path(__file__).parents[1]
INI = "[pytest]\naddopts = -p no:stepfork\npythonpath = {tests}\n"
CONFTEST = """
from support.examples import factor, register
register()
def pytest_configure():
    factor()
"""
DRAWS = """
from hypothesis import given, strategies as st
from support.examples import examples
drawn = []
@examples(7)
@given(st.integers())
def test_draws(number):
    drawn.append(number)
def test_told():
    print("DRAWN", len(drawn), drawn)
"""


@pytest.mark.parametrize("said", ["x", "0", "-1", "1.5", "", "²"])
def test_a_number_of_examples_that_is_none_ends_the_run(
    said: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini(INI.format(tests=TESTS))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(DRAWS)
    monkeypatch.setenv("EXAMPLES", said)
    done = pytester.runpytest_subprocess()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(
        [f"ERROR: EXAMPLES is {said!r}, not a whole number from 1 up: correct or unset it"]
    )


def test_the_examples_are_as_many_as_told_and_the_same_each_time_unless_random(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini(INI.format(tests=TESTS))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(DRAWS)
    monkeypatch.setenv("EXAMPLES", "4")

    def drawn(*options: str) -> str:
        done = pytester.runpytest_subprocess("-s", *options)
        (line,) = [line for line in done.outlines if "DRAWN" in line]
        return line.partition("DRAWN ")[2]

    assert drawn().startswith("28 ")
    assert drawn() == drawn()
    assert drawn("--hypothesis-profile=random") != drawn()


def test_no_test_has_settings_of_its_own() -> None:
    """What EXAMPLES and the profile say reaches every test that draws."""
    for path in TESTS.rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name != "examples.py":
            assert not re.search(r"from hypothesis import .*\bsettings\b", text), path
        if path != Path(__file__):
            draws, told = (
                len(re.findall(r"(?m)^ *@given\b", text)),
                set(re.findall(r"(\w+) = examples\(", text)),
            )
            marks = len(re.findall(rf"(?m)^ *@(?:{'|'.join(['examples', *told])})\b", text))
            assert draws == marks, f"{path}: {draws} tests that draw, {marks} that say how many"


@examples(1)
@given(st.none())
def test_the_mark_that_make_fuzz_selects_by_is_there(request: pytest.FixtureRequest, nothing: None) -> None:
    assert request.node.get_closest_marker("hypothesis") is not None
