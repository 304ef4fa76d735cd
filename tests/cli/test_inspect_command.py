"""``stepfork inspect`` and ``stepfork validate`` through a fresh process."""

from __future__ import annotations

import hashlib
import re

from support.command import Project


def reseal(text: str) -> str:
    body = text[: text.rindex("sha256:")]
    return f'{body}sha256: "{hashlib.sha256(body.encode()).hexdigest()}"\n'


def test_a_cassette_at_a_glance(recorded: Project) -> None:
    ended = recorded.run("inspect", "cassettes/run.yaml")
    assert ended.status == 0
    assert ended.err == ""
    assert "\x1b" not in ended.out
    for part in (
        "status      completed",
        'entrypoint  agent:run {"service": "api"}',
        "integrity   ok",
        "2 calls (2 tool)",
        '#1  tool lookup {"service": "api", "minutes": 60}',
        '-> {"service": "api", "rate": 72, "minutes": 60}',
        'output  {"severity": "P1", "rate": 72}',
    ):
        assert part in ended.out


def test_as_json(recorded: Project) -> None:
    shown = recorded.run("inspect", "cassettes/run.yaml", "--json").json
    assert shown["status"] == "completed"
    assert shown["integrity"] == "ok"
    assert shown["entrypoint"] == "agent:run"
    assert [call["name"] for call in shown["calls"]] == ["lookup", "deployments"]
    assert shown["calls"][1]["result"] == [{"!tuple": ["v2", 15]}]
    one = recorded.run("inspect", "cassettes/run.yaml", "--json", "--call", "2").json
    assert one == shown["calls"][1]


def test_a_failed_run_and_its_errors(project: Project) -> None:
    project.write(
        "flaky.py",
        """
        import asyncio, tools

        def inner():
            raise ValueError("too\\nmuch")

        def outer():
            tools.lookup("a")
            return inner()

        def run():
            tools.deployments("a")
            outer()
        """,
    )
    assert project.record("flaky:run", "--tools", "flaky").status == 1
    ended = project.run("inspect", "cassettes/run.yaml", "--errors-only")
    assert "status      failed" in ended.out
    assert 'raised  ValueError("too\\nmuch")' in ended.out
    assert "(1 more without an error)" in ended.out
    assert re.search(r"#2  tool outer\n +raised ValueError.*\n +tool lookup", ended.out)
    shown = project.run("inspect", "cassettes/run.yaml", "--errors-only", "--json").json
    assert [call["number"] for call in shown["calls"]] == [2]
    assert [child["name"] for child in shown["calls"][0]["children"]] == ["lookup", "inner"]
    assert shown["error"]["class"] == "builtins:ValueError"


def test_a_partial_recording(recorded: Project) -> None:
    text = recorded.read("cassettes/run.yaml")
    recorded.write("cassettes/cut.partial.yaml", text[: text.rindex("---\nend:")] + "---\ntool: look")
    ended = recorded.run("inspect", "cassettes/cut.partial.yaml")
    assert ended.status == 0
    assert "partial: the recording was cut off" in ended.out
    assert "2 calls" in ended.out
    assert ended.complaint.startswith("warning: ")


def test_replaced_secrets_are_listed(project: Project) -> None:
    project.write("secret.py", "import tools\ndef run(key):\n    return tools.lookup(key)\n")
    key = "sk-" + "q7Xp" * 10
    assert project.record("secret:run", "--args", f'["{key}"]').status == 0
    ended = project.run("inspect", "cassettes/run.yaml")
    assert "secrets replaced: 1" in ended.out
    assert re.search(r"<secret:\w+:1> \d times, first in args\[0\]", ended.out)
    assert key not in ended.out
    assert project.run("inspect", "cassettes/run.yaml", "--json").json["secrets"][0]["first"] == "args[0]"
    assert project.run("replay", "cassettes/run.yaml").status == 0


def test_call_out_of_range(recorded: Project) -> None:
    for number in ("0", "3", "-1"):
        ended = recorded.run("inspect", "cassettes/run.yaml", "--call", number)
        assert ended.status == 2
        assert ended.complaint == f"error: --call {number}: cassettes/run.yaml holds calls 1 to 2"


def test_validate_says_ok_and_counts_the_worst(recorded: Project) -> None:
    good = recorded.read("cassettes/run.yaml")
    recorded.write("cassettes/changed.yaml", good.replace("rate: 72", "rate: 73"))
    recorded.write("cassettes/bare.yaml", good[: good.rindex("sha256:")])
    recorded.write(
        "cassettes/bad.yaml", good.replace("tool: lookup", "tool: 3").replace("15]]", "15]]\nodd: 1")
    )
    assert (
        recorded.run("validate", "cassettes/run.yaml").out == "cassettes/run.yaml: ok (2 calls, completed)\n"
    )

    def status(*names: str, options: tuple[str, ...] = ()) -> int:
        return recorded.run("validate", *options, *(f"cassettes/{name}.yaml" for name in names)).status

    verify = ("--verify-integrity",)
    assert status("run", "crash", options=verify) == 0
    assert status("changed") == status("changed", options=verify) == 1
    assert status("changed", options=("--integrity", "off")) == 0
    assert status("changed", options=("--integrity", "off", *verify)) == 1
    assert status("bare") == 0
    assert status("bare", options=verify) == 3
    assert status("bare", "changed", "run", options=verify) == 1
    assert status("changed", "bad", "bare", options=verify) == 2
    assert status("missing", "run") == 2


def test_validate_lists_all_faults_with_their_place(recorded: Project) -> None:
    text = recorded.read("cassettes/run.yaml")
    text = (
        text.replace("tool: lookup", "tool: 3").replace("15]]", "15]]\nodd: 1").replace("output:", "outputs:")
    )
    recorded.write("cassettes/bad.yaml", reseal(text))
    ended = recorded.run("validate", "cassettes/run.yaml", "cassettes/bad.yaml")
    assert ended.status == 2
    assert ended.out == "cassettes/run.yaml: ok (2 calls, completed)\n"
    faults = ended.err.splitlines()
    assert len(faults) == 3
    for fault, field in zip(faults, ("tool", "odd", "outputs"), strict=True):
        line = text.splitlines()[int(fault.split(":")[1]) - 1]
        assert fault.startswith(f"cassettes/bad.yaml:{fault.split(':')[1]}: {field}: ")
        assert line.startswith(field)
