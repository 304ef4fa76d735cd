"""Tells when a watched module has been executed. Knows `sys.meta_path`; knows no pattern and no patch.

A finder at the front of `sys.meta_path` asks the finders behind it for the spec of a watched module and puts
a loader of ours around the one they name. The first thing that loader does when the module is executed is to
take itself out again, so that ``module.__loader__`` and ``module.__spec__.loader`` are what they always were
while the module runs and ever after; the last thing is to call back.

Not seen by the finder: modules imported before `ImportWatch.install`, modules claimed by a finder that
someone put before ours and that asks nobody else, and loaders of the old ``load_module`` protocol.
`ImportWatch.sweep` finds those. Namespace packages execute nothing, so there is nothing to tell.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from stepfork.errors import StepforkError

__all__ = ["ImportWatch"]


class ImportWatch:
    """Calls back after watched modules are executed, by import or reload.

    A callback that raises a StepforkError makes the import raise it. Any other exception is kept from the
    user's import: it goes to `on_error` (module name, exception) and stands in `errors`.

    A callback runs in the importing thread, under that module's import lock; two threads may run one at the
    same time, and it may see a module more than once (reload, `sweep`).

    >>> watch = ImportWatch()
    >>> watch.watch(lambda name: name == "this_module_is_mine", lambda module: print(module.__name__))
    >>> watch.install()
    >>> watch.installed
    True
    >>> watch.remove()
    """

    def __init__(self, on_error: Callable[[str, Exception], None] | None = None) -> None:
        self.errors: list[tuple[str, Exception]] = []
        self._on_error = on_error
        self._watches: tuple[_Watch, ...] = ()
        self._lock = threading.RLock()
        self._searching = threading.local()

    def watch(self, matches: Callable[[str], bool], callback: Callable[[ModuleType], None]) -> None:
        """Adds a callback for the modules whose full name `matches`.

        `matches` is asked once for every module that is imported, so it should be cheap. The callback is
        not called for modules that exist already; `sweep` does that.
        """
        with self._lock:
            self._watches += (_Watch(matches, callback),)

    @property
    def installed(self) -> bool:
        """Whether the finder is on `sys.meta_path`."""
        return any(finder is self for finder in sys.meta_path)

    def install(self) -> None:
        """Puts the finder at the front of `sys.meta_path`, or back there if others went before it."""
        with self._lock:
            # One slice assignment: another thread that is walking the list meets no gap.
            sys.meta_path[:] = [self, *(finder for finder in sys.meta_path if finder is not self)]

    def remove(self) -> None:
        """Takes the finder off `sys.meta_path`. It remembers what it was to watch."""
        with self._lock:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def sweep(self) -> None:
        """Calls back for the watched modules that exist and were executed unnoticed. Needs no `install`.

        Modules that are being imported at this moment are left to their import, lazy ones to their loading.
        """
        seen: set[int] = set()
        for name, module in list(sys.modules.items()):
            watches = self._watches_of(name)
            if not watches or id(module) in seen or not isinstance(module, ModuleType) or _is_lazy(module):
                continue
            seen.add(id(module))
            if not getattr(getattr(module, "__spec__", None), "_initializing", False):
                self._tell([watch for watch in watches if not watch.knows(name, module)], name, module)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, with a loader that calls back; None if it is not watched."""
        if not self._watches_of(fullname):
            return None
        names: set[str] = self._searching.__dict__.setdefault("names", set())
        if fullname in names:  # a finder behind us starts the search anew, to wrap what it finds itself
            return None
        names.add(fullname)
        try:
            spec = self._ask_others(fullname, path, target)
        finally:
            names.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module") and not self._is_ours(spec.loader):
            spec.loader = _TellingLoader(spec.loader, self, fullname)  # type: ignore[assignment]
        return spec

    def _ask_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        finders = list(sys.meta_path)
        ours = next((place for place, finder in enumerate(finders) if finder is self), -1)
        for finder in finders[ours + 1 :]:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(fullname, path, target) if find_spec is not None else None
            if spec is not None:
                return spec
        return None

    def _is_ours(self, loader: Any) -> bool:
        return type(loader) is _TellingLoader and loader._owner is self

    def _watches_of(self, name: str) -> list[_Watch]:
        return [watch for watch in self._watches if watch.matches(name)]

    def _executed(self, name: str, module: ModuleType) -> None:
        if self.installed:
            self._tell(self._watches_of(name), name, module)

    def _tell(self, watches: list[_Watch], name: str, module: ModuleType) -> None:
        for watch in watches:
            try:
                watch.callback(module)
            except StepforkError:
                raise
            except Exception as error:
                self.errors.append((name, error))
                if self._on_error is not None:
                    self._on_error(name, error)
            watch.remember(name, module)


class _Watch:
    """One callback, and which executions of which modules it was called for."""

    def __init__(self, matches: Callable[[str], bool], callback: Callable[[ModuleType], None]) -> None:
        self.matches = matches
        self.callback = callback
        self._known: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {}

    def remember(self, name: str, module: ModuleType) -> None:
        self._known[name] = (weakref.ref(module), _reference(getattr(module, "__spec__", None)))

    def knows(self, name: str, module: ModuleType) -> bool:
        """Whether this execution of the module is known: a reload gives it a new spec."""
        module_then, spec_then = self._known.get(name, (_nothing, _nothing))
        return module_then() is module and spec_then() is getattr(module, "__spec__", None)


def _nothing() -> None:
    return None


def _reference(spec: object) -> Callable[[], object]:
    return _nothing if spec is None else weakref.ref(spec)


class _TellingLoader:
    """Stands for a loader from the moment its module is found to the moment it is executed.

    In every other respect it is that loader: attributes, methods and `isinstance`.
    """

    def __init__(self, loader: Any, owner: ImportWatch, name: str) -> None:
        self._loader = loader
        self._owner = owner
        self._name = name

    def exec_module(self, module: ModuleType) -> None:
        spec = object.__getattribute__(module, "__spec__")
        if getattr(spec, "loader", None) is self:
            spec.loader = self._loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._loader
        was_lazy = _is_lazy(module)
        self._loader.exec_module(module)
        if _is_lazy(module) and not was_lazy:  # by importlib.util.LazyLoader, until its first use
            spec.loader = _TellingLoader(spec.loader, self._owner, self._name)
        else:
            self._owner._executed(self._name, module)

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # not yet there, in a copy
            raise AttributeError(name)
        return getattr(self._loader, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._loader)


def _is_lazy(module: object) -> bool:
    """Whether the module waits for its first use. Touches no attribute of it, which would be one."""
    lazy = getattr(sys.modules.get("importlib.util"), "_LazyModule", None)
    return lazy is not None and type(module) is lazy
