"""Recorded calls as text, and the verdict on a replay."""

from __future__ import annotations

from typing import Any

import pytest

from stepfork.cassette.frame import End
from stepfork.core.model import Incoming, Recorded, Tagged
from stepfork.core.redaction import Redactor
from stepfork.report.calls import Numbered, is_failure
from stepfork.report.replay_report import Happened, Report, judge
from stepfork.report.text import answer, call_in_full, calls_text, question
from stepfork.session.run import Counts


def llm(request: Any, **outcome: Any) -> Recorded:
    return Recorded(Incoming("llm", "chat.completions", request), outcome)


def message(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": None, **fields}}]}


def test_an_llm_call_at_a_glance() -> None:
    asked = {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi\n"}],
    }
    call = llm(asked, response=message(content="hello"))
    assert question(call) == 'llm chat.completions m, 2 messages, last user: "hi\\n"'
    assert answer(call) == '-> "hello"'
    tool_call = {"function": {"name": "search", "arguments": '{"q":1}'}}
    assert answer(llm({}, response=message(tool_calls=[tool_call]))) == '-> search({"q":1})'
    assert answer(llm({}, response={"odd": 1}, status=429)) == '-> status 429 {"odd": 1}'
    assert answer(llm({}, text="plain")) == '-> "plain"'
    assert question(llm({"model": "m", "input": "words"})) == 'llm chat.completions m, "words"'


def test_a_stream_at_a_glance() -> None:
    raw = (
        'data: {"choices":[{"delta":{"content":"he"}}]}\n\ndata: {"choices":[{"delta":{"content":"y"}}]}\n\n'
    )
    assert answer(llm({}, stream={"raw": raw + "data: [DONE]\n\n"})) == '-> stream "hey"'
    assert answer(llm({}, stream={"raw": "data: 1\n\n"})) == '-> stream "data: 1\\n\\n"'


@pytest.mark.parametrize(
    ("outcome", "unfinished", "text", "failed"),
    [
        ({"result": Tagged("tuple", [1])}, False, "-> tuple([1])", False),
        ({"error": {"class": "a.b:Down", "args": ["x"]}}, False, 'raised a.b.Down("x")', True),
        ({"cancelled": True}, False, "cancelled", True),
        ({}, True, "unfinished: it was still running when the recording ended", True),
        ({"result": "y" * 500}, False, '-> "' + "y" * 98 + "…", False),
    ],
)
def test_how_a_call_ended(outcome: dict[str, Any], unfinished: bool, text: str, failed: bool) -> None:
    call = Recorded(Incoming("tool", "t", {}), outcome, 0, unfinished)
    assert answer(call) == text
    assert is_failure(call) is failed


def test_children_are_indented_below_their_parent() -> None:
    outer = Recorded(Incoming("tool", "outer", {}), {"result": 1})
    inner = Recorded(Incoming("tool", "in\nner", {"a": 1}), {"result": 2}, depth=1)
    text = calls_text([Numbered(12, (outer, inner))])
    assert text.splitlines() == [
        "  #12 tool outer",
        "        -> 1",
        '          tool in\\nner {"a": 1}',
        "            -> 2",
    ]


def test_one_call_in_full() -> None:
    args = {"text": "one\ntwo", "list": [1, {"a": []}], "empty": {}, "t": Tagged("tuple", ["x"])}
    call = Recorded(Incoming("tool", "note", args), {"result": None})
    shown = """\
#1 tool 'note'
args:
  text: |
    one
    two
  list:
    - 1
    -
      a: []
  empty: {}
  t:
    !tuple
      - "x"
result:
  null"""
    assert call_in_full(Numbered(1, (call,))) == shown


def verdict(happened: Happened, end: End | None, **more: Any) -> Report:
    options = {"has_expectation": False, "past_failure": "raise", "redactor": Redactor(), **more}
    return judge(happened, end, options.pop("expected", None), **options)


COUNTS = Counts(2, 2, 0, 0)


def returned(output: Any, **more: Any) -> Happened:
    return Happened(COUNTS, returned=True, output=output, **more)


@pytest.mark.parametrize(
    ("now", "fault"),
    [
        ({"a": 1, "b": [1, 2]}, ""),
        ({"a": 1, "b": [1]}, "behavior mismatch at 'b[1]': expected 2, got nothing"),
        ({"a": True, "b": [1, 2]}, "behavior mismatch at 'a': expected 1, got true"),
        ({"a": 1, "b": [1, 2], "c": 3}, "behavior mismatch at 'c': expected nothing, got 3"),
        ({"a": 1, "b": [2, 1]}, "behavior mismatch at 'b': the items are the same but their order differs"),
        (object(), "the output cannot be compared: output is of type object"),
    ],
)
def test_the_recorded_output_is_compared_exactly(now: Any, fault: str) -> None:
    report = verdict(returned(now), End("completed", output={"a": 1, "b": [1, 2]}, has_output=True))
    assert report.fault == fault
    assert report.verdict == ("DIFFERS" if fault else "PASSED")


def test_secrets_compare_by_their_place() -> None:
    key = "sk-" + "q7Xp" * 10
    recorded = Redactor().redact({"said": f"the key is {key}"})
    report = verdict(
        returned({"said": f"the key is {key}"}), End("completed", output=recorded, has_output=True)
    )
    assert report.verdict == "PASSED"
    report = verdict(returned({"said": key}), None, expected={"said": "x"}, has_expectation=True)
    assert report.verdict == "DIFFERS"
    assert key not in report.fault


def test_a_recorded_failure_without_secrets_and_with() -> None:
    key = "sk-" + "q7Xp" * 10
    form = Redactor().redact({"class": "builtins:ValueError", "args": [f"bad key {key}"]})
    end = End("failed", error=form)  # type: ignore[arg-type]
    happened = Happened(COUNTS, error=ValueError(f"bad key {key}"))
    assert verdict(happened, end).verdict == "REPRODUCED"
    assert key not in str(verdict(happened, end).outcome)
    assert verdict(Happened(COUNTS, error=TypeError(f"bad key {key}")), end).verdict == "DIFFERS"


def test_nothing_recorded_to_compare_with() -> None:
    assert verdict(returned(1), None).verdict == "PASSED"
    assert verdict(returned(1), End("completed")).verdict == "PASSED"
    ended = Happened(COUNTS)
    assert (
        verdict(ended, End("completed", output=1, has_output=True)).fault == "the run ended without an output"
    )
    assert verdict(ended, None, expected=1, has_expectation=True).fault == "the run ended without an output"
