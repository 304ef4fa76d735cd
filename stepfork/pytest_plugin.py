"""The face stepfork shows to pytest: options, marker, fixture, one session a test, the summary line.

Knows pytest; everything a session does happens below. Loaded before any conftest, so it imports nothing
heavy and installs nothing unless stepfork is configured.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from stepfork import api
from stepfork.errors import ConfigError, NoCassetteError, StepforkError
from stepfork.pytest_reports import redact_report
from stepfork.pytest_sessions import Sessions
from stepfork.pytest_usage import CACHE_KEY, Usage
from stepfork.pytest_usage import text as usage_text
from stepfork.report.answers import answers_text
from stepfork.report.tally import Tally
from stepfork.report.verdict import Verdict
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
        self.sessions = Sessions(Path(pytest_config.rootpath))
        self.tally = Tally()
        self.usage = Usage(pytest_config)
        self.verdicts: dict[str, Verdict] = {}  # of the tests that are under way
        self.details: dict[str, str] = {}  # by test: its verdict in a line, for -v
        self.notes: dict[str, str] = {}  # by cassette
        self.running = ""  # the test that runs now
        self._counted = ""  # the last test that had a session which took a call
        self._recorded: dict[str, tuple[str, list[Any]]] = {}  # cassette -> who recorded it, and what
        self.unused: list[Path] = []
        self._stop_listening = active.on_close(self._closed)

    def close(self) -> None:
        """Stops counting."""
        self._stop_listening()

    def _closed(self, run: Run) -> None:
        self.tally.add(run)
        self.verdicts.setdefault(self.running, Verdict()).add(run)
        if run.touched:
            self.usage.used([run.path, run.file])
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

    def check_shared(self, run: Run, who: str) -> None:
        """Refuses a cassette that two tests or fixtures of this run recorded with different calls.

        Raises:
            ConfigError: naming both.
        """
        if run.written is None:
            return
        asked = [(call.kind, call.name, call.args) for call in run.calls]
        first, calls = self._recorded.setdefault(run.file, (who, asked))
        if calls != asked:
            raise ConfigError(
                f"{self._short(run.path)} was recorded by {first} and again, with other calls, by {who}; "
                "give each a cassette of its own, or make the calls in the test itself"
            )

    def verdict(self, item: pytest.Item) -> Verdict:
        """What became of a test's calls so far."""
        return self.verdicts.setdefault(item.nodeid, Verdict())

    def settle(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Puts the verdict of a test whose body has ended, or never ran, into its report."""
        verdict = self.verdict(item)
        marked = any(mark.name == "stepfork" for mark in item.own_markers)
        if not (verdict.has_traffic or verdict.escaped or marked):
            return
        others = [pair for pair in item.user_properties if not pair[0].startswith("stepfork.")]
        item.user_properties[:] = [*others, *verdict.properties(self._short)]  # a rerun has its own
        report.user_properties = list(item.user_properties)
        places = ", ".join(map(self._short, dict.fromkeys(verdict.cassettes)))
        lines = [f"{places or 'no cassette'}: {verdict.line()}", *answers_text(verdict.answers)]
        self.details[item.nodeid] = "\n  ".join(lines)
        report.sections.append(("stepfork", self.details[item.nodeid]))

    def find_unused(self, *, complete: bool) -> None:
        """Finds the cassettes that no test used, if this run can tell, and keeps it for `stepfork prune`."""
        folder = self.sessions.folder()
        found = self.usage.unused(folder, complete=complete and bool(self.tally.tests))
        cache = getattr(self.config, "cache", None)
        if found is None:
            return
        self.unused = found
        if cache is not None:
            cache.set(CACHE_KEY, {"folder": str(folder), "files": [str(path) for path in found]})

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
        "it; auto: replay where a cassette is, else record, but never in CI; hybrid: replay, but send the "
        "LLM calls that the setting 'live' names; off: leave the tests alone",
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
    config.stash[_STASH] = Plugin(config)
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


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Makes the test's session, which opens with the first call. Fixtures have sessions of their own."""
    plugin = item.config.stash[_STASH]
    plugin.running = item.nodeid
    try:
        session = plugin.sessions.of_test(item)
        item.stash[_RUN] = session.__enter__()
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
        if not caught:
            _check_marked(item)
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
    try:
        settled = _settle(session, error)
        item.config.stash[_STASH].check_shared(run, item.nodeid)
        return settled
    finally:
        item.stash[_FAULT] = run.fault


def _check_marked(item: pytest.Item) -> None:
    """A test that is marked for stepfork and makes no patched call proves nothing of what the mark says."""
    marked = any(mark.name == "stepfork" for mark in item.own_markers)
    wanted = marked and item.stash[_RUN].action != "off"
    if wanted and not item.config.stash[_STASH].verdict(item).has_traffic:
        pytest.fail(
            "the test is marked with mark.stepfork, but no patched call was made: nothing was replayed or "
            "recorded; name its tools in 'tools', or take the mark away",
            pytrace=False,
        )


def _settle(session: api.Session, error: BaseException | None) -> bool:
    """A skip is no verdict: what was recorded is kept. A failure is the test's, an interrupt the run's."""
    if isinstance(error, pytest.skip.Exception):
        return session.finish(error, "skipped")
    return session.finish(error, "test" if isinstance(error, Exception | pytest.fail.Exception) else "run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """An expected failure expects the test's own failure: a drifted trajectory is none.

    What is shown of a test that made calls is shown without the secrets that its session knows.
    """
    report = yield
    fault = item.stash.get(_FAULT, None)
    if fault is not None and hasattr(report, "wasxfail") and not _is_expected(item):
        del report.wasxfail
        report.outcome = "failed"
        report.longrepr = f"expected to fail, but not like this:\n{fault}"
    plugin = item.config.stash[_STASH]
    if report.skipped:
        plugin.usage.skipped()
    if call.when == "call" or (call.when == "setup" and not report.passed):
        plugin.settle(item, report)
    elif call.when == "teardown":
        plugin.verdicts.pop(item.nodeid, None)
    run = item.stash.get(_RUN, None)
    if run is not None and run.touched:
        redact_report(report, run.redactor.redact_text)
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
    _settle(session, None)
    if fixturedef.argname == "tmp_path_factory" and isinstance(result, pytest.TempPathFactory):
        with suppress(OSError):  # whoever uses it gets the error
            workspace.basetemp = str(result.getbasetemp())
    fixturedef.addfinalizer(run.hand_over_no_more)
    plugin.check_shared(run, f"fixture {fixturedef.argname!r} for {request.node.nodeid}")
    return result


@pytest.fixture
def stepfork_run(request: pytest.FixtureRequest) -> Run:
    """The session of the running test: its calls, its counts, `set_output`."""
    run: Run = request.node.stash[_RUN]
    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The summary line, where any test had a session that took a call."""
    plugin = config.stash[_STASH]
    if terminalreporter.verbosity > 0:
        for test, detail in plugin.details.items():
            terminalreporter.write_line(f"{test}  {detail}")
    if plugin.tally.tests:
        terminalreporter.write_sep("-", plugin.tally.line())
    for line in plugin.tally.hidden():
        terminalreporter.write_line(line)
    for note in plugin.notes.values():
        terminalreporter.write_line(note)
    for line in usage_text(plugin.unused, config.invocation_params.dir):
        terminalreporter.write_line(line)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """A run that leaves tests out cannot say which cassettes are used by none."""
    if items:
        items[0].config.stash[_STASH].usage.deselected()


def pytest_collection_finish(session: pytest.Session) -> None:
    """The cassettes of all tests that are there count as used, those of skipped ones too."""
    plugin = session.config.stash[_STASH]
    plugin.usage.used(place for item in session.items if (place := plugin.sessions.place_of(item)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A worker of pytest-xdist hands what it counted to the controller."""
    output = getattr(session.config, "workeroutput", None)
    plugin = session.config.stash.get(_STASH, None)
    if plugin is None:
        return
    complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    complete = complete and not (session.shouldstop or session.shouldfail)
    if output is not None:
        output[_KEY] = {
            "tally": asdict(plugin.tally),
            "notes": plugin.notes,
            "details": plugin.details,
            "usage": plugin.usage.sent(),
        }
        return
    plugin.find_unused(complete=complete)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """The controller of pytest-xdist adds a worker's tally to its own."""
    sent = getattr(node, "workeroutput", {}).get(_KEY)
    plugin = node.config.stash.get(_STASH, None)
    if sent is not None and plugin is not None:
        plugin.tally.merge(sent["tally"])
        plugin.notes |= sent["notes"]
        plugin.details |= sent["details"]
        plugin.usage.merge(sent["usage"])
