"""``stepfork record`` through a fresh process."""

from __future__ import annotations

import json

import pytest
from support.chat_server import ChatServer
from support.command import Project

import stepfork


def test_says_calls_place_and_next_step(project: Project) -> None:
    ended = project.record("agent:run", "--args", '{"service": "api"}')
    assert ended.status == 0, ended.err
    assert ended.err == ""
    assert "recorded 2 calls (2 tool) to cassettes/run.yaml" in ended.out
    assert 'tool lookup {"service": "api", "minutes": 60}' in ended.out
    assert "stepfork replay cassettes/run.yaml" in ended.out
    assert "stepfork export cassettes/run.yaml --pytest" in ended.out
    trajectory = stepfork.load(project.folder / "cassettes/run.yaml")
    assert trajectory.header["entrypoint"] == "agent:run"
    assert trajectory.header["args"] == {"service": "api"}
    assert trajectory.header["tools"] == ["tools"]
    assert trajectory.output == {"severity": "P1", "rate": 72}
    assert [call.name for call in trajectory.calls] == ["lookup", "deployments"]


def test_positional_arguments_and_async(project: Project) -> None:
    assert project.record("agent:arun", "--args", '["payments"]').status == 0
    trajectory = stepfork.load(project.folder / "cassettes/run.yaml")
    assert trajectory.header["args"] == ["payments"]
    assert trajectory.calls[0].args == {"service": "payments", "minutes": 60}


def test_variables_are_recorded_by_name_and_redacted(project: Project) -> None:
    secret = "sk-" + "a1B2" * 10
    ended = project.record(
        "agent:variable", "--env", "REGION", "--env", "OPENAI_API_KEY", REGION="eu", OPENAI_API_KEY=secret
    )
    assert ended.status == 0, ended.err
    header = stepfork.load(project.folder / "cassettes/run.yaml").header
    assert header["env"]["REGION"] == "eu"
    assert header["env"]["OPENAI_API_KEY"].startswith("<secret:")
    assert secret not in project.read("cassettes/run.yaml")


def test_the_entrypoint_is_never_a_tool(project: Project) -> None:
    ended = project.run("record", "agent:run", "--tools", "agent", "--tools", "tools", "-o", "run.yaml")
    assert ended.status == 0, ended.err
    calls = stepfork.load(project.folder / "run.yaml").calls
    assert [call.name for call in calls] == ["lookup", "deployments"]
    assert project.run("replay", "run.yaml").status == 0


def test_settings_are_options(project: Project) -> None:
    ended = project.run(
        "record", "agent:run", "--tools", "tools, agent", "--exclude", "tools:deployments",
        "--cassette-dir", "kept", "--redact-keys", "service", "--fsync", "-o", "run.yaml",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    calls = stepfork.load(project.folder / "kept/run.yaml").calls
    assert [call.name for call in calls] == ["lookup"]
    assert calls[0].args["service"].startswith("<secret:")
    assert (
        project.run(
            "replay",
            "run.yaml",
            "--cassette-dir",
            "kept",
            "--exclude",
            "tools:deployments",
            "--redact-keys",
            "service",
        ).status
        == 0
    )
    assert project.run("inspect", "kept/run.yaml", "--cassette-dir", "kept").status == 0


def test_an_agent_that_raises_is_kept_as_failed(project: Project) -> None:
    ended = project.record("agent:crash")
    assert ended.status == 1
    assert ended.err.splitlines()[-1] == "error: agent:crash raised KeyError: 'owner'"
    assert ended.err.count("Traceback") == 1  # the user's own
    assert "stepfork" not in ended.err
    trajectory = stepfork.load(project.folder / "cassettes/run.yaml")
    assert trajectory.status == "failed"
    assert trajectory.error == {"class": "builtins:KeyError", "args": ["owner"]}
    assert len(trajectory.calls) == 2


@pytest.mark.parametrize("how", ["SystemExit", "KeyboardInterrupt", "AssertionError"])
def test_c92_what_was_recorded_before_the_agent_died_is_kept(project: Project, how: str) -> None:
    ended = project.record("agent:ends_with", "--args", json.dumps([how, 1]))
    assert ended.status == 1
    trajectory = stepfork.load(project.folder / "cassettes/run.yaml")
    assert trajectory.status == "failed"
    assert len(trajectory.calls) == 2
    assert trajectory.error["class"] == f"builtins:{how}"
    exported = project.run("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py")
    assert exported.status == 0, exported.err


def test_a_clean_exit_is_completed(project: Project) -> None:
    assert project.record("agent:ends_with", "--args", '["SystemExit", 0]').status == 0
    assert stepfork.load(project.folder / "cassettes/run.yaml").status == "completed"


def test_a_failed_recording_never_replaces_a_good_one(recorded: Project) -> None:
    before = recorded.read("cassettes/run.yaml")
    ended = recorded.record("agent:crash")
    assert ended.status == 1
    assert recorded.read("cassettes/run.yaml") == before
    assert "the completed recording cassettes/run.yaml was kept" in ended.out
    assert "stepfork adopt cassettes/run.failed.yaml" in ended.out
    adopted = recorded.run("adopt", "cassettes/run.failed.yaml")
    assert adopted.status == 0
    assert adopted.out == "cassettes/run.failed.yaml is now cassettes/run.yaml\n"
    assert stepfork.load(recorded.folder / "cassettes/run.yaml").status == "failed"
    assert not (recorded.folder / "cassettes/run.failed.yaml").exists()


def test_recording_the_same_again_leaves_the_file_alone(recorded: Project) -> None:
    before = recorded.read("cassettes/run.yaml")
    ended = recorded.record("agent:run", "--args", '{"service": "api"}')
    assert ended.status == 0
    assert "nothing changed" in ended.out
    assert recorded.read("cassettes/run.yaml") == before


def test_what_cannot_be_recorded_ends_with_one(project: Project) -> None:
    project.write("odd.py", "import tools\ndef run():\n    tools.lookup('a')\n    return object()\n")
    ended = project.record("odd:run")
    assert ended.status == 1
    assert ended.complaint == "error: the output cannot be recorded: output is of type object"
    assert stepfork.load(project.folder / "cassettes/run.yaml").status == "failed"


def test_a_chat_model_is_recorded_and_needs_no_key_or_server_on_replay(
    project: Project, server: ChatServer
) -> None:
    project.write(
        "chat.py",
        """
        import openai
        import tools

        client = openai.OpenAI()

        def run(question):
            rate = tools.lookup("checkout")["rate"]
            messages = [{"role": "user", "content": f"{question} {rate}"}]
            return client.chat.completions.create(model="m", messages=messages).choices[0].message.content
        """,
    )
    key = "sk-" + "Zz9y" * 10
    ended = project.record(
        "chat:run",
        "--args",
        '{"question": "How bad is"}',
        OPENAI_BASE_URL=server.url,
        OPENAI_API_KEY=key,
    )
    assert ended.status == 0, ended.err
    assert "recorded 2 calls (1 tool, 1 llm)" in ended.out
    assert 'last user: "How bad is 72"' in ended.out
    assert key not in project.read("cassettes/run.yaml")
    assert len(server.bodies) == 1
    replayed = project.run("replay", "cassettes/run.yaml", "--json")
    assert replayed.status == 0, replayed.err
    assert replayed.json["live"] == replayed.json["tool_bodies_executed"] == 0
    assert replayed.json["output"] == "you said:\nHow bad is 72"
    assert len(server.bodies) == 1
    assert (
        project.run("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_chat.py").status == 0
    )
    tested = project.pytest("tests")
    assert tested.status == 0, tested.out
    assert len(server.bodies) == 1
    shown = project.run("inspect", "cassettes/run.yaml", "--call", "2")
    assert "How bad is 72" in shown.out
    assert "you said:" in shown.out


def test_the_request_of_an_error_stands_once_without_versions_and_secrets(project: Project) -> None:
    project.write(
        "asks.py",
        """
        from openai import OpenAI

        HEADERS = {
            "cf-aig-authorization": "Bearer hunter2hunter2", "X-Gateway-Secret": "geheim1234567",
            "X-Team": "blue",
        }

        def run():
            client = OpenAI(
                api_key="k" * 20, base_url="http://127.0.0.1:9/v1", max_retries=0, default_headers=HEADERS,
                organization="org-of-mine",
            )
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello there"}])
        """,
    )
    assert project.run("record", "asks:run", "-o", "asks.yaml").status == 1
    text = project.read("asks.yaml")
    for absent in (
        *("stainless", "user-agent", "host:", "accept", "org-of-mine", "content-length", "OpenAI/Python"),
        *("hunter2", "geheim", "127.0.0.1:9\n", "connection:"),
    ):
        assert absent not in text, absent
    assert text.count("x-team: blue") == text.count("url: ") == 1
    assert "_request: !http-request 1" in text
    assert project.run("validate", "asks.yaml").status == 0
    replayed = project.run("replay", "asks.yaml")
    assert replayed.status == 0, replayed.err
    assert "REPRODUCED" in replayed.out
    error = stepfork.load(project.folder / "asks.yaml").error
    assert error is not None
    project.write("wrong.yaml", text.replace("!http-request 1", "!http-request 2"))
    wrong = project.run("validate", "wrong.yaml")
    assert "there is no message 2 before this one" in wrong.out + wrong.err


def test_a_recording_without_tools_says_that_none_were_named(project: Project) -> None:
    ended = project.run("record", "agent:run", "-o", "empty.yaml")
    assert ended.status == 0, ended.err
    assert "recorded no calls to empty.yaml" in ended.out
    assert "no tools were named: --tools MODULE records the calls of that module's functions" in ended.out
    assert "stepfork replay" not in ended.out
