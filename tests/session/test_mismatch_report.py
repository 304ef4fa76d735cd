"""What a mismatch says of long texts and of what looks volatile: C81, and the rule that would do."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.core.wording import leaves


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module("def search(q, options=None):\n    return [q]\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def drift(tools: Any, path: Path, then: Any, now: Any, **settings: Any) -> str:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.search("tea", then)
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, **settings):
        tools.search("tea", now)
    return str(caught.value)


def test_the_words_that_differ_in_a_prompt_of_200_kb(tools: Any, path: Path) -> None:
    line = "The quick brown fox jumps over the lazy dog.\n"
    text = line * 2500 + "Refund order 17 at once.\n" + line * 2500
    message = drift(tools, path, text, text.replace("order 17", "order 1734"))
    assert len(message) < 4096
    lines = message.splitlines()
    assert "  from line 2501, character 112516:" in lines
    assert any("Refund order [-17-] at once." in one and one.startswith("  recorded: ") for one in lines)
    assert any("Refund order {+1734+} at once." in one and one.startswith("  now:      ") for one in lines)


UUIDS = ("7f3c1f0e-9c7b-4f0e-8a3e-0d5b6c7d8e9f", "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d")


@pytest.mark.parametrize(
    ("then", "now", "what"),
    [
        (f"ticket {UUIDS[0]} is open", f"ticket {UUIDS[1]} is open", "a UUID"),
        ({"on": "2026-11-28"}, {"on": "2026-11-29"}, "a date"),
        ("it is 09:30", "it is 10:45", "a time"),
        ({"file": "/var/lib/job-81/out.csv"}, {"file": "/var/lib/job-82/out.csv"}, "a path"),
        ({"tags": ["a", "b", "c"]}, {"tags": ["c", "a", "b"]}, "the order of its items"),
        ({"trace": "req_01hq8z3k5x"}, {"trace": "req_77abc9d0ef"}, "'options.trace'"),
    ],
)
def test_the_proposed_rule_does_it(tools: Any, path: Path, then: Any, now: Any, what: str) -> None:
    message = drift(tools, path, then, now)
    found = re.search(rf"^  only {what} differs; if it does in every run: (.*)$", message, re.MULTILINE)
    assert found, message
    settings = tomllib.loads(found[1])
    with stepfork.replay(path, **settings) as run:
        assert tools.search("tea", now) == ["tea"]
    assert run.counts.live == 0


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("refund order 1", "refund order 2"),
        ({"n": 1}, {"n": 2}),
        ({"a": "2026-11-28", "b": 1}, {"a": "2026-11-29", "b": 2}),
        ("on 2026-11-28 at noon", "on 2026-11-29 at midnight"),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a", "a"]}),
        ("short-1", "short-2"),
        (None, "2026-11-29"),
    ],
)
def test_what_is_a_real_change_gets_no_proposal(tools: Any, path: Path, then: Any, now: Any) -> None:
    message = drift(tools, path, then, now)
    assert "if it does in every run" not in message


def test_no_proposal_where_another_recorded_call_was_meant(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.search("2026-11-28")
        tools.search("2026-11-29")
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.search("2026-11-29")
    assert "the order of the calls changed" in str(caught.value)
    assert "in every run" not in str(caught.value)


@examples(100)
@given(
    before=st.text(max_size=300),
    old=st.text(max_size=300),
    new=st.text(max_size=300),
    after=st.text(max_size=300),
)
def test_the_marked_words_are_what_differs(before: str, old: str, new: str, after: str) -> None:
    then, now = before + old + after, before + new + after
    lines = leaves(then, now)
    assert sum(map(len, lines)) < 3000
    if len(lines) == 3 and "…" not in then + now:
        was = lines[1].removeprefix("recorded: ")
        here = lines[2].removeprefix("now:      ")
        assert was.count("[-") >= 1
        assert here.count("{+") >= 1
        place = re.fullmatch(r"from line (\d+), character (\d+):", lines[0])
        assert place
        at = int(place[2]) - 1
        assert then[:at] == now[:at]
        assert then[at : at + 1] != now[at : at + 1] or then == now
        assert int(place[1]) == then[:at].count("\n") + 1


@pytest.mark.parametrize(("calls", "said"), [(1, "1 call, which is used"), (2, "2 calls, all of them used")])
def test_one_call_more_than_recorded_is_told_in_words(calls: int, said: str, tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        for number in range(calls):
            tools.search(number)
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        for number in range(calls + 1):
            tools.search(number)
    assert str(caught.value).splitlines()[1] == f"  cassette: {path}, {said}"


def test_an_unknown_setting_is_told_in_one_sentence(path: Path) -> None:
    with pytest.raises(stepfork.ConfigError, match="unknown setting 'zzz'; the settings are mode, tools, "):
        stepfork.replay(path, zzz=1)
