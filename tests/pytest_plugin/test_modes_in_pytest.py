"""What each mode does under pytest, and what none does: go live on replay, record in CI, lose a good file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chat_server import ChatServer, echo, json_answer
from support.plugin_project import CONFTEST, PluginProject

import stepfork

TEST = """
from agenttools import search

def test_it():
    assert search("{0}")[1] == {1}
"""
NAME = "test_it/test_it.yaml"
FAILED = "test_it/test_it.failed.yaml"


@pytest.fixture
def project(tmp_path: Path) -> PluginProject:
    project = PluginProject(tmp_path / "project")
    project.write("test_it.py", TEST.format("a", 1))
    return project


def test_a_failed_recording_can_be_adopted_as_the_summary_says(project: PluginProject) -> None:
    project.test(mode="record").expect(passed=1)
    good = project.files[NAME]
    project.write("test_it.py", TEST.format("b", 2))
    ended = project.test(mode="record").expect(failed=1)
    assert project.files[NAME] == good
    command = "stepfork adopt cassettes/test_it/test_it.failed.yaml"
    ended.says(
        "cassettes/test_it/test_it.yaml stays as it was; the new recording failed, "
        f"to put it in its place: {command}"
    )
    new = project.files[FAILED]
    assert project.run(*command.split()[1:]).status == 0
    assert project.files == {NAME: new}
    project.test().expect(failed=1).says("assert 1 == 2")
    project.write("test_it.py", TEST.format("b", 1))
    project.test().expect(passed=1)


def test_the_first_recording_of_a_red_test_is_its_cassette(project: PluginProject) -> None:
    project.write("test_it.py", TEST.format("a", 2))
    project.test(mode="record").expect(failed=1)
    files = project.files
    assert list(files) == [NAME]
    for _ in range(2):
        project.test().expect(failed=1).says("assert 1 == 2")
    project.write("test_it.py", TEST.format("a", 1))
    project.test().expect(passed=1)
    assert (project.files, project.bodies) == (files, ["a"])


def test_auto_records_what_is_missing_but_never_in_ci(project: PluginProject) -> None:
    project.test(mode="auto", CI="true").expect(failed=1).says("there is no cassette")
    assert (project.bodies, project.files) == ([], {})
    project.test(mode="auto").expect(passed=1).says("1 newly recorded")
    files = project.files
    for environment in ({}, {"CI": "true"}):
        project.test(mode="auto", **environment).expect(passed=1).says("1 call replayed, 0 live")
    assert (project.bodies, project.files) == (["a"], files)


@pytest.mark.parametrize("environment", [{}, {"CI": "1"}], ids=["", "CI"])
@pytest.mark.parametrize("mode", ["replay", "auto", ""])
def test_C83_an_unmatched_request_never_goes_live(
    project: PluginProject, mode: str, environment: dict[str, str]
) -> None:
    project.test(mode="record").expect(passed=1)
    files = project.files
    project.write("test_it.py", TEST.format("b", 1))
    project.test(mode=mode, **environment).expect(failed=1).says('expected "a", got "b"')
    project.write("test_it.py", TEST.format("a", 1) + "    search('one more')\n")
    project.test(mode=mode, **environment).expect(failed=1).says("one more")
    assert (project.bodies, project.files) == (["a"], files)


@pytest.mark.parametrize("mode", ["replay", "auto", "record"])
@pytest.mark.parametrize("text", [b"", b"stepfork: 1\nname: x\n---\ntool: se", b"interactions:\n", b"\xff\n"])
def test_C90_an_unreadable_cassette_is_never_recorded_again(
    project: PluginProject, mode: str, text: bytes
) -> None:
    place = project.folder / "cassettes" / NAME
    place.parent.mkdir(parents=True)
    place.write_bytes(text)
    project.test(mode=mode).expect(failed=1).says("CassetteError", "test_it.yaml")
    assert (project.bodies, project.files) == ([], {NAME: text})


def test_C96_the_assertion_of_the_test_comes_first(project: PluginProject) -> None:
    """Left-over calls, and a mismatch that the agent swallowed, are told after it."""
    three = "    search('b')\n    search('c')\n"
    project.write("test_it.py", TEST.format("a", 1) + three)
    project.test(mode="record").expect(passed=1)
    project.write("test_it.py", TEST.format("a", 2) + three)
    out = project.test().expect(failed=1).says("assert 1 == 2").out
    assert "2 recorded calls were not made" in out or "never made" in out or "left over" in out, out
    assert "FAILED test_it.py::test_it - assert 1 == 2" in out.replace("AssertionError: ", "")
    swallowed = """
    from agenttools import search
    def test_it():
        try:
            search("other")
        except Exception:
            pass
        assert 1 == 2
    """
    project.write("test_it.py", swallowed)
    out = project.test().expect(failed=1).says("assert 1 == 2", 'expected "a", got "other"').out
    assert out.index("assert 1 == 2") < out.index('expected "a", got "other"')


BACK_OFF = """
import time
import openai
import stepfork

def test_it(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    client = openai.OpenAI(base_url="URL", api_key="k", max_retries=2)
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    for _ in range(5):
        if not stepfork.is_replaying():
            time.sleep(2)
    with open("slept.txt", "a") as file:
        file.write(f"{len(slept)} ")
    assert answer.choices
"""


def test_C146_the_back_off_of_the_sdk_does_not_sleep_on_replay(
    project: PluginProject, server: ChatServer
) -> None:
    """The retries are the SDK's own affair: the recording holds the answer that the agent saw."""
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", BACK_OFF.replace("URL", server.url))
    answers = iter([json_answer({}, 500), json_answer({}, 500)])
    server.answer = lambda body: next(answers, None) or echo(body)
    project.test(mode="record").expect(passed=1)
    project.test().expect(passed=1)
    assert len(server.bodies) == 3
    live, replayed = map(int, project.read("slept.txt").split())
    assert live == 5 + 2
    assert replayed == 0


BESIDE_A_MOCK = """
import httpx2
import openai

def other(request):
    assert request.url.host == "other.test", "the agent's own call reached the mock"
    return httpx2.Response(200, json={"from": "mock"})

def test_it():
    http = httpx2.Client(transport=httpx2.MockTransport(other))
    client = openai.OpenAI(base_url="URL", api_key="k", HTTP)
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices
    assert http.get("https://other.test/price").json() == {"from": "mock"}
"""


def test_C69_beside_a_mock_transport(project: PluginProject, server: ChatServer) -> None:
    """The agent's call comes from the cassette, though its client has the mock below; others do not."""
    source = BESIDE_A_MOCK.replace("URL", server.url)
    project.write("test_it.py", source.replace("HTTP", ""))
    project.test(mode="record").expect(passed=1)
    stored = stepfork.load(project.folder / "cassettes" / NAME)
    assert [call.name for call in stored.calls] == ["chat.completions"]
    project.write("test_it.py", source.replace("HTTP", "http_client=http"))
    project.test().expect(passed=1).says("1 call replayed, 0 live")
    assert len(server.bodies) == 1
