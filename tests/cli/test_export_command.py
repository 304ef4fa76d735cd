"""``stepfork export`` through a fresh process, and the tests it writes under pytest and ruff."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Project


def ruff_clean(path: Path) -> None:
    for command in (["check"], ["check", "--select", "E,F,I,B,UP"], ["format", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", command[0], "--isolated", "--no-cache", *command[1:], str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + path.read_text("utf-8")


def export(project: Project, *arguments: str, cassette: str = "run", to: str = "tests/test_run.py") -> str:
    ended = project.run("export", f"cassettes/{cassette}.yaml", "--pytest", "--output", to, *arguments)
    assert ended.status == 0, ended.err
    ruff_clean(project.folder / to)
    return project.read(to)


def test_asserts_the_recorded_behaviour_and_warns(recorded: Project) -> None:
    arguments = ("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py")
    ended = recorded.run(*arguments)
    assert ended.status == 0
    assert "warning: without --expect-output the test asserts the recorded behaviour" in ended.complaint
    assert "wrote tests/test_run.py" in ended.out
    ruff_clean(recorded.folder / "tests/test_run.py")
    source = recorded.read("tests/test_run.py")
    assert len(source.splitlines()) < 25
    assert str(recorded.folder) not in source
    tested = recorded.pytest("tests")
    assert tested.status == 0, tested.out
    assert "1 passed" in tested.out
    recorded.write("agent.py", recorded.read("agent.py").replace('"P1", "rate"', '"P0", "rate"'))
    tested = recorded.pytest("tests")
    assert tested.status == 1
    assert 'behavior mismatch at \'severity\': expected "P1", got "P0"' in tested.out


def test_asserts_the_expectation_red_then_green(recorded: Project) -> None:
    recorded.write("expected.json", '{"severity": "P0"}')
    source = export(recorded, "--expect-output", "expected.json")
    assert 'stepfork.expect(outcome, {"severity": "P0"})' in source
    tested = recorded.pytest("tests")
    assert tested.status == 1
    assert 'behavior mismatch at \'severity\': expected "P0", got "P1"' in tested.out
    recorded.write("agent.py", recorded.read("agent.py").replace('"P1"', '"P0"'))
    assert recorded.pytest("tests").status == 0


def test_a_crash_is_red_until_it_is_gone_though_the_fixed_run_goes_further(recorded: Project) -> None:
    source = export(recorded, cassette="crash", to="tests/test_crash.py")
    assert 'past_failure="stop"' in source
    assert "KeyError('owner')" in source
    tested = recorded.pytest("tests")
    assert tested.status == 1
    assert "KeyError: 'owner'" in tested.out
    agent = recorded.read("agent.py")
    recorded.write(
        "agent.py", agent.replace('    raise KeyError("owner")', '    return tools.lookup("payments")')
    )
    tested = recorded.pytest("tests")
    assert tested.status == 0, tested.out
    assert "past the recorded failure" in tested.out
    assert "BODY" not in tested.out
    recorded.write("agent.py", agent.replace('    raise KeyError("owner")', '    return "done"'))
    assert recorded.pytest("tests").status == 0
    recorded.write("agent.py", agent.replace("tools.lookup(service)\n", "tools.lookup(service, 5)\n"))
    assert recorded.pytest("tests").status == 1


def test_a_crash_with_an_expectation(recorded: Project) -> None:
    recorded.write("expected.json", '{"severity": "P0"}')
    export(recorded, "--expect-output", "expected.json", cassette="crash")
    agent = recorded.read("agent.py")
    for outcome, status in (('return {"severity": "P0"}', 0), ('return {"severity": "P1"}', 1)):
        recorded.write("agent.py", agent.replace('raise KeyError("owner")', outcome, 1))
        assert recorded.pytest("tests").status == status


@pytest.mark.parametrize("how", ["SystemExit", "AssertionError"])
def test_c92_a_run_that_died_is_exported_as_a_red_test(project: Project, how: str) -> None:
    assert project.record("agent:ends_with", "--args", json.dumps([how, 1])).status == 1
    export(project)
    assert project.pytest("tests").status == 1
    project.write("agent.py", project.read("agent.py").replace("    raise getattr", "    return getattr"))
    assert project.pytest("tests").status == 0


@pytest.mark.parametrize("entrypoint", ["agent:ends_with", "agent:aends_with"])
def test_c92_a_run_that_was_interrupted_fails_its_test_and_no_other(
    project: Project, entrypoint: str
) -> None:
    more = "\nasync def aends_with(how, code=None):\n    return ends_with(how, code)\n"
    project.write("agent.py", project.read("agent.py") + more)
    assert project.record(entrypoint, "--args", '["KeyboardInterrupt"]').status == 1
    project.write("expected.json", '"fixed"')
    export(project, "--expect-output", "expected.json")
    export(project, to="tests/test_other.py")
    project.write("tests/test_third.py", "def test_third():\n    pass\n")
    tested = project.pytest("tests")
    assert tested.status == 1
    assert "2 failed, 1 passed" in tested.out
    assert "the run raised KeyboardInterrupt" in tested.out
    agent = project.read("agent.py").replace("    raise getattr", "    return 'fixed' or getattr")
    project.write("agent.py", agent)
    tested = project.pytest("tests")
    assert "3 passed" in tested.out, tested.out


def refused(project: Project) -> None:
    """A run that did not fail, of which a call could not be recorded."""
    project.write("tools.py", project.read("tools.py") + "\ndef opened(name):\n    return open(name)\n")
    agent = "\ndef opens(service):\n    tools.lookup(service)\n"
    agent += "    tools.opened('tools.py').close()\n    return 7\n"
    project.write("agent.py", project.read("agent.py") + agent)
    assert project.record("agent:opens", "--args", '["a"]').status == 1
    assert "status      failed" in project.run("inspect", "cassettes/run.yaml").out


def test_a_recording_that_was_refused_is_no_failure_to_be_tested(project: Project) -> None:
    refused(project)
    ended = project.run("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py")
    assert ended.status == 2
    assert "cassettes/run.yaml: the recording is incomplete: it failed with RecordingError" in ended.complaint
    assert "tool 'opened'" in ended.complaint
    assert "--expect-output" in ended.complaint
    assert not (project.folder / "tests").exists()
    project.write("expected.json", "7")
    source = export(project, "--expect-output", "expected.json")
    assert "# Beware: the recording is incomplete: it failed with RecordingError" in source
    assert "past_failure" not in source
    tested = project.pytest("tests")
    assert tested.status == 1
    assert "the file holds a recording that failed with RecordingError" in tested.out
    without = project.read("agent.py").replace("    tools.opened('tools.py').close()\n", "")
    project.write("agent.py", without)
    assert project.pytest("tests").status == 0
    project.write("agent.py", without.replace("return 7", "return 8"))
    assert project.pytest("tests").status == 1


def test_replay_says_that_a_recording_is_incomplete(project: Project) -> None:
    refused(project)
    project.write("agent.py", project.read("agent.py").replace("    tools.opened('tools.py').close()\n", ""))
    for options in ((), ("--past-failure", "stop")):
        ended = project.run("replay", "cassettes/run.yaml", *options)
        assert ended.status == 1
        assert "the recording is incomplete: it failed with RecordingError" in ended.err
        assert "outcome       the recording is incomplete" in ended.out
        assert "did not raise" not in ended.err
    project.write("expected.json", "7")
    ended = project.run("replay", "cassettes/run.yaml", "--expect-output", "expected.json")
    assert ended.status == 0, ended.err
    assert "note          the recording is incomplete" in ended.out
    project.write("agent.py", project.read("agent.py").replace("    return 7", "    raise KeyError('x')"))
    ended = project.run("replay", "cassettes/run.yaml")
    assert ended.status == 1
    assert "the run raised KeyError" in ended.err
    assert "note          the recording is incomplete" in ended.out


def test_an_async_entrypoint(project: Project) -> None:
    assert project.record("agent:arun", "--args", '["a somewhat longer argument", "b"]').status == 2
    assert project.record("agent:arun", "--args", json.dumps(["a longer argument " * 8])).status == 0
    source = export(project)
    assert "asyncio.run(" in source
    assert project.pytest("tests").status == 0


def test_an_entrypoint_that_looks_like_a_test_is_not_collected(recorded: Project) -> None:
    recorded.write("entry.py", "from agent import run\ndef test_run(service):\n    return run(service)\n")
    export(recorded, "--entrypoint", "entry:test_run")
    tested = recorded.pytest("tests")
    assert tested.status == 0, tested.out
    assert "1 passed" in tested.out


def test_c150_paths_are_relative_to_the_test(recorded: Project, tmp_path: Path) -> None:
    recorded.write("tests/cassettes/run.yaml", recorded.read("cassettes/run.yaml"))
    ended = recorded.run("export", "tests/cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py")
    assert ended.status == 0
    recorded.write("elsewhere/nothing", "")
    assert recorded.pytest("../tests/test_run.py", cwd="elsewhere").status == 0
    moved = tmp_path / "moved" / "deep" / "tests"
    moved.parent.mkdir(parents=True)
    shutil.move(recorded.folder / "tests", moved)
    tested = recorded.pytest(str(moved), PYTHONPATH=str(recorded.folder))
    assert tested.status == 0, tested.out


def test_c150_an_installed_entrypoint_needs_no_path_line(recorded: Project, tmp_path: Path) -> None:
    assert "sys.path" in export(recorded)
    recorded.write("src/pkg/__init__.py", "")
    recorded.write("src/pkg/agent.py", recorded.read("agent.py"))
    source = recorded.run(
        "export", "cassettes/run.yaml", "--pytest", "--entrypoint", "pkg.agent:run",
        PYTHONPATH=str(recorded.folder / "src"),
    )  # fmt: skip
    assert source.status == 0, source.err
    assert 'sys.path.append(str(Path(__file__).parent / "src"))' in source.out
    installed = recorded.run("export", "cassettes/run.yaml", "--pytest", "--entrypoint", "textwrap:dedent")
    assert installed.status == 2  # takes other arguments, but is found
    assert "cannot be called so" in installed.complaint


def test_c152_names_are_data_and_never_code(recorded: Project) -> None:
    name = 'x"); import os; os.system("touch pwned") #'
    text = recorded.read("cassettes/run.yaml")
    for run_name in ("1 bad/é class", name, '"""\nimport os', "\\", "", "名前", "test_run", "class"):
        quoted = json.dumps(run_name)
        recorded.write("cassettes/run.yaml", text.replace("name: run", f"name: {quoted}"))
        source = export(recorded, "--integrity", "off", "--overwrite")
        tested = recorded.pytest("tests")
        assert tested.status == 0, tested.out + source
        assert "1 passed" in tested.out
    assert not (recorded.folder / "pwned").exists()


def test_c152_a_tool_name_is_data(project: Project) -> None:
    project.write(
        "tools.py",
        """
        def plain(x):
            return x
        plain.__name__ = plain.__qualname__ = 'x"); import os; os.system("touch pwned") #'
        """,
    )
    project.write("odd.py", "import tools\ndef run():\n    tools.plain(1)\n    return {'a\"b': \"'\\\\\"}\n")
    assert project.record("odd:run").status == 0
    export(project)
    assert project.pytest("tests").status == 0
    assert not (project.folder / "pwned").exists()


def test_c148_values_are_equal_and_clean(project: Project) -> None:
    value = {
        "t": 'a"""b\\',
        "r": "\r\n\x1b",
        "s": "\ud83d",
        "x": float("nan"),
        "i": float("inf"),
        "long": "word " * 60,
        "lines": "one\n\ntwo\n" * 5 + "'\"",
        "deep": {"a": [{"b": ["c" * 30, "d" * 30, {"e": -0.0}]}, None, True]},
        "名": "绿色" * 30,
    }
    source = repr(value).replace("nan", "float('nan')").replace("inf,", "float('inf'),")
    project.write("odd.py", f"def run(given=None):\n    return {source}\n")
    args = json.dumps({"given": value})
    assert project.record("odd:run", "--args", args).status == 0
    export(project)
    tested = project.pytest("tests")
    assert tested.status == 0, tested.out


def test_c120_no_secret_reaches_the_exported_test(project: Project) -> None:
    key = "sk-" + "q7Xp" * 10
    project.write(
        "secret.py", "import tools\ndef run(key):\n    return {'said': tools.lookup(key)['service']}\n"
    )
    assert project.record("secret:run", "--args", f'["{key}"]').status == 0
    project.write("expected.json", json.dumps({"said": key}))
    source = export(project, "--expect-output", "expected.json")
    assert key not in source
    tested = project.pytest("tests")
    assert tested.status == 0, tested.out


def test_an_entrypoint_among_the_tools_is_left_out(project: Project) -> None:
    assert project.record("agent:run", "--tools", "agent").status == 0
    source = export(project)
    assert 'exclude=["agent:run"]' in source
    assert project.pytest("tests").status == 0


def test_without_output_the_test_goes_to_stdout(recorded: Project) -> None:
    recorded.write("agent.py", "print('imported')\n" + recorded.read("agent.py"))
    ended = recorded.run("export", "cassettes/run.yaml", "--pytest")
    assert ended.status == 0
    recorded.write("test_here.py", ended.out)
    ruff_clean(recorded.folder / "test_here.py")
    assert recorded.pytest("test_here.py").status == 0


def test_an_existing_file_is_replaced_only_if_told(recorded: Project) -> None:
    path = recorded.write("tests/test_run.py", "# mine\n")
    arguments = ("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py")
    ended = recorded.run(*arguments)
    assert ended.status == 2
    assert ended.complaint == "error: tests/test_run.py exists; pass --overwrite to replace it"
    assert path.read_text("utf-8") == "# mine\n"
    assert recorded.run(*arguments, "--overwrite").status == 0
    assert path.read_text("utf-8") != "# mine\n"
    assert [item.name for item in path.parent.iterdir()] == ["test_run.py"]
    onto = recorded.run(
        "export", "cassettes/run.yaml", "--pytest", "--overwrite", "--output", "cassettes/run.yaml"
    )
    assert onto.status == 2


def test_a_cassette_without_entrypoint_says_so(recorded: Project) -> None:
    text = recorded.read("cassettes/run.yaml").replace("entrypoint: agent:run\n", "")
    recorded.write("cassettes/run.yaml", text)
    ended = recorded.run("export", "cassettes/run.yaml", "--pytest", "--integrity", "off")
    assert ended.status == 2
    assert ended.complaint == (
        "error: cassettes/run.yaml names no entrypoint; pass --entrypoint MODULE:FUNCTION"
    )
    export(recorded, "--integrity", "off", "--entrypoint", "agent:run")


def test_asserts_a_trajectory_and_not_the_recorded_output(recorded: Project) -> None:
    recorded.write("rules.json", '{"called": ["lookup"], "order": ["lookup", "deployments"], "max_steps": 2}')
    source = export(recorded, "--expect-trajectory", "rules.json")
    assert "stepfork.expect(" not in source
    rules = 'called=["lookup"], order=["lookup", "deployments"], max_steps=2,'
    assert f"run.expect_trajectory( {rules} )" in " ".join(source.split())
    assert recorded.pytest("tests").status == 0
    recorded.write("rules.json", '{"not_called": ["deployments"], "arguments": {"lookup": {"minutes": 120}}}')
    recorded.write("expected.json", '{"severity": "P1"}')
    both = ("--expect-trajectory", "rules.json", "--expect-output", "expected.json", "--overwrite")
    source = export(recorded, *both)
    assert 'stepfork.expect(outcome, {"severity": "P1"})' in source
    tested = recorded.pytest("tests")
    assert tested.status == 1
    assert "trajectory mismatch: not_called: 'deployments' was called, by call #2" in tested.out
    assert "arguments: call #1 ('lookup') at 'minutes': expected 120, got 60" in tested.out


def test_a_trajectory_of_a_failed_run_is_asserted_only_if_it_does_not_go_on(recorded: Project) -> None:
    recorded.write("rules.json", '{"max_steps": 5}')
    source = export(recorded, "--expect-trajectory", "rules.json", cassette="crash")
    assert "    if not run.went_past:\n        run.expect_trajectory(max_steps=5)\n" in source


def test_rules_that_make_no_sense_write_nothing(recorded: Project) -> None:
    for text, says in [
        ('{"call": []}', "--expect-trajectory rules.json: unknown key 'call'"),
        ("[1]", "--expect-trajectory rules.json: expected an object with some of called"),
        ("{", "--expect-trajectory rules.json"),
    ]:
        recorded.write("rules.json", text)
        ended = recorded.run(
            "export",
            "cassettes/run.yaml",
            "--pytest",
            "--output",
            "t.py",
            "--expect-trajectory",
            "rules.json",
        )
        assert ended.status == 2
        assert says in ended.complaint
        assert "Traceback" not in ended.err
        assert not (recorded.folder / "t.py").exists()
