"""Beside pytest-xdist: many workers record and replay; none tears, loses or takes another's cassette."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugin_project import PluginProject

import stepfork

SHARED = """
import pytest
from agenttools import search

@pytest.fixture(scope="session")
def index():
    return search("index")

@pytest.fixture(scope="module")
def warm(index):
    return search("warm")

class Base:
    @pytest.mark.parametrize("number", range(4))
    def test_it(self, number, index, warm):
        assert [index[0], warm[0], search(f"{number}")[0]] == ["index", "warm", f"{number}"]

class TestA(Base):
    pass

class TestB(Base):
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> PluginProject:
    return PluginProject(tmp_path / "project", "xdist")


@pytest.mark.parametrize("how", ["load", "loadscope", "loadfile", "loadgroup", "worksteal", "each"])
def test_fixtures_that_workers_share(project: PluginProject, how: str) -> None:
    """Each worker that sets one up makes its calls; the recordings are alike, so that any of them will do."""
    project.write("test_one.py", SHARED)
    project.write("test_two.py", SHARED)
    passed = 32 if how == "each" else 16
    project.record_and_replay("-n2", f"--dist={how}", passed=passed)
    for name, text in project.files.items():
        assert name.endswith(".yaml"), "no partial file is left"
        assert not name.endswith((".partial.yaml", ".failed.yaml"))
        assert text
    for file in (project.folder / "cassettes").rglob("*.yaml"):
        assert stepfork.load(file).status == "completed"
    assert {"session.index.yaml", "test_one/module.warm.yaml", "test_two/module.warm.yaml"} < {
        name.removeprefix("test_one/") if "session" in name else name for name in project.files
    }
    project.test("-n0").expect(passed=16)


def test_C108_forty_tests_record_into_one_new_folder(project: PluginProject) -> None:
    project.write(
        "test_it.py",
        "import pytest\nfrom agenttools import search\n"
        "@pytest.mark.parametrize('n', range(40))\ndef test_it(n):\n    search(str(n))\n    search('same')\n",
    )
    project.record_and_replay("-n4", passed=40)
    assert len(project.files) == 40
    project.test("-n0").expect(passed=40)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize("second", ["b", "a"])
def test_C108_two_tests_share_a_cassette_name(project: PluginProject, second: str, workers: str) -> None:
    """Refused where their calls differ, in one process and in several; where they are alike, one will do."""
    project.write(
        "test_it.py",
        "import pytest\nfrom agenttools import search\n"
        "@pytest.mark.stepfork('shared')\ndef test_one():\n    search('a')\n"
        f"@pytest.mark.stepfork('shared')\ndef test_two():\n    search('{second}')\n",
    )
    ended = project.test(workers, "--dist=load", mode="record")
    if second == "a":
        ended.expect(passed=2)
        project.test(workers).expect(passed=2)
        assert list(project.files) == ["test_it/shared.yaml"]
    else:
        assert ended.outcomes.get("failed", 0) + ended.outcomes.get("error", 0) == 1, ended.out
        ended.says("shared.yaml was recorded by test_it.py::test_", "give each a cassette of its own")
        assert list(project.files) == ["test_it/shared.failed.yaml", "test_it/shared.yaml"]
        project.test(workers).says("1 call replayed").expect(passed=1, failed=1)
    stepfork.load(project.folder / "cassettes" / "test_it" / "shared.yaml")
