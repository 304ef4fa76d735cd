"""Which session a test or a fixture gets under pytest: its cassette, settings and hints. Runs nothing.

Knows pytest's items, markers and fixtures; the hooks that open and settle sessions are in `pytest_plugin`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from stepfork.api import Session
from stepfork.cassette import names
from stepfork.core.redaction import Redactor
from stepfork.core.redaction_rules import Rules
from stepfork.core.secret_names import normalise
from stepfork.core.secret_shapes import is_credible
from stepfork.errors import ConfigError
from stepfork.pytest_files import cassettes_of_tests, is_cassette, of_renamed
from stepfork.pytest_shared import Shared
from stepfork.session import config
from stepfork.session.faults import Hints
from stepfork.session.workspace import workspace


class Sessions:
    """Makes the sessions of one pytest run."""

    def __init__(self, root: Path, shared: Shared, options: Mapping[str, str] | None = None) -> None:
        """`options` are those of the command line that a command which records needs too."""
        self._root = root
        self._shared = shared
        self._here = Path.cwd()  # where the run was started, which is where its user types the next command
        words = (f"{option}={value}" for option, value in (options or {}).items())
        self._options = "".join(f" {shlex.quote(word)}" for word in words)
        self._beside: dict[str, dict[str, None]] = {}
        self._items: dict[PurePosixPath, dict[pytest.Item, None]] = {}
        self._free: dict[Path, list[Path]] = {}
        self._mended: dict[tuple[Rules, str], str] = {}

    def collected(self, node: pytest.Item | pytest.Collector) -> None:
        """Remembers which names live beside each other: names that differ only in case must stay apart."""
        self._beside.setdefault(_parent(node), {})[node.name] = None
        if isinstance(node, pytest.Item):
            self._items.setdefault(_module(node.nodeid), {})[node] = None

    def id_of(self, argument: str, value: str) -> str | None:
        """What a parameter is called that holds a secret; None for any other."""
        redactor = Redactor(workspace.settings().rules())
        if is_credible(value):
            redactor.redact({argument: value})
        shown = redactor.redact_name(value)
        return None if shown == value else shown

    def of_test(self, item: pytest.Item) -> Session:
        """The session that takes the calls of a test; it opens with the first of them.

        Raises:
            ConfigError: for a marker that makes no sense.
        """
        marker = _marker(item)
        name = marker.pop("name", None)
        if self._is_off(item.nodeid):
            marker["mode"] = "off"
        place = self._place(item, marker, name)
        leave_alone = 'mark the test with @pytest.mark.stepfork(mode="off")'
        return Session(
            place,
            {},
            source=f"test {item.nodeid}",
            name=name or item.name,
            marker=marker,
            hints=Hints(self._record_command(item.nodeid, self._mend(marker)), leave_alone),
            lazy=True,
            before_recording=lambda run: self._shared.before(run, item.nodeid),
            similar=lambda path: self._had(path, _module(item.nodeid)),
        )

    def place_of(self, item: pytest.Item) -> Path | None:
        """Where the cassette of a test is or would be; None if its marker makes no sense."""
        try:
            marker = _marker(item)
            return self._place(item, marker, marker.pop("name", None))
        except ConfigError:
            return None

    def _had(self, path: Path, module: PurePosixPath) -> Path | None:
        """The cassette that a test had before it was renamed, as far as the others of its module tell."""
        if path.parent not in self._free:
            used = {
                place for item in self._items.get(module, ()) if (place := self.place_of(item)) is not None
            }
            self._free[path.parent] = cassettes_of_tests(path.parent, used)
        return of_renamed(path, self._free[path.parent])

    def folder(self) -> Path:
        """Where cassettes lie."""
        return self._folder({})

    def _place(self, item: pytest.Item, marker: dict[str, Any], name: str | None) -> Path:
        folder, module, mend = self._folder(marker), _module(item.nodeid), self._mend(marker)
        if name is not None:
            return folder / names.cassette_of_name(module, name, mend)
        chain = [node for node in item.listchain() if isinstance(node, pytest.Class | pytest.Item)] or [item]
        place = folder / names.cassette_of_test(module, self._parts(chain), mend)
        recorded = self._name_with_secrets(item, marker)
        if recorded != item.name and not place.exists():
            parts = [*self._parts(chain[:-1]), (recorded, self._beside.get(_parent(item), ()))]
            other = folder / names.cassette_of_test(module, parts, mend)
            return other if other.exists() else place
        return place

    def _name_with_secrets(self, item: pytest.Item, marker: dict[str, Any]) -> str:
        """What a test was called when those of its parameters were secrets that may be dummies now."""
        given: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        redactor = Redactor(workspace.settings(marker).rules())
        head, bracket, ids = item.name.partition("[")
        for argument, value in given.items():
            if isinstance(value, str) and value and redactor.is_secret_key(argument):
                shown = f"secret-{normalise(argument)}"
                ids = re.sub(rf"(?<![^-]){re.escape(value)}(?=\d*(?:-|\]\Z))", shown, ids)
        return f"{head}{bracket}{ids}"

    def of_fixture(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Session:
        """The session that takes the calls of one set-up of a fixture."""
        marker = {"mode": "off"} if self._is_off(request.node.nodeid) else {}
        name = f"{fixturedef.scope}.{fixturedef.argname}{_parameter(request, self._mend(marker))}"
        module, *classes = fixturedef.baseid.split("::")
        folder = names.module_folder(PurePosixPath(module)).joinpath(*map(names.component, classes))
        return Session(
            self._folder(marker) / folder / f"{names.component(name, mend=self._mend(marker))}.yaml",
            {},
            source=f"fixture {fixturedef.argname!r}",
            name=name,
            marker=marker,
            hints=Hints(self._record_command(request.node.nodeid or ".", self._mend(marker))),
            lazy=True,
            hands_over=True,
            before_recording=lambda run: self._shared.before(run, who_of_fixture(fixturedef, request)),
            similar=_like_a_fixtures,
        )

    def _parts(self, chain: list[Any]) -> Iterable[tuple[str, Iterable[str]]]:
        return [(node.name, self._beside.get(_parent(node), ())) for node in chain]

    def _folder(self, marker: dict[str, Any]) -> Path:
        return self._root / (workspace.settings(marker).cassette_dir or "cassettes")

    def _mend(self, marker: dict[str, Any]) -> Callable[[str], str]:
        """Takes secrets out of names, which parametrised ids may hold."""
        rules = workspace.settings(marker).rules()

        def mend(name: str) -> str:
            if "[" not in name:
                return name
            if (rules, name) not in self._mended:
                self._mended[rules, name] = Redactor(rules).redact_name(name)
            return self._mended[rules, name]

        return mend

    def _record_command(self, nodeid: str, mend: Callable[[str], str]) -> str:
        if mend(nodeid) != nodeid:
            nodeid = nodeid.partition("[")[0]  # the test with all its parameters, one of which is a secret
        file, *rest = nodeid.split("::")
        with suppress(ValueError):  # on another drive
            file = Path(os.path.relpath(self._root / file, self._here)).as_posix()
        return f"STEPFORK_MODE=record pytest{self._options} {shlex.quote('::'.join([file, *rest]))}"

    def _is_off(self, nodeid: str) -> bool:
        path = nodeid.partition("::")[0]
        return any(fnmatch(path, pattern) for pattern in workspace.settings().off)


def who_of_fixture(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> str:
    """A set-up of a fixture, as errors name it.

    The same in every worker, also where the node is the session, whose id is empty.
    """
    return f"fixture {fixturedef.argname!r} for {request.node.nodeid or 'all tests'}"


def _parent(node: pytest.Item | pytest.Collector) -> str:
    return node.parent.nodeid if node.parent is not None else ""


def _module(nodeid: str) -> PurePosixPath:
    return PurePosixPath(nodeid.partition("::")[0])


def _parameter(request: pytest.FixtureRequest, mend: Callable[[str], str]) -> str:
    """What tells the parameters of a fixture apart: the value where it is simple, else its number."""
    if not hasattr(request, "param"):
        return ""
    value = request.param
    simple = isinstance(value, str | int | float | bool) or value is None
    number, text = getattr(request, "param_index", 0), f"[{value}]"
    return text if simple and mend(text) == text else f"[{number}]"


def _like_a_fixtures(path: Path) -> Path | None:
    """A cassette beside a fixture's missing one whose name is nearly the same."""
    there = sorted(path.parent.glob(f"{path.name.partition('.')[0]}.*.yaml"))
    return of_renamed(path, [other for other in there if is_cassette(other)], only=False)


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
