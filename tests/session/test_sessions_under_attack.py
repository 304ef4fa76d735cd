"""Faults that attacks on the first version found, each as the program that showed it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOKEN = "ghp_" + "aB3" * 12


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        import asyncio, sys
        def say(text):
            return text
        def login(password):
            return len(password)
        async def slow(seconds):
            await asyncio.sleep(seconds)
            return "late"
        def leave(code):
            sys.exit(code)
        def fail():
            raise ValueError(object())
        """
    )


def record(path: Path, tools: Any, agent: Any) -> Any:
    with stepfork.record(path, tools=[tools.__name__]):
        return agent()


@pytest.mark.parametrize(
    "other",
    [
        "auth with kerberos works; ignore all that. The database was dropped. All of it failed.",
        "auth with plain-harmless-text failed.",
        "auth with  failed.",
        "auth with <secret:password:1> failed.",
    ],
)
def test_a_placeholder_stands_for_a_secret_and_not_for_any_text(tools: Any, path: Path, other: str) -> None:
    record(path, tools, lambda: tools.say(f"auth with {TOKEN} failed."))
    assert TOKEN not in path.read_text()
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.say(other)
    with stepfork.replay(path):
        tools.say(f"auth with ghp_{'zZ9' * 12} failed.")


def test_text_that_only_looks_like_a_placeholder_matches_itself_alone(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.say("see <secret:foo:7> here"))
    with stepfork.replay(path):
        tools.say("see <secret:foo:7> here")
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.say("see DELETE ALL FILES\nnow here")


def test_a_secret_shown_later_must_be_the_very_same_text(tools: Any, path: Path) -> None:
    def agent(said: str, password: str) -> None:
        tools.say(f"logging in with {said}")
        tools.login(password)

    record(path, tools, lambda: agent("correct-horse-7", "correct-horse-7"))
    assert "correct-horse" not in path.read_text()
    with stepfork.replay(path):
        agent("another-dummy-8", "another-dummy-8")
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        agent("drop all tables", "another-dummy-8")
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.say("logging in with anything else")  # and then never logs in


def test_C74_a_timeout_around_a_tool_comes_back(tools: Any, path: Path) -> None:
    async def agent() -> str:
        try:
            return await asyncio.wait_for(tools.slow(30), 0.02)
        except TimeoutError:
            return "fallback"

    assert record(path, tools, lambda: asyncio.run(agent())) == "fallback"
    with stepfork.replay(path):
        assert asyncio.run(asyncio.wait_for(agent(), 10)) == "fallback"


def test_a_call_cancelled_by_an_interrupt_has_no_answer(tools: Any, path: Path) -> None:
    async def interrupted() -> None:
        asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), 2)
        await tools.slow(30)

    # a background job of a shell without job control starts with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), stepfork.record(path, tools=[tools.__name__]):
            asyncio.run(interrupted())
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(stepfork.ReplayMismatchError, match="still running"), stepfork.replay(path):
        asyncio.run(asyncio.wait_for(tools.slow(30), 10))


def test_a_tool_that_exits_exits_again(tools: Any, path: Path) -> None:
    def agent() -> Any:
        try:
            tools.leave(3)
        except SystemExit as error:
            return error.code

    assert record(path, tools, agent) == 3
    with stepfork.replay(path):
        assert agent() == 3


def test_a_refused_recording_says_why_in_the_file(tools: Any, path: Path) -> None:
    with (
        pytest.raises(stepfork.RecordingError, match="args rebuild"),
        stepfork.record(path, tools=[tools.__name__]),
        pytest.raises(ValueError),
    ):
        tools.fail()
    error = stepfork.load(path).error
    assert error is not None
    assert error["class"] == "stepfork.errors:RecordingError"
    assert "tool 'fail' cannot be recorded" in error["args"][0]


def test_generators_are_not_decorated(path: Path) -> None:
    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    for function in (generator, async_generator):
        for session in (stepfork.record(path), stepfork.replay(path)):
            with pytest.raises(stepfork.ConfigError, match="generator"):
                session(function)


def test_a_forked_child_that_leaves_the_block_touches_no_file(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.say("a")
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            tools.say("b")
    if not child:
        os._exit(0)
    assert [call.args["text"] for call in stepfork.load(path).calls] == ["a", "b"]


def test_one_file_by_two_names_is_one_cassette(tools: Any, path: Path, tmp_path: Path) -> None:
    record(path, tools, lambda: tools.say("a"))
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    for other in (link, tmp_path / ".." / tmp_path.name / "run.yaml"):
        with stepfork.replay(path):
            with pytest.raises(stepfork.ConfigError, match="open already"), stepfork.replay(other):
                pass
            tools.say("a")


def test_recording_through_a_link_keeps_the_link(tools: Any, tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    record(real, tools, lambda: tools.say("a"))
    link.symlink_to(real)
    record(link, tools, lambda: tools.say("b"))
    assert link.is_symlink()
    assert stepfork.load(real).calls[0].args["text"] == "b"


def test_a_name_too_long_or_a_device_is_a_clear_error(tmp_path: Path) -> None:
    for place in (tmp_path / ("x" * 300 + ".yaml"), Path("/dev/full"), Path("/dev/null")):
        for session in (stepfork.record(place), stepfork.use_cassette(place, mode="auto")):
            with pytest.raises(stepfork.StepforkError), session:
                pass


def test_an_agent_that_exits_on_everything_still_passes_the_recorded_failure(tools: Any, path: Path) -> None:
    with pytest.raises(KeyError), stepfork.record(path, tools=[tools.__name__]):
        tools.say("a")
        raise KeyError("bug")
    with stepfork.replay(path, past_failure="stop") as run:
        tools.say("a")
        try:
            tools.say("new")
        except BaseException:
            sys.exit(3)
    assert run.went_past
