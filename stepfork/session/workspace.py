"""The settings of this process, layer by layer. Knows where layers come from; opens no session.

The one object here, `workspace`, is set up by the front ends (`configure`) and by ``autopatch()``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from stepfork.cassette.values import ClassPolicy
from stepfork.core.directories import AS_THEY_STAND, Directories
from stepfork.errors import CassetteError, ConfigError
from stepfork.session import config
from stepfork.session.config import Settings


class Workspace:
    """The settings of this process, layer by layer; `configure` is for the pytest plugin and the CLI."""

    def __init__(self) -> None:
        self.root: Path | None = None
        self.every_call_has_a_session = False
        self.base: Mapping[str, Any] = {}
        self.autopatch: dict[str, Any] = {}
        self.autopatched_by: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
        self.options: Mapping[str, Any] = {}
        self.basetemp: str | None = None
        self.tmp_path: str | None = None
        self._project: tuple[Path, Path] | None = None
        self._pyproject: tuple[Path, dict[str, Any] | None] | None = None

    def configure(
        self,
        *,
        root: Path | None,
        base: Mapping[str, Any],
        options: Mapping[str, Any],
        every_call_has_a_session: bool = False,
    ) -> None:
        """Says where settings are searched, the defaults of this front end, and its options.

        Under pytest every call has a session, so that one outside of all would be missing on replay.
        """
        self.root, self.base, self.options = root, base, options
        self.basetemp = self.tmp_path = None
        self.every_call_has_a_session = every_call_has_a_session

    def where(self) -> Path:
        """The folder that settings are searched from."""
        return self.root or Path.cwd()

    def pyproject(self) -> dict[str, Any]:
        """The layer of ``[tool.stepfork]``."""
        return self._table() or {}

    def is_configured(self, defaults: Mapping[str, Any]) -> bool:
        """Whether anybody but `autopatch` has set something, or there is a ``[tool.stepfork]``, if empty."""
        environment = config.from_environment(os.environ)
        given = bool(environment or self.options or self.base != defaults)
        return given or self._table() is not None

    def _table(self) -> dict[str, Any] | None:
        """Read once for each place it is searched from."""
        start = self.where()
        if self._pyproject is None or self._pyproject[0] != start:
            self._pyproject = (start, config.from_pyproject(config.find_pyproject(start)))
        return self._pyproject[1]

    def settings(self, *stronger: Mapping[str, Any]) -> Settings:
        """All layers, and stronger ones given here."""
        environment = config.from_environment(os.environ)
        return config.combine(
            self.base, self.pyproject(), self.autopatch, environment, self.options, *stronger
        )

    def project_root(self) -> Path:
        """The folder whose code counts as the project's own."""
        start = self.where()
        if self._project is None or self._project[0] != start:
            self._project = (start, config.project_root(start))
        return self._project[1]

    def directories(self, settings: Settings) -> Directories:
        """The directories of now that have names in cassettes.

        In a project its root stands for the working directory, so that it does not matter from where in the
        project, or above it, its tests are run. `basetemp` is pytest's own directory for temporary ones,
        where it is known, and `tmp_path` the one of the running test: its number depends on which tests run.
        """
        import tempfile  # late: a conftest that only patches should stay cheap

        if not settings.volatile().paths:
            return AS_THEY_STAND
        paths: dict[str, str] = {"home": os.path.expanduser("~")}
        with suppress(OSError):
            paths["tmp"] = tempfile.gettempdir()
        with suppress(OSError):
            here, root = Path.cwd(), self.project_root()
            in_temp = self.basetemp is not None and here.is_relative_to(self.basetemp)
            inside = here.is_relative_to(root) or root.is_relative_to(here)
            paths["cwd"] = str(root if in_temp or inside else here)
        if self.basetemp is not None:
            paths["basetemp"] = self.basetemp
        if self.tmp_path is not None:
            paths["tmp_path"] = self.tmp_path
        return _directories(tuple(paths.items()))

    def classes(self, settings: Settings, sdks: Iterable[str] = ()) -> ClassPolicy:
        """What cassettes may do with the classes that they name."""
        return ClassPolicy(self.project_root(), settings.allow_classes, tuple(sdks))

    def cassette_path(self, path: str | os.PathLike[str], settings: Settings) -> Path:
        """Where a cassette lies: relative paths start at ``cassette_dir``, else at the working directory.

        Raises:
            ConfigError: if it is no path at all.
        """
        for given, what in ((path, "a cassette's path"), (settings.cassette_dir or "", "cassette_dir")):
            _check_path(given, what)
        start = Path.cwd() if settings.cassette_dir is None else Path.cwd() / settings.cassette_dir
        return start / path

    def check_writable(self, path: Path, settings: Settings) -> None:
        """Refuses to write where a link leads out of the folder that a cassette seems to lie in.

        That is ``cassette_dir`` or else the project; elsewhere the folder that the path names. Reading
        follows links wherever they lead.

        Raises:
            CassetteError: if it does.
        """
        given = Path(os.path.abspath(path))
        roots = [self.project_root()]
        if settings.cassette_dir is not None:
            roots.append(Path.cwd() / settings.cassette_dir)
        roots = [root for root in roots if given.is_relative_to(os.path.abspath(root))] or [given.parent]
        real = Path(os.path.realpath(path))
        if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
            raise CassetteError(
                f"is not written: a link leads from there to {real}, out of {roots[0]}; "
                "name the place that is meant, or set cassette_dir to it",
                file=path,
            )


@lru_cache(8)
def _directories(paths: tuple[tuple[str, str], ...]) -> Directories:
    return Directories(dict(paths), {name: os.path.realpath(path) for name, path in paths})


workspace: Final = Workspace()


def _check_path(given: object, what: str) -> None:
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise ConfigError(f"{what} is a text or a path, not {type(given).__name__}")
    text = os.fspath(given)
    if "\0" in text:
        raise ConfigError(f"{text!r} is no path: it holds a NUL")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ConfigError(f"{text!r} is no path: it holds what no file name can hold") from None
