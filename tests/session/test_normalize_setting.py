"""The setting ``normalize`` through the user's door: what is declared may differ, nothing else may."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import openai
import pytest
from support.chat_server import ChatServer, completion, json_answer
from support.command import Project

import stepfork

TOOLS = """
    import datetime, uuid

    bodies = []

    def book(order, at=None, note=""):
        bodies.append(order)
        return {"order": order, "ticket": str(uuid.uuid4())}

    async def look(order):
        bodies.append(order)
        return f"about {order}"
"""


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(TOOLS, "booktools")


def session(kind: Any, path: Path, **settings: Any) -> Any:
    return kind(path, tools=["booktools"], **settings)


def test_C32_today_in_a_prompt_is_one_rule(tmp_path: Path, server: ChatServer) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)

    def ask(day: str, question: str = "refund?") -> str:
        messages: Any = [{"role": "user", "content": f"Today is {day}. {question}"}]
        said = client.chat.completions.create(model="m", messages=messages)
        return str(said.choices[0].message.content)

    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        recorded = ask("2024-01-01")
    with stepfork.replay(path, normalize={"date": True}):
        assert ask("2024-01-02") == recorded, "the answer stays as it was recorded"
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path):
        ask("2024-01-02")
    assert caught.value.path == "messages[0].content"
    assert "Today is 2024-01-01. refund?" in str(caught.value)
    assert "Today is 2024-01-02. refund?" in str(caught.value)
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path, normalize={"date": True}):
        ask("2024-01-02", "return?")
    assert len(server.asked) == 1


def test_an_id_that_the_program_mints(tmp_path: Path, tools: Any) -> None:
    path = tmp_path / "run.yaml"

    def run(ids: list[str]) -> list[Any]:
        booked = [tools.book(one) for one in ids]
        return [
            tools.book(one["ticket"], note=f"{mine}, was {one['order']}") for mine, one in zip(ids, booked)
        ]

    with session(stepfork.record, path):
        recorded = run([str(uuid.uuid4()), str(uuid.uuid4())])
    del tools.bodies[:]
    with session(stepfork.replay, path, normalize={"uuid": True}) as played:
        assert run([str(uuid.uuid4()), str(uuid.uuid4())]) == recorded
    assert played.counts.substituted == 4
    one = str(uuid.uuid4())
    with pytest.raises(stepfork.ReplayMismatchError), session(stepfork.replay, path, normalize=["uuid"]):
        run([one, one])
    assert tools.bodies == []


def test_C34_a_tool_message_with_the_wrong_id_is_a_mismatch(tmp_path: Path, server: ChatServer) -> None:
    calls = [
        {"id": str(uuid.UUID(int=number)), "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for number in (1, 2)
    ]

    def answer(body: dict[str, Any]) -> Any:
        said = completion("done")
        if len(body["messages"]) == 1:
            said["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": calls}
        return json_answer(said)

    server.answer = answer
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)

    def run(minted: str, *, swapped: bool = False) -> None:
        messages: list[Any] = [{"role": "user", "content": f"thread {minted}"}]
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        ids = [call.id for call in said.tool_calls or ()]
        messages.append(said.model_dump(exclude_none=True))
        for one in reversed(ids) if swapped else ids:
            messages.append({"role": "tool", "tool_call_id": one, "content": "x"})
        client.chat.completions.create(model="m", messages=messages)

    path = tmp_path / "run.yaml"
    with stepfork.record(path):
        run(str(uuid.uuid4()))
    with stepfork.replay(path, normalize={"uuid": True}):
        run(str(uuid.uuid4()))
    rules = {"uuid": True}
    with pytest.raises(stepfork.ReplayMismatchError) as caught, stepfork.replay(path, normalize=rules):
        run(str(uuid.uuid4()), swapped=True)
    assert caught.value.path.endswith("tool_call_id")
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path, normalize=rules):
        run(str(uuid.UUID(int=1)))


def test_rules_hold_for_calls_beside_each_other(tmp_path: Path, tools: Any) -> None:
    path = tmp_path / "run.yaml"

    async def run(*orders: str) -> list[str]:
        return list(await asyncio.gather(*map(tools.look, orders)))

    with session(stepfork.record, path):
        recorded = asyncio.run(run("tea run-a1", "coffee run-b2"))
    with session(stepfork.replay, path, normalize={r"run-\w+": "<run>"}):
        assert asyncio.run(run("coffee run-z1", "tea run-y2")) == [recorded[1], recorded[0]]


@pytest.mark.parametrize("seconds", [0, 7.5])
def test_values_that_are_no_texts_are_compared_by_their_text(
    tmp_path: Path, tools: Any, seconds: float
) -> None:
    import datetime

    then, now = (datetime.datetime(2024, 1, day, 10, 0, 1, int(seconds * 1000)) for day in (1, 2))
    path = tmp_path / "run.yaml"
    with session(stepfork.record, path):
        tools.book("x", at=[then, then.date(), uuid.UUID(int=1)])
    with session(stepfork.replay, path, normalize={"date": True, "time": True, "uuid": True}):
        tools.book("x", at=[now, now.date(), uuid.UUID(int=2)])
    with pytest.raises(stepfork.ReplayMismatchError), session(stepfork.replay, path, normalize="date"):
        tools.book("x", at=[now, str(now.date()), uuid.UUID(int=2)])


def test_the_file_is_as_exact_as_without_rules(tmp_path: Path, tools: Any) -> None:
    path = tmp_path / "run.yaml"
    with session(stepfork.record, path, normalize={"uuid": True, "date": True, r"run-\w+": "<run>"}):
        tools.book(f"run-17 of 2024-01-01: {uuid.UUID(int=7)}")
    assert f'order: "run-17 of 2024-01-01: {uuid.UUID(int=7)}"' in path.read_text()
    with session(stepfork.replay, path):
        tools.book(f"run-17 of 2024-01-01: {uuid.UUID(int=7)}")


def test_rules_from_every_place(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.write(
        "agent.py", "import os, tools\n\ndef run():\n    return tools.lookup(os.environ['ID'])['rate']\n"
    )
    assert project.record("agent:run", ID="run-1").status == 0
    command = ("replay", "cassettes/run.yaml")
    assert project.run(*command, ID="run-2").status == 1
    assert project.run(*command, "--normalize", "run-[0-9]+=><run>", ID="run-2").status == 0
    assert project.run(*command, ID="run-2", STEPFORK_NORMALIZE="date,run-[0-9]+").status == 0
    project.write("pyproject.toml", "[tool.stepfork.normalize]\nuuid = true\n'run-[0-9]+' = '<run>'\n")
    assert project.run(*command, ID="run-2").status == 0
    assert project.run(*command, "--normalize", "date", ID="run-2").status == 1
    again = project.run(*command, "--normalize", "run-[0-9]+=><run>", ID="walk-2")
    assert "--normalize 'run-[0-9]+=><run>'" in again.err


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("uid", "option --normalize: normalize: there is no rule 'uid'"),
        ("run-(", "option --normalize: normalize: 'run-(' is not a rule"),
        (
            "uuid=1",
            "option --normalize: normalize: 'uuid=1' is no rule; a built-in one is on as 'uuid' and off",
        ),
        (
            "paths=off",
            "normalize: 'paths=off' is no rule; a built-in one is on as 'paths' and off as 'paths=fa",
        ),
    ],
)
def test_a_wrong_rule_is_one_sentence(tmp_path: Path, rule: str, problem: str) -> None:
    project = Project(tmp_path / "project")
    ended = project.run("replay", "cassettes/run.yaml", "--normalize", rule)
    assert ended.status == 2
    assert problem in ended.complaint
    ended = project.run("replay", "cassettes/run.yaml", STEPFORK_NORMALIZE=rule)
    assert ended.status == 2
    assert problem.replace("option --normalize", "environment variable STEPFORK_NORMALIZE") in ended.complaint


def test_a_number_that_an_answer_brought_is_that_one_only(make_module: Any, path: Path) -> None:
    tools = make_module(
        "def give():\n    return {'ids': [1, 2], 'n': 0.5, 'done': True}\ndef take(what):\n    return 1\n"
    )

    def agent(number: int) -> None:
        tools.give()
        tools.take(f"delete {number}")

    with stepfork.record(path, tools=[tools.__name__]):
        agent(1)
    with stepfork.replay(path, normalize={r"\d+": True}):
        agent(1)
    with pytest.raises(stepfork.ReplayMismatchError), stepfork.replay(path, normalize={r"\d+": True}):
        agent(2)
