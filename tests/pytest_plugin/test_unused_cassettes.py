"""A run that did not come to a test file calls none of its cassettes unused, and `prune` deletes none."""

from __future__ import annotations

import sys

import pytest
from support.plugin_runs import load_all_that_is_installed, lone_project

TOOLS = """
def search(q):
    return [q, 1]
"""
CONFTEST = """
import os
import stepfork
import pytest
from agenttools import search
stepfork.autopatch(tools=["agenttools"])

@pytest.fixture(scope="session")
def server():
    return search("warm")
"""
A = """
from agenttools import search
def test_a():
    search("a")
"""
B = """
import os
import pytest
from agenttools import search
class TestB:
    def test_b(self, server):
        search("b")
def test_exits():
    if "EXITS" in os.environ:
        pytest.exit("bye", returncode=0)
"""
OF_B = ["cassettes/session.server.yaml", "cassettes/tests/test_b/TestB/test_b.yaml"]
GONE = "cassettes/tests/test_gone/test_old.yaml"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    lone_project(pytester, monkeypatch)
    pytester.makepyfile(agenttools=TOOLS)
    pytester.makeconftest(CONFTEST)
    pytester.mkdir("tests")
    write(pytester, "tests/test_a.py", A)
    write(pytester, "tests/test_b.py", B)
    run(pytester, "--stepfork-mode=record").assert_outcomes(passed=3)
    (pytester.path / GONE).parent.mkdir()
    recorded = pytester.path / "cassettes/tests/test_a/test_a.yaml"
    (pytester.path / GONE).write_bytes(recorded.read_bytes())
    return pytester


def write(project: pytest.Pytester, name: str, source: str) -> None:
    (project.path / name).write_text(source)


def append(project: pytest.Pytester, name: str, source: str) -> None:
    with (project.path / name).open("a") as file:
        file.write(source)


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "stepfork.pytest_plugin", *args)


def pruned(project: pytest.Pytester) -> list[str]:
    """What `stepfork prune` deletes."""
    before = set(cassettes(project))
    project.run(sys.executable, "-m", "stepfork", "prune", "--yes")
    return sorted(before - set(cassettes(project)))


def cassettes(project: pytest.Pytester) -> list[str]:
    return [path.relative_to(project.path).as_posix() for path in project.path.glob("cassettes/**/*.yaml")]


def test_the_cassettes_of_a_file_that_is_gone_are_deleted(project: pytest.Pytester) -> None:
    run(project).assert_outcomes(passed=3)
    assert pruned(project) == [GONE]
    (project.path / "tests/test_b.py").unlink()
    run(project).assert_outcomes(passed=1)
    assert pruned(project) == OF_B


SKIPPED = "import pytest\npytest.importorskip('there_is_no_such_module')\n"
LEAVE_OUT = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "test_b" not in item.nodeid]
"""
IGNORE = """
def pytest_ignore_collect(collection_path):
    return True if collection_path.name == "test_b.py" else None
"""
HOW = {
    "importorskip": ("tests/test_b.py", SKIPPED, ()),
    "skip": ("tests/test_b.py", "import pytest\npytest.skip('no', allow_module_level=True)\n", ()),
    "import error": ("tests/test_b.py", "import there_is_no\n", ("--continue-on-collection-errors",)),
    "a class": ("tests/test_b.py", "TestB.pytestmark = 1\n", ("--continue-on-collection-errors",)),
    "__test__": ("tests/test_b.py", "__test__ = False\n", ()),
    "collect_ignore": ("conftest.py", "collect_ignore = ['tests/test_b.py']\n", ()),
    "collect_ignore_glob": ("conftest.py", "collect_ignore_glob = ['*/test_b*']\n", ()),
    "ignore_collect": ("conftest.py", IGNORE, ()),
    "modifyitems": ("conftest.py", LEAVE_OUT, ()),
    "python_files": ("conftest.py", "", ("-o", "python_files=test_a.py")),
    "python_files of ini": ("tox.ini", "python_files = test_a.py\n", ()),
    "setup only": ("conftest.py", "", ("--setup-only",)),
}


BY_WORKERS = ["importorskip", "modifyitems", "ignore_collect"]


@pytest.mark.parametrize(
    ("how", "workers"), [*((how, ()) for how in HOW), *((how, ("-n2",)) for how in BY_WORKERS)]
)
def test_of_a_file_that_was_not_collected_nothing_is_unused(
    how: str, workers: tuple[str, ...], project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workers:
        load_all_that_is_installed(monkeypatch)
    name, source, options = HOW[how]
    append(project, name, source)
    result = run(project, *workers, *options)
    assert "test_b" not in str([line for line in result.outlines if line.startswith("  cassettes")])
    assert set(pruned(project)) <= {GONE}


def test_what_is_gone_is_found_beside_a_file_that_is_skipped(project: pytest.Pytester) -> None:
    append(project, "tests/test_b.py", SKIPPED)
    run(project).assert_outcomes(passed=1, skipped=1)
    assert pruned(project) == [GONE]


def test_a_run_that_a_test_ends_says_nothing(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXITS", "1")
    result = run(project)
    assert result.ret == 0
    assert pruned(project) == []


def test_what_a_test_uses_after_its_failure_is_not_unused(project: pytest.Pytester) -> None:
    """A session that it opens itself, and a fixture that it asks for."""
    source = """
import stepfork
def test_own(request):
    assert FINE
    request.getfixturevalue("server")
    with stepfork.use_cassette("cassettes/mine/run.yaml"):
        search("a")
"""
    write(project, "tests/test_b.py", "FINE = True\nfrom agenttools import search\n" + source)
    run(project, "--stepfork-mode=record").assert_outcomes(passed=2)
    run(project)
    assert pruned(project) == [OF_B[1], GONE]
    write(project, "tests/test_b.py", "FINE = False\nfrom agenttools import search\n" + source)
    run(project).assert_outcomes(passed=1, failed=1)
    assert pruned(project) == []


def test_a_name_that_is_mended_still_has_its_file(project: pytest.Pytester) -> None:
    """The folder of its cassettes is called otherwise."""
    write(project, "tests/test_q&a.py", A)
    run(project, "--stepfork-mode=record", "--import-mode=importlib").assert_outcomes(passed=4)
    append(project, "tests/test_q&a.py", SKIPPED)
    run(project, "--import-mode=importlib").assert_outcomes(passed=3, skipped=1)
    assert pruned(project) == [GONE]
