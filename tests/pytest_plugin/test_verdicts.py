"""The verdict of each test: in its report, in junit properties, with -v; marked tests; unused cassettes."""

from __future__ import annotations

import shutil
import sys
from xml.etree import ElementTree

import pytest

TOOLS = """
def search(q):
    return [q, 1]
"""
CONFTEST = """
import stepfork
stepfork.autopatch(tools=["agenttools"])
"""
TESTS = """
import socket
import pytest
from agenttools import search

@pytest.fixture(scope="module")
def warm():
    return search("warm")

def test_two_calls():
    search("a")
    search("b")

@pytest.mark.stepfork("named")
def test_marked(warm):
    search("c")

def test_none():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")
    pytester.makepyfile(agenttools=TOOLS, test_agent=TESTS)
    pytester.makeconftest(CONFTEST)
    run(pytester, "--stepfork-mode=record").assert_outcomes(passed=3)
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest_subprocess(*args)


def properties(project: pytest.Pytester, *args: str) -> dict[str, dict[str, list[str]]]:
    run(project, "--junitxml=out.xml", "-o", "junit_family=xunit1", *args)
    found: dict[str, dict[str, list[str]]] = {}
    for case in ElementTree.parse(project.path / "out.xml").getroot().iter("testcase"):
        of_test: dict[str, list[str]] = found.setdefault(case.attrib["name"], {})
        for one in case.iter("property"):
            name = one.attrib["name"].removeprefix("stepfork.")
            of_test.setdefault(name, []).append(one.attrib["value"])
    return found


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_properties_of_a_replay(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    found = properties(project, *workers)
    zero = {
        name: ["0"]
        for name in ("recorded", "live", "escaped", "left_over", "tokens", "requests", "tokens_spent")
    }
    assert found == {
        "test_two_calls": {
            "verdict": ["replayed"],
            "cassette": ["cassettes/test_agent/test_two_calls.yaml"],
            "replayed": ["2"],
            **zero,
        },
        "test_marked": {
            "verdict": ["replayed"],
            "cassette": ["cassettes/test_agent/module.warm.yaml", "cassettes/test_agent/named.yaml"],
            "replayed": ["2"],
            **zero,
        },
        "test_none": {},
    }


def test_properties_of_what_went_wrong(project: pytest.Pytester) -> None:
    tests = (project.path / "test_agent.py").read_text()
    (project.path / "test_agent.py").write_text(
        tests.replace('search("b")', 'socket.create_connection(("203.0.113.7", 80), timeout=1)')
    )
    found = properties(project)["test_two_calls"]
    assert (found["replayed"], found["escaped"], found["left_over"]) == (["1"], ["1"], ["1"])
    result = run(project)
    result.stdout.fnmatch_lines(
        [
            "*BlockedNetworkError: blocked: a connection to 203.0.113.7:80 while *",
            "* stepfork *",
            "cassettes/test_agent/test_two_calls.yaml: replayed 1, escaped 1, left over 1",
        ]
    )
    (project.path / "test_agent.py").write_text(tests.replace('search("b")', 'search("x")'))
    assert properties(project)["test_two_calls"]["verdict"] == ["drifted"]
    recorded = properties(project, "--stepfork-mode=record")["test_two_calls"]
    assert (recorded["verdict"], recorded["recorded"], recorded["live"]) == (["recorded"], ["2"], ["2"])


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_verbose_says_the_cassette(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = run(project, "-v", *workers)
    lines = [line for line in result.stdout.lines if "cassettes/" in line]
    assert sorted(lines) == [
        "test_agent.py::test_marked  cassettes/test_agent/module.warm.yaml, cassettes/test_agent/named.yaml: "
        "replayed 2",
        "test_agent.py::test_two_calls  cassettes/test_agent/test_two_calls.yaml: replayed 2",
    ]
    assert "cassettes/" not in run(project).stdout.str()


@pytest.mark.parametrize("mode", ["replay", "record", "auto"])
def test_a_marked_test_that_makes_no_call_fails(project: pytest.Pytester, mode: str) -> None:
    project.makepyfile(
        test_marked="""
        import pytest
        import stepfork
        from agenttools import search

        @pytest.mark.stepfork("x")
        def test_of_nothing():
            pass

        @pytest.mark.stepfork(mode="off")
        def test_left_alone():
            pass

        @pytest.mark.stepfork("y")
        def test_with_a_session_of_its_own(tmp_path):
            with stepfork.record(tmp_path / "a.yaml"):
                search("a")

        @pytest.mark.stepfork("z")
        def test_that_fails_by_itself():
            assert 1 == 2

        @pytest.mark.stepfork("s")
        def test_skipped():
            pytest.skip("later")
        """
    )
    result = run(project, "test_marked.py", f"--stepfork-mode={mode}")
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*test_of_nothing*",
            "the test is marked with mark.stepfork, but no patched call was made: *",
            "*test_that_fails_by_itself*",
            "*assert 1 == 2",
        ]
    )
    assert result.stdout.str().count("no patched call was made") == 1


# -- cassettes that nothing uses ---------------------------------------------------------------------


def leave(project: pytest.Pytester, *names: str) -> None:
    source = project.path / "cassettes" / "test_agent" / "test_two_calls.yaml"
    for name in names:
        target = project.path / "cassettes" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())


def unused(result: pytest.RunResult) -> list[str]:
    lines = result.stdout.lines
    start = [at for at, line in enumerate(lines) if "used by no test" in line]
    if not start:
        return []
    found = []
    for line in lines[start[0] + 1 :]:
        if not line.startswith("  "):
            break
        found.append(line.strip())
    return found


OLD = ["gone/test_old.yaml", "test_agent/test_before[a].yaml"]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
@pytest.mark.parametrize("asked", [(), (".",)], ids=["nothing", "dot"])
def test_a_full_run_lists_what_nothing_uses(
    project: pytest.Pytester, workers: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    leave(project, *OLD, "test_agent/test_two_calls.failed.yaml", "test_agent/test_two_calls.partial.yaml")
    (project.path / "cassettes" / "of_another_tool.yaml").write_text("interactions: []\n")
    result = run(project, *workers, *asked)
    assert unused(result) == [f"cassettes/{name}" for name in OLD]
    result.stdout.fnmatch_lines(["2 cassettes are used by no test; to delete: stepfork prune"])


@pytest.mark.parametrize(
    "asked",
    [
        ("test_agent.py::test_none",),
        ("test_other.py",),
        ("-k", "two or none"),
        ("-m", "not stepfork"),
        ("--deselect", "test_agent.py::test_none"),
        ("--ignore", "test_other.py"),
        ("--lf",),
        ("-x",),
        ("--collect-only",),
    ],
    ids=lambda asked: " ".join(asked),
)
def test_a_run_that_is_not_of_all_tests_says_nothing(
    project: pytest.Pytester, asked: tuple[str, ...]
) -> None:
    project.makepyfile(test_other="def test_red():\n    assert False\n")
    leave(project, *OLD)
    run(project)
    assert unused(run(project, *asked)) == []


def test_skipped_and_nested_cassettes_are_used(project: pytest.Pytester) -> None:
    leave(project, "test_more/test_later.yaml", "test_more/session.server.yaml", "mine/run.yaml", OLD[0])
    project.makepyfile(
        test_more="""
        import pytest
        import stepfork
        from agenttools import search

        @pytest.fixture(scope="session")
        def server():
            return search("a"), search("b")

        @pytest.mark.skip
        def test_later(server):
            search("a")

        def test_own():
            with stepfork.replay("cassettes/mine/run.yaml"):
                search("a")
                search("b")
        """
    )
    assert unused(run(project)) == [f"cassettes/{OLD[0]}"]


def test_prune_deletes_them_after_asking(project: pytest.Pytester) -> None:
    leave(project, *OLD)

    def prune(*args: str, answer: str = "") -> pytest.RunResult:
        return project.run(sys.executable, "-m", "stepfork", "prune", *args, stdin=answer.encode())

    there = [project.path / "cassettes" / name for name in OLD]
    shutil.rmtree(project.path / ".pytest_cache")
    early = prune()
    assert early.ret == 2
    early.stderr.fnmatch_lines(["*run all tests first: pytest*"])
    run(project)
    no = prune(answer="n\n")
    no.stdout.fnmatch_lines([f"cassettes/{name}" for name in OLD])
    assert no.ret == 0
    assert all(path.exists() for path in there)
    there[0].write_text(there[0].read_text() + "\n")  # changed since
    yes = prune(answer="y\n")
    assert yes.ret == 0
    assert [path.exists() for path in there] == [True, False]
    assert "changed since" in yes.stderr.str()
    assert prune("--yes").ret == 0
    assert there[0].exists()
    run(project)
    assert prune("--yes").ret == 0
    assert not there[0].exists()
    assert not there[0].parent.exists()  # an empty folder goes too
    used = project.path / "cassettes" / "test_agent"
    assert sorted(path.name for path in used.iterdir()) == [
        "module.warm.yaml",
        "named.yaml",
        "test_two_calls.yaml",
    ]
    nothing = prune()
    assert nothing.ret == 0
    nothing.stdout.fnmatch_lines(["nothing to delete*"])
