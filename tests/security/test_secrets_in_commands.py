"""What the commands print and write about a run with secrets. Through a fresh process, as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import Project
from support.secret_corpus import positives

KEY = {sample.name: sample.secrets[0] for sample in positives()}["github classic"]
PASS = "correct" + "-horse-" + "battery"

VAULT = """
def unlock(user, password):
    return {"token": password[::-1] + "0123", "note": f"unlocked with {password}"}

def ask(prompt):
    return f"you asked: {prompt}"
"""

AGENT = """
import os, sys
import vault

PASS = "correct" + "-horse-" + "battery"

def run(key="", password=PASS):
    print("working with the vault")
    opened = vault.unlock("bob", password)
    vault.ask(f"key {key or os.environ.get('SERVICE_API_KEY')} token {opened['token']}")
    return {"note": opened["note"], "as": PASS if password == PASS else password}

def crashes(key="", password=PASS):
    run(key, password)
    raise RuntimeError(f"cannot unlock with {password} and {key}")

def drifts(key="", password=PASS):
    vault.unlock("bob", password)
    vault.ask(f"key {key} and {PASS} elsewhere")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.write("vault.py", VAULT)
    project.write("vaults.py", AGENT)
    return project


def all_files(project: Project) -> str:
    return "\n".join(
        path.read_text("utf-8")
        for path in sorted(project.folder.rglob("*"))
        if path.is_file() and path.name not in ("vault.py", "vaults.py")
    )


def record(project: Project, entrypoint: str, *more: str, **env: str) -> str:
    arguments = json.dumps({"key": KEY})
    ended = project.run(
        "record", entrypoint, "--tools", "vault", "-o", "run.yaml", "--args", arguments, *more, **env
    )
    return ended.out + ended.err


def test_C120_what_record_inspect_replay_and_export_say(project: Project) -> None:
    said = record(project, "vaults:run", "--env", "SERVICE_API_KEY", SERVICE_API_KEY=PASS + "2")
    texts = [said]
    for command in (
        ["inspect", "run.yaml"],
        ["inspect", "run.yaml", "--json"],
        ["inspect", "run.yaml", "--call", "2"],
        ["validate", "run.yaml"],
        ["replay", "run.yaml"],
        ["replay", "run.yaml", "--json"],
        ["export", "run.yaml", "--pytest", "--output", "test_run.py"],
    ):
        ended = project.run(*command)
        assert ended.status == 0, ended
        texts.append(ended.out + ended.err)
    texts.append(all_files(project))
    assert "test_run.py" in texts[-2]
    for text in texts:
        assert KEY not in text
        assert PASS not in text
        assert PASS[::-1] not in text
    assert project.pytest("test_run.py").status == 0


def test_inspect_lists_what_was_replaced_where_and_how_often(project: Project) -> None:
    """C112: a report says what was replaced and where."""
    record(project, "vaults:run")
    shown = project.run("inspect", "run.yaml").out
    rows = shown.partition("secrets replaced: ")[2].splitlines()
    assert rows == [
        "3",
        "  <secret:github_token:1> 3 times, first in args.key",
        "  <secret:password:1> 4 times, first in #1 args.password",
        "  <secret:token:1> 3 times, first in #1 result.token",
    ]
    assert project.run("inspect", "run.yaml", "--json").json["secrets"] == [
        {"placeholder": "<secret:github_token:1>", "count": 3, "first": "args.key"},
        {"placeholder": "<secret:password:1>", "count": 4, "first": "#1 args.password"},
        {"placeholder": "<secret:token:1>", "count": 3, "first": "#1 result.token"},
    ]


def test_C120_a_run_that_crashes_and_comes_back(project: Project) -> None:
    texts = [record(project, "vaults:crashes")]
    assert "RuntimeError: cannot unlock with <secret:password:1> and <secret:github_token:1>" in texts[0]
    ended = project.run("replay", "run.yaml")
    assert ended.status == 0
    assert "REPRODUCED" in ended.out
    texts += [ended.out + ended.err, all_files(project)]
    for text in texts:
        assert KEY not in text
        assert PASS not in text


def test_C120_a_run_that_drifts(project: Project) -> None:
    record(project, "vaults:run")
    ended = project.run("replay", "run.yaml", "--entrypoint", "vaults:drifts")
    assert ended.status == 1
    assert "call #2: tool 'ask' argument 'prompt': expected" in ended.err
    assert PASS not in ended.out + ended.err
    as_json = project.run("replay", "run.yaml", "--entrypoint", "vaults:drifts", "--json")
    assert PASS not in as_json.out + as_json.err
    project.write("expected.json", json.dumps({"note": "unlocked", "as": "nobody"}))
    for more in ([], ["--json"]):
        ended = project.run("replay", "run.yaml", "--expect-output", "expected.json", *more)
        assert ended.status == 1
        assert "behavior mismatch at 'note'" in ended.out + ended.err
        assert PASS not in ended.out + ended.err


def test_C118_an_empty_setting_leaves_the_rules_on(project: Project) -> None:
    record(project, "vaults:run", STEPFORK_REDACT_KEYS="", STEPFORK_REDACT_ALLOW="")
    assert KEY not in project.read("run.yaml")
    project.write("pyproject.toml", "[tool.stepfork]\nredact_keys = ''\n")
    ended = project.run("inspect", "run.yaml")
    assert ended.status == 2
    assert "redact_keys must hold texts only" in ended.complaint
    project.write("pyproject.toml", "[tool.stepfork]\nredaction = {}\n")
    ended = project.run("inspect", "run.yaml")
    assert ended.status == 2
    assert "unknown setting 'redaction'" in ended.complaint


def test_C120_what_pytest_shows_of_a_test(project: Project) -> None:
    """Its output, its report file, its cassettes and their names; recorded, drifted and failed."""
    project.write("conftest.py", 'import stepfork\nstepfork.autopatch(tools=["vault"])\n')
    source = """
        import os, pytest, vault

        PASS = "correct" + "-horse-" + "battery"
        KEY = os.environ["KEY"]
        LATER = os.environ.get("LATER", "")

        def agent(prompt, password):
            opened = vault.unlock("bob", password)
            print("unlocked with", password)
            return vault.ask(prompt + opened["token"] + LATER)

        @pytest.mark.parametrize("key", [KEY])
        def test_it(key):
            answer = agent(f"with {key} ", PASS)
            assert not LATER or answer == f"never {PASS} {key}"

        def test_that_fails():
            assert agent("now ", PASS) == f"never {PASS}"
    """
    project.write("test_vault.py", source)
    texts = []
    for mode, later, status in (("record", "", 1), ("replay", "", 1), ("replay", KEY, 1)):
        ended = project.pytest(
            "--showlocals",
            "--junitxml=report.xml",
            "-o",
            "junit_logging=all",
            STEPFORK_MODE=mode,
            KEY=KEY,
            LATER=later,
        )
        assert ended.status == status, ended.out
        texts += [_without_ids(ended.out), ended.err, _without_ids(project.read("report.xml"))]
    assert "secret-github_token" in "".join(str(path) for path in project.folder.rglob("*.yaml"))
    assert "unlocked with <secret:password:1>" in texts[0]
    assert "STEPFORK_MODE=record pytest 'test_vault.py::test_it[secret-github_token]'\n" in texts[-3]
    texts.append(
        "\n".join(path.read_text("utf-8") for path in (project.folder / "cassettes").rglob("*.yaml"))
    )
    for text in texts:
        assert KEY not in text
        assert PASS not in text


def _without_ids(text: str) -> str:
    """pytest's own names of the tests, which hold the parameters as the user wrote them."""
    return text.replace(f"test_it[{KEY}]", "test_it[...]")


def test_C120_variables_of_the_environment_that_the_header_names(project: Project) -> None:
    """They are known on replay as they were when it was recorded, by the command and by the exported test."""
    token = "Zk9" + "qP2vTr8LmX4wY7sBn3"
    project.write(
        "envs.py",
        """
        import os
        import vault

        def run(api_key):
            vault.ask(f"env is {os.environ['MY_TOKEN']} and {os.environ['DB']}")
            return vault.ask(api_key + os.environ["KIND"])

        def drifts(api_key):
            vault.ask(f"something else with {os.environ['MY_TOKEN']}")
        """,
    )
    env = {"MY_TOKEN": token, "DB": f"postgres://app:{token[::-1]}@db/app", "KIND": "plain"}
    arguments = json.dumps({"api_key": token[5:] + token[:5]})
    names = [word for name in env for word in ("--env", name)]
    ended = project.run(
        "record", "envs:run", "--tools", "vault", "-o", "run.yaml", "--args", arguments, *names, **env
    )
    assert ended.status == 0, ended
    assert "env is <secret:my_token:1> and postgres://app:<secret:password:1>@db/app" in project.read(
        "run.yaml"
    )
    ended = project.run("replay", "run.yaml", **env)
    assert ended.status == 0, ended
    ended = project.run("export", "run.yaml", "--pytest", "--output", "tests/test_run.py", **env)
    assert ended.status == 0, ended
    ended = project.pytest("tests/test_run.py", **env)
    assert ended.status == 0, ended
    ended = project.run("replay", "run.yaml", "--entrypoint", "envs:drifts", **env)
    assert ended.status == 1
    assert token not in ended.out + ended.err
    assert """--args '{"api_key": "<your api_key>"}'""" in ended.out + ended.err


SHOWN = """
    import os, warnings
    import pytest, vault

    K = os.environ["KEY"]
    WORD = os.environ["HARMLESS"]

    @pytest.fixture
    def used():
        vault.unlock("bob", K)

    def test_xfail():
        vault.unlock("bob", K)
        pytest.xfail("xf " + K)

    def test_properties(record_property):
        vault.unlock("bob", K)
        record_property("p", K)
        record_property("q", ["x", K])
        record_property("password", "short1")

    def test_warnings():
        vault.unlock("bob", K)
        warnings.warn("warn " + K)

    def test_skip():
        vault.unlock("bob", K)
        pytest.skip("skip " + K)

    @pytest.mark.parametrize("api_key", [K, K[::-1]])
    def test_parameter(api_key):
        vault.unlock("bob", api_key)

    @pytest.mark.parametrize("text", ["password=" + K, "plain"])
    def test_text(text):
        vault.unlock("bob", text)

    @pytest.fixture(params=["api_key=" + K, "api_key=" + K[::-1]])
    def opened(request):
        return vault.unlock("bob", request.param)

    def test_fixture(opened):
        pass
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_C120_what_pytest_shows_besides_failures(project: Project, workers: tuple[str, ...]) -> None:
    key = "Zk9" + "qP2vTr8LmX4wY7sBn3"
    project.write("conftest.py", 'import stepfork\nstepfork.autopatch(tools=["vault"])\n')
    project.write("test_shown.py", SHOWN)
    for mode in ("record", "replay"):
        ended = project.pytest(
            "-ra", "-vv", "--junitxml=j.xml", *workers, STEPFORK_MODE=mode, KEY=key, HARMLESS="x"
        )
        assert ended.status == 0, ended.out
        for text in (ended.out, ended.err, project.read("j.xml")):
            assert key not in text
            assert key[::-1] not in text
        assert "xf <secret:password:1>" in ended.out
        assert "warn <secret:password:1>" in ended.out
        assert 'name="p" value="&lt;secret:password:1&gt;"' in project.read("j.xml")
    names = sorted(str(path) for path in (project.folder / "cassettes").rglob("*.yaml"))
    assert not [name for name in names if key in name or key[::-1] in name]
    assert len([name for name in names if "test_parameter[secret-api_key" in name]) == 2
    assert len([name for name in names if "function.opened[" in name]) == 2


def test_C120_a_name_that_only_the_run_shows_to_be_a_secret_is_warned_of(project: Project) -> None:
    key = "Zk9" + "qP2vTr8LmX4wY7sBn3"
    project.write("conftest.py", 'import stepfork\nstepfork.autopatch(tools=["vault"])\n')
    project.write(
        "test_name.py",
        """
        import os
        import pytest, vault

        @pytest.mark.parametrize("s", [os.environ["KEY"]])
        def test_it(s):
            vault.unlock("bob", s)
        """,
    )
    ended = project.pytest(STEPFORK_MODE="record", KEY=key)
    said = " ".join(ended.out.split())
    assert "test_it[<secret:password:1>].yaml: the name of this file holds a secret of the run" in said
    assert "pytest.param(" in said


def test_C120_names_given_by_hand_say_nothing_of_a_secret(project: Project) -> None:
    """Two secrets with ids of their own: two files, and no digest of either in their names."""
    import hashlib

    project.write("conftest.py", 'import stepfork\nstepfork.autopatch(tools=["vault"])\n')
    weak = ["password=hunter2hunter2", "password=hunter3hunter3"]
    project.write(
        "test_weak.py",
        f"""
        import pytest, vault

        @pytest.mark.parametrize("n", [1, 2], ids={weak!r})
        def test_it(n):
            vault.ask(str(n))
        """,
    )
    for mode in ("record", "replay"):
        assert project.pytest(STEPFORK_MODE=mode).status == 0
    names = [path.name for path in (project.folder / "cassettes").rglob("*.yaml")]
    assert len(names) == 2
    for secret in weak:
        digest = hashlib.sha256(f"test_it[{secret}]".encode()).hexdigest()[:8]
        assert not [name for name in names if digest in name or "hunter" in name]


def test_C120_what_a_fixture_learned_is_not_shown_of_a_test_without_calls(project: Project) -> None:
    """The session fixture logs in; a test that makes no call prints, fails with and warns of the secret."""
    key = "Zk9" + "qP2vTr8LmX4wY7sBn3"
    project.write("conftest.py", 'import stepfork\nstepfork.autopatch(tools=["vault"])\n')
    project.write(
        "test_fixture.py",
        """
        import os, warnings
        import pytest, vault

        K = os.environ["KEY"]

        @pytest.fixture(scope="session")
        def opened():
            vault.unlock("bob", K)
            return K

        def test_prints(opened):
            warnings.warn("warn " + opened)
            print("printed " + opened)
            assert opened == "so it failed with " + opened

        def test_without_it():
            assert False, "failed " + K

        def test_of_something_else():
            assert False, "harmless password=" + "Zq8Rf2Lw9Xk4"
        """,
    )
    for mode, key_now in (("record", key), ("replay", key)):
        ended = project.pytest("-ra", "-vv", "--junitxml=j.xml", STEPFORK_MODE=mode, KEY=key_now)
        assert ended.status == 1, ended.out
        for text in (ended.out, ended.err, project.read("j.xml")):
            assert key not in text
        assert "printed <secret:password:1>" in ended.out
        assert "warn <secret:password:1>" in ended.out
        assert "failed <secret:password:1>" in ended.out
        assert "harmless password=Zq8Rf2Lw9Xk4" in ended.out, "it made no call and holds nothing known"


def test_C112_a_parameter_that_is_a_secret_or_a_dummy_has_one_cassette(project: Project) -> None:
    """The key of the environment while recording, dummies on replay: the same file."""
    project.write("conftest.py", 'import stepfork\nstepfork.autopatch(tools=["vault"])\n')
    project.write(
        "test_name.py",
        """
        import os
        import pytest, vault

        @pytest.mark.parametrize("api_key", [os.environ["KEY"]])
        @pytest.mark.parametrize("n", [1, 2])
        def test_it(n, api_key):
            vault.unlock("bob", api_key)

        @pytest.mark.parametrize("api_key", ["weak", "short"])
        def test_rules(api_key):
            vault.ask(api_key)
        """,
    )
    key = "Zk9" + "qP2vTr8LmX4wY7sBn3"
    assert project.pytest(STEPFORK_MODE="record", KEY=key).status == 0
    files = sorted(path.name for path in (project.folder / "cassettes").rglob("*.yaml"))
    assert len(files) == 4
    assert "test_rules[weak].yaml" in files
    assert "test_it[1-secret-api_key].yaml" in files
    for dummy in ("x", "dummy-key", "q7ZxT4mWv9KcP2hJ8rLd", key):
        ended = project.pytest(KEY=dummy)
        assert ended.status == 0, ended.out
    assert sorted(path.name for path in (project.folder / "cassettes").rglob("*.yaml")) == files


def test_C120_an_expectation_holds_no_secret_that_the_cassette_knows_at_its_place(project: Project) -> None:
    """In the file the secret stands under a harmless key; what the test expects otherwise stays as it is."""
    project.write(
        "vaults.py",
        """
        import vault

        def run(key=""):
            opened = vault.unlock("bob", "hunter2-hunter2")
            return {"id": opened["token"], "note": f"it is {opened['token']}.", "n": 1}
        """,
    )
    record(project, "vaults:run")
    secret = "hunter2-hunter2"[::-1] + "0123"
    for note, status in ((f"it is {secret}.", 0), ("it was another one.", 1)):
        project.write("expected.json", json.dumps({"id": secret, "note": note}))
        ended = project.run(
            *("export", "run.yaml", "--pytest", "--expect-output", "expected.json"),
            *("--output", "test_run.py", "--overwrite"),
        )
        assert ended.status == 0, ended.err
        assert secret not in project.read("test_run.py") + ended.out + ended.err
        assert ("another one" in project.read("test_run.py")) == bool(status)
        assert project.pytest("test_run.py").status == status
