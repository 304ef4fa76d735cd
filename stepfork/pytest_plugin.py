"""The face stepfork shows to pytest: options, marker, fixture, one session a test, the summary line.

Knows pytest; everything a session does happens below. Loaded before any conftest, so it imports nothing
heavy and installs nothing unless stepfork is configured.
"""

from __future__ import annotations

import difflib
from collections.abc import Generator
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pytest

from stepfork import api
from stepfork.cassette import names
from stepfork.core.redaction import Redactor
from stepfork.errors import ConfigError
from stepfork.report.tally import Tally
from stepfork.session import active, config
from stepfork.session.faults import Hints
from stepfork.session.run import Run
from stepfork.session.workspace import workspace

_MODE: Final = "--stepfork-mode"
_FOLDER: Final = "--stepfork-cassette-dir"
_KEY: Final = "stepfork"


class Plugin:
    """One pytest run with stepfork."""

    def __init__(self, pytest_config: pytest.Config) -> None:
        self.config = pytest_config
        self.root = Path(pytest_config.rootpath)
        self.tally = Tally()
        self.notes: list[str] = []
        self.running = ""  # the test that runs now
        self._counted = ""  # the last test that had a session which took a call
        self._siblings: dict[str, set[str]] = {}
        self._stop_listening = active.on_close(self._closed)

    def close(self) -> None:
        """Stops counting."""
        self._stop_listening()

    def _closed(self, run: Run) -> None:
        self.tally.add(run)
        if run.touched and self.running != self._counted:
            self._counted = self.running
            self.tally.tests += 1
        written = run.written
        if written is not None and written.kept is not None:
            self.notes.append(
                f"{self._short(written.kept)} stays as it was; the new recording failed, "
                f"to put it in its place: stepfork adopt {self._short(written.path)}"
            )

    def _short(self, path: Path) -> str:
        try:
            return str(path.relative_to(self.config.invocation_params.dir))
        except ValueError:
            return str(path)

    # -- one test -----------------------------------------------------------------------------------

    def collected(self, item: pytest.Item) -> None:
        """Remembers which names live beside each other: names that differ only in case must stay apart."""
        self._siblings.setdefault(_folder(item), set()).add(item.name)

    def session_of(self, item: pytest.Item) -> api.Session:
        """The session that takes the calls of a test; it opens with the first of them."""
        marker = _marker(item)
        name = marker.pop("name", None)
        if self._is_off(item.nodeid):
            marker["mode"] = "off"
        return api.Session(
            self._cassette(item, name, marker),
            {},
            source=f"test {item.nodeid}",
            name=name or item.name,
            marker=marker,
            hints=self._hints(item),
            ambient=True,
            similar=self._similar,
        )

    def session_of_fixture(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> api.Session:
        """The session that takes the calls of one set-up of a fixture."""
        marker = {"mode": "off"} if self._is_off(request.node.nodeid) else {}
        name = f"{fixturedef.scope}.{fixturedef.argname}"
        index = request.node.callspec.id if _is_parametrised(fixturedef, request) else None
        relative = names.cassette_of_name(
            PurePosixPath(fixturedef.baseid.partition("::")[0]), name + (f"[{index}]" if index else "")
        )
        return api.Session(
            self._folder(marker) / relative,
            {},
            source=f"fixture {fixturedef.argname!r}",
            name=name,
            marker=marker,
            hints=Hints(record="STEPFORK_MODE=record pytest " + (request.node.nodeid or str(self.root))),
            ambient=True,
        )

    def _folder(self, marker: dict[str, Any]) -> Path:
        return self.root / (workspace.settings(marker).cassette_dir or "cassettes")

    def _cassette(self, item: pytest.Item, name: str | None, marker: dict[str, Any]) -> Path:
        module = PurePosixPath(item.nodeid.partition("::")[0])
        if name is not None:
            relative = names.cassette_of_name(module, name)
        else:
            parts = _parts(item)
            redact = Redactor(workspace.settings(marker).rules()).redact_name
            parts[-1] = redact(parts[-1]) if "[" in parts[-1] else parts[-1]
            relative = names.cassette_of_test(module, parts, self._siblings.get(_folder(item), ()))
        return self._folder(marker) / relative

    def _is_off(self, nodeid: str) -> bool:
        path = nodeid.partition("::")[0]
        return any(fnmatch(path, pattern) for pattern in workspace.settings().off)

    def _hints(self, item: pytest.Item) -> Hints:
        node = item.nodeid if " " not in item.nodeid and "[" not in item.nodeid else f"'{item.nodeid}'"
        return Hints(
            record=f"STEPFORK_MODE=record pytest {node}",
            leave_alone='mark the test with @pytest.mark.stepfork(mode="off")',
        )

    def _similar(self, path: Path) -> Path | None:
        """A cassette beside a missing one whose name is nearly the same."""
        if not path.parent.is_dir():
            return None
        there = [other.name for other in path.parent.glob("*.yaml")]
        close = difflib.get_close_matches(path.name, there, 1, 0.8)
        return path.with_name(close[0]) if close else None


def _is_parametrised(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> bool:
    return fixturedef.params is not None and hasattr(request.node, "callspec")


def _parts(item: pytest.Item) -> list[str]:
    """The names below the module: classes, then the test."""
    chain = [node.name for node in item.listchain() if isinstance(node, pytest.Class | pytest.Item)]
    return chain or [item.name]


def _folder(item: pytest.Item) -> str:
    return item.parent.nodeid if item.parent is not None else ""


def _marker(item: pytest.Item) -> dict[str, Any]:
    """The settings of the markers of a test, the closest one strongest; ``name`` if one gives it.

    Raises:
        ConfigError: for arguments that are no settings.
    """
    merged: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("stepfork"))):
        if len(mark.args) > 1 or (mark.args and not isinstance(mark.args[0], str)):
            raise ConfigError(f"{item.nodeid}: mark.stepfork takes one name and settings, not {mark.args!r}")
        merged.update(config.check(mark.kwargs, f"{item.nodeid}: mark.stepfork"))
        if mark.args:
            merged["name"] = mark.args[0]
    return merged


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


def _read_settings(root: Path, given: dict[str, tuple[str, str | None]]) -> None:
    try:
        options: dict[str, Any] = {}
        for name, (option, value) in given.items():
            if value is not None:
                options |= config.check({name: value}, option)
        workspace.configure(
            root=root, base={"mode": "replay"}, options=options, every_call_has_a_session=True
        )
        workspace.settings()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Undoes every patch: a process that runs pytest several times starts each time clean."""
    plugin = config.stash.get(_STASH, None)
    if plugin is not None:
        plugin.close()
        api.unpatch()
        workspace.configure(root=Path.cwd(), base={}, options={})


def pytest_itemcollected(item: pytest.Item) -> None:
    """Learns the names of the tests that run."""
    item.config.stash[_STASH].collected(item)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """Learns the names of the tests beside them, so that a cassette's name depends on no selection."""
    made = yield
    for item in made if isinstance(made, list) else [made]:
        if isinstance(item, pytest.Item):
            collector.config.stash[_STASH].collected(item)
    return made


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Makes the test's session, which opens with the first call. Fixtures have sessions of their own."""
    plugin = item.config.stash[_STASH]
    plugin.running = item.nodeid
    try:
        session = plugin.session_of(item)
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
    _finish(item, caught[-1].value if caught else None)
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Ends the session of a test whose body never ran."""
    if _SESSION in item.stash:
        _finish(item, pytest.skip.Exception("the test did not run"))
    return (yield)


def _finish(item: pytest.Item, error: BaseException | None) -> bool:
    session = item.stash[_SESSION]
    del item.stash[_SESSION]
    return _settle(session, error)


def _settle(session: api.Session, error: BaseException | None) -> bool:
    """A skip is no verdict: what was recorded is kept. A failure is the test's, an interrupt the run's."""
    if isinstance(error, pytest.skip.Exception):
        return session.finish(error, "skipped")
    return session.finish(error, "test" if isinstance(error, Exception | pytest.fail.Exception) else "run")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Calls that a fixture makes while it is set up go to a cassette of its own."""
    plugin = request.config.stash[_STASH]
    session = plugin.session_of_fixture(fixturedef, request)
    with_run = session.__enter__()
    try:
        result = yield
    except BaseException as error:
        _settle(session, error)
        raise
    del with_run
    _settle(session, None)
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
    for note in plugin.notes:
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
        plugin.notes += sent["notes"]
