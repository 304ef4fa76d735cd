"""What pytest prints and writes of tests with secrets: whoever opened the sessions, however they ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Project

K = "Zk9" + "qP2vTr8LmX4wY7sBn3"
VAULT = """
def unlock(user, password):
    return f"opened for {user}"
"""
FILES = {"vault.py": VAULT, "conftest.py": 'import stepfork\nstepfork.autopatch(tools=["vault"])\n'}
HEAD = """
    import os, unittest, warnings
    import pytest, stepfork, vault

    K = os.environ["KEY"]
"""

BLOCKS = """
    def use(path, how=stepfork.record):
        return how(path, tools=["vault"])

    def test_after_the_block(tmp_path):
        with use(tmp_path / "a.yaml"):
            vault.unlock("bob", K)
        assert K == "after"

    def test_in_the_block(tmp_path):
        with use(tmp_path / "a.yaml"):
            vault.unlock("bob", K)
            print("printed " + K)
            raise RuntimeError("in " + K)

    def test_on_replay(tmp_path):
        with use(tmp_path / "a.yaml"):
            vault.unlock("bob", K[::-1])
        with use(tmp_path / "a.yaml", stepfork.replay):
            vault.unlock("bob", K)
            raise RuntimeError("replayed " + K + " recorded " + K[::-1])

    def test_decorated(tmp_path):
        @use(tmp_path / "a.yaml")
        def agent():
            vault.unlock("bob", K)
            raise RuntimeError("decorated " + K)
        agent()

    def test_several(tmp_path):
        for secret in (K, K[::-1], K.swapcase()):
            with use(tmp_path / f"{len(secret)}.yaml"):
                vault.unlock("bob", secret)
        raise RuntimeError("several " + K + " " + K[::-1])

    def test_rules_of_a_block(tmp_path):
        with stepfork.record(tmp_path / "a.yaml", tools=["vault"]):
            vault.unlock("bob", "")
        with stepfork.record(tmp_path / "b.yaml", tools=["vault"], redact_patterns=[r"badge (\\w+)"]):
            vault.unlock("bob", "")
        raise RuntimeError("the badge " + K[:4])

    def test_left_open(tmp_path):
        use(tmp_path / "a.yaml").__enter__()
        vault.unlock("bob", K)
        raise RuntimeError("left open " + K)

    @pytest.fixture
    def around(tmp_path):
        with use(tmp_path / "a.yaml"):
            yield
        raise RuntimeError("torn down " + K)

    def test_in_a_fixture(around):
        vault.unlock("bob", K)
        raise RuntimeError("around " + K)

    @pytest.fixture(scope="module")
    def wide(tmp_path_factory):
        with use(tmp_path_factory.mktemp("wide") / "a.yaml"):
            vault.unlock("bob", K)
        yield K

    def test_first_with_it(wide):
        assert wide == "first"

    def test_second_with_it(wide):
        assert wide == "second"
"""
OF_BLOCKS = (
    "FAILED test_it.py::test_after_the_block - AssertionError: assert '<secret:password:1>' == 'after'",
    "FAILED test_it.py::test_in_the_block - RuntimeError: in <secret:password:1>",
    "printed <secret:password:1>",
    "RuntimeError: replayed <secret:password:1> recorded <secret:password:1>",
    "RuntimeError: decorated <secret:password:1>",
    "RuntimeError: several <secret:password:1> <secret:password:1>",
    "RuntimeError: the badge <secret:pattern:1>",
    "RuntimeError: left open <secret:password:1>",
    "RuntimeError: around <secret:password:1>",
    "RuntimeError: torn down <secret:password:1>",
    "assert '<secret:password:1>' == 'first'",
    "assert '<secret:password:1>' == 'second'",
)

SET_UPS = """
    @pytest.fixture(scope="module")
    def wide():
        vault.unlock("bob", K)
        raise RuntimeError("module " + K)

    def test_wide(wide):
        pass

    def test_wide_again(wide):
        pass

    @pytest.fixture
    def narrow():
        vault.unlock("bob", K)
        print("printed " + K)
        assert K == "narrow"

    def test_narrow(narrow):
        pass

    @pytest.fixture
    def skips():
        vault.unlock("bob", K)
        pytest.skip("skips " + K)

    def test_skipped(skips):
        pass

    class TestClass:
        @classmethod
        def setup_class(cls):
            vault.unlock("bob", K)
            raise RuntimeError("setup_class " + K)

        def test_it(self):
            pass

    class TestMethod:
        def setup_method(self):
            vault.unlock("bob", K)
            raise RuntimeError("setup_method " + K)

        def test_it(self):
            pass

    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            vault.unlock("bob", K)
            raise RuntimeError("setUpClass " + K)

        def test_it(self):
            pass
"""
OF_SET_UPS = (
    "ERROR test_it.py::test_wide - RuntimeError: module <secret:password:1>",
    "ERROR test_it.py::test_wide_again - RuntimeError: module <secret:password:1>",
    "ERROR test_it.py::test_narrow - AssertionError: assert '<secret:password:1>' == 'narrow'",
    "printed <secret:password:1>",
    "skips <secret:password:1>",
    "RuntimeError: setup_class <secret:password:1>",
    "RuntimeError: setup_method <secret:password:1>",
    "RuntimeError: setUpClass <secret:password:1>",
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    for name, text in FILES.items():
        project.write(name, text)
    return project


def shown(project: Project, *arguments: str, mode: str = "record") -> str:
    """All that a run of pytest with failures prints and writes, the cassettes' names among it."""
    report = ("--junitxml=report.xml", "-o", "junit_logging=all", "-o", "junit_family=xunit1")
    ended = project.pytest("-ra", *report, *arguments, STEPFORK_MODE=mode, KEY=K, COLUMNS="200")
    assert ended.status in (1, 2), ended.out
    names = [str(path.relative_to(project.folder)) for path in project.folder.rglob("*.yaml")]
    return "\n".join([ended.out, ended.err, project.read("report.xml"), *names])


def assert_hidden(text: str) -> None:
    for secret in (K, K[::-1], K.swapcase()):
        assert secret not in text, text[max(0, text.index(secret) - 300) : text.index(secret)]


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize(
    ("tests", "expected"), [(BLOCKS, OF_BLOCKS), (SET_UPS, OF_SET_UPS)], ids=["blocks", "set-ups"]
)
def test_C120_what_tests_show(
    project: Project, tests: str, expected: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    project.write("test_it.py", HEAD + tests)
    for mode in ("record", "replay"):
        text = shown(project, *workers, mode=mode)
        assert_hidden(text)
        for line in expected:
            assert line in text, text


def test_C120_what_comes_beside_a_tests_own_report(project: Project) -> None:
    project.write(
        "test_it.py",
        HEAD
        + """
    class TestUnit(unittest.TestCase):
        def test_sub(self):
            vault.unlock("bob", K)
            with self.subTest("sub " + K, text="with " + K, password="hunter22"):
                self.assertEqual(K, "")

    def test_suite(record_testsuite_property):
        record_testsuite_property("one", "suite " + K)
        vault.unlock("bob", K)
        record_testsuite_property("two", K)
        record_testsuite_property("three", "harmless")

    @pytest.mark.filterwarnings("ignore")
    def test_attribute(record_xml_attribute):
        vault.unlock("bob", K)
        record_xml_attribute("url", "attribute " + K)
        record_xml_attribute("line", "7")
    """,
    )
    text = shown(project)
    assert_hidden(text)
    assert "hunter22" not in text
    assert "sub <secret:password:1>" in text
    assert 'name="one" value="suite &lt;secret:password:1&gt;"' in text
    assert 'name="two" value="&lt;secret:password:1&gt;"' in text
    assert 'name="three" value="harmless"' in text
    assert 'url="attribute &lt;secret:password:1&gt;"' in text


def test_C120_a_module_that_cannot_be_imported(project: Project) -> None:
    project.write(
        "test_it.py",
        HEAD
        + """
    with stepfork.record("a.yaml", tools=["vault"]):
        vault.unlock("bob", K)
    print("printed " + K)
    raise RuntimeError("imported " + K)
    """,
    )
    text = shown(project)
    assert_hidden(text)
    assert "RuntimeError: imported <secret:password:1>" in text


def test_C120_a_doctest_that_fails(project: Project) -> None:
    lines = [">>> import os, vault", ">>> vault.unlock('bob', os.environ['KEY'])", "'opened for bob'"]
    project.write("one.txt", "\n".join([*lines, ">>> os.environ['KEY']", "'one'", ""]))
    project.write("two.txt", "\n".join([*lines, ">>> raise RuntimeError(os.environ['KEY'])", ""]))
    for more in ((), ("-p", "xdist", "-n", "2"), ("--tb=native",)):
        text = shown(project, "--doctest-glob=*.txt", *more)
        assert_hidden(text)
        assert "    '<secret:password:1>'" in text
        assert "RuntimeError: <secret:password:1>" in text


def test_C120_what_one_test_learned_is_said_of_no_other(project: Project) -> None:
    """A word that was a secret in one test is a word in the next, unless a fixture of both learned it."""
    project.write(
        "test_it.py",
        HEAD
        + """
    @pytest.fixture(scope="class")
    def known():
        vault.unlock("bob", "tuesday-2026")
        yield
        raise RuntimeError("torn down on tuesday-2026")

    class TestOne:
        def test_one(self, known):
            raise RuntimeError("one on tuesday-2026")

        def test_two(self, known):
            vault.unlock("bob", "friday-2026")
            raise RuntimeError("two on tuesday-2026, friday-2026")

    def test_three():
        raise RuntimeError("three on tuesday-2026, friday-2026")
    """,
    )
    text = shown(project, "-p", "no:randomly")
    assert "RuntimeError: one on <secret:password:1>" in text
    assert "RuntimeError: two on <secret:password:1>, <secret:password:1>" in text
    assert "RuntimeError: torn down on <secret:password:1>" in text
    assert "RuntimeError: three on tuesday-2026, friday-2026" in text


def test_C120_an_exported_test_that_fails(tmp_path: Path) -> None:
    """Without a conftest: the test opens its session itself."""
    project = Project(tmp_path / "project")
    project.write("vault.py", VAULT)
    agent = """
        import os
        import vault

        def run(user):
            vault.unlock(user, os.environ["KEY"])
            {0}
            return "done"
    """
    project.write("agents.py", agent.format(""))
    arguments = ("--tools", "vault", "-o", "run.yaml", "--args", '{"user": "bob"}')
    assert project.run("record", "agents:run", *arguments, KEY=K).status == 0
    assert project.run("export", "run.yaml", "--pytest", "--output", "test_run.py").status == 0
    project.write("agents.py", agent.format("raise RuntimeError('final ' + os.environ['KEY'])"))
    text = shown(project, mode="replay")
    assert_hidden(text)
    assert "RuntimeError: final <secret:password:1>" in text


def test_what_goes_to_the_terminal_or_into_an_id_is_shown_as_it_is(project: Project) -> None:
    """The limits that docs/security.md names: where no report is made, none can be gone over."""
    project.write(
        "test_it.py",
        HEAD
        + """
    import logging

    @pytest.mark.parametrize("text", [K])
    def test_id(text):
        vault.unlock("bob", text)

    def test_printed():
        vault.unlock("bob", K)
        logging.getLogger("agent").warning("logged " + K)
        print("printed " + K)
        raise RuntimeError("raised " + K)
    """,
    )
    text = shown(project, "-s", "-o", "log_cli=true", "-p", "cacheprovider")
    for line in (f"logged {K}", f"printed {K}", f"test_it.py::test_id[{K}]"):
        assert line in text
    assert f"test_id[{K}]" in project.read(".pytest_cache/v/cache/nodeids")
    assert "RuntimeError: raised <secret:password:1>" in text
    assert f"raised {K}" not in text
