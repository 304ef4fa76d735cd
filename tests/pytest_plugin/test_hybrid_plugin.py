"""Mode ``hybrid`` under pytest: option, marker, summary, -v, junit properties, xdist."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from support.chat_server import ChatServer, chat_server, completion, json_answer

AGENT = """
import os
from openai import OpenAI
import agenttools

PROMPT = os.environ.get("PROMPT", "old")

def run(topic):
    with OpenAI(max_retries=0) as client:
        said = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": PROMPT + " " + topic}]
        )
    return agenttools.look_up(said.choices[0].message.content)
"""
TOOLS = """
def look_up(topic):
    print("BODY")
    return topic + ": 3 hits"
"""
TESTS = """
import agent

def test_tea():
    assert agent.run("tea") == "tea: 3 hits"

def test_rye():
    assert agent.run("rye") == "rye: 3 hits"
"""
PRICES = 'currency = "USD"\n[m]\ninput = 1000\noutput = 0\n'


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with chat_server(
        lambda body: json_answer(completion(body["messages"][0]["content"].split()[-1]))
    ) as running:
        yield running


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, model: ChatServer) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")
    pytester.makepyfile(agent=AGENT, agenttools=TOOLS, test_agent=TESTS)
    pytester.makeconftest('import stepfork\nstepfork.autopatch(tools=["agenttools"])\n')
    pytester.makefile(".toml", prices=PRICES)
    run(pytester, "--stepfork-mode=record").assert_outcomes(passed=2)
    model.asked.clear()
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest_subprocess(*args)


def files(project: pytest.Pytester) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (project.path / "cassettes").rglob("*.yaml")}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_changed_prompt_runs_live_and_the_summary_says_what_it_took(
    workers: tuple[str, ...], project: pytest.Pytester, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(project)
    monkeypatch.setenv("PROMPT", "new")
    run(project, *workers).assert_outcomes(failed=2)
    assert model.hits == 0
    monkeypatch.setenv("STEPFORK_PRICES", "prices.toml")
    result = run(project, "--stepfork-mode=hybrid", "--junitxml=out.xml", "-v", "-rA", *workers)
    result.assert_outcomes(passed=2)
    assert "BODY" not in result.stdout.str()
    assert sorted(body["messages"][0]["content"] for body in model.bodies) == ["new rye", "new tea"]
    result.stdout.fnmatch_lines(
        [
            "test_agent.py::test_tea  cassettes/test_agent/test_tea.yaml: replayed 1, live 1; "
            "1 request sent, 7 tokens spent, estimated cost 0.003000 USD",
            "  #1  llm chat.completions m  live",
            "  #2  tool look_up  substituted",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "*stepfork: 2 tests, 2 calls replayed, 2 live, 0 newly recorded; "
            "2 requests sent, 14 tokens spent, estimated cost 0.006000 USD*"
        ]
    )
    for case in ElementTree.parse(project.path / "out.xml").getroot().iter("testcase"):
        found = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        assert found["stepfork.verdict"] == "hybrid"
        assert (found["stepfork.replayed"], found["stepfork.live"]) == ("1", "1")
        assert (found["stepfork.requests"], found["stepfork.tokens_spent"]) == ("1", "7")
        assert found["stepfork.cost"] == "estimated cost 0.003000 USD"
    assert files(project) == before


def test_the_marker_chooses_for_one_test(
    project: pytest.Pytester, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = 'import pytest\n@pytest.mark.stepfork(mode="hybrid", live="llm:m")\ndef test_rye'
    (project.path / "test_agent.py").write_text(TESTS.replace("def test_rye", marked))
    monkeypatch.setenv("PROMPT", "new")
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED test_agent.py::test_tea*"])
    assert [body["messages"][0]["content"] for body in model.bodies] == ["new rye"]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_selector_that_names_no_call_of_the_run_is_red(
    workers: tuple[str, ...],
    project: pytest.Pytester,
    model: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPFORK_LIVE", "llm:M")
    result = run(project, "--stepfork-mode=hybrid", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "ERROR live: 'llm:M' names no LLM call that was made, and none in *cassettes/test_*.yaml; "
            "did you mean 'llm:m'? It has 'llm:chat.completions', 'llm:m'"
        ]
    )
    assert model.hits == 0


def test_a_setting_for_the_suite_need_not_fit_each_test(
    project: pytest.Pytester, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fits no test is named, and is no error where another does."""
    other = 'import agenttools\ndef test_tool():\n    agenttools.look_up("oat")\n'
    (project.path / "test_other.py").write_text(other)
    run(project, "--stepfork-mode=record", "test_other.py").assert_outcomes(passed=1)
    monkeypatch.setenv("STEPFORK_LIVE", "llm:m,llm:none")
    result = run(project, "--stepfork-mode=hybrid")
    result.assert_outcomes(passed=3)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["live: 'llm:none' names no LLM call that was made, *"])
    assert model.hits == 2
    alone = run(project, "--stepfork-mode=hybrid", "test_other.py")
    assert alone.ret == 0
    assert "names no LLM call" not in alone.stdout.str()


def test_a_selector_of_a_marker_has_to_name_a_call_of_its_test(
    project: pytest.Pytester, model: ChatServer
) -> None:
    marked = 'import pytest\n@pytest.mark.stepfork(mode="hybrid", live="llm:nothing")\ndef test_rye'
    (project.path / "test_agent.py").write_text(TESTS.replace("def test_rye", marked))
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*live: 'llm:nothing' names no LLM call that was made, and none in *"])
    assert model.hits == 0


def test_a_new_test_without_a_cassette_is_red_and_nothing_is_sent(
    project: pytest.Pytester, model: ChatServer
) -> None:
    (project.path / "test_agent.py").write_text(TESTS + "\ndef test_new():\n    agent.run('oat')\n")
    before = files(project)
    result = run(project, "--stepfork-mode=hybrid", "-k", "new")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*CassetteNotFoundError: there is no cassette cassettes/test_agent/test_new.yaml"]
    )
    assert model.hits == 0
    assert files(project) == before


def test_a_live_answer_that_leads_elsewhere_is_red_before_the_tool_runs(
    project: pytest.Pytester, model: ChatServer
) -> None:
    model.respond = lambda asked: json_answer(completion("coffee"))
    result = run(project, "--stepfork-mode=hybrid", "-k", "tea")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*call #2: tool 'look_up' argument 'topic': expected \"tea\", got \"coffee\"",
            "*what differs is said in the live answer of call #1",
        ]
    )
    assert "BODY" not in result.stdout.str().replace('print("BODY")', "")


def test_a_broken_table_of_prices_is_said_before_anything_is_sent(
    project: pytest.Pytester, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPFORK_PRICES", "prices.toml")
    (project.path / "prices.toml").write_text(PRICES.replace("input", "imput"))
    before = files(project)
    for mode in ("hybrid", "record"):
        result = run(project, f"--stepfork-mode={mode}", "-k", "tea")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            ["*ConfigError: prices: *prices.toml: 'm' must have 'input' and 'output'*"]
        )
    run(project).assert_outcomes(passed=2)
    assert model.hits == 0
    assert files(project) == before


def test_a_wrong_selector_is_a_usage_error(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPFORK_LIVE", "look_up")
    result = run(project, "--stepfork-mode=hybrid")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "environment variable STEPFORK_LIVE: live: 'look_up' names no LLM calls" in result.stderr.str()
