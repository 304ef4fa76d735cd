"""``stepfork replay --mode hybrid`` through a fresh process, and what prices say of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.chat_server import Answer, ChatServer, chat_server, completion, json_answer
from support.command import Project

AGENT = """
    import json
    import os
    from openai import OpenAI
    import tools

    def ask(prompt, model):
        client = OpenAI()
        said = client.chat.completions.create(model=model, messages=[{"role": "user", "content": prompt}])
        return said.choices[0].message.content

    def run(service="api"):
        which = ask("old prompt", "m")
        health = tools.lookup(which)
        return {"severity": ask("sum up: %d" % health["rate"], "small")}

    def changed(service="api"):
        which = ask("new prompt", "m")
        health = tools.lookup(which)
        return {"severity": ask("sum up, shorter: %d" % health["rate"], "small")}

    def another_tool(service="api"):
        tools.deployments(ask("new prompt", "m"))
"""
SERVICE = {"old prompt": "api", "new prompt": "api"}
FILE = "cassettes/hybrid.yaml"


def respond(body: dict[str, Any]) -> Answer:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    said = SERVICE.get(body["messages"][-1]["content"], "P1")
    return json_answer(completion(said, model=body["model"], usage=usage))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(respond) as running:
        yield running


@pytest.fixture
def live(server: ChatServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}


@pytest.fixture
def hybrid(project: Project, server: ChatServer, live: dict[str, str]) -> Project:
    project.write("agent.py", AGENT)
    assert project.record("agent:run", to=FILE, **live).status == 0
    server.asked.clear()
    return project


def test_says_what_was_sent_and_marks_each_answer(
    hybrid: Project, server: ChatServer, live: dict[str, str]
) -> None:
    before = hybrid.read(FILE)
    hybrid.write(
        "prices.toml", 'currency = "EUR"\n[m]\ninput = 0.5\noutput = 2\n[small]\ninput = 0\noutput = 0\n'
    )
    command = ["replay", FILE, "--mode", "hybrid", "--live", "llm", "--entrypoint", "agent:changed"]
    ended = hybrid.run(*command, "--prices", "prices.toml", **live)
    assert ended.status == 0, ended.err
    assert "  calls         3 recorded, 1 substituted, 2 live; 0 tool bodies executed\n" in ended.out
    assert (
        "  live calls    2 requests sent, 2200 tokens spent, estimated cost 0.000700 EUR\n"
        "                #1  llm chat.completions m  live\n"
        "                #2  tool lookup  substituted\n"
        "                #3  llm chat.completions small  live\n"
    ) in ended.out
    assert "equals the recorded output" in ended.out
    assert "BODY" not in ended.out
    assert [body["messages"][0]["content"] for body in server.bodies] == ["new prompt", "sum up, shorter: 72"]
    assert hybrid.read(FILE) == before
    report = hybrid.run(*command, "--json", **live).json
    assert (report["requests"], report["input_tokens"], report["output_tokens"]) == (2, 2000, 200)
    assert (report["estimated_cost"], report["unpriced"]) == ({}, [])
    assert [answer["answer"] for answer in report["answers"]] == ["live", "substituted", "live"]
    assert report["answers"][0]["model"] == "m"


def test_a_selector_takes_one_model(hybrid: Project, server: ChatServer, live: dict[str, str]) -> None:
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", "--live", "llm:small", **live)
    assert ended.status == 0, ended.err
    assert "3 recorded, 2 substituted, 1 live" in ended.out
    ended = hybrid.run(
        *("replay", FILE, "--mode", "hybrid", "--live", "llm:small", "--entrypoint", "agent:changed"), **live
    )
    assert ended.status == 1
    assert ended.err.startswith("call #1: llm 'chat.completions' request 'messages[0].content'")
    assert server.hits == 1


def test_another_live_answer_is_refused_before_the_tool_or_changes_the_outcome(
    hybrid: Project, server: ChatServer, live: dict[str, str]
) -> None:
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", "--entrypoint", "agent:another_tool", **live)
    assert ended.status == 1
    assert ended.err.startswith("call #2: expected tool 'lookup' but the agent called 'deployments'\n")
    assert "BODY" not in ended.out
    server.respond = lambda asked: json_answer(completion("payments"))
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", **live)
    assert ended.status == 1
    assert ended.err.startswith(
        "call #2: tool 'lookup' argument 'service': expected \"api\", got \"payments\""
    )
    assert "what differs is said in the live answer of call #1" in ended.err
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", "--live", "llm:small", **live)
    assert ended.status == 1
    assert 'behavior mismatch at \'severity\': expected "P1", got "payments"' in ended.err
    assert "DIFFERS" in ended.out


@pytest.mark.parametrize("source", ["option", "environment", "pyproject"])
def test_a_selector_that_names_no_call_is_bad_input(
    source: str, hybrid: Project, server: ChatServer, live: dict[str, str]
) -> None:
    options = ["--live", "llm:Small"] if source == "option" else []
    variables = {"STEPFORK_LIVE": "llm:Small"} if source == "environment" else {}
    if source == "pyproject":
        hybrid.write("pyproject.toml", '[tool.stepfork]\nlive = ["llm:Small"]\n')
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", *options, **variables, **live)
    assert ended.status == 2
    assert "live: 'llm:Small' names no LLM call that was made, and none in " in ended.complaint
    assert "did you mean 'llm:small'? It has 'llm:chat.completions', 'llm:m', 'llm:small'" in ended.complaint
    assert "PASSED" not in ended.out
    assert server.hits == 0


def test_without_a_key_nothing_is_sent(hybrid: Project, server: ChatServer) -> None:
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", OPENAI_BASE_URL=server.url)
    assert ended.status == 2
    assert "set OPENAI_API_KEY before the client is made" in ended.complaint
    assert server.hits == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--live", "llm"), "--live: nothing is live in mode 'replay'; it needs --mode hybrid"),
        (("--mode", "hybrid", "--live", "lookup"), "'lookup' names no LLM calls"),
        (("--mode", "record"), "'record' is not one of 'replay', 'hybrid'"),
        (("--mode", "hybrid", "--prices", "none.toml"), "none.toml cannot be read"),
    ],
)
def test_bad_options(options: tuple[str, ...], complaint: str, hybrid: Project, server: ChatServer) -> None:
    ended = hybrid.run("replay", FILE, *options)
    assert ended.status == 2
    assert complaint in ended.err
    assert "Traceback" not in ended.err
    assert server.hits == 0


def test_a_missing_cassette(hybrid: Project, server: ChatServer) -> None:
    ended = hybrid.run("replay", "cassettes/none.yaml", "--mode", "hybrid", "--entrypoint", "agent:run")
    assert ended.status == 2
    assert "none.yaml" in ended.complaint
    assert not (hybrid.folder / "cassettes" / "none.yaml").exists()


def test_settings_come_from_pyproject_and_environment_too(
    hybrid: Project, server: ChatServer, live: dict[str, str]
) -> None:
    hybrid.write("money/table.json", '{"currency": "USD", "m": {"input": 2, "output": 10}}')
    hybrid.write("pyproject.toml", '[tool.stepfork]\nlive = ["llm:m"]\nprices = "money/table.json"\n')
    ended = hybrid.run("replay", f"../{FILE}", "--mode", "hybrid", cwd="money", PYTHONPATH="..", **live)
    assert ended.status == 0, ended.err
    assert "1 request sent, 1100 tokens spent, estimated cost 0.003000 USD" in ended.out
    ended = hybrid.run("replay", FILE, "--mode", "hybrid", STEPFORK_LIVE="llm:m, llm:small", **live)
    assert "estimated cost 0.003000 USD (no price for 'small')" in ended.out
    assert hybrid.run("replay", FILE).status == 0, "a setting 'live' changes nothing in another mode"
    assert server.hits == 3
