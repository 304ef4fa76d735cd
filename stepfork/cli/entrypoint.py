"""``MODULE:FUNCTION``: found by path before anything is imported, then imported, checked and called.

Knows Python's import system and what a function takes; knows no cassette and no session.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import importlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType
from typing import Any

from stepfork.cassette.values.policy import is_own
from stepfork.cli.faults import one_line
from stepfork.errors import ConfigError, StepforkError


@dataclass(frozen=True, slots=True)
class Reference:
    """An entrypoint by name.

    >>> str(Reference.parse("agent:run"))
    'agent:run'
    """

    module: str
    function: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Reads ``MODULE:FUNCTION``. Raises ConfigError for anything else."""
        module, colon, function = text.partition(":")
        if not colon or not function.isidentifier() or not all(map(str.isidentifier, module.split("."))):
            raise ConfigError(
                f"entrypoint {text!r}: expected MODULE:FUNCTION, as in 'agent:run' or 'pkg.agent:run'"
            )
        return cls(module, function)

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an entrypoint is called with."""

    positional: Sequence[Any] = ()
    named: dict[str, Any] | None = None

    @classmethod
    def of(cls, value: Any, source: str) -> Arguments:
        """An object is named arguments, an array positional ones. Raises ConfigError for anything else."""
        if value is None:
            return cls()
        if isinstance(value, dict):
            return cls((), value)
        if isinstance(value, list):
            return cls(value)
        kind = type(value).__name__
        raise ConfigError(f"{source}: expected an object (named) or an array (positional), not {kind}")


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """An entrypoint that was imported and may be called."""

    reference: Reference
    function: Callable[..., Any]

    @property
    def is_async(self) -> bool:
        """Whether calling it gives a coroutine."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.function))

    def check(self, arguments: Arguments) -> None:
        """Raises ConfigError if the function does not take these arguments."""
        try:
            inspect.signature(self.function).bind(*arguments.positional, **arguments.named or {})
        except TypeError as error:
            raise ConfigError(
                f"entrypoint {self.reference} cannot be called so: {error}; give its arguments with --args"
            ) from None

    def call(self, arguments: Arguments) -> Any:
        """What the function returns; a coroutine is run to its end."""
        call = functools.partial(self.function, *arguments.positional, **arguments.named or {})
        if not self.is_async:
            return call()

        async def run() -> Any:
            return await call()

        return asyncio.run(run())


def working_directory_first() -> None:
    """Puts the working directory first on ``sys.path``, as ``python -m`` does."""
    here = os.getcwd()
    if sys.path[:1] not in ([here], [""]):
        sys.path.insert(0, here)


def specs(reference: Reference) -> list[ModuleSpec]:
    """The specs of the module and the packages around it, outermost first, found without importing any.

    Raises:
        ConfigError: if there is no such module.
    """
    found: list[ModuleSpec] = []
    path: Sequence[str] | None = None
    parts = reference.module.split(".")
    for at in range(len(parts)):
        name = ".".join(parts[: at + 1])
        spec = None if at and path is None else _spec(name, path)
        if spec is None:
            where = f" in {'.'.join(parts[:at])!r}" if at else ""
            raise ConfigError(
                f"entrypoint {reference}: there is no module {name!r}{where}; is this the right folder?"
            )
        found.append(spec)
        path = spec.submodule_search_locations
    return found


def _spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = None if find is None else find(name, path)
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None


def check_own(reference: Reference, root: Path) -> None:
    """Refuses an entrypoint that a file named, unless its code is the project's own; imports nothing.

    Raises:
        ConfigError: if the module, or a package around it, is not a file under the project's root.
    """
    for spec in specs(reference):
        if spec.origin is None and spec.submodule_search_locations is not None:
            continue  # a folder without code
        if not spec.has_location or spec.origin is None or not is_own(Path(spec.origin), root):
            raise _not_own(reference, root)


def _not_own(reference: Reference, root: Path) -> ConfigError:
    return ConfigError(
        f"the cassette names the entrypoint {reference}, which is not a function in a file under {root}; "
        f"if it is meant, pass --entrypoint {reference}"
    )


def load(reference: Reference, *, own_root: Path | None = None) -> Entrypoint:
    """Imports the entrypoint; with `own_root` only if it is the project's own.

    Raises:
        ConfigError: if it does not import, is not there, or is no Python function that can be run.
    """
    if own_root is not None:
        check_own(reference, own_root)
    else:
        specs(reference)
    try:
        module = importlib.import_module(reference.module)
    except StepforkError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"entrypoint {reference}: module {reference.module!r} does not import: "
            f"{one_line(error)}{_place(error)}"
        ) from None
    function = getattr(module, reference.function, None)
    if function is None:
        close = difflib.get_close_matches(reference.function, vars(module), 1)
        hint = f"; did you mean {reference.module}:{close[0]}?" if close else ""
        raise ConfigError(f"entrypoint {reference}: the module has no {reference.function!r}{hint}")
    inner = None if isinstance(function, type) else inspect.unwrap(function)
    if not isinstance(inner, FunctionType):
        raise ConfigError(
            f"entrypoint {reference}: expected a Python function, found {_kind(function)}; "
            "write a function that calls it"
        )
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ConfigError(
            f"entrypoint {reference} is a generator; write a function that runs it and returns the outcome"
        )
    if own_root is not None and not is_own(Path(inner.__code__.co_filename), own_root):
        raise _not_own(reference, own_root)
    return Entrypoint(reference, function)


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isbuiltin(value):
        return f"{value.__name__}, which is written in C"
    return f"a value of type {type(value).__name__}"


def _place(error: BaseException) -> str:
    """Where in the user's code an import failed."""
    if isinstance(error, SyntaxError):
        return ""  # its own text says so
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and os.sep + "importlib" + os.sep not in frame.filename
    ]
    own = [frame for frame in frames if "stepfork" not in Path(frame.filename).parts]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def import_folder(reference: Reference) -> Path | None:
    """The folder on ``sys.path`` that holds the entrypoint's top module; None if it is installed."""
    top = reference.module.partition(".")[0]
    library = sysconfig.get_paths()["stdlib"]
    # what is installed stands behind the standard library; before it, the working directory and PYTHONPATH
    installed = sys.path[sys.path.index(library) :] if library in sys.path else []
    if PathFinder.find_spec(top, installed) is not None:
        return None
    spec = specs(reference)[0]
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    on_path = PathFinder.find_spec(top) is not None and spec.origin is not None
    return Path(str(spec.origin)).parent if on_path else None
