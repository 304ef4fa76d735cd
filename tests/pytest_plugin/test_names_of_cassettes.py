"""Names of cassettes under pytest: safe, short, distinct, stable and inside the folder, whatever the ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugin_project import PluginProject

PARAMETRISED = """
import pytest
from agenttools import search

@pytest.mark.parametrize("word", {0})
def test_it(word):
    search(word)
"""


@pytest.fixture
def project(tmp_path: Path) -> PluginProject:
    return PluginProject(tmp_path / "project")


def test_C101_ids_that_are_paths_stay_in_the_folder(project: PluginProject) -> None:
    before = set(project.folder.parent.iterdir())
    project.write("test_it.py", PARAMETRISED.format(["../foo/bar", "/abs", "foo/../../bar"]))
    project.record_and_replay(passed=3)
    assert {name.rpartition("/")[0] for name in project.files} == {"test_it"}
    assert len(project.files) == 3
    assert set(project.folder.parent.iterdir()) == before
    assert not Path("/abs").exists()


def test_C103_long_ids_end_in_a_hash_and_short_ones_keep_their_form(project: PluginProject) -> None:
    words = ["x" * 300, "x" * 299 + "y", "\u6f22" * 120, "short"]
    project.write("test_it.py", PARAMETRISED.format(f"{words!r}, ids={words!r}"))
    ini = "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"
    project.write("pytest.ini", ini)
    project.record_and_replay(passed=4)
    names = [name.removeprefix("test_it/") for name in project.files]
    assert "test_it[short].yaml" in names
    assert len(names) == 4
    assert all(len(name.encode()) <= 255 for name in names)


def test_parameters_that_change_places_keep_their_cassettes(project: PluginProject) -> None:
    project.write("test_it.py", PARAMETRISED.format(["a", "b/c", "A"]))
    project.record_and_replay(passed=3)
    files = project.files
    project.write("test_it.py", PARAMETRISED.format(["A", "a", "b/c"]))
    project.test().expect(passed=3)
    project.test("test_it.py::test_it[a]").expect(passed=1)
    assert project.files == files
    assert len({name.casefold() for name in files}) == 3, "apart where case does not count, too"


def test_nested_classes_and_equal_names_in_other_folders(project: PluginProject) -> None:
    tests = """
    from agenttools import search
    class TestOuter:
        class TestInner:
            def test_it(self):
                search("{0}")
        def test_it(self):
            search("{0} outer")
    """
    for folder in ("one", "two"):
        project.write(f"{folder}/__init__.py", "")
        project.write(f"{folder}/test_same.py", tests.replace("{0}", folder))
    project.record_and_replay(passed=4)
    inside = ("TestOuter/TestInner/test_it.yaml", "TestOuter/test_it.yaml")
    assert set(project.files) == {
        f"{folder}/test_same/{name}" for folder in ("one", "two") for name in inside
    }


def test_a_conftest_and_settings_in_a_sub_folder(project: PluginProject) -> None:
    """Whatever is configured below, cassettes lie below pytest's rootdir by the path of the test."""
    (project.folder / "conftest.py").rename(project.folder / "top.txt")
    project.write("sub/conftest.py", project.read("top.txt"))
    project.write("sub/test_it.py", PARAMETRISED.format(["a"]))
    project.record_and_replay(passed=1)
    assert list(project.files) == ["sub/test_it/test_it[a].yaml"]
    project.test("sub").expect(passed=1)
    bodies = project.bodies
    project.write("sub/pytest.ini", "[pytest]\n")
    ended = project.test("sub", "--rootdir", "sub")
    ended.expect(failed=1).says("there is no cassette sub/cassettes/test_it/test_it[a].yaml")
    assert project.bodies == bodies


def test_a_marker_keeps_the_name_of_a_renamed_test(project: PluginProject) -> None:
    tests = "import pytest\nfrom agenttools import search\n{0}def {1}():\n    search('a')\n"
    project.write("test_it.py", tests.format("", "test_outage"))
    project.record_and_replay(passed=1)
    project.write("test_it.py", tests.format("", "test_outages"))
    project.test().expect(failed=1).says("another one is there: cassettes/test_it/test_outage.yaml")
    project.write("test_it.py", tests.format("@pytest.mark.stepfork('test_outage')\n", "test_outages"))
    project.test().expect(passed=1)
    project.write("test_it.py", tests.format("@pytest.mark.stepfork('../../up')\n", "test_outages"))
    project.test(mode="record").expect(passed=1)
    assert len(project.files) == 2, "an explicit name stays in the folder as well"


def test_a_renamed_test_is_told_of_the_only_cassette_that_none_uses(project: PluginProject) -> None:
    """However little the names are alike; with two of them, or those of others, nothing is proposed."""
    tests = """
        import pytest
        from agenttools import search

        @pytest.fixture
        def warm():
            return search("warm")

        def {0}():
            search("a")

        def {1}(warm):
            search("b")

        @pytest.mark.stepfork("told")
        def test_by_marker():
            search("c")

        class TestIn:
            def {2}(self):
                search("d")
    """
    project.write("test_it.py", tests.format("test_tmp", "test_stays", "test_tmp"))
    project.record_and_replay(passed=4)
    (project.folder / "cassettes/test_it/test_stays.failed.yaml").write_bytes(
        (project.folder / "cassettes/test_it/test_stays.yaml").read_bytes()
    )
    project.write("cassettes/test_it/of_another_tool.yaml", "interactions: []\n")
    project.write("test_it.py", tests.format("test_weather_report", "test_stays", "test_long_walk"))
    ended = project.test().expect(failed=2, passed=2)
    ended.says(
        "another one is there: cassettes/test_it/test_tmp.yaml; was the test renamed? Then rename the file",
        "another one is there: cassettes/test_it/TestIn/test_tmp.yaml; was the test renamed?",
    )
    alone = project.test("test_it.py::test_weather_report").expect(failed=1)
    alone.says("another one is there: cassettes/test_it/test_tmp.yaml")
    project.write("test_it.py", tests.format("test_weather_report", "test_quite_other", "test_tmp"))
    ended = project.test().expect(failed=2, passed=2)
    assert "another one is there" not in ended.out, "two tests were renamed: which is which?"
    project.write("test_it.py", tests.format("test_tmps", "test_quite_other", "test_tmp"))
    project.test().expect(failed=2, passed=2).says("another one is there: cassettes/test_it/test_tmp.yaml")


def test_a_new_test_is_not_pointed_to_what_another_uses(project: PluginProject) -> None:
    project.write("test_it.py", "from agenttools import search\ndef test_one():\n    search('a')\n")
    project.record_and_replay(passed=1)
    project.write("test_it.py", project.read("test_it.py") + "def test_ones():\n    search('a')\n")
    ended = (
        project.test()
        .expect(failed=1, passed=1)
        .says("there is no cassette cassettes/test_it/test_ones.yaml")
    )
    assert "another one is there" not in ended.out
