"""The pytest plugin through pytest itself: real runs in folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugin_runs import load_all_that_is_installed, lone_project
from support.plugin_runs import run_pytest as run

import stepfork

TOOLS = """
def search(q):
    with open("bodies.txt", "a") as file:
        file.write("x")
    return [q, 1]
def other(q):
    return q
"""
CONFTEST = """
import stepfork
stepfork.autopatch(tools=["agenttools"])
"""
TESTS = """
import pytest
import agenttools
from agenttools import search

def test_one():
    assert search("hello") == ["hello", 1]

class TestX:
    @pytest.mark.parametrize("word", ["a", "../b"])
    def test_two(self, word, stepfork_run):
        assert search(word)[0] == word
        assert stepfork_run.calls[0].args == {"q": word}

def test_without_a_call():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    lone_project(pytester, monkeypatch)
    pytester.makepyfile(agenttools=TOOLS)
    pytester.makeconftest(CONFTEST)
    pytester.mkdir("tests")
    (pytester.path / "tests" / "test_agent.py").write_text(TESTS)
    return pytester


def bodies(project: pytest.Pytester) -> int:
    path = project.path / "bodies.txt"
    return len(path.read_text()) if path.exists() else 0


def cassettes(project: pytest.Pytester) -> list[str]:
    folder = project.path / "cassettes"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_one_cassette_a_test(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    load_all_that_is_installed(monkeypatch)
    result = run(project, mode="record")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*stepfork: 3 tests, 0 calls replayed, 3 live, 3 newly recorded*"])
    suffixed = [name for name in cassettes(project) if "..-b" in name]
    assert cassettes(project) == sorted(
        ["tests/test_agent/TestX/test_two[a].yaml", "tests/test_agent/test_one.yaml", *suffixed]
    )
    assert len(suffixed) == 1
    assert bodies(project) == 3

    result = run(project)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*stepfork: 3 tests, 3 calls replayed, 0 live, 0 newly recorded*"])
    assert bodies(project) == 3, "no body ran on replay"


def test_the_mode_comes_from_the_environment_too(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPFORK_MODE", "record")
    run(project, "-k", "test_one").assert_outcomes(passed=1, deselected=3)
    assert cassettes(project) == ["tests/test_agent/test_one.yaml"]
    run(project, "-k", "test_one", mode="replay").assert_outcomes(passed=1, deselected=3)
    assert bodies(project) == 1, "the option is stronger than the environment"


def test_C79_a_missing_cassette_says_the_command(project: pytest.Pytester) -> None:
    result = run(project, "-k", "test_one")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(
        [
            "*CassetteNotFoundError: there is no cassette cassettes/tests/test_agent/test_one.yaml",
            "*to record it: STEPFORK_MODE=record pytest tests/test_agent.py::test_one",
            '*to leave it alone: mark the test with @pytest.mark.stepfork(mode="off")',
        ]
    )
    assert cassettes(project) == []
    assert bodies(project) == 0


def test_drift_is_red_with_the_line_and_the_command(project: pytest.Pytester) -> None:
    run(project, mode="record")
    path = project.path / "tests" / "test_agent.py"
    path.write_text(path.read_text().replace("hello", "goodbye"))
    result = run(project)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*call #1: tool 'search' argument 'q': expected \"hello\", got \"goodbye\"",
            "*cassette: cassettes/tests/test_agent/test_one.yaml, call 1 of 1",
            "*record again: STEPFORK_MODE=record pytest tests/test_agent.py::test_one",
        ]
    )


def test_a_swallowed_mismatch_fails_the_test(project: pytest.Pytester) -> None:
    path = project.path / "tests" / "test_agent.py"
    source = """
from agenttools import search
def test_it():
    try:
        search({0!r})
    except Exception:
        pass
"""
    path.write_text(source.format("a"))
    run(project, mode="record").assert_outcomes(passed=1)
    path.write_text(source.format("b"))
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*call #1: tool 'search' argument 'q': expected \"a\", got \"b\""])


def test_left_over_calls_fail_a_test_that_passed(project: pytest.Pytester) -> None:
    path = project.path / "tests" / "test_agent.py"
    path.write_text("from agenttools import search\ndef test_it():\n    search('a')\n    search('b')\n")
    run(project, mode="record").assert_outcomes(passed=1)
    path.write_text("from agenttools import search\ndef test_it():\n    search('a')\n")
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*call #2: expected tool 'search' but the agent never made it*"])


def test_a_red_test_recorded_first_is_its_own_regression_test(project: pytest.Pytester) -> None:
    path = project.path / "tests" / "test_agent.py"
    path.write_text("from agenttools import search\ndef test_it():\n    assert search('a')[1] == 2\n")
    run(project, mode="record").assert_outcomes(failed=1)
    trajectory = stepfork.load(project.path / "cassettes/tests/test_agent/test_it.yaml")
    assert trajectory.status == "completed", "the test failed, the run did not"
    assert "test: failed" in (project.path / "cassettes/tests/test_agent/test_it.yaml").read_text()
    run(project).assert_outcomes(failed=1)
    path.write_text(path.read_text().replace("== 2", "== 1"))
    run(project).assert_outcomes(passed=1)
    assert bodies(project) == 1


def test_a_failing_test_never_costs_a_good_cassette(project: pytest.Pytester) -> None:
    path = project.path / "tests" / "test_agent.py"
    path.write_text("from agenttools import search\ndef test_it():\n    assert search('a')[1] == 1\n")
    run(project, mode="record").assert_outcomes(passed=1)
    good = (project.path / "cassettes/tests/test_agent/test_it.yaml").read_bytes()
    path.write_text(path.read_text().replace("'a'", "'b'").replace("== 1", "== 2"))
    result = run(project, mode="record")
    result.assert_outcomes(failed=1)
    assert (project.path / "cassettes/tests/test_agent/test_it.yaml").read_bytes() == good
    assert cassettes(project) == ["tests/test_agent/test_it.failed.yaml", "tests/test_agent/test_it.yaml"]
    result.stdout.fnmatch_lines(
        ["*stays as it was*stepfork adopt cassettes/tests/test_agent/test_it.failed.yaml"]
    )


def test_the_marker_names_the_cassette_and_sets_the_mode(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        """
import pytest
from agenttools import search

@pytest.mark.stepfork("outage")
def test_named():
    search("a")

@pytest.mark.stepfork(mode="off")
def test_left_alone():
    search("b")
"""
    )
    run(project, mode="record").assert_outcomes(passed=2)
    assert cassettes(project) == ["tests/test_agent/outage.yaml"]
    before = bodies(project)
    run(project, "--strict-markers").assert_outcomes(passed=2)
    assert bodies(project) == before + 1


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("mode='rekord'", "unknown mode 'rekord'"),
        ("recrod_mode='x'", "unknown setting 'recrod_mode'"),
        ("1", "one name"),
    ],
)
def test_C85_a_wrong_marker_is_an_error(project: pytest.Pytester, mark: str, said: str) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        f"import pytest\n@pytest.mark.stepfork({mark})\ndef test_it():\n    pass\n"
    )
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


@pytest.mark.parametrize("how", ["option", "environment", "pyproject"])
def test_C85_a_misspelt_mode_is_one_clear_line(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "environment":
        monkeypatch.setenv("STEPFORK_MODE", "rekord")
    if how == "pyproject":
        (project.path / "pyproject.toml").write_text('[tool.stepfork]\nmode = "rekord"\n')
    result = run(project, mode="rekord" if how == "option" else None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown mode 'rekord': the modes are replay, record, auto, hybrid, off" in result.stderr.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_pyproject_alone_is_enough(project: pytest.Pytester) -> None:
    (project.path / "conftest.py").unlink()
    (project.path / "pyproject.toml").write_text(
        '[tool.stepfork]\ntools = ["agenttools"]\ncassette_dir = "tapes"\n'
    )
    run(project, mode="record").assert_outcomes(passed=4)
    assert (project.path / "tapes/tests/test_agent/test_one.yaml").exists()
    run(project).assert_outcomes(passed=4)
    assert bodies(project) == 3


def test_the_cassette_folder_is_an_option(project: pytest.Pytester) -> None:
    run(project, "--stepfork-cassette-dir=tapes", "-k", "test_one", mode="record").assert_outcomes(
        passed=1, deselected=3
    )
    assert (project.path / "tapes/tests/test_agent/test_one.yaml").exists()


def test_off_leaves_test_files_alone(project: pytest.Pytester) -> None:
    (project.path / "pyproject.toml").write_text('[tool.stepfork]\noff = ["tests/test_agent*"]\n')
    run(project, "-k", "test_one").assert_outcomes(passed=1, deselected=3)
    assert bodies(project) == 1
    assert cassettes(project) == []


def test_fixtures_have_cassettes_of_their_own(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        """
import pytest
from agenttools import search

@pytest.fixture(scope="module")
def warm():
    return search("warm")

@pytest.fixture
def each(warm):
    return search("each")

def test_a(warm, each):
    assert [warm[0], each[0], search("a")[0]] == ["warm", "each", "a"]

def test_b(each):
    assert search("b")[0] == "b"
"""
    )
    run(project, mode="record").assert_outcomes(passed=2)
    assert cassettes(project) == [
        f"tests/test_agent/{name}.yaml" for name in ("function.each", "module.warm", "test_a", "test_b")
    ]
    before = bodies(project)
    run(project).assert_outcomes(passed=2)
    assert bodies(project) == before


def test_unittest_and_async_tests(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    load_all_that_is_installed(monkeypatch)
    (project.path / "tests" / "test_agent.py").write_text(
        """
import unittest
import pytest
from agenttools import search

class TestCase(unittest.TestCase):
    def test_good(self):
        self.assertEqual(search("u")[0], "u")
    def test_drift(self):
        search("WORD")

@pytest.mark.asyncio
async def test_async():
    assert search("async")[0] == "async"
"""
    )
    run(project, mode="record").assert_outcomes(passed=3)
    run(project).assert_outcomes(passed=3)
    path = project.path / "tests" / "test_agent.py"
    path.write_text(path.read_text().replace("WORD", "word"))
    run(project).assert_outcomes(passed=2, failed=1)
    assert bodies(project) == 3


def test_xdist_adds_the_tallies_up(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    load_all_that_is_installed(monkeypatch)
    run(project, "-n2", mode="record").assert_outcomes(passed=4)
    result = run(project, "-n2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*stepfork: 3 tests, 3 calls replayed, 0 live, 0 newly recorded*"])


def test_a_test_that_skips_halfway_skips_again(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        "import pytest\nfrom agenttools import search\n"
        "def test_it():\n    search('a')\n    pytest.skip('later')\n"
    )
    run(project, mode="record").assert_outcomes(skipped=1)
    run(project).assert_outcomes(skipped=1)
    assert bodies(project) == 1


def test_a_call_at_import_time_is_refused_on_replay(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        "from agenttools import search\nVALUE = search('import')\ndef test_it():\n    pass\n"
    )
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*NoCassetteError: a patched call was made outside every cassette*"])
    assert bodies(project) == 0


def test_the_plugin_can_be_turned_off_and_help_explains_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_all_that_is_installed(monkeypatch)
    run(project, "-p", "no:stepfork", "-k", "test_one").assert_outcomes(passed=1, deselected=3)
    helped = run(project, "--help").stdout.str()
    assert "--stepfork-mode=MODE" in helped
    assert "--stepfork-cassette-dir=DIR" in helped
    assert "@pytest.mark.stepfork" in run(project, "--markers").stdout.str()


def test_a_renamed_test_is_pointed_to_the_similar_cassette(project: pytest.Pytester) -> None:
    run(project, "-k", "test_one", mode="record")
    path = project.path / "tests" / "test_agent.py"
    path.write_text(path.read_text().replace("test_one", "test_ones"))
    result = run(project, "-k", "test_ones")
    result.stdout.fnmatch_lines(["*another one is there: cassettes/tests/test_agent/test_one.yaml*"])


def test_C90_an_unreadable_cassette_is_an_error_in_every_mode(project: pytest.Pytester) -> None:
    run(project, "-k", "test_one", mode="record")
    path = project.path / "cassettes/tests/test_agent/test_one.yaml"
    broken = path.read_bytes()[:40]
    path.write_bytes(broken)
    for mode in ("replay", "record", "auto"):
        result = run(project, "-k", "test_one", mode=mode)
        result.assert_outcomes(failed=1, deselected=3)
        result.stdout.fnmatch_lines(["*CassetteError: *test_one.yaml*"])
        assert path.read_bytes() == broken
    assert bodies(project) == 1


def test_names_that_differ_only_in_case_stay_apart(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        """
import pytest
from agenttools import search

@pytest.mark.parametrize("word", ["a", "A"])
def test_it(word):
    search(word)
"""
    )
    run(project, mode="record").assert_outcomes(passed=2)
    names = [name.lower() for name in cassettes(project)]
    assert len(set(names)) == 2
    run(project, "tests/test_agent.py::test_it[A]").assert_outcomes(passed=1)


def test_C103_long_and_strange_ids(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        """
import pytest
from agenttools import search

IDS = ["x" * 300, "/abs", "foo/../../bar", "中" * 120, "a:b*c?"]

@pytest.mark.parametrize("word", IDS, ids=IDS)
def test_it(word):
    search("same")
"""
    )
    run(project, mode="record").assert_outcomes(passed=5)
    found = list(Path(project.path).rglob("*.yaml"))
    assert len(found) == 5
    assert all(path.parent == project.path / "cassettes/tests/test_agent" for path in found)
    assert all(len(path.name.encode()) <= 255 for path in found)
    run(project).assert_outcomes(passed=5)


def test_a_test_that_opens_its_own_replay(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        """
import stepfork
from agenttools import search

def test_record():
    with stepfork.record("own.yaml"):
        search("a")
    with stepfork.replay("own.yaml") as run:
        assert search("a") == ["a", 1]
    assert run.counts.substituted == 1
"""
    )
    result = run(project)
    result.assert_outcomes(passed=1)
    assert cassettes(project) == []
    result.stdout.fnmatch_lines(["*stepfork: 1 test, 1 call replayed, 1 live, 1 newly recorded*"])


def test_a_call_outside_every_cassette_is_loud_while_recording_too(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_agent.py").write_text(
        """
import pytest
from agenttools import search

@pytest.fixture
def cleaned():
    yield
    search("cleanup")

def test_it(cleaned):
    search("a")
"""
    )
    result = run(project, mode="record")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*NoCassetteError: a patched call was made outside every cassette while recording*"]
    )
    assert bodies(project) == 1
