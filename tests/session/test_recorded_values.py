"""Values and exceptions of tools through the public API: on replay an agent gets what it got live."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml
from support.readers_agree import readers_agree

import stepfork
from stepfork import codecs
from stepfork.core.model import Tagged

TOOLS = """
    import asyncio, collections, dataclasses, datetime, decimal, enum, io, threading, uuid

    bodies = []

    class Color(enum.Enum):
        RED = 1

    class S(str):
        pass

    @dataclasses.dataclass
    class Report:
        color: Color
        rows: list

    @dataclasses.dataclass
    class Session:
        host: str
        def __post_init__(self):
            self.lock = threading.Lock()

    class Handle:
        def __init__(self, name):
            self.name = name

    class Down(Exception):
        def __init__(self, service, *, retry_after):
            super().__init__(f"{service} is down")
            self.service, self.retry_after = service, retry_after

    def everything():
        bodies.append(1)
        utc = datetime.timezone.utc
        return {"at": datetime.datetime(2024, 1, 1, tzinfo=utc), "id": uuid.UUID(int=1),
                "p": decimal.Decimal("0.10"), "s": {3, 1, 2}, "c": Color.RED}

    def report(color):
        bodies.append(1)
        return Report(color, [(1, 2)])

    def image(stream):
        bodies.append(stream.read())
        return b'\\x89PNG\\r\\n\\x1a\\n\\x00\\xff'

    def plain():
        return [S("text"), collections.OrderedDict(b=1, a=2)]

    def fails(service):
        bodies.append(1)
        try:
            {}["k"]
        except KeyError as error:
            found = Down(service, retry_after=30)
            found.add_note("try later")
            raise found from error

    def connect():
        bodies.append(1)
        return Session("db")

    def handle():
        return [1, {"a": Handle("h")}]

    async def gathered():
        async def one():
            raise ValueError("x")
        return await asyncio.gather(one(), asyncio.sleep(0, 2), return_exceptions=True)
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS)


def record_and_replay(path: Path, tools: Any, agent: Any, **settings: Any) -> tuple[Any, Any]:
    """What the agent gives live and on replay; no tool body runs on replay."""
    with stepfork.record(path, tools=[tools.__name__], **settings):
        live = agent()
    tools.bodies.clear()
    with stepfork.replay(path, **settings):
        replayed = agent()
    assert tools.bodies == []
    return live, replayed


def test_C17_values_come_back_with_their_types(tools: Any, path: Path) -> None:
    live, replayed = record_and_replay(path, tools, tools.everything)
    assert replayed == live
    assert {key: type(value) for key, value in replayed.items()} == {
        key: type(value) for key, value in live.items()
    }
    assert str(replayed["p"]) == "0.10"
    assert replayed["c"] is tools.Color.RED


def test_C17_the_live_result_is_the_tools_own_object(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        found = tools.report(tools.Color.RED)
    assert type(found) is tools.Report
    with stepfork.replay(path):
        first = tools.report(tools.Color.RED)
    with stepfork.replay(path):
        second = tools.report(tools.Color.RED)
    assert first == second == found
    assert first.rows is not second.rows


def test_C17_arguments_of_classes_are_compared(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        tools.report(tools.Color.RED)
    with (
        pytest.raises(stepfork.ReplayMismatchError, match=r"argument 'color': expected enum.*RED.*, got 1"),
        stepfork.replay(path),
    ):
        tools.report(1)


def test_C17_an_unsupported_type_fails_at_record_time_with_its_path(tools: Any, path: Path) -> None:
    with pytest.raises(stepfork.RecordingError) as caught, stepfork.record(path, tools=[tools.__name__]):
        found = tools.handle()
    error = caught.value
    assert found[1]["a"].name == "h", "the live run went on undisturbed"
    assert (error.call, error.path, error.type) == (
        "tool 'handle'",
        "result[1].a",
        f"{tools.__name__}.Handle",
    )
    assert str(error) == (
        f"tool 'handle' cannot be recorded: result[1].a is of type {tools.__name__}.Handle; "
        "register a codec for it (stepfork.codecs), let the tool take and return plain values, "
        "or leave it out with 'exclude'"
    )


def test_C17_a_codec_makes_it_supported(tools: Any, path: Path) -> None:
    codecs.register(tools.Handle, "handle", lambda handle: handle.name, tools.Handle)
    try:
        _, replayed = record_and_replay(path, tools, tools.handle)
        assert replayed[1]["a"].name == "h"
    finally:
        codecs.unregister("handle")
    with (
        pytest.raises(stepfork.CassetteError, match="no codec is registered for 'handle'"),
        stepfork.replay(path),
    ):
        tools.handle()
    assert stepfork.load(path).calls[0].result == [
        1,
        {"a": Tagged("custom", {"codec": "handle", "value": "h"})},
    ]


def test_C19_bytes_and_a_stream(tools: Any, path: Path) -> None:
    with stepfork.record(path, tools=[tools.__name__]):
        live = tools.image(io.BytesIO(b"abc"))
    assert tools.bodies == [b"abc"], "the tool could still read it"
    with stepfork.replay(path):
        assert tools.image(io.BytesIO(b"abc")) == live == b"\x89PNG\r\n\x1a\n\x00\xff"
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path):
        tools.image(io.BytesIO(b"abd"))


def test_C21_subclasses_of_text_and_mappings_stand_plainly(tools: Any, path: Path) -> None:
    live, replayed = record_and_replay(path, tools, tools.plain)
    assert replayed == live
    assert [type(value) for value in replayed] == [str, dict]
    text = path.read_text("utf-8")
    assert "!" not in text
    assert list(yaml.safe_load_all(text))[1]["result"] == ["text", {"b": 1, "a": 2}]


def test_an_exception_with_its_cause_its_notes_and_its_attributes(tools: Any, path: Path) -> None:
    def agent() -> BaseException:
        try:
            tools.fails("checkout")
        except tools.Down as error:
            return error
        raise AssertionError

    live, replayed = record_and_replay(path, tools, agent)
    assert type(replayed) is type(live)
    assert (str(replayed), vars(replayed)) == (str(live), vars(live))
    assert (replayed.retry_after, replayed.__notes__) == (30, ["try later"])
    assert repr(replayed.__cause__) == "KeyError('k')"


def test_exceptions_among_the_results_of_gather(tools: Any, path: Path) -> None:
    _, replayed = record_and_replay(path, tools, lambda: asyncio.run(tools.gathered()))
    assert repr(replayed) == "[ValueError('x'), 2]"


def test_a_constructor_needs_leave_and_the_error_says_the_line(
    tools: Any, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pyproject.toml").write_text("")
    monkeypatch.chdir(elsewhere)
    name = f"{tools.__name__}:Session"
    with (
        pytest.raises(stepfork.RecordingError, match=rf"set allow_classes = \['{name}'\]"),
        stepfork.record(path, tools=[tools.__name__]),
    ):
        assert tools.connect().host == "db"
    _, replayed = record_and_replay(path, tools, tools.connect, allow_classes=[name])
    assert replayed.lock.acquire(blocking=False)
    with pytest.raises(stepfork.CassetteError, match=r"constructor of .* may not run"), stepfork.replay(path):
        tools.connect()
    assert isinstance(stepfork.load(path).calls[0].result, Tagged)


def test_the_projects_own_classes_need_no_leave(
    tools: Any, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    _, replayed = record_and_replay(path, tools, tools.connect)
    assert replayed.host == "db"


@pytest.mark.parametrize("bad", ["Class", "m:", "m.*.x", "*", "m:C d", "m..*"])
def test_a_malformed_class_is_a_config_error(bad: str, path: Path) -> None:
    with pytest.raises(stepfork.ConfigError, match="allow_classes must hold 'module:Class'"):
        stepfork.record(path, allow_classes=[bad])


def test_a_cassette_reads_where_its_classes_are_not(tools: Any, path: Path, make_module: Any) -> None:
    with stepfork.record(path, tools=[tools.__name__]) as run:
        run.set_output({tools.report(tools.Color.RED).color: 1})
    text = path.read_text("utf-8").replace(tools.__name__, "nowhere.tools")
    path.write_text("\n".join(line for line in text.split("\n") if not line.startswith("sha256")), "utf-8")
    trajectory = stepfork.load(path)
    call = trajectory.calls[0]
    assert call.args == {"color": Tagged("enum", "nowhere.tools:Color.RED")}
    assert call.result.value["fields"]["rows"] == [Tagged("tuple", [1, 2])]
    assert trajectory.output == {Tagged("enum", "nowhere.tools:Color.RED"): 1}


def test_C72_a_tool_that_lets_an_sdk_error_through(path: Path, make_module: Any) -> None:
    asking = make_module(
        """
        import httpx2, openai
        bodies = []
        def ask(question):
            headers = {"authorization": "Bearer " + "correct-horse"}
            request = httpx2.Request("POST", "http://host/v1", headers=headers)
            response = httpx2.Response(429, headers={"retry-after": "30"}, json={"a": 1}, request=request)
            raise openai.RateLimitError("slow", response=response, body={"a": 1})
        """
    )

    def agent() -> Any:
        try:
            asking.ask("q")
        except openai.RateLimitError as error:
            return error.status_code, error.body, error.response.headers["retry-after"], str(error)

    live, replayed = record_and_replay(path, asking, agent)
    assert live == replayed == (429, {"a": 1}, "30", "slow")
    assert "correct-horse" not in path.read_text("utf-8")


def test_secrets_in_objects_are_replaced(tools: Any, path: Path, make_module: Any) -> None:
    holder = make_module(
        """
        import dataclasses
        @dataclasses.dataclass
        class Login:
            user: str
            password: str
        bodies = []
        def login():
            return Login("bob", "correct horse battery")
        """
    )
    with stepfork.record(path, tools=[holder.__name__]):
        assert holder.login().password == "correct horse battery"
    assert "correct horse" not in path.read_text("utf-8")
    with stepfork.replay(path):
        assert holder.login() == holder.Login("bob", "<secret:password:1>")


def test_a_file_with_offsets_in_the_long_form_replays_and_stays(make_module: Any, tmp_path: Path) -> None:
    tools = make_module(
        """
        import datetime
        zone = datetime.timezone(datetime.timedelta(hours=1))
        def opened(at):
            return at.replace(hour=9)
        def agent():
            return opened(datetime.datetime(2026, 11, 29, 8, 30, tzinfo=zone))
        """
    )
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[f"{tools.__name__}:opened"]):
        answer = tools.agent()
    text = path.read_text("utf-8")
    assert 'at: !datetime "2026-11-29T08:30:00+01:00"' in text
    assert 'result: !datetime "2026-11-29T09:30:00+01:00"' in text
    body = re.sub(r'"([^"]+)\+01:00"', r'["\1", 3600000000, 0]', text.partition("sha256:")[0])
    body += f'sha256: "{hashlib.sha256(body.encode()).hexdigest()}"\n'
    path.write_text(body, "utf-8")
    assert stepfork.load(path).calls[0].result == answer
    readers_agree(path)
    with stepfork.replay(path, integrity="error"):
        assert repr(tools.agent()) == repr(answer)
    with stepfork.record(path, tools=[f"{tools.__name__}:opened"]):
        tools.agent()
    assert path.read_text("utf-8").count("3600000000") == 2
