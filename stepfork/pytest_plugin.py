"""The face stepfork shows to pytest: its hooks and its fixture, each handed on to the run (`pytest_run`).

Loaded before any conftest, so it imports nothing heavy and installs nothing unless stepfork is configured.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from stepfork import pytest_settings
from stepfork.errors import StepforkError
from stepfork.pytest_live import LiveSelectors
from stepfork.pytest_reports import colour_report, of_an_import, redact_outcome, without_own_frames
from stepfork.pytest_run import SHARED, NoneRefused, PytestRun, run_of
from stepfork.session.run import Run
from stepfork.session.workspace import workspace

_KEY: Final = "stepfork"
_STASH: Final = pytest.StashKey[PytestRun]()

pytest_addoption = pytest_settings.declare


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Reads the settings before any conftest does, so that a wrong one is a usage error and no traceback."""
    pytest_settings.read(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Starts the run; patches if stepfork is configured outside of a conftest."""
    config.addinivalue_line(
        "markers",
        "stepfork(name=None, **settings): the test's cassette and settings, as in "
        '@pytest.mark.stepfork("outage", mode="replay")',
    )
    pytest_run = config.stash[_STASH] = PytestRun(config, pytest_settings.given(config))
    config.pluginmanager.register(pytest_run, "stepfork-run")
    config.pluginmanager.register(pytest_run.usage, "stepfork-usage")
    config.pluginmanager.register(LiveSelectors(), "stepfork-live")
    pytest_settings.install()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Undoes every patch: a process that runs pytest several times starts each time clean."""
    pytest_run = config.stash.get(_STASH, None)
    if pytest_run is not None:
        pytest_run.close()
        pytest_settings.forget()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Learns the names of the tests that run."""
    item.config.stash[_STASH].sessions.collected(item)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """Learns the names of the tests beside them, so that a cassette's name depends on no selection."""
    made = yield
    for item in made if isinstance(made, list) else [made]:
        if isinstance(item, pytest.Item | pytest.Class):
            collector.config.stash[_STASH].sessions.collected(item)
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """A parameter that is a secret is none in the name of its test, which pytest shows everywhere."""
    if not isinstance(val, str) or not (workspace.autopatch or workspace.pyproject()):
        return None
    return config.stash[_STASH].sessions.id_of(argname, val)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Makes the test's session, which opens with the first call. Fixtures have sessions of their own."""
    item.config.stash[_STASH].begin(item)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Settles the session with the test's outcome."""
    pytest_run = item.config.stash[_STASH]
    try:
        result = yield
    except BaseException as error:
        if pytest_run.finish(item, error):
            return None
        raise
    caught = getattr(item, "_excinfo", None)  # where unittest keeps what its tests raised
    try:
        pytest_run.finish(item, caught[-1].value if caught else None)
        if not caught:
            pytest_run.check_marked(item)
    except StepforkError:
        if caught and not isinstance(caught[-1].value, Exception | pytest.fail.Exception):
            caught.clear()  # a skip is no verdict on a trajectory that drifted
        raise
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Ends the session of a test whose body never ran; a refused call is an error even if it was caught."""
    item.config.stash[_STASH].finish_unrun(item)
    none = NoneRefused()
    result = yield
    none.check()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The test's verdict goes into its report, no secret, and of an error of stepfork's not its source."""
    error = None if call.excinfo is None or item.config.getoption("fulltrace") else call.excinfo.value
    said = "" if error is None else without_own_frames(error)
    report = yield
    if said and report.failed:
        report.longrepr = said
    item.config.stash[_STASH].report(item, call, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of a module that cannot be imported: no secret of its sessions; a setting that is wrong in one line."""
    report = yield
    failed: pytest.CallInfo[Any] | None = getattr(report, "call", None)
    error = None if failed is None or failed.excinfo is None else failed.excinfo.value
    if error is not None and report.failed and not collector.config.getoption("fulltrace"):
        report.longrepr = of_an_import(error) or report.longrepr
    redact_outcome(report, collector.config.stash[_STASH].secrets.redact)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Calls that a fixture makes while it is set up go to a cassette of its own."""
    pytest_run = request.config.stash[_STASH]
    with pytest_run.secrets.setting_up(fixturedef):
        setup = pytest_run.begin_fixture(fixturedef, request)
        try:
            result = yield
        except BaseException as error:
            setup.fail(error)
            raise
        pytest_run.report_file.made(fixturedef.argname, result)
        if fixturedef.argname == "tmp_path_factory" and isinstance(result, pytest.TempPathFactory):
            with suppress(OSError):  # whoever uses it gets the error
                workspace.basetemp = str(result.getbasetemp())
        if fixturedef.argname == "tmp_path" and isinstance(result, Path):
            workspace.tmp_path = str(result)
        setup.finish(fixturedef)
        return result


@pytest.fixture
def stepfork_run(request: pytest.FixtureRequest) -> Run:
    """The session of the running test: its calls, its counts, `set_output`."""
    return run_of(request.node)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The summary line, where any test had a session that took a call."""
    pytest_run = config.stash[_STASH]
    if terminalreporter.verbosity > 0:
        for detail in pytest_run.details():
            terminalreporter.write_line(detail)
    if headline := pytest_run.headline():
        terminalreporter.write_sep("-", headline)
    for line in pytest_run.lines():
        terminalreporter.write_line(line)


def pytest_collection_finish(session: pytest.Session) -> None:
    """The cassettes of all tests that are there count as used, those of skipped ones too."""
    pytest_run = session.config.stash[_STASH]
    pytest_run.usage.used(place for item in session.items if (place := pytest_run.sessions.place_of(item)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A worker of pytest-xdist hands what it counted to the controller; who shows it all, does so in colour.

    Whatever else keeps reports in a file has done so by now.
    """
    output = getattr(session.config, "workeroutput", None)
    pytest_run = session.config.stash.get(_STASH, None)
    if pytest_run is None:
        return
    if output is not None:
        output[_KEY] = pytest_run.sent()
        return
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        pytest_run.usage.skipped()
    complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    pytest_run.find_unused(complete=complete and not (session.shouldstop or session.shouldfail))
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.hasmarkup:
        for report in (*reporter.getreports("failed"), *reporter.getreports("error")):
            colour_report(report)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The controller of pytest-xdist tells a worker which folder all of them share."""
    node.workerinput[SHARED] = node.config.stash[_STASH].folder_for_workers()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """The controller of pytest-xdist adds a worker's tally to its own."""
    sent = getattr(node, "workeroutput", {}).get(_KEY)
    pytest_run = node.config.stash.get(_STASH, None)
    if sent is not None and pytest_run is not None:
        pytest_run.merge(sent)
