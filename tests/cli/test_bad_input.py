"""Bad input to every command: one clear line, the right exit code, nothing overwritten."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.command import Ended, Project

READERS = {
    "replay": ("replay", "cassettes/run.yaml"),
    "inspect": ("inspect", "cassettes/run.yaml"),
    "validate": ("validate", "cassettes/run.yaml"),
    "export": ("export", "cassettes/run.yaml", "--pytest", "--output", "tests/test_run.py"),
    "record": ("record", "agent:run", "--tools", "tools", "-o", "cassettes/run.yaml"),
}


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def without_end(data: bytes) -> bytes:
    return data[: data.rindex(b"---\nend:")]


def conflicted(data: bytes) -> bytes:
    ours = b"<<<<<<< HEAD\nresult: 1\n=======\nresult: 2\n>>>>>>> other\n"
    return data.replace(b"---\nend:", ours + b"---\nend:")


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "blank": lambda data: b"\n\n",
    "truncated": truncated,
    "without end": without_end,
    "conflicted": conflicted,
    "binary": lambda data: b"\x89PNG\r\n\x1a\n\x00\xff" + data,
    "newer version": lambda data: data.replace(b"stepfork: 1", b"stepfork: 999"),
    "another file": lambda data: b"version: 3\nservices: {}\n",
    "duplicate key": lambda data: data.replace(b"tool: lookup\n", b"tool: lookup\ntool: lookup\n"),
}


def assert_refused(ended: Ended, *words: str, status: int = 2) -> None:
    assert ended.status == status, ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
    for word in words:
        assert word in ended.complaint


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("command", READERS)
def test_c90_c94_an_unreadable_cassette_is_refused_and_left_alone(
    recorded: Project, command: str, broken: str
) -> None:
    path = recorded.folder / "cassettes/run.yaml"
    data = BROKEN[broken](path.read_bytes())
    path.write_bytes(data)
    before = sorted(recorded.folder.rglob("*"))
    ended = recorded.run(*READERS[command])
    if command == "validate":
        assert ended.status == 2
        assert all(line.startswith("cassettes/run.yaml:") for line in ended.err.splitlines())
    else:
        assert_refused(ended, "run.yaml:")
    if broken == "newer version":
        assert "999" in ended.err
        assert "reads 1" in ended.err
    assert "BODY" not in ended.out
    assert path.read_bytes() == data
    assert sorted(recorded.folder.rglob("*")) == before


@pytest.mark.parametrize("command", ["replay", "inspect", "validate", "export"])
def test_c79_a_missing_cassette_is_said_to_be_missing(project: Project, command: str) -> None:
    ended = project.run(*READERS[command])
    assert_refused(ended, "cassettes/run.yaml")
    assert "there is no" in ended.err
    if command == "replay":
        assert "to record it: stepfork record MODULE:FUNCTION -o cassettes/run.yaml" in ended.err
    assert not (project.folder / "cassettes").exists()


def test_a_folder_is_no_cassette(project: Project) -> None:
    project.write("cassettes/run.yaml/x", "")
    for command in READERS.values():
        assert_refused(project.run(*command), "run.yaml")


@pytest.mark.parametrize("command", ["replay", "inspect", "export"])
def test_a_tampered_cassette_is_used_with_a_warning(recorded: Project, command: str) -> None:
    path = recorded.folder / "cassettes/run.yaml"
    path.write_bytes(path.read_bytes().replace(b"rate: 72", b"rate: 73"))
    data = path.read_bytes()
    ended = recorded.run(*READERS[command])
    assert "was changed since it was recorded" in ended.err
    assert "Traceback" not in ended.err
    assert path.read_bytes() == data
    assert_refused(
        recorded.run(
            *READERS[command], "--integrity", "error", *(["--overwrite"] if command == "export" else [])
        ),
        "checksum",
    )


@pytest.mark.parametrize(
    ("entrypoint", "words"),
    [
        ("agent", "expected MODULE:FUNCTION"),
        ("agent.run", "expected MODULE:FUNCTION"),
        (":run", "expected MODULE:FUNCTION"),
        ("agent:", "expected MODULE:FUNCTION"),
        ("agent:a.b", "expected MODULE:FUNCTION"),
        ("../agent:run", "expected MODULE:FUNCTION"),
        ("nowhere:run", "there is no module 'nowhere'"),
        ("agent.deep:run", "there is no module 'agent.deep' in 'agent'"),
        ("broken:run", "module 'broken' does not import: SyntaxError"),
        ("needy:run", "does not import: ModuleNotFoundError: No module named 'not_there' (needy.py, line 1)"),
        ("raising:run", "does not import: ValueError: at import, twice (raising.py, line 3)"),
        ("leaving:run", "does not import: SystemExit: 3"),
        ("agent:rum", "the module has no 'rum'; did you mean agent:run?"),
        ("agent:Agent", "expected a Python function, found the class Agent"),
        ("agent:calls", "expected a Python function, found len, which is written in C"),
        ("agent:number", "expected a Python function, found a value of type int"),
        ("agent:tools", "expected a Python function, found a value of type module"),
        ("agent:generates", "is a generator"),
        ("agent:agenerates", "is a generator"),
        ("agent:ends_with", "cannot be called so: missing a required argument: 'how'"),
    ],
)
def test_an_entrypoint_that_cannot_run(project: Project, entrypoint: str, words: str) -> None:
    project.write("broken.py", "def run(:\n")
    project.write("needy.py", "import not_there\n")
    project.write("raising.py", "def fail():\n    pass\nraise ValueError('at import,\\ntwice')\n")
    project.write("leaving.py", "raise SystemExit(3)\n")
    ended = project.record(entrypoint)
    assert_refused(ended, words)
    assert not list(project.folder.rglob("*.yaml"))


@pytest.mark.parametrize("command", ["replay", "export"])
def test_an_entrypoint_that_is_gone(recorded: Project, command: str) -> None:
    recorded.write("agent.py", "")
    assert_refused(recorded.run(*READERS[command]), "the module has no 'run'")
    (recorded.folder / "agent.py").unlink()
    assert_refused(recorded.run(*READERS[command]), "there is no module 'agent'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--args", '{"service":'), "--args: invalid JSON at line 1 column 12"),
        (("--args", "checkout"), "--args: invalid JSON at line 1 column 1"),
        (("--args", "3"), "--args: expected an object (named) or an array (positional), not int"),
        (("--args", '{"nope": 1}'), "got an unexpected keyword argument 'nope'"),
        (("--args", '["a", "b"]'), "too many positional arguments"),
        (("--args", "[" * 100_000), "--args: invalid JSON"),
        (("--env", "NOT_SET"), "--env NOT_SET: there is no such environment variable"),
        (("--tools", "no_such_tools"), "there is no module 'no_such_tools'"),
        (("--tools", "tools:gone"), "gone"),
        (("--tools", "my tools/x.py"), "is not a tool pattern"),
        (
            ("--integrity", "maybe"),
            "option --integrity: integrity must be one of warn, error, off, not 'maybe'",
        ),
        (("--redact-patterns", "("), "redact_patterns"),
        (("--tool", "tools"), "No such option"),
        (("extra",), "unexpected extra argument"),
    ],
)
def test_bad_arguments(project: Project, arguments: tuple[str, ...], words: str) -> None:
    ended = project.record("agent:run", *arguments)
    assert_refused(ended, words)
    assert "BODY" not in ended.out
    assert not list(project.folder.rglob("*.yaml"))


@pytest.mark.parametrize("command", [*READERS, "adopt"])
@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("STEPFORK_MODE", "rekord", "unknown mode 'rekord': the modes are replay, record, auto, hybrid, off"),
        ("STEPFORK_TOLS", "tools", "unknown setting 'tols', did you mean 'tools'?"),
        ("STEPFORK_FSYNC", "maybe", "expected 1 or 0"),
    ],
)
def test_c85_a_misspelt_setting_ends_every_command(
    recorded: Project, command: str, variable: str, value: str, words: str
) -> None:
    arguments = READERS.get(command, ("adopt", "cassettes/run.failed.yaml"))
    assert_refused(recorded.run(*arguments, **{variable: value}), words)


def test_a_misspelt_setting_in_pyproject(recorded: Project) -> None:
    recorded.write("pyproject.toml", '[tool.stepfork]\ntolls = ["tools"]\n')
    assert_refused(recorded.run("replay", "cassettes/run.yaml"), "unknown setting 'tolls'")
    recorded.write("pyproject.toml", "[tool.stepfork\n")
    assert_refused(recorded.run("replay", "cassettes/run.yaml"), "pyproject.toml cannot be read")


@pytest.mark.parametrize("command", ["replay", "export"])
def test_a_bad_expectation(recorded: Project, command: str) -> None:
    recorded.write("expected.json", '{"severity": P0}')
    arguments = (*READERS[command], "--expect-output")
    assert_refused(
        recorded.run(*arguments, "expected.json"), "expected.json: invalid JSON at line 1 column 14"
    )
    assert_refused(recorded.run(*arguments, "missing.json"), "missing.json: No such file or directory")
    (recorded.folder / "expected.json").write_bytes(b"\xff\xfe")
    assert_refused(recorded.run(*arguments, "expected.json"), "not UTF-8")
    assert not (recorded.folder / "tests").exists()


def test_a_file_that_cannot_be_written(project: Project) -> None:
    project.write("taken", "")
    assert_refused(project.record("agent:run", to="taken/run.yaml"), "cannot be")
    assert project.record("agent:run").status == 0
    ended = project.run(
        "export", "cassettes/run.yaml", "--pytest", "--expect-output", "e.json", "--output", "taken/t.py"
    )
    assert ended.status == 2


def test_adopt_takes_failed_recordings_only(recorded: Project) -> None:
    before = recorded.read("cassettes/run.yaml")
    assert_refused(recorded.run("adopt", "cassettes/run.yaml"), "'.failed.yaml'")
    assert_refused(recorded.run("adopt", "cassettes/run.failed.yaml"), "there is no cassette")
    recorded.write("cassettes/run.failed.yaml", "stepfork: 1\n")
    assert_refused(recorded.run("adopt", "cassettes/run.failed.yaml"), "run.failed.yaml:")
    assert recorded.read("cassettes/run.yaml") == before


@pytest.mark.parametrize(
    "arguments", [("bogus",), ("replay",), ("inspect", "a", "--call", "x"), ("export", "a")]
)
def test_usage(project: Project, arguments: tuple[str, ...]) -> None:
    assert_refused(project.run(*arguments), "error: ")
