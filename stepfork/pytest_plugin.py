"""The face stepfork shows to pytest: options, marker, fixture, one session a test, the summary line.

Knows pytest; everything a session does happens below. Loaded before any conftest, so it imports nothing
heavy and installs nothing unless stepfork is configured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from stepfork import api
from stepfork.errors import ConfigError, NoCassetteError, StepforkError
from stepfork.pytest_reports import redact_report, redact_warning, without_own_frames
from stepfork.pytest_sessions import Sessions
from stepfork.report.tally import Tally
from stepfork.session import active, config
from stepfork.session.run import Run
from stepfork.session.workspace import workspace

_MODE: Final = "--stepfork-mode"
_FOLDER: Final = "--stepfork-cassette-dir"
_KEY: Final = "stepfork"


class Plugin:
    """One pytest run with stepfork."""

    def __init__(self, pytest_config: pytest.Config) -> None:
        self.config = pytest_config
        folder = pytest_config.getoption(_FOLDER)
        self.sessions = Sessions(
            Path(pytest_config.rootpath), {} if folder is None else {_FOLDER: str(folder)}
        )
        self.tally = Tally()
        self.notes: dict[str, str] = {}  # by cassette
        self.running = ""  # the test that runs now
        self.run: Run | None = None  # and its session
        self._of_fixtures: dict[Run, bool] = {}  # sessions of fixtures in use, and whether they are torn down
        self._counted = ""  # the last test that had a session which took a call
        self._recorded: dict[str, tuple[str, list[Any]]] = {}  # cassette -> who recorded it, and what
        self._stop_listening = active.on_close(self._closed)

    def close(self) -> None:
        """Stops counting."""
        self._stop_listening()

    def _closed(self, run: Run) -> None:
        self.tally.add(run)
        if run.touched and self.running != self._counted:
            self._counted = self.running
            self.tally.tests += 1
        if run.note:
            self.notes[f"{run.file} running"] = run.note
        written = run.written
        if written is None:
            return
        self.notes.pop(run.file, None)
        if written.kept is not None:
            self.notes[run.file] = (
                f"{self._short(written.kept)} stays as it was; the new recording failed, "
                f"to put it in its place: stepfork adopt {self._short(written.path)}"
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """What is shown of a test's warnings is shown without the secrets that its session knows."""
        if self.run is not None:
            redact_warning(warning_message, lambda text: self.redacted(text, self.run))

    def of_fixture(self, run: Run) -> Callable[[], None]:
        """From now on what a fixture's session knows to be secret is shown of no test; gives its end."""
        if not run.touched:
            return lambda: None
        self._of_fixtures[run] = False
        return lambda: self._of_fixtures.update({run: True})

    def forget(self) -> None:
        """The fixtures that were torn down with the last test serve no other one."""
        for run in [run for run, is_over in self._of_fixtures.items() if is_over]:
            del self._of_fixtures[run]

    def redacted(self, text: str, run: Run | None) -> str:
        """What is shown of a test, without the secrets that its session or those of its fixtures know."""
        if run is not None and run.touched:
            text = run.redactor.redact_text(text)
        for other in tuple(self._of_fixtures):
            if other.redactor.mentions(text):
                text = other.redactor.redact_text(text)
        return text

    def shared(self, run: Run, who: str) -> ConfigError | None:
        """The fault of a cassette that two tests or fixtures of this run record with different calls."""
        if run.action != "record" or not run.touched:
            return None
        asked = [(call.kind, call.name, call.args) for call in run.calls]
        first, calls = self._recorded.setdefault(run.file, (who, asked))
        if calls == asked:
            return None
        return ConfigError(
            f"{self._short(run.path)} was recorded by {first} and again, with other calls, by {who}; "
            "give each a cassette of its own, or make the calls in the test itself"
        )

    def _short(self, path: Path) -> str:
        try:
            return str(path.relative_to(self.config.invocation_params.dir))
        except ValueError:
            return str(path)


# -- hooks ------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """The command-line options."""
    group = parser.getgroup("stepfork", "recording and replaying the calls of LLM agents")
    group.addoption(
        _MODE,
        metavar="MODE",
        help="replay (the default): answer every call from the test's cassette; record: run live and write "
        "it; auto: replay where a cassette is, else record, but never in CI; off: leave the tests alone",
    )
    group.addoption(
        _FOLDER,
        metavar="DIR",
        help="where the tests' cassettes lie, from pytest's rootdir (default: cassettes)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Reads the settings before any conftest does, so that a wrong one is a usage error and no traceback."""
    options = early_config.known_args_namespace
    _read_settings(
        Path(early_config.rootpath),
        {"mode": (_MODE, options.stepfork_mode), "cassette_dir": (_FOLDER, options.stepfork_cassette_dir)},
    )


def pytest_configure(config: pytest.Config) -> None:
    """Starts the run; patches if ``[tool.stepfork]`` or the environment configures stepfork."""
    config.addinivalue_line(
        "markers",
        "stepfork(name=None, **settings): the test's cassette and settings, as in "
        '@pytest.mark.stepfork("outage", mode="replay")',
    )
    plugin = config.stash[_STASH] = Plugin(config)
    config.pluginmanager.register(plugin, "stepfork-run")
    try:
        settings = workspace.settings()
        if workspace.pyproject() or settings.tools:
            api.install(settings)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


_STASH: Final = pytest.StashKey[Plugin]()
_SESSION: Final = pytest.StashKey[api.Session]()
_RUN: Final = pytest.StashKey[Run]()
_FAULT: Final = pytest.StashKey[Exception | None]()


def _read_settings(root: Path, given: dict[str, tuple[str, str | None]]) -> None:
    try:
        options: dict[str, Any] = {}
        for name, (option, value) in given.items():
            if value is not None:
                options |= config.check({name: value}, option)
        workspace.configure(
            root=root, base={"mode": "replay"}, options=options, every_call_has_a_session=True
        )
        workspace.settings().rules()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Undoes every patch: a process that runs pytest several times starts each time clean."""
    plugin = config.stash.get(_STASH, None)
    if plugin is not None:
        plugin.close()
        api.unpatch()
        workspace.configure(root=None, base={}, options={})


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
    plugin = item.config.stash[_STASH]
    plugin.running, plugin.run = item.nodeid, None
    plugin.forget()
    try:
        session = plugin.sessions.of_test(item)
        plugin.run = item.stash[_RUN] = session.__enter__()
    except ConfigError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    item.stash[_SESSION] = session
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Settles the session with the test's outcome."""
    try:
        result = yield
    except BaseException as error:
        if _finish(item, error):
            return None
        raise
    caught = getattr(item, "_excinfo", None)  # where unittest keeps what its tests raised
    try:
        _finish(item, caught[-1].value if caught else None)
    except StepforkError:
        if caught and not isinstance(caught[-1].value, Exception | pytest.fail.Exception):
            caught.clear()  # a skip is no verdict on a trajectory that drifted
        raise
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Ends the session of a test whose body never ran; a refused call is an error even if it was caught."""
    if _SESSION in item.stash:
        _finish(item, pytest.skip.Exception("the test did not run"))
    before = active.refusals()
    result = yield
    if active.refusals() > before:
        raise NoCassetteError(
            "a patched call was made outside every cassette while the test was torn down, and its error was "
            "caught; make the call in the test or in a fixture's set-up"
        )
    return result


def _finish(item: pytest.Item, error: BaseException | None) -> bool:
    session, run = item.stash[_SESSION], item.stash[_RUN]
    del item.stash[_SESSION]
    shared = None if error is not None else item.config.stash[_STASH].shared(run, item.nodeid)
    try:
        return _settle(session, error, shared)
    finally:
        item.stash[_FAULT] = run.fault


def _settle(session: api.Session, error: BaseException | None, shared: ConfigError | None = None) -> bool:
    """A skip is no verdict: what was recorded is kept. A failure is the test's, an interrupt the run's.

    A recording that would take the place of another one of this run has failed.
    """
    if error is None and shared is not None:
        session.finish(shared, "run")
        raise shared
    if isinstance(error, pytest.skip.Exception):
        return session.finish(error, "skipped")
    return session.finish(error, "test" if isinstance(error, Exception | pytest.fail.Exception) else "run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """An expected failure expects the test's own failure: a drifted trajectory is none.

    What is shown of a test is shown without the secrets that its session or a fixture's knows, and an error
    of stepfork's without its source.
    """
    error = None if call.excinfo is None or item.config.getoption("fulltrace") else call.excinfo.value
    said = "" if error is None else without_own_frames(error)
    report = yield
    if said and report.failed:
        report.longrepr = said
    fault = item.stash.get(_FAULT, None)
    if fault is not None and hasattr(report, "wasxfail") and not _is_expected(item):
        del report.wasxfail
        report.outcome = "failed"
        report.longrepr = f"expected to fail, but not like this:\n{fault}"
    run, plugin = item.stash.get(_RUN, None), item.config.stash[_STASH]
    redact_report(report, lambda text: plugin.redacted(text, run))
    return report


def _is_expected(item: pytest.Item) -> bool:
    """Whether a mark names an error of ours; that a mismatch is an AssertionError too is no such word."""
    for mark in item.iter_markers("xfail"):
        raises = mark.kwargs.get("raises") or ()
        kinds = raises if isinstance(raises, tuple) else (raises,)
        if any(isinstance(kind, type) and issubclass(kind, StepforkError) for kind in kinds):
            return True
    return False


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Calls that a fixture makes while it is set up go to a cassette of its own."""
    plugin = request.config.stash[_STASH]
    session = plugin.sessions.of_fixture(fixturedef, request)
    run = session.__enter__()
    try:
        result = yield
    except BaseException as error:
        _settle(session, error)
        raise
    _settle(session, None, plugin.shared(run, f"fixture {fixturedef.argname!r} for {request.node.nodeid}"))
    if fixturedef.argname == "tmp_path_factory" and isinstance(result, pytest.TempPathFactory):
        with suppress(OSError):  # whoever uses it gets the error
            workspace.basetemp = str(result.getbasetemp())
    fixturedef.addfinalizer(run.hand_over_no_more)
    fixturedef.addfinalizer(plugin.of_fixture(run))
    return result


@pytest.fixture
def stepfork_run(request: pytest.FixtureRequest) -> Run:
    """The session of the running test: its calls, its counts, `set_output`."""
    run: Run = request.node.stash[_RUN]
    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The summary line, where any test had a session that took a call."""
    plugin = config.stash[_STASH]
    if plugin.tally.tests:
        terminalreporter.write_sep("-", plugin.tally.line())
    for line in plugin.tally.hidden():
        terminalreporter.write_line(line)
    for note in plugin.notes.values():
        terminalreporter.write_line(note)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its tally to the controller."""
    output = getattr(session.config, "workeroutput", None)
    plugin = session.config.stash.get(_STASH, None)
    if output is not None and plugin is not None:
        output[_KEY] = {"tally": asdict(plugin.tally), "notes": plugin.notes}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """The controller of pytest-xdist adds a worker's tally to its own."""
    sent = getattr(node, "workeroutput", {}).get(_KEY)
    plugin = node.config.stash.get(_STASH, None)
    if sent is not None and plugin is not None:
        plugin.tally.merge(sent["tally"])
        plugin.notes |= sent["notes"]
