"""When patches are installed and undone, and which tools are patched. Knows imports and holds; no SDK.

Who wants patches takes a *hold* (``autopatch()`` for good, a session for its block). The first hold
installs, the last one released restores every object to what it was. In between the table follows the
patterns of all holds.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import FunctionType, ModuleType
from typing import Any, Final

from stepfork.errors import ConfigError
from stepfork.instrument import adapters
from stepfork.instrument.adapter import Adapter
from stepfork.instrument.adapters.tool_modules import ToolHandler
from stepfork.instrument.code_swap import Swap, swap
from stepfork.instrument.discovery import Found, tools_of
from stepfork.instrument.function_kind import kind_of
from stepfork.instrument.function_search import Search
from stepfork.instrument.import_watch import ImportWatch
from stepfork.instrument.importable import exists, may_come
from stepfork.instrument.tool_patterns import Pattern, parse_pattern
from stepfork.instrument.wrapping import Wrappings
from stepfork.session import active


@dataclass(eq=False, slots=True)
class Hold:
    """One wish for patches; given back with `release`."""

    patterns: tuple[Pattern, ...]
    exclude: tuple[Pattern, ...]


@dataclass(slots=True)
class _Swapped:
    """One tool function whose code is swapped, and whose wish it is.

    Asking the module again who wants it would be wrong: a test may have put a stand-in at its name.
    """

    swap: Swap
    wishes: list[tuple[Hold, Found]]
    caches: dict[int, Any] = field(default_factory=dict)

    @property
    def first(self) -> Found:
        """What it is where nothing says more."""
        return self.wishes[0][1]

    def found_for(self, bound: Any) -> Found:
        """What it is where it is called on this object or class: the method of the most derived class named.

        Of a class that is not named it is the method of the one that defines it.
        """
        owners = {found.owner: found for _, found in reversed(self.wishes) if found.owner is not None}
        if not owners or self.first.owner is None:
            return self.first
        kind = bound if issubclass(type(bound), type) else type(bound)
        for base in kind.__mro__:
            if base in owners:
                return owners[base]
        function = self.first.function
        name = function.__qualname__.rpartition("<locals>.")[2]
        return replace(self.first, name=name, module=function.__module__)

    def names(self) -> set[tuple[str, str]]:
        """All names that calls of it may get, each with its module."""
        return {(found.name, found.module) for _, found in self.wishes}


class Hooks:
    """All patches of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holds: list[Hold] = []
        self._tools: dict[int, _Swapped] = {}
        self._names: Counter[str] = Counter()
        self._decorated: weakref.WeakSet[FunctionType] = weakref.WeakSet()
        self._wrappings: Wrappings | None = None
        self._watch: ImportWatch | None = None

    # -- holds --------------------------------------------------------------------------------------

    def hold(self, tools: Iterable[str], exclude: Iterable[str] = ()) -> Hold:
        """Patches what these patterns name, now and whenever it is imported; and every SDK with an adapter.

        Raises:
            ConfigError: for a malformed pattern, a named object that is no Python function, or an SDK
                whose internals are not as expected. Nothing stays patched by this call then.
        """
        new = Hold(tuple(map(parse_pattern, tools)), tuple(map(parse_pattern, exclude)))
        with self._lock:
            self._holds.append(new)
            try:
                if self._watch is None:
                    self._install()
                self.sweep()
            except BaseException:
                self.release(new)
                raise
        return new

    def release(self, hold: Hold) -> None:
        """Undoes what no other hold wants; with the last hold every object is restored."""
        with self._lock:
            if hold in self._holds:
                self._holds.remove(hold)
            if self._holds:
                self._drop(hold)
            else:
                self._uninstall()

    def release_all(self) -> None:
        """Restores everything, whoever holds it."""
        with self._lock:
            self._holds.clear()
            self._uninstall()

    def add_tool(self, function: FunctionType) -> None:
        """Makes one function a tool, whatever the patterns say."""
        with self._lock:
            self._decorated.add(function)
            for hold in self._holds:
                self._swap(_decorated(function), hold)

    def sweep(self) -> None:
        """Catches what was imported, reloaded or defined unnoticed."""
        with self._lock:
            if self._watch is None:
                return
            self._watch.sweep()
            for name in list(sys.modules):
                module = sys.modules.get(name)
                if isinstance(module, ModuleType) and self._wants(name) and not _executing(module):
                    self._patch_tools(module)
            for function in list(self._decorated):
                for hold in self._holds:
                    self._swap(_decorated(function), hold)

    def check_modules(self, tools: Iterable[str]) -> None:
        """Refuses patterns without wildcard whose module does not exist; imports nothing.

        Raises:
            ConfigError: naming the pattern.
        """
        for pattern in map(parse_pattern, tools):
            if not pattern.has_wildcard and pattern.module not in sys.modules and not exists(pattern.module):
                raise ConfigError(
                    f"tools: there is no module {pattern.module!r} (from the pattern {pattern.text!r}); "
                    "correct the name, or make the module importable from here"
                )

    def may_be_tool(self, name: str) -> bool:
        """Whether a patched tool has this name, or one may have whose module is not imported yet."""
        with self._lock:
            known = [known for swapped in self._tools.values() for known in swapped.names()]
            patterns = [pattern for hold in self._holds for pattern in hold.patterns]
        if any(name in (own, f"{module}:{own}") for own, module in known):
            return True
        return not patterns or any(map(may_come, patterns))  # without any, tools come decorated

    def tool_names(self) -> set[str]:
        """The names of the patched tools."""
        with self._lock:
            return {name for swapped in self._tools.values() for name, _ in swapped.names()}

    def empty_caches(self) -> None:
        """Empties the caches in front of the tools: no answer of one session gets into another."""
        with self._lock:
            caches = [cache for swapped in self._tools.values() for cache in swapped.caches.values()]
            decorated = list(self._decorated) if self._holds else []
        for cache in [*caches, *(cache for function in decorated for cache in _caches_of(function))]:
            with suppress(Exception):  # one that each object has of its own (cachetools.cachedmethod)
                cache.cache_clear()

    # -- install and undo ---------------------------------------------------------------------------

    def _install(self) -> None:
        self._wrappings = Wrappings(_all_adapters())
        watch = self._watch = ImportWatch(on_error=_warn)
        watch.watch(self._wrappings.wants, self._adapt)
        watch.watch(self._wants, self._patch_tools)
        watch.install()
        active.patched(True)

    def _uninstall(self) -> None:
        active.patched(False)
        if self._watch is not None:
            self._watch.remove()
            self._watch = None
        for swapped in reversed(list(self._tools.values())):
            swapped.swap.undo()
        if self._wrappings is not None:
            self._wrappings.undo()
            self._wrappings = None
        self._tools.clear()
        self._names.clear()

    def _wants(self, module: str) -> bool:
        for hold in self._holds:  # no generators: each session asks this of every module there is
            for pattern in hold.patterns:
                if pattern.matches_module(module):
                    return True
        return False

    def _adapt(self, module: ModuleType) -> None:
        with self._lock:
            if self._wrappings is not None:
                self._wrappings.install(module)

    def _patch_tools(self, module: ModuleType) -> None:
        with self._lock:
            exclude = [pattern for hold in self._holds for pattern in hold.exclude]
            for hold in self._holds:
                if any(pattern.matches_module(module.__name__) for pattern in hold.patterns):
                    for found in tools_of(module, hold.patterns, exclude):
                        self._swap(found, hold)

    def _swap(self, found: Found, hold: Hold) -> None:
        swapped = self._tools.get(id(found.function))
        if swapped is None:
            handler = ToolHandler(
                found.function, lambda bound: self._names_of(made, bound), _first_parameter(found)
            )
            swapped = made = _Swapped(swap(found.function, handler), [])
            self._tools[id(found.function)] = swapped
        swapped.caches.update((id(cache), cache) for cache in found.caches)
        if not any(known is hold and it.owner is found.owner for known, it in swapped.wishes):
            self._wish(swapped, [*swapped.wishes, (hold, found)])

    def _wish(self, swapped: _Swapped, wishes: list[tuple[Hold, Found]]) -> None:
        """Who wants a tool, and under which names, is this from now on."""
        self._names.subtract(name for name, _ in swapped.names())
        swapped.wishes = wishes
        self._names.update(name for name, _ in swapped.names())

    def _names_of(self, swapped: _Swapped, bound: Any) -> tuple[str, str]:
        found = swapped.found_for(bound)
        full = f"{found.module}:{found.name}"
        others = self._names[found.name] - ((found.name, found.module) in swapped.names())
        return (found.name, full) if others <= 0 else (full, "")

    def _drop(self, hold: Hold) -> None:
        for key, swapped in list(self._tools.items()):
            left = [wish for wish in swapped.wishes if wish[0] is not hold]
            if len(left) == len(swapped.wishes):
                continue
            if not left:
                swapped.swap.undo()
                self._names.subtract(name for name, _ in swapped.names())
                del self._tools[key]
            else:
                self._wish(swapped, left)


HOOKS: Final = Hooks()
"""The patches of this process. Importing this file installs nothing."""
active.ask_for_tools(HOOKS.may_be_tool, HOOKS.tool_names)


def _warn(module: str, error: Exception) -> None:
    warnings.warn(
        f"stepfork could not patch {module}: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2
    )


@functools.cache
def patched_sdks() -> tuple[str, ...]:
    """The packages that adapters patch."""
    return tuple(adapter.module for adapter in _all_adapters())


def _all_adapters() -> list[Adapter]:
    found = []
    for info in pkgutil.iter_modules(adapters.__path__):
        adapter = getattr(importlib.import_module(f"{adapters.__name__}.{info.name}"), "ADAPTER", None)
        if adapter is not None:
            found.append(adapter)
    return found


def _decorated(function: FunctionType) -> Found:
    name = function.__qualname__.rpartition("<locals>.")[2]
    return Found(function, name, function.__module__, "." in name, kind_of(function))


def _caches_of(function: FunctionType) -> tuple[Any, ...]:
    """The caches at the place where a function was defined; what decorates it is known only later."""
    value: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        value = inspect.getattr_static(value, name, None)
    search = Search(lambda other: other is function)
    search.behind(value)
    return search.caches_of(function)


def _first_parameter(found: Found) -> str | None:
    return found.function.__code__.co_varnames[0] if found.is_method else None


def _executing(module: ModuleType) -> bool:
    """Whether its import has not ended yet; its hook comes when it has."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))
