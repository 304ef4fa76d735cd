"""Wraps attributes of classes by rows of a table, and restores them. The only file that knows wrapt.

Knows modules and classes; knows no session, no tool and no SDK.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from types import ModuleType
from typing import Any, Final

import wrapt

from stepfork.errors import ConfigError
from stepfork.instrument.adapter import Adapter, Patch

_MISSING: Final = object()


@dataclass(slots=True)
class _Wrapped:
    """One attribute that a wrapper stands in for."""

    owner: Any
    name: str
    before: Any
    wrapper: Any
    active: bool = True

    def undo(self) -> None:
        self.active = False  # should someone have wrapped ours, it lets calls through from now on
        now = vars(self.owner).get(self.name, _MISSING)
        if now is not self.wrapper:
            if now is not self.before:
                warnings.warn(
                    f"{self.owner.__name__}.{self.name} was patched again by another library; "
                    "stepfork's patch below it stays and does nothing",
                    stacklevel=2,
                )
            return
        if self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


class Wrappings:
    """The rows of all adapters: installed module by module as an SDK is imported, undone together.

    An adapter's own module brings all its fixed rows at once, so that an SDK that is not as expected is
    refused on its import and not patched by half. Rows with a ``*`` in their module wait for each module
    that matches: large SDKs import their parts late.
    """

    def __init__(self, adapters: Sequence[Adapter]) -> None:
        self._rows = {adapter.module: list(adapter.patches()) for adapter in adapters}
        self._late = [patch for rows in self._rows.values() for patch in rows if "*" in _module(patch)]
        late = sorted({_module(patch) for patch in self._late})
        self._is_late = re.compile("|".join(map(translate, late)) if late else r"(?!)").match
        self._done: set[tuple[str, int]] = set()
        self._wrapped: list[_Wrapped] = []

    def wants(self, module: str) -> bool:
        """Whether importing this module is of interest."""
        return module in self._rows or self._is_late(module) is not None

    def install(self, module: ModuleType) -> None:
        """Wraps what rows name in this module, once.

        Raises:
            ConfigError: if a row that is not optional names something that does not exist.
        """
        key = (module.__name__, id(module))
        if key in self._done:
            return
        fixed = [patch for patch in self._rows.get(module.__name__, ()) if patch not in self._late]
        found = [(_owner(patch), patch) for patch in fixed]  # all of them, before the first is wrapped
        self._done.add(key)
        for owner, patch in found:
            if owner is not None:
                self._put(owner, _attribute(patch), patch)
        for patch in self._late:
            if fnmatchcase(module.__name__, _module(patch)):
                for owner, name in _matching(module, patch):
                    self._put(owner, name, patch)

    def undo(self) -> None:
        """Restores the identical objects, the last wrapped first."""
        for wrapped in reversed(self._wrapped):
            wrapped.undo()
        self._wrapped.clear()
        self._done.clear()

    def _put(self, owner: Any, name: str, patch: Patch) -> None:
        original: Any = inspect.getattr_static(owner, name)
        row = _Wrapped(owner, name, vars(owner).get(name, _MISSING), None)
        row.wrapper = wrapt.FunctionWrapper(original, patch.wrapper, enabled=lambda: row.active)
        setattr(owner, name, row.wrapper)
        self._wrapped.append(row)


def _module(patch: Patch) -> str:
    return patch.target.partition(":")[0]


def _attribute(patch: Patch) -> str:
    return patch.target.rpartition(":")[2].rpartition(".")[2]


def _owner(patch: Patch) -> Any:
    """What has the attribute that a fixed row names; None if it is missing and may be."""
    *parents, name = patch.target.partition(":")[2].split(".")
    owner = _import(patch)
    for parent in parents:
        owner = getattr(owner, parent, None)
    if owner is not None and inspect.getattr_static(owner, name, _MISSING) is not _MISSING:
        return owner
    if not patch.optional:
        raise _unexpected(patch)
    return None


def _matching(module: ModuleType, patch: Patch) -> Iterator[tuple[Any, str]]:
    """The attributes of the module's own classes that a late row means."""
    kind, _, name = patch.target.partition(":")[2].partition(".")
    for value in list(vars(module).values()):
        # by type(): isinstance() asks a lazy proxy for its class, which may import something or fail
        own = issubclass(type(value), type) and value.__module__ == module.__name__
        if own and fnmatchcase(value.__name__, kind) and name in vars(value):
            yield value, name


def _import(patch: Patch) -> Any:
    try:
        return sys.modules.get(_module(patch)) or importlib.import_module(_module(patch))
    except ImportError:
        if patch.optional:
            return None
        raise _unexpected(patch) from None


def _unexpected(patch: Patch) -> ConfigError:
    return ConfigError(
        f"{patch.target} does not exist in the installed version of {_module(patch).partition('.')[0]}, "
        "so stepfork cannot record its calls; use a supported version"
    )
