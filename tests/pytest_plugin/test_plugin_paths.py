"""Directories under pytest: the temporary folder of a test, and a project that is somewhere else tomorrow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.command import Project

TOOLS = """
import os
def save(path, text):
    assert "REPLAY" not in os.environ
    with open(path, "w") as file:
        file.write(text)
    return {"saved": str(path)}
"""
TESTS = """
import os
import pathlib
import pytest
import agenttools

def test_in_a_folder_of_its_own(tmp_path, stepfork_run):
    answer = agenttools.save(tmp_path / "a.txt", f"made in {tmp_path}")
    assert answer == {"saved": str(tmp_path / "a.txt")}
    assert stepfork_run.calls[0].args["path"] == tmp_path / "a.txt"

def test_made_by_the_factory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    assert agenttools.save(f"{folder}/b", "x") == {"saved": f"{folder}/b"}

def test_inside_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert agenttools.save(os.getcwd() + "/c", "x") == {"saved": f"{tmp_path}/c"}

@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ready")
    return agenttools.save(folder / "d", "x")["saved"], folder

def test_what_a_fixture_made(ready):
    assert ready[0] == str(ready[1] / "d")

def test_a_file_of_the_project():
    data = pathlib.Path(__file__).parent / "data" / "e"
    data.parent.mkdir(exist_ok=True)
    assert agenttools.save(data, "x") == {"saved": str(data)}
"""


PYPROJECT = """
[tool.stepfork]
tools = ["agenttools"]

[tool.pytest.ini_options]
pythonpath = ["."]
filterwarnings = ["error"]
"""
CASSETTES = Path("cassettes", "tests", "test_agent")


class Machine:
    """A project with a home and a temp directory of its own."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        for name in ("home", "temp"):
            (place / name).mkdir()
        self.place = place
        self.project = Project(place / "project")
        self.project.write("pyproject.toml", PYPROJECT)
        self.project.write("agenttools.py", TOOLS)
        self.project.write("tests/test_agent.py", TESTS)

    def pytest(self, *arguments: str, cwd: str = ".", **more: str) -> str:
        own = {"HOME": str(self.place / "home"), "PYTEST_DEBUG_TEMPROOT": str(self.place / "temp")}
        done = self.project.pytest(*arguments, cwd=cwd, **own, **more)
        assert done.status == 0, done.out + done.err
        return done.out

    def cassette(self, name: str) -> str:
        return self.project.read(str(CASSETTES / f"{name}.yaml"))


@pytest.fixture
def one(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "one")
    assert "5 newly recorded" in machine.pytest("--stepfork-mode=record")
    return machine


def test_the_temporary_folder_of_a_test_is_another_one_in_every_run(one: Machine) -> None:
    assert "path: !path <tmp_path>/a.txt" in one.cassette("test_in_a_folder_of_its_own")
    assert "<basetemp>/data0/b" in one.cassette("test_made_by_the_factory")
    assert "<tmp_path>/c" in one.cassette("test_inside_the_folder")
    assert "!path <basetemp>/ready0/d" in one.cassette("module.ready")
    assert "!path <cwd>/tests/data/e" in one.cassette("test_a_file_of_the_project")
    for _ in range(2):
        assert "5 calls replayed, 0 live" in one.pytest(REPLAY="1")


def test_recording_again_leaves_the_cassettes_alone(one: Machine) -> None:
    files = {path: path.read_bytes() for path in (one.project.folder / CASSETTES).iterdir()}
    assert len(files) == 5
    one.pytest("--stepfork-mode=record")
    assert {path: path.read_bytes() for path in (one.project.folder / CASSETTES).iterdir()} == files


def test_the_project_replays_on_another_machine(one: Machine, tmp_path: Path) -> None:
    two = Machine(tmp_path / "two")
    shutil.copytree(one.project.folder / "cassettes", two.project.folder / "cassettes")
    assert not any(str(tmp_path) in path.read_text() for path in two.project.folder.rglob("*.yaml"))
    assert "5 calls replayed, 0 live" in two.pytest(REPLAY="1")


@pytest.mark.parametrize(
    ("cwd", "arguments"),
    [
        ("tests", ()),
        (".", ("--basetemp=by-hand",)),
        (".", ("-p", "xdist", "-n", "2")),
    ],
)
def test_it_does_not_matter_how_the_tests_are_run(one: Machine, cwd: str, arguments: tuple[str, ...]) -> None:
    assert "calls replayed, 0 live, 0 newly recorded" in one.pytest(*arguments, cwd=cwd, REPLAY="1")


TWINS = """
import agenttools

def test_twin(tmp_path):
    assert agenttools.save(tmp_path / "a", "x") == {"saved": str(tmp_path / "a")}

def test_a_name_that_is_longer_than_thirty_characters_1(tmp_path):
    agenttools.save(tmp_path / "b", "x")

def test_a_name_that_is_longer_than_thirty_characters_2(tmp_path):
    agenttools.save(tmp_path / "c", "x")
"""


def test_the_number_of_a_temporary_folder_depends_on_no_other_test(one: Machine) -> None:
    """pytest numbers the folders of equal names, which it cuts, in the order in which the tests run."""
    for name in ("test_one", "test_two"):
        one.project.write(f"tests/{name}.py", TWINS)
    both = ("tests/test_one.py", "tests/test_two.py")
    assert "6 newly recorded" in one.pytest("--stepfork-mode=record", *both)
    files = {path: path.read_bytes() for path in (one.project.folder / "cassettes").rglob("*.yaml")}
    assert "6 calls replayed, 0 live" in one.pytest(*both, REPLAY="1")
    assert "6 calls replayed, 0 live" in one.pytest(*reversed(both), REPLAY="1")
    assert "3 calls replayed, 0 live" in one.pytest("tests/test_two.py", REPLAY="1")
    assert "2 calls replayed, 0 live" in one.pytest(*both, "-k", "characters_2", REPLAY="1")
    one.pytest("--stepfork-mode=record", "tests/test_two.py")
    assert {path: path.read_bytes() for path in (one.project.folder / "cassettes").rglob("*.yaml")} == files


def test_below_the_temporary_folder_a_difference_is_one(one: Machine) -> None:
    one.project.write("tests/test_agent.py", TESTS.replace('tmp_path / "a.txt", f', 'tmp_path / "z.txt", f'))
    done = one.project.pytest(
        "-k", "folder_of_its_own", REPLAY="1", PYTEST_DEBUG_TEMPROOT=str(one.place / "temp")
    )
    assert done.status == 1
    assert "argument 'path'" in done.out
    assert "/test_in_a_folder_of_its_own0/z.txt" in done.out


def test_a_run_from_above_the_project_finds_the_same_directories(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As IDEs and the CI of a repository with several projects run them."""
    project = pytester.mkdir("proj")
    (project / "pyproject.toml").write_text(
        '[tool.stepfork]\ntools = ["papertools"]\n[tool.pytest.ini_options]\n'
    )
    (project / "papertools.py").write_text("def read(path):\n    return path + '.txt'\n")
    (project / "tests").mkdir()
    (project / "tests" / "test_read.py").write_text(
        "import papertools\n"
        "from pathlib import Path\n"
        "ROOT = Path(__file__).parents[1]\n"
        "def test_read():\n"
        "    assert papertools.read(f'{ROOT}/a') == f'{ROOT}/a.txt'\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(project))
    monkeypatch.chdir(project)
    pytester.runpytest_subprocess("--stepfork-mode=record").assert_outcomes(passed=1)
    assert "<cwd>/a" in (project / "cassettes" / "tests" / "test_read" / "test_read.yaml").read_text()
    for folder, asked in [(pytester.path, "proj/tests"), (project / "tests", "."), (project, "tests")]:
        monkeypatch.chdir(folder)
        result = pytester.runpytest_subprocess(asked)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["*stepfork: 1 test, 1 call replayed*"])
