"""What nobody foresaw while recording: the live run goes on, it is said at the end, nothing stays locked."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import ChatServer, completion, json_answer

import stepfork
from stepfork.cassette import emitter, reader
from stepfork.core.redaction import Redactor

TOOLS = """
def say(x):
    return x

def outer(x):
    return [say(1), x]

def yields(x):
    yield 1
    yield x
"""


def deep(levels: int) -> Any:
    value: Any = "the bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def check_the_next_one_works(path: Path, tools: Any) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        assert tools.say("again") == "again"
    assert [call.args["x"] for call in stepfork.load(path).calls] == ["again"]


@pytest.mark.parametrize("levels", [148, 190, 201, 260, 600])
@pytest.mark.parametrize("where", ["request", "response", "extended request"])
def test_a_deep_llm_call_is_recorded_or_refused_at_the_end(
    path: Path, tools: Any, server: ChatServer, levels: int, where: str
) -> None:
    more = {"deep": deep(levels)}
    if where == "response":
        server.answer = lambda body: json_answer(
            completion("fine", **(more if len(body["messages"]) == 1 else {}))
        )
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
    asked = {"metadata": more} if "request" in where else {}

    def agent() -> list[str]:
        said = [tools.say("before")]
        if where == "extended request":
            first = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "the first question " * 9}]
            )
            said.append(first.choices[0].message.content)
        message = {"role": "user", "content": "the first question " * 9}
        reply = client.chat.completions.create(model="m", messages=[message], extra_body=asked)
        said.append(reply.choices[0].message.content)
        said.append(tools.say("after"))
        reply = client.chat.completions.create(
            model="m", messages=[message, {"role": "user", "content": "and then?"}]
        )
        return [*said, reply.choices[0].message.content]

    expected = agent()
    error = None
    try:
        with stepfork.record(path, tools=[tools.__name__]) as run:
            assert agent() == expected, "the live run goes on undisturbed"
    except stepfork.RecordingError as found:
        error = found
    if error is not None:
        assert "nested" in str(error)
        assert error.call == "llm 'chat.completions'"
        assert levels > 190
        trajectory = stepfork.load(path)
        assert trajectory.status == "failed"
        assert trajectory.error["class"] == "stepfork.errors:RecordingError"
        assert len(trajectory.calls) == len(expected) - 1, "all others are there, in full"
        assert trajectory.calls[-1].args["messages"][1]["content"] == "and then?"
        assert run.counts.live == len(expected)
    else:
        assert levels <= 201
        with stepfork.replay(path) as run:
            assert agent() == expected
        assert run.counts.live == 0
    check_the_next_one_works(path, tools)


@pytest.mark.parametrize("levels", [140, 149, 160, 300, 900, 20_000])
@pytest.mark.parametrize("call", ["say", "outer", "yields"])
def test_a_deep_value_of_a_tool_is_recorded_or_refused_at_the_end(
    path: Path, tools: Any, levels: int, call: str
) -> None:
    value = deep(levels)
    error = None
    try:
        with stepfork.record(path, tools=[tools.__name__]):
            tools.say("before")
            made = getattr(tools, call)(value)
            found = list(made)[1] if call == "yields" else made[1] if call == "outer" else made
            assert found is value
            tools.say("after")
    except stepfork.RecordingError as refused:
        error = refused
    if error is not None:
        assert "nested" in str(error)
        assert call in str(error)
        assert levels >= 149
        assert stepfork.load(path).status == "failed"
        names = [recorded.name for recorded in stepfork.load(path).calls]
        assert (names[0], names[-1]) == ("say", "say")
    else:
        assert levels < 160
        assert len(stepfork.load(path).calls) == 3
    check_the_next_one_works(path, tools)


def test_a_deep_output_or_argument_of_the_run_is_a_clear_error(path: Path, tools: Any) -> None:
    odd: Any = 1
    for _ in range(120):
        odd = {1: odd}  # two levels each in the file
    with (
        stepfork.record(path, tools=[tools.__name__]) as run,
        pytest.raises(stepfork.RecordingError, match=r"the output cannot be recorded: .*nested"),
    ):
        run.set_output(odd)
    with (
        stepfork.record(path, tools=[tools.__name__]) as run,
        pytest.raises(stepfork.RecordingError, match=r"output.*nested"),
    ):
        run.set_output(deep(30_000))
    check_the_next_one_works(path, tools)


FAULTS = {
    "emitter": (emitter, "emit_document"),
    "redactor": (Redactor, "redact"),
    "reader": (reader, "parse_document"),
}


@pytest.mark.parametrize("fault", [ValueError("odd"), RecursionError(), KeyError("k"), MemoryError()])
@pytest.mark.parametrize("room", FAULTS)
def test_a_fault_of_ours_at_any_step_disturbs_no_run_and_locks_nothing(
    path: Path, tools: Any, monkeypatch: pytest.MonkeyPatch, room: str, fault: Exception
) -> None:
    """As if there were a bug in it: at each of its calls, one after the other."""
    owner, name = FAULTS[room]
    real = getattr(owner, name)
    check_the_next_one_works(path, tools)
    good = path.read_bytes()
    for at in range(60):
        count = 0

        def fails(*given: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at + 1:
                raise fault
            return real(*given, **more)

        seen: list[Any] = []
        error: Exception | None = None
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fails)
            try:
                with stepfork.record(path, tools=[tools.__name__]):
                    seen.append(tools.say("long " * 300))
                    seen.append(tools.outer("x"))
                    seen.append(tools.say("long " * 300))
                    seen.append(list(tools.yields("y")))
            except (stepfork.StepforkError, type(fault)) as found:
                error = found
        assert seen in ([], ["long " * 300, [1, "x"], "long " * 300, [1, "y"]])
        if seen and error is not None:
            assert isinstance(error, stepfork.RecordingError)
            assert path.read_bytes() == good, "it was a failed recording"
        if count <= at:
            break
        check_the_next_one_works(path, tools)
        good = path.read_bytes()
    assert at > 1, "the fault was never met"
    assert at < 59, "and once it was not"


class TimeIsUp(Exception):
    """What the handler of a signal raises."""


def test_a_signal_in_the_middle_of_a_call_is_named_as_what_it_is(
    path: Path, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, signals = Redactor.redact, [signal.SIGUSR1]

    def interrupted(*given: Any, **more: Any) -> Any:
        if signals:
            signal.raise_signal(signals.pop())
        return real(*given, **more)

    def handler(number: int, frame: Any) -> None:
        raise TimeIsUp("too slow")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with (
            pytest.raises(stepfork.RecordingError) as error,
            stepfork.record(path, tools=[tools.__name__]),
        ):
            monkeypatch.setattr(Redactor, "redact", interrupted)
            assert tools.say(1) == 1
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "TimeIsUp was raised while it was written down (too slow); if a signal handler" in str(error.value)
    assert "take and return less" not in str(error.value)


def test_the_recursion_limit_is_as_it_was(path: Path, tools: Any) -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(stepfork.RecordingError), stepfork.record(path, tools=[tools.__name__]):
        tools.say(deep(5_000))
    assert sys.getrecursionlimit() == before
    assert json.loads(json.dumps(stepfork.load(path).calls)) == []
