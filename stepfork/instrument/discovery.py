"""Which functions of a module are tools. Knows what a module holds; patches and imports nothing.

By module pattern, a module's tools are the functions *defined in it* (their globals are the module's) that a
public name of it leads to: a ``def`` or lambda, whatever decorators, ``functools.partial``, bound methods or
tool objects stand around it, or an entry of a public dict, list, tuple or set. What is taken is the
innermost function, since its parameters are the ones that say something; the decorators go on running.

Never by module pattern: functions imported from elsewhere, private names, classes. A class is taken when it
is named, ``m:Class``: its public methods and ``__call__``, the ones inherited from classes of the same
top-level package included. (An inherited method is one function: it is a tool for its other heirs as well.)
Methods that a subclass overrides belong to the subclass, properties to nobody.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from stepfork.errors import ConfigError
from stepfork.instrument.function_kind import FunctionKind, kind_of
from stepfork.instrument.function_search import REGISTRIES, Behind, Owns, Search, attributes
from stepfork.instrument.tool_patterns import Pattern

__all__ = ["Found", "tools_of"]


@dataclass(frozen=True, slots=True)
class Found:
    """A function that is a tool.

    Attributes:
        function: the function whose code is to be swapped.
        name: ``lookup``, ``Class.method``, or the key of the registry it was found in.
        module: the module it was found in.
        is_method: whether its first parameter is ``self`` or ``cls``, which is not an argument of the call.
        kind: ``"sync"``, ``"async"``, ``"generator"`` or ``"async_generator"``.
        owner: the class that was named, if it is one's method. An inherited method has several.
        caches: what stands in front of it, here, and has a ``cache_clear()``.
    """

    function: FunctionType
    name: str
    module: str
    is_method: bool
    kind: FunctionKind
    owner: type | None = None
    caches: tuple[Any, ...] = field(default=(), compare=False)


def tools_of(module: ModuleType, patterns: Iterable[Pattern], exclude: Iterable[Pattern] = ()) -> list[Found]:
    """The tools of an executed module under these patterns, each function once, in order of definition.

    A method is found once for each class that is named and has it.
    Objects that a pattern names come first. They need not be public or defined in the module. `exclude`
    wins over `patterns`; it also knows a function by the place it is defined at.

    Raises:
        ConfigError: a named object does not exist, is written in C, or leads to no Python function.

    >>> import textwrap
    >>> from stepfork.instrument.tool_patterns import parse_pattern
    >>> [found.name for found in tools_of(textwrap, [parse_pattern("textwrap")])][:3]
    ['wrap', 'fill', 'shorten']
    """
    patterns = [pattern for pattern in patterns if pattern.matches_module(module.__name__)]
    exclude = tuple(exclude)
    found = [tool for pattern in patterns if pattern.target for tool in _named(module, pattern)]
    if not all(pattern.target for pattern in patterns):
        found += _public(module)
    excluded = _Excluded(module, exclude)
    unique: dict[tuple[int, type | None], Found] = {}
    for tool in found:
        if not excluded.contains(tool) and (id(tool.function), None) not in unique:
            unique.setdefault((id(tool.function), tool.owner), tool)
    return list(unique.values())


class _Excluded:
    """What the `exclude` patterns take out of one module."""

    def __init__(self, module: ModuleType, patterns: tuple[Pattern, ...]) -> None:
        self._patterns = patterns
        self._here = [pattern for pattern in patterns if pattern.matches_module(module.__name__)]
        named = [pattern for pattern in self._here if pattern.target]
        self._functions = {
            id(found.function) for pattern in named for found in _named(module, pattern, "exclude")
        }

    def contains(self, tool: Found) -> bool:
        return (
            id(tool.function) in self._functions
            or any(pattern.covers(tool.name) for pattern in self._here)
            or any(
                pattern.matches_module(tool.function.__globals__.get("__name__", ""))
                and pattern.covers(tool.function.__qualname__)
                for pattern in self._patterns
            )
        )


# What a module holds.

_LARGEST_REGISTRY, _DEEPEST_REGISTRY = 1000, 3  # beyond that it is data


def _defined_in(module: ModuleType) -> Owns:
    return lambda function: function.__globals__ is vars(module)


def _anything(function: FunctionType) -> bool:
    return True


@dataclass(slots=True)
class _Candidate:
    """A function of the module with the names that lead to it, and its place should the names clash."""

    behind: Behind
    place: str
    names: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        own = self.behind.function.__name__
        several = len(set(self.names)) != 1 and own != "<lambda>"
        return own if several or own in self.names else next(iter(self.names), self.place)


def _public(module: ModuleType) -> list[Found]:
    members = {name: value for name, value in list(vars(module).items()) if not name.startswith("_")}
    search = Search(_defined_in(module))
    direct: dict[int, _Candidate] = {}
    listed: dict[int, _Candidate] = {}
    for name, value in members.items():
        for behind in search.behind(value):
            direct.setdefault(id(behind.function), _Candidate(behind, name)).names.append(name)
    for name, value in members.items():
        for place, key, behind in _in_registry(value, search, name):
            candidate = listed.setdefault(id(behind.function), _Candidate(behind, place))
            candidate.names += [key] if key else []
    search.behind_all(vars(module).values())  # a cache may have a private name
    found = [_found(module, candidate.name, candidate.behind, search) for candidate in direct.values()]
    taken = {tool.name for tool in found}
    for identity, candidate in listed.items():
        if identity not in direct:
            name = candidate.place if candidate.name in taken else candidate.name
            taken.add(name)
            found.append(_found(module, name, candidate.behind, search))
    return found


def _in_registry(
    value: Any, search: Search, place: str, key: str = "", within: tuple[int, ...] = ()
) -> Iterator[tuple[str, str, Behind]]:
    """The functions in a dict, list, tuple or set, each with its place and its outermost string key."""
    kind = type(value)
    if not issubclass(kind, REGISTRIES) or len(value) > _LARGEST_REGISTRY or id(value) in within:
        return
    entries = value.items() if issubclass(kind, dict | MappingProxyType) else enumerate(value)
    inner: list[tuple[Any, str, str]] = []
    for index, (label, entry) in enumerate(list(entries)):
        text = label if isinstance(label, str) else ""
        there = f"{place}.{text}" if text else f"{place}[{index}]"
        inner.append((entry, there, key or text))
        for behind in search.behind(entry):
            yield there, key or text, behind
    within = (*within, id(value))
    if len(within) < _DEEPEST_REGISTRY:
        for entry, there, label in inner:
            yield from _in_registry(entry, search, there, label, within)


def _found(
    module: ModuleType,
    name: str,
    behind: Behind,
    search: Search,
    binds: bool = False,
    owner: type | None = None,
) -> Found:
    """`binds`: whether the function was taken raw from a class, where a method's first parameter is open."""
    is_method = not behind.static if binds else behind.bound
    function = behind.function
    named = owner if is_method else None
    caches = search.caches_of(function)
    return Found(function, name, module.__name__, is_method, kind_of(function), named, caches)


# What a pattern names.


def _named(module: ModuleType, pattern: Pattern, setting: str = "tools") -> list[Found]:
    """What ``m:target`` means: of a function what is behind it, of a class or a registry all of it.

    `setting` names it; in `exclude` an object without functions is no fault.
    """
    names = pattern.target.split(".")
    owner: Any = module
    value: Any = module
    for name in names:
        owner = value
        value = _member(owner, name)
        if value is _MISSING:
            if pattern.has_wildcard:
                return []
            raise ConfigError(f"{setting}: {_no_such_name(pattern, owner, name)}")
    if issubclass(type(value), type):
        found = _methods(module, value, pattern.target)
    else:
        found = _functions(module, owner, names[-1], value, pattern.target)
    if not found and setting == "tools" and not pattern.has_wildcard:
        raise ConfigError(f"{setting}: {_no_function(pattern, value)}")
    return found


def _functions(module: ModuleType, owner: Any, name: str, value: Any, target: str) -> list[Found]:
    in_class = not isinstance(owner, ModuleType) and name not in attributes(owner)
    binds = in_class and _binds(value)
    named = owner if in_class and issubclass(type(owner), type) else None
    for owns in (_defined_in(module), _anything):  # what is defined here before what is not
        search = Search(owns)
        behind = search.behind(value)
        listed = [] if behind else [(key, each) for _, key, each in _in_registry(value, search, name)]
        if behind or listed:
            search.behind_all(vars(module).values())  # the caches
        if behind:
            return [_found(module, target, each, search, binds, named) for each in behind]
        if listed:
            return [_found(module, key or each.function.__name__, each, search) for key, each in listed]
    search = Search(_anything)
    own_call = search.behind(_member(type(value), "__call__"))
    return [_found(module, target, each, search, binds=True) for each in own_call]


def _methods(module: ModuleType, cls: type, target: str) -> list[Found]:
    package = _package(cls.__module__)
    search = Search(lambda function: _package(function.__globals__.get("__name__", "")) == package)
    members: dict[str, Any] = {}
    for base in cls.__mro__:
        for name, value in vars(base).items():
            members.setdefault(name, value if _package(base.__module__) == package else None)
    return [
        _found(module, f"{target}.{name}", behind, search, binds=_binds(value), owner=cls)
        for name, value in members.items()
        if not name.startswith("_") or name == "__call__"
        for behind in search.behind(value)
    ]


def _package(module: str) -> str:
    return module.partition(".")[0]


def _binds(value: Any) -> bool:
    """Whether an attribute of a class gets the instance for its first argument."""
    if issubclass(type(value), functools.partial) and sys.version_info < (3, 14):
        return False  # 3.13 has a __get__ that only warns
    return hasattr(type(value), "__get__")


_MISSING = object()


def _member(owner: Any, name: str) -> Any:
    """The raw attribute: a staticmethod stays one. A module may make it on demand (PEP 562)."""
    if isinstance(owner, ModuleType):
        return getattr(owner, name, _MISSING)
    return inspect.getattr_static(owner, name, _MISSING)


def _no_such_name(pattern: Pattern, owner: Any, name: str) -> str:
    where = f"module {owner.__name__!r}" if isinstance(owner, ModuleType) else repr(_title(owner))
    close = difflib.get_close_matches(name, [key for key in dir(owner) if not key.startswith("__")], n=1)
    return f"{pattern.text!r}: {where} has no {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


def _no_function(pattern: Pattern, value: Any) -> str:
    if issubclass(type(value), type):
        return f"{pattern.text!r}: class {_title(value)!r} has no public method written in Python"
    if callable(value) and not attributes(value):
        return (
            f"{pattern.text!r} is not written in Python ({type(value).__name__}) and cannot be patched; "
            "call it from a function of your own and name that"
        )
    return f"{pattern.text!r} is of type {type(value).__name__!r} and leads to no Python function"


def _title(owner: Any) -> str:
    return getattr(owner, "__qualname__", type(owner).__qualname__)
