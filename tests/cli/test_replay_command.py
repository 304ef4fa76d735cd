"""``stepfork replay`` through a fresh process."""

from __future__ import annotations

import json

import pytest
from support.command import Project


def test_says_counts_dependencies_and_outcome(recorded: Project) -> None:
    before = recorded.read("cassettes/run.yaml")
    ended = recorded.run("replay", "cassettes/run.yaml")
    assert ended.status == 0, ended.err
    assert "2 recorded, 2 substituted, 0 live; 0 tool bodies executed" in ended.out
    assert "dependencies  matched" in ended.out
    assert "equals the recorded output" in ended.out
    assert "PASSED" in ended.out
    assert "BODY" not in ended.out
    assert recorded.read("cassettes/run.yaml") == before


def test_json_is_alone_on_stdout(recorded: Project) -> None:
    ended = recorded.run("replay", "cassettes/run.yaml", "--json")
    assert ended.status == 0
    assert "the agent speaks" in ended.err
    report = ended.json
    assert (report["recorded"], report["substituted"], report["live"]) == (2, 2, 0)
    assert report["tool_bodies_executed"] == 0
    assert report["dependencies_matched"] is True
    assert report["output"] == {"severity": "P1", "rate": 72}
    assert report["verdict"] == "PASSED"


def test_json_survives_what_is_printed_below_python(recorded: Project) -> None:
    recorded.write(
        "loud.py",
        "import agent, os\ndef run(service):\n    os.system('echo loud')\n    return agent.run(service)\n",
    )
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", "loud:run", "--json")
    assert ended.json["verdict"] == "PASSED"
    assert "loud" in ended.err


@pytest.mark.parametrize(
    ("entrypoint", "first"),
    [
        ("swapped", "call #1: expected tool 'lookup' but the agent called 'deployments'"),
        ("wider", "call #1: tool 'lookup' argument 'minutes': expected 60, got 120"),
        ("swallowing", "call #1: tool 'lookup' argument 'minutes': expected 60, got 120"),
        ("exiting", "call #1: tool 'lookup' argument 'minutes': expected 60, got 120"),
        (
            "early",
            "call #1: expected tool 'lookup' but the agent never made it "
            "(2 of 2 recorded calls were not made)",
        ),
    ],
)
def test_a_mismatch_ends_with_one(recorded: Project, entrypoint: str, first: str) -> None:
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", f"agent:{entrypoint}")
    assert ended.status == 1
    lines = ended.err.splitlines()
    assert lines[0] == first
    assert "cassette: " in lines[1]
    assert lines[-1].startswith("  if the change is meant, record again: stepfork record agent:")
    assert "Traceback" not in ended.err
    assert "MISMATCH" in ended.out


def test_a_mismatch_in_json(recorded: Project) -> None:
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", "agent:wider", "--json")
    assert ended.status == 1
    report = ended.json
    assert report["dependencies_matched"] is False
    assert report["verdict"] == "DIFFERS"
    mismatch = report["mismatch"]
    assert mismatch["message"].startswith("call #1: tool 'lookup' argument 'minutes'")
    assert (mismatch["index"], mismatch["kind"], mismatch["path"]) == (1, "tool", "minutes")
    assert (mismatch["expected"], mismatch["actual"]) == (60, 120)


def test_the_command_that_records_again_works(recorded: Project) -> None:
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", "agent:wider")
    command = ended.err.splitlines()[-1].partition("record again: stepfork ")[2]
    import shlex

    assert recorded.run(*shlex.split(command)).status == 0
    assert recorded.run("replay", "cassettes/run.yaml").status == 0


def test_the_output_must_equal_the_recorded_one(recorded: Project) -> None:
    recorded.write("agent.py", recorded.read("agent.py").replace('"P1", "rate"', '"P0", "rate"'))
    ended = recorded.run("replay", "cassettes/run.yaml")
    assert ended.status == 1
    assert ended.complaint == 'behavior mismatch at \'severity\': expected "P1", got "P0"'
    assert "differs from the recorded output" in ended.out


@pytest.mark.parametrize(
    ("expected", "status", "complaint"),
    [
        ({"severity": "P1"}, 0, ""),
        ({"severity": "P0"}, 1, 'behavior mismatch at \'severity\': expected "P0", got "P1"'),
        ({"owner": "me"}, 1, "behavior mismatch at 'owner': expected \"me\", got nothing"),
    ],
)
def test_an_expectation_goes_before_the_recorded_output(
    recorded: Project, expected: object, status: int, complaint: str
) -> None:
    recorded.write("expected.json", json.dumps(expected))
    ended = recorded.run("replay", "cassettes/run.yaml", "--expect-output", "expected.json")
    assert ended.status == status
    assert ended.err.strip() == complaint


def test_a_recorded_failure_that_comes_back_is_reproduced(recorded: Project) -> None:
    ended = recorded.run("replay", "cassettes/crash.yaml")
    assert ended.status == 0
    assert ended.err == ""
    assert "REPRODUCED" in ended.out
    assert 'KeyError("owner")' in ended.out


@pytest.mark.parametrize(
    ("entrypoint", "says"),
    [
        ("crash_otherwise", 'the recorded run raised KeyError("owner"), and this one KeyError("another")'),
        ("crash_sooner", "1 recorded call(s) were not made"),
        ("fixed", 'the recorded run raised KeyError("owner"), and this one did not raise'),
        ("fixed_further", "but the recording ends after call #2"),
    ],
)
def test_a_recorded_failure_that_does_not_come_back_differs(
    recorded: Project, entrypoint: str, says: str
) -> None:
    ended = recorded.run("replay", "cassettes/crash.yaml", "--entrypoint", f"agent:{entrypoint}")
    assert ended.status == 1
    assert says in ended.err


def test_a_fixed_run_may_meet_an_expectation(recorded: Project) -> None:
    recorded.write("expected.json", '{"severity": "P0"}')
    arguments = ("replay", "cassettes/crash.yaml", "--expect-output", "expected.json", "--entrypoint")
    assert recorded.run(*arguments, "agent:fixed").status == 0
    assert recorded.run(*arguments, "agent:crash").status == 1


def test_a_fixed_run_may_go_past_the_recorded_failure(recorded: Project) -> None:
    arguments = ("replay", "cassettes/crash.yaml", "--past-failure", "stop", "--entrypoint")
    ended = recorded.run(*arguments, "agent:fixed_further")
    assert ended.status == 0, ended.err
    assert "went on past the recorded failure" in ended.out
    assert recorded.run(*arguments, "agent:fixed").status == 0
    assert recorded.run(*arguments, "agent:crash").status == 0


def test_an_agent_that_raises_shows_its_own_traceback(recorded: Project) -> None:
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", "agent:crash")
    assert ended.status == 1
    assert 'raise KeyError("owner")' in ended.err
    assert ended.err.splitlines()[-1] == 'the run raised KeyError("owner"), and the recorded one did not'


def test_variables_are_applied_only_if_named(project: Project) -> None:
    assert project.record("agent:variable", "--env", "REGION", REGION="eu").status == 0
    assert project.run("replay", "cassettes/run.yaml", "--env", "REGION").status == 0
    assert project.run("replay", "cassettes/run.yaml").status == 1
    ended = project.run("replay", "cassettes/run.yaml", "--env", "OTHER")
    assert ended.status == 2
    assert "holds no such variable; it has REGION" in ended.complaint


def test_a_changed_file_replays_with_a_warning_or_not_at_all(recorded: Project) -> None:
    text = recorded.read("cassettes/run.yaml")
    recorded.write("cassettes/run.yaml", text.replace("rate: 72", "rate: 73"))
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", "agent:run")
    assert ended.status == 0, ended.err
    assert ended.complaint.startswith("warning: ")
    assert recorded.run("replay", "cassettes/run.yaml", "--integrity", "off").err == ""
    refused = recorded.run("replay", "cassettes/run.yaml", "--integrity", "error")
    assert refused.status == 2
    assert "checksum" in refused.complaint


def test_an_entrypoint_named_in_a_file_runs_only_if_it_is_the_projects_own(recorded: Project) -> None:
    text = recorded.read("cassettes/run.yaml")
    for foreign in ("shutil:rmtree", "os:system", "pytest:main", "stepfork.cli:main"):
        recorded.write("cassettes/run.yaml", text.replace("agent:run", foreign))
        ended = recorded.run("replay", "cassettes/run.yaml", "--integrity", "off")
        assert ended.status == 2
        assert "--entrypoint" in ended.complaint
    recorded.write("mine.py", "from shutil import rmtree as run\n")
    recorded.write("cassettes/run.yaml", text.replace("agent:run", "mine:run"))
    assert recorded.run("replay", "cassettes/run.yaml", "--integrity", "off").status == 2


def test_a_foreign_module_named_in_a_file_is_not_even_imported(recorded: Project) -> None:
    installed = ".venv/lib/python3/site-packages"
    recorded.write(f"{installed}/evil.py", "open('imported', 'w')\ndef run(service): pass\n")
    text = recorded.read("cassettes/run.yaml").replace("agent:run", "evil:run")
    recorded.write("cassettes/run.yaml", text)
    ended = recorded.run(
        "replay", "cassettes/run.yaml", "--integrity", "off", PYTHONPATH=str(recorded.folder / installed)
    )
    assert ended.status == 2
    assert not (recorded.folder / "imported").exists()


def test_a_call_at_import_is_answered_and_never_live(recorded: Project) -> None:
    recorded.write(
        "eager.py",
        """
        import tools

        HEALTH = tools.lookup("api")

        def run(service):
            tools.deployments(service)
            return {"severity": "P1", "rate": 72}
        """,
    )
    ended = recorded.run("replay", "cassettes/run.yaml", "--entrypoint", "eager:run")
    assert ended.status == 0, ended.err
    assert "BODY" not in ended.out


def test_a_thread_that_outlives_the_entrypoint_does_not_go_live(project: Project) -> None:
    project.write(
        "late.py",
        """
        import threading, time
        from late_tools import add

        def later():
            time.sleep(0.3)
            add(2, 3)

        def run():
            threading.Thread(target=later).start()
            return add(1, 2)
        """,
    )
    project.write("late_tools.py", "def add(a, b):\n    print('BODY add')\n    return a + b\n")
    assert project.run("record", "late:run", "--tools", "late_tools", "-o", "late.yaml").status == 0
    result = project.run("replay", "late.yaml")
    assert "BODY" not in result.out + result.err
    assert "NoCassetteError" in result.err


def test_the_command_for_a_missing_cassette_has_the_options_that_were_given(project: Project) -> None:
    ended = project.run("replay", "none.yaml", "--tools", "tools", "--cassette-dir", "kept")
    assert ended.status == 2
    assert "stepfork record MODULE:FUNCTION --tools tools --cassette-dir kept -o kept/none.yaml" in ended.err
