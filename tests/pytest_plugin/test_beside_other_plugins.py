"""Beside the plugins of pytest that people use: each test records and replays as it does without them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.plugin_project import PluginProject

import stepfork

SOME = """
import pytest
from agenttools import search

@pytest.fixture
def warm():
    return search("warm")

@pytest.fixture(autouse=True, scope="module")
def index():
    return search("index")

@pytest.mark.parametrize("word", ["a", "b"])
def test_word(word, warm):
    assert search(word)[0] == word

class TestIt:
    def test_inside(self):
        assert search("inside")[0] == "inside"

def test_none():
    pass
"""
ASYNC = """
import asyncio
import pytest
{0}
from agenttools import search

@{1}
async def warm():
    await asyncio.sleep(0)
    return search("warm")

{2}
async def test_it(warm):
    async def one(q):
        await asyncio.sleep(0)
        return search(q)[0]
    assert await asyncio.gather(one("a"), one("b")) == ["a", "b"]

{2}
class TestIt:
    async def test_inside(self):
        assert search("inside")[0] == "inside"
"""


def made(tmp_path: Path, *plugins: str, ini: str = "", tests: str = SOME) -> PluginProject:
    project = PluginProject(tmp_path / "project", *plugins, ini=ini)
    project.write("test_it.py", tests)
    return project


@pytest.mark.parametrize(
    ("plugins", "ini", "words"),
    [
        (
            ["asyncio"],
            "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function",
            ("", "pytest.fixture", ""),
        ),
        (
            ["asyncio"],
            "asyncio_mode = strict\nasyncio_default_fixture_loop_scope = function",
            ("import pytest_asyncio", "pytest_asyncio.fixture", "@pytest.mark.asyncio"),
        ),
        (
            ["anyio"],
            "",
            (
                "",
                "pytest.fixture",
                "@pytest.mark.anyio\n@pytest.mark.parametrize('anyio_backend', ['asyncio'])",
            ),
        ),
    ],
    ids=["asyncio-auto", "asyncio-strict", "anyio"],
)
def test_async_tests_and_fixtures(
    tmp_path: Path, plugins: list[str], ini: str, words: tuple[str, str, str]
) -> None:
    project = made(tmp_path, *plugins, ini=ini, tests=ASYNC.format(*words))
    project.record_and_replay(passed=2)
    assert project.bodies == ["a", "b", "inside", "warm"]
    drift = project.read("test_it.py").replace('search("inside")', 'search("DRIFT")')
    project.write("test_it.py", drift)
    project.test().expect(passed=1, failed=1).says('expected "inside", got "DRIFT"')


@pytest.mark.parametrize(
    ("plugins", "arguments"),
    [
        (["pytest_cov"], ["--cov=agenttools", "--cov-report="]),
        (["pytest_mock"], []),
        (["timeout"], ["--timeout=60", "--timeout-method=signal"]),
        (["timeout"], ["--timeout=60", "--timeout-method=thread"]),
        (["rerunfailures"], ["--reruns=1"]),
        (["randomly"], []),
    ],
    ids=["cov", "mock", "timeout-signal", "timeout-thread", "rerunfailures", "randomly"],
)
def test_a_plugin_changes_nothing(tmp_path: Path, plugins: list[str], arguments: list[str]) -> None:
    made(tmp_path, *plugins).record_and_replay(*arguments, passed=4)


def test_all_of_them_at_once(tmp_path: Path) -> None:
    project = PluginProject(
        tmp_path / "project", every=True, ini="asyncio_default_fixture_loop_scope = function"
    )
    project.write("test_it.py", SOME)
    project.record_and_replay(
        "-n2", "--reruns=1", "--timeout=60", "--cov=agenttools", "--cov-report=", passed=4
    )


def test_coverage_counts_a_tools_body_only_where_it_ran(tmp_path: Path) -> None:
    project = made(tmp_path, "pytest_cov")
    options = ("--cov=agenttools", "--cov-report=term-missing")

    def covered(mode: str) -> str:
        out = project.test(*options, mode=mode).expect(passed=4).out
        return next(line for line in out.splitlines() if line.startswith("agenttools.py"))

    assert "100%" in covered("record")
    assert "25%" in covered("replay")


def test_randomly_in_any_order(tmp_path: Path) -> None:
    """Random orders of the tests, and random seeds in them, are another run each; cassettes are by test."""
    project = made(tmp_path, "randomly")
    project.test(mode="record").expect(passed=4)
    for seed in ("1", "2", "3"):
        project.test(f"--randomly-seed={seed}").expect(passed=4)


FLAKY = """
from pathlib import Path
from agenttools import search

def test_it():
    for q in ("a", "b", "c"):
        search(q)
        if q == "b" and not Path("seen").exists():
            Path("seen").write_text("x")
            assert False, "the first attempt"
"""


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one", "xdist"])
def test_C110_the_second_attempt_starts_at_call_1(tmp_path: Path, workers: list[str]) -> None:
    project = made(tmp_path, "xdist", "rerunfailures", tests=FLAKY)
    project.test(*workers, "--reruns=1", mode="record").expect(passed=1, rerun=1)
    stored = stepfork.load(project.folder / "cassettes" / "test_it" / "test_it.yaml")
    assert [call.args["q"] for call in stored.calls] == ["a", "b", "c"]
    assert list(project.files) == ["test_it/test_it.yaml"], "the failed one of the first attempt is gone"
    (project.folder / "seen").unlink()
    xml = ["--junitxml=out.xml", "-o", "junit_family=xunit1"]
    ended = project.test(*workers, "--reruns=1", *xml).expect(passed=1, rerun=1)
    ended.says("stepfork: 1 test, ")
    *_, last = ElementTree.parse(project.folder / "out.xml").getroot().iter("testcase")
    told = [(one.attrib["name"], one.attrib["value"]) for one in last.iter("property")]
    assert told.count(("stepfork.verdict", "replayed")) == 1
    assert ("stepfork.replayed", "3") in told, "that of the last attempt alone"
    assert len(project.bodies) == 5


SLOW = """
import time
from agenttools import search

def test_it():
    search("{0}")
    time.sleep({1})
"""


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_test_that_times_out_costs_no_good_cassette(tmp_path: Path, method: str) -> None:
    """The signal fails the test; the thread ends the process, as it stands, like ``kill -9`` does."""
    project = made(tmp_path, "timeout", tests=SLOW.format("good", 0))
    project.test(mode="record").expect(passed=1)
    good = project.files["test_it/test_it.yaml"]
    project.write("test_it.py", SLOW.format("slow", 60))
    ended = project.test("--timeout=1", f"--timeout-method={method}", mode="record")
    assert ended.status == 1
    assert project.files["test_it/test_it.yaml"] == good
    left = {"signal": "test_it/test_it.failed.yaml", "thread": "test_it/test_it.partial.yaml"}[method]
    assert set(project.files) == {"test_it/test_it.yaml", left}
    stored = stepfork.load(project.folder / "cassettes" / left)
    assert [call.args["q"] for call in stored.calls] == ["slow"]
    if method == "signal":
        ended.says("stepfork adopt cassettes/test_it/test_it.failed.yaml")
    project.write("test_it.py", SLOW.format("good", 0))
    project.test("--timeout=60").expect(passed=1).says("1 call replayed")


def test_a_mock_in_a_tools_place_is_the_users(tmp_path: Path) -> None:
    """A stand-in answers for the tool, and no call is made; when it is gone the tool is patched as before."""
    tests = """
import agenttools
def test_mocker(mocker):
    mocker.patch("agenttools.search", return_value=["mock", 0])
    assert agenttools.search("a") == ["mock", 0]
def test_spy(mocker):
    spy = mocker.spy(agenttools, "search")
    assert agenttools.search("b")[0] == "b"
    spy.assert_called_once_with("b")
def test_monkeypatch(monkeypatch):
    monkeypatch.setattr(agenttools, "search", lambda q: "mine")
    assert agenttools.search("c") == "mine"
    monkeypatch.undo()
    assert agenttools.search("d")[0] == "d"
"""
    project = made(tmp_path, "pytest_mock", tests=tests)
    project.record_and_replay(passed=3)
    assert project.bodies == ["b", "d"]


UNITTEST = """
import unittest
from agenttools import search

class TestIt(unittest.TestCase):
    def setUp(self):
        search("set up")
    def tearDown(self):
        search("tear down")
    def test_sub(self):
        for q in ("one", "two"):
            with self.subTest(q=q):
                self.assertEqual(search(q)[0], q)

class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        search("before")
    async def asyncTearDown(self):
        search("after")
    async def test_async(self):
        self.assertEqual(search("async")[0], "async")
"""


def test_unittest_with_set_up_tear_down_and_sub_tests(tmp_path: Path) -> None:
    """What unittest runs as part of a test is part of its trajectory."""
    project = made(tmp_path, tests=UNITTEST)
    project.test(mode="record")
    files = project.files
    assert set(files) == {"test_it/TestIt/test_sub.yaml", "test_it/TestAsync/test_async.yaml"}
    places = [project.folder / "cassettes" / name for name in files]
    told = {place.stem: [call.args["q"] for call in stepfork.load(place).calls] for place in places}
    assert told == {
        "test_sub": ["set up", "one", "two", "tear down"],
        "test_async": ["before", "async", "after"],
    }
    bodies = project.bodies
    ended = project.test()
    assert ended.outcomes.get("passed", 0) >= 2, ended.out
    assert "failed" not in ended.outcomes
    project.write("test_it.py", UNITTEST.replace('search("tear down")', 'search("DRIFT")'))
    assert project.test().status == 1
    assert (project.files, project.bodies) == (files, bodies)


def test_the_fixtures_of_a_unittest_class(tmp_path: Path) -> None:
    tests = UNITTEST.replace(
        "    def setUp(self):",
        "    @classmethod\n    def setUpClass(cls):\n        search('class')\n    def setUp(self):",
        1,
    )
    project = made(tmp_path, tests=tests)
    project.test(mode="record")
    bodies = project.bodies
    assert "class" in bodies
    ended = project.test()
    assert "failed" not in ended.outcomes, ended.out
    assert project.bodies == bodies


def test_doctests(tmp_path: Path) -> None:
    """A doctest is a test: it has a cassette, in a module and in a text file."""
    project = made(tmp_path, tests="")
    text = ">>> from agenttools import search\n>>> search('doc')\n['doc', 1]\n"
    project.write("shop.py", f'"""A module.\n\n{text}"""\n')
    project.write("guide.txt", text)
    project.record_and_replay(
        "--doctest-modules", "--doctest-glob=guide.txt", "shop.py", "guide.txt", passed=2
    )
    assert len(project.files) == 2
    project.write("shop.py", f'"""A module.\n\n{text.replace("doc", "DRIFT")}"""\n')
    assert project.test("--doctest-modules", "shop.py").status == 1
    assert project.bodies == ["doc", "doc"]
