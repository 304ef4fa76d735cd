"""Fixtures of every scope, sessions in tests, misplaced markers: a cassette of their own or a loud error."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugin_project import PluginProject

SCOPES = ("function", "class", "module", "package", "session")


@pytest.fixture
def project(tmp_path: Path) -> PluginProject:
    return PluginProject(tmp_path / "project")


def test_each_scope_has_its_cassette(project: PluginProject) -> None:
    fixtures = "".join(
        f"@pytest.fixture(scope='{scope}')\ndef of_{scope}():\n    return search('{scope}')\n"
        for scope in SCOPES
    )
    project.write("pkg/__init__.py", "")
    project.write("pkg/conftest.py", f"import pytest\nfrom agenttools import search\n{fixtures}")
    names = ", ".join(f"of_{scope}" for scope in SCOPES)
    test = f"({names}):\n    assert [one[0] for one in ({names})] == {list(SCOPES)}\n"
    tests = f"def test_one{test}class TestIt:\n    def test_two(self, {test[1:].replace('    ', '        ')}"
    project.write("pkg/test_a.py", tests)
    project.write("pkg/test_b.py", tests)
    project.record_and_replay(passed=4)
    assert set(project.files) == {f"pkg/{scope}.of_{scope}.yaml" for scope in SCOPES}
    drift = project.read("pkg/conftest.py")
    for scope in SCOPES:
        project.write("pkg/conftest.py", drift.replace(f"search('{scope}')", "search('DRIFT')"))
        project.test().says(f'expected "{scope}", got "DRIFT"', "4 errors")
    assert "DRIFT" not in project.bodies


def test_a_call_while_a_fixture_is_torn_down_is_an_error(project: PluginProject) -> None:
    """In every mode and scope: it belongs to no test's trajectory, so it could only go live."""
    for scope in SCOPES:
        project.write(
            "test_it.py",
            f"import pytest\nfrom agenttools import search\n@pytest.fixture(scope='{scope}')\ndef tidy():\n"
            "    yield search('up')\n    search('down')\ndef test_it(tidy):\n    pass\n",
        )
        for mode in ("record", "replay"):
            project.test(mode=mode).expect(passed=1, error=1).says("outside every cassette")
    assert set(project.bodies) == {"up"}


def test_sessions_nest(project: PluginProject) -> None:
    """The inner one takes the calls while it is open; then the test's own goes on."""
    project.write(
        "test_it.py",
        """
        import stepfork
        from agenttools import search
        def test_it():
            search("before")
            with stepfork.use_cassette("tapes/inner.yaml"):
                search("inside")
                with stepfork.use_cassette("tapes/innermost.yaml"):
                    search("deep inside")
            search("after")
        """,
    )
    project.record_and_replay(passed=1)
    assert list(project.files) == ["test_it/test_it.yaml"]
    bodies = project.bodies
    for word in ("before", "inside", "deep inside", "after"):
        text = project.read("test_it.py")
        project.write("test_it.py", text.replace(f'search("{word}")', 'search("DRIFT")'))
        project.test().expect(failed=1).says(f'expected "{word}", got "DRIFT"')
        project.write("test_it.py", text)
    assert project.bodies == bodies


def test_a_session_that_a_fixture_holds_open(project: PluginProject) -> None:
    """A fixture's own ``stepfork.replay`` takes the calls of its test."""
    project.write(
        "test_it.py",
        """
        import pytest
        import stepfork
        from agenttools import search
        @pytest.fixture
        def tape():
            with stepfork.use_cassette("tape.yaml") as run:
                yield run
        def test_it(tape):
            search("a")
            assert [call.args for call in tape.calls] == [{"q": "a"}]
        """,
    )
    project.test(mode="record").expect(passed=1)
    project.test().expect(passed=1)
    project.write("test_it.py", project.read("test_it.py").replace('search("a")', 'search("b")'))
    assert project.test().says('expected "a", got "b"').status == 1
    assert (project.bodies, project.files) == (["a"], {})


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_C98_a_marker_on_a_fixture_is_an_error(project: PluginProject, mode: str) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        from agenttools import search
        @pytest.mark.stepfork("mine")
        @pytest.fixture
        def warm():
            return search("warm")
        def test_it(warm):
            pass
        """,
    )
    ended = project.test(mode=mode)
    assert ended.status != 0
    ended.says("arks cannot be applied to fixtures")
    assert project.bodies == []


def test_C98_a_marker_on_a_helper_never_lets_its_calls_go_live(project: PluginProject) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        from agenttools import search
        @pytest.mark.stepfork("mine", mode="off")
        def helper():
            return search("help")
        def test_it():
            assert helper()[0] == "help"
        """,
    )
    project.test().expect(failed=1).says("there is no cassette cassettes/test_it/test_it.yaml")
    assert project.bodies == []
    project.record_and_replay(passed=1)
    assert list(project.files) == ["test_it/test_it.yaml"]
