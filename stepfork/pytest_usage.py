"""Which cassettes no test of a full pytest run used. Knows pytest's selection and files, no session.

Only a run of every test says so: one that selected, left out or stopped early proves nothing, and one that
found no tests in a file that is there proves nothing of that file.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from stepfork.cassette import names
from stepfork.pytest_files import is_cassette

CACHE_KEY: Final = "stepfork/unused"
"""Where `stepfork prune` finds what the last full run left over, in pytest's cache."""
_SHOWN: Final = 20
_NARROWING: Final = (
    "keyword",
    "markexpr",
    "deselect",
    "ignore",
    "ignore_glob",
    "lf",
    "last_failed",
    "sw",
    "stepwise",
    "setuponly",
    "setupplan",
    "noconftest",
)
_NARROWING_INI: Final = ("python_", "testpaths", "norecursedirs", "collect_")


class Usage:
    """What one pytest run used; a plugin, so that it sees what the run collects."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._used: set[str] = set()
        self._selected_all = _selects_all(config)
        self._unsure = False  # whether fixtures, or tests that did not get far, may use what nothing used
        self._items: list[pytest.Item] = []
        self._collected: set[str] = set()  # test files that gave tests
        self._broken: set[str] = set()  # and those of which some may be missing

    # -- what pytest says ---------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_ignore_collect(self, collection_path: Path) -> Generator[None, object, object]:
        """A test file that is left alone may use the fixtures of others."""
        ignored = yield
        if ignored and collection_path.is_file():
            self._unsure = True
        return ignored

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """A test is there."""
        self._items.append(item)
        self._collected.add(self._file_of(item.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file or class that is skipped or cannot be imported has tests that are not known."""
        if not report.passed:
            self._broken.add(self._file_of(report.nodeid))
            self._unsure = True

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """A run that leaves tests out cannot say which cassettes are used by none."""
        if items:
            self._selected_all = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A conftest may leave tests out and tell nobody."""
        there, called = {id(item) for item in session.items}, {item.nodeid for item in session.items}
        if any(id(item) not in there and item.nodeid not in called for item in self._items):
            self._selected_all = False
        self._items.clear()

    def pytest_keyboard_interrupt(self) -> None:
        """``pytest.exit`` too, whatever exit status it asks for."""
        self._selected_all = False

    def _file_of(self, nodeid: str) -> str:
        return os.path.normpath(self._config.rootpath / nodeid.partition("::")[0])

    # -- what the run says --------------------------------------------------------------------------

    def used(self, files: Iterable[Path | str]) -> None:
        """These cassettes belong to tests that are there, whether they ran or were skipped."""
        self._used.update(str(Path(file).resolve()) for file in files)

    def skipped(self) -> None:
        """A test was skipped, or failed halfway: which cassettes it would have used besides is not known."""
        self._unsure = True

    def sent(self) -> dict[str, Any]:
        """For the controller of pytest-xdist."""
        return {
            "used": sorted(self._used),
            "all": self._selected_all,
            "unsure": self._unsure,
            "collected": sorted(self._collected),
            "broken": sorted(self._broken),
        }

    def merge(self, other: dict[str, Any]) -> None:
        """What a worker used."""
        self._used.update(other["used"])
        self._collected.update(other["collected"])
        self._broken.update(other["broken"])
        self._selected_all = self._selected_all and other["all"]
        self._unsure = self._unsure or other["unsure"]

    def unused(self, folder: Path, *, complete: bool) -> list[Path] | None:
        """The cassettes in a folder that nothing used; None if this run cannot say."""
        if not complete or not self._selected_all:
            return None
        if not folder.is_dir():
            return []
        files = _TestFiles(self._config.rootpath)
        collected = self._collected - self._broken
        found, unsure = [], self._unsure
        for path in sorted(folder.rglob("*.yaml")):
            if str(path.resolve()) not in self._used and is_cassette(path):
                if collected.issuperset(files.whose(path.relative_to(folder).parent)):
                    found.append(path)
                else:
                    unsure = True
        return [path for path in found if not unsure or path.name.startswith("test")]


class _TestFiles:
    """Which files below the root could have cassettes where. Each folder is read once."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.normpath(root)
        self._entries: dict[str, dict[str, list[os.DirEntry[str] | None]]] = {}

    def whose(self, place: Path) -> set[str]:
        """The files on the disk that may be the test file of the cassettes in `place`."""
        found: set[str] = set()
        folders = {self._root}
        for part in place.parts:
            below: set[str] = set()
            for folder in folders:
                for entry in self._in(folder).get(part, ()):
                    if entry is None:
                        below.add(os.path.dirname(folder))
                    elif entry.is_dir():
                        below.add(entry.path)
                    else:
                        found.add(os.path.normpath(entry.path))
            folders = below
        return found

    def _in(self, folder: str) -> dict[str, list[os.DirEntry[str] | None]]:
        """What is in a folder, by the name that it gives the folder of its cassettes; None is its parent."""
        if folder not in self._entries:
            named = self._entries[folder] = {names.component(".."): [None]}
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        name = entry.name if entry.is_dir() else entry.name.removesuffix(".py")
                        named.setdefault(names.component(name), []).append(entry)
            except OSError:
                pass
        return self._entries[folder]


def text(unused: list[Path], root: Path) -> list[str]:
    """What the summary says of them."""
    if not unused:
        return []
    names = [str(path.relative_to(root)) if path.is_relative_to(root) else str(path) for path in unused]
    more = [f"  and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    number = "1 cassette is" if len(names) == 1 else f"{len(names)} cassettes are"
    return [
        f"{number} used by no test; to delete: stepfork prune",
        *(f"  {name}" for name in names[:_SHOWN]),
        *more,
    ]


def _selects_all(config: pytest.Config) -> bool:
    """Whether the command line asks for every test."""
    if any(getattr(config.option, name, None) for name in _NARROWING):
        return False
    if any(setting.startswith(_NARROWING_INI) for setting in config.option.override_ini or ()):
        return False
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return (
            config.args_source is pytest.Config.ArgsSource.TESTPATHS
            or config.invocation_params.dir == config.rootpath
        )
    here = config.invocation_params.dir
    asked = {(here / argument).resolve() for argument in config.args if "::" not in argument}
    wanted = {(config.rootpath / path).resolve() for path in config.getini("testpaths")} or {
        config.rootpath.resolve()
    }
    return config.rootpath.resolve() in asked or wanted <= asked
