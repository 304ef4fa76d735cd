"""Ways in which a test could pass although its agent drifted or went live; each must be red."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugin_runs import lone_project, run_pytest

import stepfork

TOOLS = """
def search(q):
    with open("bodies.txt", "a") as file:
        file.write("x")
    return [q, 1]
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    lone_project(pytester, monkeypatch)
    pytester.makepyfile(agenttools=TOOLS)
    pytester.makeconftest("import stepfork\nstepfork.autopatch(tools=['agenttools'])\n")
    return pytester


def write(project: pytest.Pytester, source: str) -> None:
    (project.path / "test_it.py").write_text("import pytest\nfrom agenttools import search\n" + source)


def run(project: pytest.Pytester, *args: str, mode: str = "replay") -> pytest.RunResult:
    return run_pytest(project, *args, mode=mode)


def bodies(project: pytest.Pytester) -> int:
    path = project.path / "bodies.txt"
    return len(path.read_text()) if path.exists() else 0


def test_a_stand_in_left_at_the_tools_name_does_not_unpatch_it(project: pytest.Pytester) -> None:
    source = """
import agenttools
def test_1(monkeypatch):
    monkeypatch.setattr(agenttools, "search", lambda q: 99)
    search("a")
def test_2():
    search({0!r})
"""
    write(project, source.format("b"))
    run(project, mode="record").assert_outcomes(passed=2)
    write(project, source.format("DRIFT"))
    before = bodies(project)
    run(project).assert_outcomes(passed=1, failed=1)
    assert bodies(project) == before


def test_a_test_that_makes_none_of_its_calls_is_red(project: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="module")
def warm():
    if not {0}:
        search("w")
def test_1():
    if not {0}:
        search("a")
def test_2(warm):
    pass
"""
    write(project, source.format(False))
    run(project, mode="record").assert_outcomes(passed=2)
    write(project, source.format(True))
    result = run(project)
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*call #1: expected tool 'search' but the agent never made it*"])


def test_a_misspelt_tool_module_is_refused(project: pytest.Pytester) -> None:
    project.makeconftest("import stepfork\nstepfork.autopatch(tools=['agenttolls'])\n")
    write(project, "def test_1():\n    search('a')\n")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*there is no module 'agenttolls'*"])
    assert bodies(project) == 0


@pytest.mark.parametrize("swallow", ["pytest.skip('x')", "pytest.xfail('x')", "return"])
@pytest.mark.parametrize("mark", ["", "@pytest.mark.xfail", "@pytest.mark.xfail(strict=True)"])
def test_a_mismatch_is_no_skip_and_no_expected_failure(
    project: pytest.Pytester, swallow: str, mark: str
) -> None:
    source = (
        mark
        + "\ndef test_1():\n    try:\n        search({0!r})\n    except Exception:\n        {1}\n    {2}\n"
    )
    ending = "assert False" if mark else "pass"
    write(project, source.format("a", swallow, ending))
    run(project, mode="record")
    write(project, source.format("DRIFT", swallow, ending))
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(['*expected "a", got "DRIFT"*'])


@pytest.mark.parametrize("how", ["self.skipTest('x')", "raise unittest.SkipTest('x')"])
def test_a_mismatch_is_no_skip_in_unittest(project: pytest.Pytester, how: str) -> None:
    source = """
import unittest
class TestIt(unittest.TestCase):
    def test_1(self):
        try:
            search({0!r})
        except Exception:
            {1}
"""
    write(project, source.format("a", how))
    run(project, mode="record").assert_outcomes(passed=1)
    write(project, source.format("DRIFT", how))
    run(project).assert_outcomes(failed=1)


def test_an_expected_assertion_error_is_no_expected_mismatch(project: pytest.Pytester) -> None:
    source = "@pytest.mark.xfail(raises=AssertionError)\ndef test_1():\n    search({0!r})\n    assert 0\n"
    write(project, source.format("a"))
    run(project, mode="record").assert_outcomes(xfailed=1)
    write(project, source.format("DRIFT"))
    run(project).assert_outcomes(failed=1)


def test_an_expected_failure_of_the_tests_own_stays_one(project: pytest.Pytester) -> None:
    write(project, "@pytest.mark.xfail\ndef test_1():\n    search('a')\n    assert False\n")
    run(project, mode="record").assert_outcomes(xfailed=1)
    run(project).assert_outcomes(xfailed=1)


def test_a_call_swallowed_while_tearing_down_is_red(project: pytest.Pytester) -> None:
    write(
        project,
        """
@pytest.fixture
def cleaned():
    yield
    try:
        search("x")
    except Exception:
        pass
def test_1(cleaned):
    pass
""",
    )
    for mode in ("record", "replay"):
        run(project, mode=mode).assert_outcomes(passed=1, errors=1)
    assert bodies(project) == 0


def test_parameters_and_classes_of_fixtures_have_cassettes_of_their_own(project: pytest.Pytester) -> None:
    write(
        project,
        """
@pytest.fixture(scope="module", params=["p", "q"])
def each(request):
    return search(request.param)[0]
def test_param(each):
    assert each in "pq"
class TestA:
    @pytest.fixture
    def fix(self):
        return search("A")[0]
    def test_a(self, fix):
        assert fix == "A"
class TestB:
    @pytest.fixture
    def fix(self):
        return search("B")[0]
    def test_b(self, fix):
        assert fix == "B"
""",
    )
    run(project, mode="record").assert_outcomes(passed=4)
    before = bodies(project)
    run(project).assert_outcomes(passed=4)
    assert bodies(project) == before


def test_a_cassette_shared_by_different_calls_is_refused_while_recording(project: pytest.Pytester) -> None:
    write(
        project,
        """
@pytest.fixture
def mine(request):
    return search(request.node.name)
def test_1(mine):
    pass
def test_2(mine):
    pass
@pytest.mark.stepfork("same")
def test_3():
    search("x")
@pytest.mark.stepfork("same")
def test_4():
    search("y")
""",
    )
    result = run(project, mode="record")
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*was recorded by*and again, with other calls, by*"])
    folder = project.path / "cassettes" / "test_it"
    asked = {
        path.name: [call.args["q"] for call in stepfork.load(path).calls] for path in sorted(folder.iterdir())
    }
    assert asked == {  # the first of each stays, what was refused lies beside it
        "function.mine.failed.yaml": ["test_2"],
        "function.mine.yaml": ["test_1"],
        "same.failed.yaml": ["y"],
        "same.yaml": ["x"],
    }


def test_ids_that_hold_secrets_stay_apart(project: pytest.Pytester) -> None:
    one, two = "sk-" + "a1B2" * 8, "sk-" + "c3D4" * 8
    write(
        project,
        f"@pytest.mark.parametrize('key', [{one!r}, {two!r}])\ndef test_1(key):\n    search(key[-4:])\n",
    )
    run(project, mode="record").assert_outcomes(passed=2)
    files = list(Path(project.path).rglob("*.yaml"))
    assert len(files) == 2
    assert not [path for path in files if one in path.name or one in path.read_text()]
    run(project).assert_outcomes(passed=2)


def test_classes_that_differ_only_in_case_stay_apart(project: pytest.Pytester) -> None:
    write(
        project,
        "class TestTest:\n    def test_1(self):\n        search('a')\n"
        "class Testtest:\n    def test_1(self):\n        search('b')\n",
    )
    run(project, mode="record").assert_outcomes(passed=2)
    folders = {path.parent.name.lower() for path in Path(project.path).rglob("*.yaml")}
    assert len(folders) == 2
    run(project).assert_outcomes(passed=2)


def test_a_wrong_pattern_for_secrets_is_a_usage_error(project: pytest.Pytester) -> None:
    (project.path / "pyproject.toml").write_text('[tool.stepfork]\nredact_patterns = ["("]\n')
    write(project, "def test_1():\n    pass\n")
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "redact_patterns" in result.stderr.str()
