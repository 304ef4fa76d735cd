"""Every way to configure stepfork under pytest: ini values, options, pyproject, conftest, the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.plugin_project import CONFTEST, PluginProject

from stepfork.session import config

TEST = """
from agenttools import search
def test_it():
    assert search("a") == ["a", 1]
"""


@pytest.fixture
def project(tmp_path: Path) -> PluginProject:
    project = PluginProject(tmp_path / "project")
    project.write("test_it.py", TEST)
    return project


def ini(project: PluginProject, text: str, file: str = "pytest.ini") -> None:
    (project.folder / "pytest.ini").unlink()
    project.write(file, text)


INI = "[pytest]\nstepfork_mode = record\nstepfork_tools = agenttools\nstepfork_cassette_dir = tapes\n"
TOML = '[tool.pytest.ini_options]\nstepfork_mode = "record"\nstepfork_tools = ["agenttools"]\n'


@pytest.mark.parametrize(
    ("file", "text"),
    [("pytest.ini", INI), ("tox.ini", INI), ("pyproject.toml", f'{TOML}stepfork_cassette_dir = "tapes"\n')],
)
def test_ini_values_alone_are_enough(project: PluginProject, file: str, text: str) -> None:
    (project.folder / "conftest.py").unlink()
    ini(project, text, file)
    project.test().expect(passed=1).says("1 newly recorded")
    assert (project.folder / "tapes" / "test_it" / "test_it.yaml").exists()
    project.test(mode="replay").expect(passed=1).says("1 call replayed, 0 live")
    assert project.bodies == ["a"]


def test_the_layers_in_order(project: PluginProject) -> None:
    """ini < [tool.stepfork] < autopatch < environment < option < marker."""

    def mode_of(*arguments: str, **variables: str) -> str:
        project.test(*arguments, **variables).expect(passed=1)
        return project.read("mode.txt")

    (project.folder / "conftest.py").unlink()
    see = "from pathlib import Path\ndef test_it(stepfork_run):\n    Path('mode.txt').write_text("
    project.write("test_it.py", f"{see}stepfork_run.settings.mode)\n")
    assert mode_of() == "replay"
    ini(project, "[pytest]\nstepfork_mode = off\n")
    assert mode_of() == "off"
    project.write("pyproject.toml", '[tool.stepfork]\nmode = "auto"\n')
    assert mode_of() == "auto"
    project.write("conftest.py", "import stepfork\nstepfork.autopatch(mode='record')\n")
    assert mode_of() == "record"
    assert mode_of(STEPFORK_MODE="replay") == "replay"
    assert mode_of("--stepfork-mode=auto", STEPFORK_MODE="replay") == "auto"
    project.write(
        "test_it.py",
        "import pytest\n"
        + see.replace("def", "@pytest.mark.stepfork(mode='off')\ndef", 1)
        + "stepfork_run.settings.mode)\n",
    )
    assert mode_of("--stepfork-mode=auto") == "off"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stepfork_mode = rekord", "pytest's configuration: stepfork_mode: unknown mode 'rekord'"),
        ("stepfork_integrity = maybe", "integrity must be one of warn, error, off"),
        ("stepfork_fsync = perhaps", "stepfork_fsync"),
        ("stepfork_ignore = [", "stepfork_ignore"),
        ("stepfork_redact_patterns = (", "redact_patterns"),
    ],
)
def test_C85_a_wrong_ini_value_is_one_clear_line(project: PluginProject, line: str, said: str) -> None:
    ini(project, f"[pytest]\n{line}\n")
    ended = project.test()
    assert ended.status == pytest.ExitCode.USAGE_ERROR
    ended.says(said)
    assert "Traceback" not in ended.out


def test_help_explains_options_and_ini_values_and_the_marker_is_registered(project: PluginProject) -> None:
    told = project.test("--help").out
    for option in ("--stepfork-mode=MODE", "--stepfork-cassette-dir=DIR"):
        assert option in told
    for name in config.NAMES:
        assert f"stepfork_{name} (" in told
    marked = TEST.replace("def test_it", "@pytest.mark.stepfork('named')\ndef test_it")
    project.write("test_it.py", f"import pytest\n{marked}")
    project.test("--strict-markers", "--strict-config", mode="record").expect(passed=1)
    assert list(project.files) == ["test_it/named.yaml"]


def test_pyproject_and_conftest_add_up(project: PluginProject) -> None:
    project.write("pyproject.toml", '[tool.stepfork]\ncassette_dir = "tapes"\n')
    project.test(mode="record").expect(passed=1)
    assert (project.folder / "tapes" / "test_it" / "test_it.yaml").exists()


def test_the_environment_alone_is_enough(project: PluginProject) -> None:
    (project.folder / "conftest.py").unlink()
    project.test(STEPFORK_MODE="record", STEPFORK_TOOLS="agenttools").expect(passed=1)
    project.test(STEPFORK_TOOLS="agenttools").expect(passed=1).says("1 call replayed, 0 live")
    assert project.bodies == ["a"]


def test_an_empty_table_in_pyproject_switches_on(project: PluginProject) -> None:
    (project.folder / "conftest.py").unlink()
    project.write("test_it.py", "import stepfork\ndef test_it():\n    assert stepfork.is_replaying()\n")
    project.test().expect(failed=1)
    project.write("pyproject.toml", "[tool.stepfork]\n")
    project.test().expect(passed=1)


def test_a_marker_alone_is_enough(project: PluginProject) -> None:
    """The tools that a marker names are patched for its test, and for no other."""
    (project.folder / "conftest.py").unlink()
    marked = TEST.replace("def test_it", "@pytest.mark.stepfork(tools='agenttools')\ndef test_it")
    project.write("test_it.py", f"import pytest\n{marked}\ndef test_other():\n    search('live')\n")
    project.test(mode="record").expect(passed=2).says("1 newly recorded")
    project.test().expect(passed=2).says("1 call replayed, 0 live")
    assert project.bodies == ["a", "live", "live"]


def test_tools_that_were_imported_before_conftest(project: PluginProject) -> None:
    """By another plugin, which holds the function in a registry of its own."""
    project.write("early.py", "import agenttools\nREGISTRY = {'search': agenttools.search}\n")
    project.write(
        "test_it.py",
        "import early\ndef test_it():\n    assert early.REGISTRY['search']('a')[0] == 'a'\n",
    )
    project.test("-p", "early", mode="record").expect(passed=1)
    project.test("-p", "early").expect(passed=1).says("1 call replayed, 0 live")
    assert project.bodies == ["a"]


def test_tools_of_an_installed_package(project: PluginProject) -> None:
    """A distribution outside the project, whose plugin (an entry point) imports the tools before conftest."""
    site = "site"
    project.write(f"{site}/vendor/__init__.py", "")
    project.write(f"{site}/vendor/tools.py", project.read("agenttools.py"))
    project.write(f"{site}/vendor/plugin.py", "from vendor.tools import search as held\n")
    project.write(
        f"{site}/vendor-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: vendor\nVersion: 1.0\n"
    )
    project.write(f"{site}/vendor-1.0.dist-info/entry_points.txt", "[pytest11]\nvendor = vendor.plugin\n")
    project.write("conftest.py", CONFTEST.replace("agenttools", "vendor.*"))
    project.write("test_it.py", "from vendor.plugin import held\ndef test_it():\n    held('a')\n")
    path = f"{project.folder}:{project.folder / site}"
    project.test("-p", "vendor", mode="record", PYTHONPATH=path).expect(passed=1).says("1 newly recorded")
    project.test("-p", "vendor", PYTHONPATH=path).expect(passed=1).says("1 call replayed, 0 live")
    assert project.bodies == ["a"]


def test_turned_off_a_conftest_with_autopatch_still_works(project: PluginProject) -> None:
    """``-p no:stepfork`` leaves the tests alone: they run live, no cassette is read or written."""
    project.test("-p", "no:stepfork").expect(passed=1)
    assert (project.bodies, project.files) == (["a"], {})


RUNS = """
import sys
import pytest
for mode in ("record", "replay", "replay"):
    code = pytest.main(["-q", "-p", "no:cacheprovider", f"--stepfork-mode={mode}"])
    assert code == 0, code
assert pytest.main(["-q", "-p", "no:cacheprovider", "elsewhere", "--rootdir=elsewhere"]) == 0
"""


@pytest.mark.parametrize("calls", ["conftest", "helper"])
def test_several_runs_in_one_process(project: PluginProject, calls: str) -> None:
    """A conftest is executed by the first run only, and a run somewhere else is not patched by it."""
    if calls == "helper":
        project.write("patching.py", CONFTEST)
        project.write("conftest.py", "import patching\n")
    project.write(
        "elsewhere/test_other.py",
        "import stepfork\ndef test_other():\n    assert not stepfork.is_replaying()\n",
    )
    project.write("elsewhere/pytest.ini", "[pytest]\n")
    project.write("runs.py", RUNS)
    project.write("pytest.ini", "[pytest]\nnorecursedirs = elsewhere\n")
    done = subprocess.run(
        [sys.executable, "runs.py"], cwd=project.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("1 call replayed, 0 live") == 2
    assert project.bodies == ["a"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"TOOLS": "tl:nope"}, "tools: 'tl:nope': module 'tl' has no 'nope'; did you mean 'note'?"),
        ({"TOOLS": "tl", "EXCLUDE": "tl:zzz"}, "exclude: 'tl:zzz': module 'tl' has no 'zzz'"),
        ({"TOOLS": "tl:LIMIT"}, "tools: 'tl:LIMIT' is of type 'int' and leads to no Python function"),
    ],
)
def test_a_tool_that_its_module_lacks_is_told_in_one_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], said: str
) -> None:
    for name, value in setting.items():
        monkeypatch.setenv(f"STEPFORK_{name}", value)
    pytester.makeini("[pytest]\npythonpath = .\n")
    pytester.makepyfile(
        tl="LIMIT = 1\ndef note(): pass\n", test_it="import tl\n\ndef test_it():\n    tl.note()\n"
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    said = f"stepfork.errors.ConfigError: {said}"
    lines = result.outlines
    at = next(place for place, line in enumerate(lines) if "ERROR collecting test_it.py" in line)
    assert (lines[at + 1], "short test summary" in lines[at + 2]) == (said, True)


def test_an_error_of_a_test_file_itself_still_says_where(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import stepfork\n\n@stepfork.replay('x.yaml', bogus=1)\ndef test_it(): pass\n")
    result = pytester.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*.py:3: in <module>", "E*unknown setting 'bogus'*"])
