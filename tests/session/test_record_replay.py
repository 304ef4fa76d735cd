"""Recording and replaying plain tools through the public API."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import stepfork

TOOLS = """
    import asyncio
    bodies = []
    def lookup(service, window_minutes=60):
        bodies.append("lookup")
        return {"service": service, "rate": 0.72}
    def deployments(service):
        bodies.append("deployments")
        return [{"id": "d1", "minutes_ago": 15}]
    def write(text):
        bodies.append("write")
        if len([b for b in bodies if b == "write"]) == 1:
            raise OSError(28, "No space left on device", text)
        return len(text)
    def outer(q):
        bodies.append("outer")
        return inner(q) + 1
    def inner(q):
        bodies.append("inner")
        return len(q)
    async def later(n):
        bodies.append("later")
        await asyncio.sleep(0)
        return (n, n + 1)
    def boom():
        bodies.append("boom")
        raise KeyboardInterrupt
    def leave(code):
        raise SystemExit(code)
    def mint():
        bodies.append("mint")
        return object
    def counter():
        bodies.append("counter")
        return len(bodies)
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def record(path: Path, tools: Any, run_it: Any) -> Any:
    with stepfork.record(path, tools=[tools.__name__]) as run:
        output = run_it()
        run.set_output(output)
    return output


def test_a_recording_replays_without_running_a_body(tools: Any, path: Path) -> None:
    def agent() -> list[Any]:
        return [tools.lookup("checkout"), tools.deployments(service="checkout"), asyncio.run(tools.later(3))]

    recorded = record(path, tools, agent)
    tools.bodies.clear()
    with stepfork.replay(path) as run:
        assert stepfork.is_replaying()
        assert agent() == recorded
    assert tools.bodies == []
    assert run.counts == type(run.counts)(recorded=3, substituted=3, live=0, tool_bodies_executed=0)
    assert [call.name for call in run.calls] == ["lookup", "deployments", "later"]
    assert run.calls[2].result == (3, 4)
    assert not stepfork.is_replaying()


def test_the_tools_in_the_header_are_patched_without_being_named_again(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    assert stepfork.load(path).header["tools"] == [tools.__name__]
    with stepfork.replay(path):
        tools.lookup("a")
    tools.bodies.clear()
    tools.lookup("a")
    assert tools.bodies == ["lookup"], "after the block the tool is itself again"


def test_wrong_tool_says_the_line_of_the_contract(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.lookup("a"), tools.deployments("a")])
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.deployments("a")
    first, *rest = str(caught.value).splitlines()
    assert first == "call #1: expected tool 'lookup' but the agent called 'deployments'"
    assert "order of the calls changed" in "\n".join(rest)
    assert (caught.value.index, caught.value.kind, caught.value.cassette) == (1, "tool", path)


def test_wrong_argument_says_the_line_of_the_contract(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    with pytest.raises(AssertionError) as caught, stepfork.replay(path):
        tools.lookup("a", window_minutes=120)
    error = caught.value
    assert isinstance(error, stepfork.ReplayMismatchError)
    assert (
        str(error).splitlines()[0] == "call #1: tool 'lookup' argument 'window_minutes': expected 60, got 120"
    )
    assert (error.path, error.expected, error.actual) == ("window_minutes", 60, 120)


def test_positional_keyword_and_default_are_one(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.lookup("a"), tools.lookup("a"), tools.lookup("a")])
    with stepfork.replay(path):
        tools.lookup(service="a")
        tools.lookup("a", 60)
        tools.lookup(window_minutes=60, service="a")


@pytest.mark.parametrize(
    ("recorded", "replayed"), [(1, True), (1, 1.0), ((1,), [1]), ("1", 1), (None, "null"), (0.0, -0.0)]
)
def test_values_of_different_types_differ(tools: Any, path: Path, recorded: Any, replayed: Any) -> None:
    record(path, tools, lambda: tools.lookup(recorded))
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.lookup(replayed)


def test_nan_equals_nan_and_sets_compare_as_sets(tools: Any, path: Path) -> None:
    record(
        path,
        tools,
        lambda: [tools.lookup(float("nan")), tools.lookup({3, 1, 2}), tools.lookup({"b": 1, "a": 2})],
    )
    with stepfork.replay(path):
        tools.lookup(float("nan"))
        tools.lookup({2, 3, 1})
        tools.lookup({"a": 2, "b": 1})


def test_left_over_calls_raise_at_the_end(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.lookup("a"), tools.deployments("a")])
    with (
        pytest.raises(stepfork.ReplayMismatchError, match="call #2: expected tool 'deployments'"),
        stepfork.replay(path),
    ):
        tools.lookup("a")


def test_C96_left_over_calls_are_a_note_on_the_real_error(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.lookup("a"), tools.deployments("a"), tools.lookup("b")])
    with pytest.raises(AssertionError, match="the real one") as caught, stepfork.replay(path):
        tools.lookup("a")
        raise AssertionError("the real one")
    assert not isinstance(caught.value, stepfork.ReplayMismatchError)
    assert any("2 of 3 recorded calls were not made" in note for note in caught.value.__notes__)


def test_a_mismatch_cannot_be_swallowed(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.lookup("a"), tools.deployments("a")])
    seen = []
    with pytest.raises(stepfork.ReplayMismatchError, match="call #1") as caught, stepfork.replay(path):
        for call in (lambda: tools.lookup("b"), lambda: tools.lookup("a")):
            try:
                call()
            except Exception as error:
                seen.append(str(error))
    assert len(set(seen)) == 1, "every further call raises the first mismatch again"
    assert str(caught.value) == seen[0]


def test_a_mismatch_wrapped_by_the_agent_comes_out_as_itself(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        try:
            tools.lookup("b")
        except Exception as error:
            raise RuntimeError("the agent's own") from error
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_C46_equal_calls_are_answered_in_turn(tools: Any, path: Path) -> None:
    assert record(path, tools, lambda: [tools.counter(), tools.counter()]) == [1, 2]
    with stepfork.replay(path):
        assert [tools.counter(), tools.counter()] == [1, 2]
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        for _ in range(3):
            tools.counter()
    assert "recorded 2 times with these arguments and is made one time more" in str(caught.value)


def test_C48_a_failure_is_not_returned_again_after_the_state_changed(tools: Any, path: Path) -> None:
    def agent() -> list[Any]:
        try:
            tools.write("f")
        except OSError as error:
            first = (type(error), error.errno, error.filename, str(error))
        return [first, tools.lookup("x"), tools.write("f")]

    with stepfork.record(path, tools=[tools.__name__]):
        recorded = agent()
    with stepfork.replay(path):
        assert agent() == recorded


def test_C24_a_changed_argument_is_never_served_the_old_answer(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("refund order 1"))
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        tools.lookup("refund order 2")
    assert (caught.value.expected, caught.value.actual) == ("refund order 1", "refund order 2")


def test_C28_two_values_that_cannot_be_read_never_count_as_equal(tools: Any, path: Path) -> None:
    with pytest.raises(stepfork.RecordingError) as refused, stepfork.record(path, tools=[tools.__name__]):
        assert tools.lookup(object())["rate"] == 0.72, "the live run goes on undisturbed"
    assert (refused.value.call, refused.value.type) == ("tool 'lookup'", "object")
    assert "argument 'service'" in refused.value.path
    record(path, tools, lambda: tools.lookup(None))
    with pytest.raises(stepfork.ReplayMismatchError, match="cannot be compared"), stepfork.replay(path):
        tools.lookup(object())


def test_an_unsupported_result_reaches_the_agent_and_fails_the_recording(tools: Any, path: Path) -> None:
    with (
        pytest.raises(stepfork.RecordingError, match="result is of type type"),
        stepfork.record(path, tools=[tools.__name__]),
    ):
        assert tools.mint() is object
        tools.lookup("a")
    assert stepfork.load(path).status == "failed"


def test_calls_inside_a_tool_belong_to_it(tools: Any, path: Path) -> None:
    record(path, tools, lambda: [tools.outer("abc"), tools.lookup("a")])
    trajectory = stepfork.load(path)
    assert [call.name for call in trajectory.calls] == ["outer", "lookup"]
    assert [child.name for child in trajectory.calls[0].children] == ["inner"]
    tools.bodies.clear()
    with stepfork.replay(path) as run:
        assert tools.outer("abc") == 4
        tools.lookup("a")
    assert tools.bodies == []
    assert run.counts.recorded == 2
    text = path.read_text()
    assert text.index("tool: outer") < text.index("tool: inner"), "a parent stands before its children"


def test_C36_an_id_minted_by_a_tool_is_the_recorded_one(make_module: Any, path: Path) -> None:
    module = make_module(
        "import uuid\ndef ticket():\n    return uuid.uuid4().hex\ndef note(text):\n    return len(text)\n"
    )

    def agent() -> str:
        made = module.ticket()
        module.note(f"opened {made}")
        return made

    recorded = record(path, module, agent)
    with stepfork.replay(path):
        assert agent() == recorded


def test_C42_calls_from_threads_are_answered_by_the_open_session(tools: Any, path: Path) -> None:
    def agent() -> list[Any]:
        results: list[Any] = []
        worker = threading.Thread(target=lambda: results.append(tools.lookup("a")))
        worker.start()
        worker.join()

        async def main() -> Any:
            return await asyncio.get_running_loop().run_in_executor(None, tools.deployments, "a")

        return [*results, asyncio.run(main())]

    recorded = record(path, tools, agent)
    tools.bodies.clear()
    with stepfork.replay(path):
        assert agent() == recorded
    assert tools.bodies == []


def test_C154_results_are_fresh_at_every_replay(make_module: Any, path: Path) -> None:
    module = make_module("def rows():\n    return [1, {'a': []}]\n")
    record(path, module, module.rows)
    before = path.read_bytes()
    for _ in range(2):
        with stepfork.replay(path):
            result = module.rows()
            assert result == [1, {"a": []}]
            result[1]["a"].append("x")
            result.append(2)
    assert path.read_bytes() == before


def test_C92_what_happened_before_the_agent_died_is_a_cassette(tools: Any, path: Path) -> None:
    for ending in (SystemExit(1), KeyboardInterrupt(), AssertionError("no")):
        path.unlink(missing_ok=True)
        with pytest.raises(type(ending)), stepfork.record(path, tools=[tools.__name__]):
            tools.lookup("a")
            tools.deployments("a")
            raise ending
        trajectory = stepfork.load(path)
        assert trajectory.status == "failed"
        assert [call.name for call in trajectory.calls] == ["lookup", "deployments"]
        assert trajectory.error is not None
        assert trajectory.error["class"] == f"builtins:{type(ending).__name__}"


def test_a_clean_exit_is_completed(tools: Any, path: Path) -> None:
    with pytest.raises(SystemExit), stepfork.record(path, tools=[tools.__name__]):
        tools.lookup("a")
        sys.exit(0)
    assert stepfork.load(path).status == "completed"


def test_an_interrupt_inside_a_tool_is_no_outcome_of_the_call(tools: Any, path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), stepfork.record(path, tools=[tools.__name__]):
        tools.lookup("a")
        tools.boom()
    assert "unfinished: true" in path.read_text()
    with stepfork.replay(path):
        tools.lookup("a")  # the unfinished call is optional
    with pytest.raises(stepfork.ReplayMismatchError, match="still running"), stepfork.replay(path):
        tools.lookup("a")
        tools.boom()


def test_a_failed_recording_never_replaces_a_completed_one(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    good = path.read_bytes()
    with pytest.raises(ValueError), stepfork.record(path, tools=[tools.__name__]):
        tools.lookup("b")
        raise ValueError("no")
    assert path.read_bytes() == good
    failed = path.with_name("run.failed.yaml")
    assert stepfork.load(failed).calls[0].args["service"] == "b"
    assert not list(path.parent.glob("*.partial*"))


def test_a_recording_that_did_not_change_leaves_the_file_alone(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    record(path, tools, lambda: tools.lookup("a"))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_each_call_is_on_disk_before_its_answer_is_returned(tools: Any, path: Path) -> None:
    partial = path.with_name("run.partial.yaml")
    with stepfork.record(path, tools=[tools.__name__]):
        tools.lookup("a")
        assert "tool: lookup" in partial.read_text()
        tools.deployments("a")
        assert "minutes_ago: 15" in partial.read_text()
        assert not path.exists()
    assert path.exists()
    assert not partial.exists()


def test_past_a_recorded_failure_the_run_may_stop(tools: Any, path: Path) -> None:
    with pytest.raises(KeyError), stepfork.record(path, tools=[tools.__name__]):
        tools.lookup("a")
        raise KeyError("bug")
    reached = []
    with stepfork.replay(path, past_failure="stop") as run:
        tools.lookup("a")
        reached.append("new call")
        tools.deployments("a")
        reached.append("never")
    assert reached == ["new call"]
    assert run.went_past
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.lookup("a")
        tools.deployments("a")


def test_past_failure_changes_nothing_for_a_completed_run(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path, past_failure="stop"):
        tools.lookup("a")
        tools.deployments("a")


def test_sessions_nest(tools: Any, tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer.yaml", tmp_path / "inner.yaml"
    with stepfork.record(outer, tools=[tools.__name__]):
        tools.lookup("o1")
        with stepfork.record(inner):
            tools.lookup("i1")
        tools.lookup("o2")
    assert [call.args["service"] for call in stepfork.load(outer).calls] == ["o1", "o2"]
    assert [call.args["service"] for call in stepfork.load(inner).calls] == ["i1"]
    with stepfork.replay(outer):
        tools.lookup("o1")
        with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(inner):
            tools.lookup("wrong")
        tools.lookup("o2")


def test_the_same_cassette_twice_at_once_is_refused(tools: Any, path: Path) -> None:
    record(path, tools, lambda: tools.lookup("a"))
    with stepfork.replay(path):
        with pytest.raises(stepfork.ConfigError, match="open already"), stepfork.record(path):
            pass
        tools.lookup("a")


def test_decorators_open_a_session_for_each_call(tools: Any, path: Path) -> None:
    @stepfork.record(path, tools=[tools.__name__])
    def live(x: str) -> Any:
        return tools.lookup(x)

    recorded = live("a")

    @stepfork.replay(path)
    def frozen() -> Any:
        return tools.lookup("a")

    @stepfork.replay(path)
    async def frozen_async() -> Any:
        return tools.lookup("a")

    assert frozen() == frozen() == asyncio.run(frozen_async()) == recorded

    async def block() -> Any:
        async with stepfork.replay(path):
            return tools.lookup("a")

    assert asyncio.run(block()) == recorded


def test_use_cassette_follows_the_mode(tools: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode, exists in (("auto", True), ("record", True), ("auto", True), ("replay", True)):
        monkeypatch.setenv("STEPFORK_MODE", mode)
        with stepfork.use_cassette(path, tools=[tools.__name__]):
            tools.lookup("a")
        assert path.exists() is exists
    path.unlink()
    monkeypatch.setenv("STEPFORK_MODE", "off")
    with stepfork.use_cassette(path, tools=[tools.__name__]) as run:
        tools.lookup("a")
    assert run.counts.live == 0
    assert not path.exists()


def test_auto_never_records_in_ci(tools: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(stepfork.CassetteNotFoundError), stepfork.use_cassette(path, mode="auto"):
        pass


def test_C79_a_missing_cassette_says_how_to_record_it(path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, stepfork.replay(path):
        pass
    assert "there is no cassette" in str(caught.value)
    assert "stepfork.record(" in str(caught.value)
    assert not path.exists()


def test_calls_outside_every_session(tools: Any) -> None:
    stepfork.autopatch(tools=[tools.__name__])
    tools.lookup("a")
    assert tools.bodies == ["lookup"], "outside pytest the mode is off: patches are transparent"
    stepfork.autopatch(mode="replay")
    with pytest.raises(stepfork.NoCassetteError, match="outside every cassette"):
        tools.lookup("a")
    stepfork.unpatch()
    tools.lookup("a")


def test_a_late_call_names_the_closed_session(tools: Any, path: Path) -> None:
    async def main() -> None:
        with stepfork.record(path, tools=[tools.__name__]):
            tools.lookup("a")
            late = asyncio.create_task(asyncio.sleep(0.01))
            late.add_done_callback(lambda _: None)

            async def call_later() -> None:
                await asyncio.sleep(0.01)
                tools.lookup("late")

            task = asyncio.create_task(call_later())
        stepfork.autopatch(tools=[tools.__name__])
        with pytest.raises(stepfork.NoCassetteError, match=path.name):
            await task
        await late

    asyncio.run(main())


def test_a_decorated_tool_is_a_tool(path: Path) -> None:
    ran = []

    @stepfork.tool
    def lonely(x: int) -> int:
        ran.append(x)
        return x + 1

    with stepfork.record(path):
        assert lonely(1) == 2
    with stepfork.replay(path):
        assert lonely(1) == 2
    assert ran == [1]
    with pytest.raises(stepfork.ConfigError):
        stepfork.tool(len)


def test_a_missing_tool_module_is_refused_when_the_first_session_opens(path: Path) -> None:
    with (
        pytest.raises(stepfork.ConfigError, match="no module 'no_such_module'"),
        stepfork.record(path, tools=["no_such_module"]),
    ):
        pass
    assert not list(path.parent.glob("run*"))
