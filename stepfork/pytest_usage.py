"""Which cassettes no test of a full pytest run used. Knows pytest's selection and files, no session.

Only a run of every test says so: one that selected, left out or stopped early proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from stepfork.pytest_files import is_cassette, is_of_fixture

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
)


class Usage:
    """What one pytest run used."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._used: set[str] = set()
        self._selected_all = _selects_all(config)
        self._skipped = False

    def used(self, files: Iterable[Path | str]) -> None:
        """These cassettes belong to tests that are there, whether they ran or were skipped."""
        self._used.update(str(Path(file).resolve()) for file in files)

    def deselected(self) -> None:
        """Tests were left out."""
        self._selected_all = False

    def skipped(self) -> None:
        """A test was skipped: which cassettes its fixtures have is not known."""
        self._skipped = True

    def sent(self) -> dict[str, Any]:
        """For the controller of pytest-xdist."""
        return {"used": sorted(self._used), "all": self._selected_all, "skipped": self._skipped}

    def merge(self, other: dict[str, Any]) -> None:
        """What a worker used."""
        self._used.update(other["used"])
        self._selected_all = self._selected_all and other["all"]
        self._skipped = self._skipped or other["skipped"]

    def unused(self, folder: Path, *, complete: bool) -> list[Path] | None:
        """The cassettes in a folder that nothing used; None if this run cannot say."""
        if not complete or not self._selected_all:
            return None
        if not folder.is_dir():
            return []
        return [path for path in sorted(folder.rglob("*.yaml")) if self._is_unused(path)]

    def _is_unused(self, path: Path) -> bool:
        if str(path.resolve()) in self._used or (self._skipped and is_of_fixture(path)):
            return False
        return is_cassette(path)


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
