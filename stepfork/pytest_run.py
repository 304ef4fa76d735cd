"""One pytest run with stepfork: opens and settles the sessions of its tests and fixtures, keeps the verdicts.

Knows pytest's items and reports; which hook asks for what is in `pytest_plugin`, which session is whose in
`pytest_sessions`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from stepfork import api
from stepfork.errors import ConfigError, NoCassetteError, StepforkError
from stepfork.pytest_reports import ReportFile, redact_report, redact_subtest, redact_warning
from stepfork.pytest_secrets import Secrets
from stepfork.pytest_sessions import Sessions, who_of_fixture
from stepfork.pytest_shared import Shared
from stepfork.pytest_usage import CACHE_KEY, Usage
from stepfork.pytest_usage import text as usage_text
from stepfork.report.answers import answers_text
from stepfork.report.tally import Tally
from stepfork.report.verdict import Verdict
from stepfork.session import active
from stepfork.session.run import Run
from stepfork.session.workspace import workspace

SHARED: Final = "stepfork_shared"
"""The key under which a worker of pytest-xdist is told which folder all of them share."""
_SESSION: Final = pytest.StashKey[api.Session]()
_RUN: Final = pytest.StashKey[Run]()
_FAULT: Final = pytest.StashKey[Exception | None]()


class PytestRun:
    """One pytest run with stepfork."""

    def __init__(self, config: pytest.Config, options: Mapping[str, str]) -> None:
        """`options` are those of the command line that a command which records needs too."""
        self.config = config
        given: dict[str, str] = getattr(config, "workerinput", {})
        folder = given.get(SHARED)
        self.shared = Shared(Path(folder) if folder else None, given.get("workerid", ""))
        self.sessions = Sessions(Path(config.rootpath), self.shared, options)
        self.usage = Usage(config)
        self._tally = Tally()
        self._verdicts: dict[str, Verdict] = {}  # of the tests that are under way
        self._details: dict[str, str] = {}  # by test: its verdict in a line, for -v
        self._notes: dict[str, str] = {}  # by cassette
        self._running = ""  # the test that runs now
        self._counted = ""  # the last test that had a session which took a call
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._unused: list[Path] = []
        self.secrets = Secrets()
        self.report_file = ReportFile()
        self._stop_listening = active.on_close(self._closed)

    def close(self) -> None:
        """Stops counting."""
        self._stop_listening()
        self.secrets.close()
        if self._folder is not None:
            self._folder.cleanup()

    def folder_for_workers(self) -> str:
        """What the workers of pytest-xdist share; it is gone when the run ends."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="stepfork-", ignore_cleanup_errors=True)
        return self._folder.name

    # -- tests --------------------------------------------------------------------------------------

    def begin(self, item: pytest.Item) -> None:
        """Makes the test's session, which opens with the first call."""
        self._running = item.nodeid
        workspace.tmp_path = None
        self.secrets.begin()
        self.report_file.begin()
        try:
            session = self.sessions.of_test(item)
            item.stash[_RUN] = session.__enter__()
        except ConfigError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        item.stash[_SESSION] = session

    def finish(self, item: pytest.Item, error: BaseException | None) -> bool:
        """Ends the session of a test with what its body raised; whether the run may end with that."""
        session, run = item.stash[_SESSION], item.stash[_RUN]
        del item.stash[_SESSION]
        try:
            return self.settle(session, run, item.nodeid, error)
        finally:
            item.stash[_FAULT] = run.fault

    def finish_unrun(self, item: pytest.Item) -> None:
        """Ends the session of a test whose body never ran."""
        if _SESSION in item.stash:
            self.finish(item, pytest.skip.Exception("the test did not run"))

    def check_marked(self, item: pytest.Item) -> None:
        """A marked test that makes no patched call proves nothing of what the mark says."""
        wanted = _is_marked(item) and item.stash[_RUN].action != "off"
        if wanted and not self._verdict(item).has_traffic:
            pytest.fail(
                "the test is marked with mark.stepfork, but no patched call was made: nothing was replayed "
                "or recorded; name its tools in 'tools', or take the mark away",
                pytrace=False,
            )

    # -- fixtures -----------------------------------------------------------------------------------

    def begin_fixture(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Setup:
        """Opens the session that takes the calls of one set-up of a fixture."""
        session = self.sessions.of_fixture(fixturedef, request)
        return Setup(self, session, who_of_fixture(fixturedef, request))

    def settle(self, session: api.Session, run: Run, who: str, error: BaseException | None) -> bool:
        """A skip is no verdict: what was recorded is kept. A failure is the test's, an interrupt the run's.

        Raises:
            ConfigError: if it would take the place of what another test or fixture recorded in this run with
                other calls. Such a recording has failed.
        """
        try:
            if error is None and (first := self.shared.clash(run, who)) is not None:
                shared = ConfigError(
                    f"{self._short(run.path)} was recorded by {first} and again, with other calls, by {who}; "
                    "give each a cassette of its own, or make the calls in the test itself"
                )
                session.finish(shared, "run")
                raise shared
            if isinstance(error, pytest.skip.Exception):
                settled = session.finish(error, "skipped")
            else:
                own = error is None or isinstance(error, Exception | pytest.fail.Exception)
                settled = session.finish(error, "test" if own else "run")
            self.shared.recorded(run, who)
            return settled
        finally:
            self.shared.end(run)

    # -- what became of them ------------------------------------------------------------------------

    def report(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        """Puts a test's verdict into its report, and takes out the secrets that its sessions know.

        An expected failure expects the test's own failure: a drifted trajectory is none.
        """
        fault = item.stash.get(_FAULT, None)
        if fault is not None and hasattr(report, "wasxfail") and not _is_expected(item):
            del report.wasxfail
            report.outcome = "failed"
            report.longrepr = f"expected to fail, but not like this:\n{fault}"
        if report.skipped:
            self.usage.skipped()
        if call.when == "call" or (call.when == "setup" and not report.passed):
            self._put_verdict(item, report)
        elif call.when == "teardown":
            self._verdicts.pop(item.nodeid, None)
        redact_report(report, self.secrets.redact)
        self.report_file.redact(self.secrets.redact)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What a subtest adds to its report comes after it was made: its heading, and what it printed."""
        if hasattr(report, "context"):
            redact_subtest(report, self.secrets.redact)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """What is shown of a test's warnings is shown without the secrets that its session knows."""
        redact_warning(warning_message, self.secrets.redact)

    def _put_verdict(self, item: pytest.Item, report: pytest.TestReport) -> None:
        verdict = self._verdict(item)
        if not (verdict.has_traffic or verdict.escaped or _is_marked(item)):
            return
        others = [pair for pair in item.user_properties if not pair[0].startswith("stepfork.")]
        item.user_properties[:] = [*others, *verdict.properties(self._short)]  # a rerun has its own
        report.user_properties = list(item.user_properties)
        places = ", ".join(map(self._short, dict.fromkeys(verdict.cassettes)))
        lines = [f"{places or 'no cassette'}: {verdict.line()}", *answers_text(verdict.answers)]
        self._details[item.nodeid] = "\n  ".join(lines)
        report.sections.append(("stepfork", self._details[item.nodeid]))

    def _verdict(self, item: pytest.Item) -> Verdict:
        return self._verdicts.setdefault(item.nodeid, Verdict())

    def _closed(self, run: Run) -> None:
        self._tally.add(run)
        self._verdicts.setdefault(self._running, Verdict()).add(run)
        if run.touched:
            self.usage.used([run.path, run.file])
        if run.touched and self._running != self._counted:
            self._counted = self._running
            self._tally.tests += 1
        if run.note:
            self._notes[f"{run.file} running"] = run.note
        written = run.written
        if written is None:
            return
        self._notes.pop(run.file, None)
        if written.kept is not None:
            self._notes[run.file] = (
                f"{self._short(written.kept)} stays as it was; the new recording failed, "
                f"to put it in its place: stepfork adopt {self._short(written.path)}"
            )

    # -- the summary --------------------------------------------------------------------------------

    def find_unused(self, *, complete: bool) -> None:
        """Finds the cassettes that no test used, if this run can tell, and keeps it for `stepfork prune`."""
        folder = self.sessions.folder()
        found = self.usage.unused(folder, complete=complete and bool(self._tally.tests))
        cache = getattr(self.config, "cache", None)
        if found is None:
            return
        self._unused = found
        if cache is not None:
            cache.set(CACHE_KEY, {"folder": str(folder), "files": [str(path) for path in found]})

    def details(self) -> Iterable[str]:
        """A line for each test that had calls: its cassettes and its verdict."""
        return (f"{test}  {detail}" for test, detail in self._details.items())

    def headline(self) -> str:
        """The summary line; empty where no test had a session that took a call."""
        return self._tally.line() if self._tally.tests else ""

    def lines(self) -> list[str]:
        """What is to be said below the summary line."""
        unused = usage_text(self._unused, self.config.invocation_params.dir)
        return [*self._tally.hidden(), *self._notes.values(), *unused]

    def sent(self) -> dict[str, Any]:
        """What a worker of pytest-xdist counted, for the controller."""
        return {
            "tally": asdict(self._tally),
            "notes": self._notes,
            "details": self._details,
            "usage": self.usage.sent(),
        }

    def merge(self, sent: dict[str, Any]) -> None:
        """Adds what a worker counted."""
        self._tally.merge(sent["tally"])
        self._notes |= sent["notes"]
        self._details |= sent["details"]
        self.usage.merge(sent["usage"])

    def _short(self, path: Path) -> str:
        try:
            return str(path.relative_to(self.config.invocation_params.dir))
        except ValueError:
            return str(path)


class Setup:
    """The session of one set-up of a fixture, which `finish` ends."""

    def __init__(self, pytest_run: PytestRun, session: api.Session, who: str) -> None:
        self._pytest_run = pytest_run
        self._session = session
        self._who = who
        self._run = session.__enter__()

    def fail(self, error: BaseException) -> None:
        """Ends it with what the set-up raised."""
        self._pytest_run.settle(self._session, self._run, self._who, error)

    def finish(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Ends it; threads that it started serve the tests until the fixture is torn down."""
        self._pytest_run.settle(self._session, self._run, self._who, None)
        fixturedef.addfinalizer(self._run.hand_over_no_more)


class NoneRefused:
    """Sees to it that a call which is refused while a test is torn down is an error even if it was caught."""

    def __init__(self) -> None:
        self._before = active.refusals()

    def check(self) -> None:
        """Raises NoCassetteError if any was."""
        if active.refusals() > self._before:
            raise NoCassetteError(
                "a patched call was made outside every cassette while the test was torn down, and its error "
                "was caught; make the call in the test or in a fixture's set-up"
            )


def run_of(item: pytest.Item) -> Run:
    """The session of a running test."""
    return item.stash[_RUN]


def _is_marked(item: pytest.Item) -> bool:
    return any(mark.name == "stepfork" for mark in item.own_markers)


def _is_expected(item: pytest.Item) -> bool:
    """Whether a mark names an error of ours; that a mismatch is an AssertionError too is no such word."""
    for mark in item.iter_markers("xfail"):
        raises = mark.kwargs.get("raises") or ()
        kinds = raises if isinstance(raises, tuple) else (raises,)
        if any(isinstance(kind, type) and issubclass(kind, StepforkError) for kind in kinds):
            return True
    return False
