"""Which functions a call of a value would run. Knows wrappers of all kinds; knows no module and no tool."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import FunctionType, MappingProxyType, MethodType, ModuleType, NoneType
from typing import Any, TypeAlias

__all__ = ["REGISTRIES", "Behind", "Owns", "Search", "attributes"]


@dataclass(frozen=True, slots=True)
class Behind:
    """A function behind a value, and how the value leads to it."""

    function: FunctionType
    bound: bool = False  # through a bound method or a classmethod: the first parameter is given
    static: bool = False  # through a staticmethod


Owns: TypeAlias = Callable[[FunctionType], bool]
REGISTRIES = (dict, MappingProxyType, list, tuple, set, frozenset)
"""Types whose entries are looked at one by one; they are no wrappers themselves."""
_DATA = (NoneType, int, float, complex, str, bytes, bytearray, type, ModuleType, *REGISTRIES)
_DEEPEST = 12  # wrappers around wrappers


class Search:
    """Finds the functions that `owns` accepts and that a call of a value would run, the innermost of each.

    What was looked at is kept: every object is looked at once, circles end, and no id is used twice.
    So are the caches on the way: what has a ``cache_clear()``, as `functools.cache` makes.
    """

    def __init__(self, owns: Owns) -> None:
        self._owns = owns
        self._known: dict[int, tuple[Any, list[Behind]]] = {}
        self._caches: dict[int, list[Any]] = {}  # by the id of the function behind
        self._depth = 0

    def behind(self, value: Any) -> list[Behind]:
        """The functions behind a value; none behind plain data."""
        if issubclass(type(value), _DATA) or self._depth == _DEEPEST:
            return []
        if id(value) not in self._known:
            self._known[id(value)] = (value, [])
            self._depth += 1
            found = self._function(value) if type(value) is FunctionType else self._object(value)
            self._depth -= 1
            self._known[id(value)] = (value, found)
            if found and _really_has(value, "cache_clear"):
                for each in found:
                    self._caches.setdefault(id(each.function), []).append(value)
        return self._known[id(value)][1]

    def behind_all(self, values: Iterable[Any]) -> list[Behind]:
        """The functions behind several values, each once."""
        return list(dict.fromkeys(each for value in values for each in self.behind(value)))

    def caches_of(self, function: FunctionType) -> tuple[Any, ...]:
        """The caches that led to a function so far."""
        return tuple(self._caches.get(id(function), ()))

    def _function(self, function: FunctionType) -> list[Behind]:
        wrapped = function.__dict__.get("__wrapped__")
        inner = self.behind(wrapped)
        overloads = function.__dict__.get("registry")
        if type(overloads) is MappingProxyType:  # functools.singledispatch
            inner = self.behind_all([wrapped, *overloads.values()])
        if inner:
            return inner
        # A wrapper made without functools.wraps: from elsewhere, or saying nothing about its parameters.
        code, owned = function.__code__, self._owns(function)
        says_nothing = (
            not code.co_argcount + code.co_kwonlyargcount and code.co_flags & inspect.CO_VARKEYWORDS
        )
        if says_nothing or not owned:
            inner = self.behind_all(_cells(function))
            if not owned or len(inner) == 1:
                return inner
        return [Behind(function)]

    def _object(self, value: Any) -> list[Behind]:
        kind = type(value)  # not isinstance: a proxy lies about its class
        if kind is MethodType or kind is classmethod:
            return [replace(each, bound=True) for each in self.behind(value.__func__)]
        if kind is staticmethod:
            return [replace(each, static=True) for each in self.behind(value.__func__)]
        if issubclass(kind, functools.partial | functools.partialmethod):
            return self.behind(value.func)
        wrapped = _wrapped_by(value)
        if wrapped is not None:
            return self.behind(wrapped)
        # A decorator written as a class, or a framework's tool object, which has a name.
        held = attributes(value)
        is_tool = any(isinstance(held.get(name), str) for name in ("name", "__name__")) or callable(value)
        return self.behind_all(held.values()) if is_tool else []


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _wrapped_by(value: Any) -> Any:
    """`__wrapped__` of an object that really has it, without waking up a `__getattr__`."""
    if not _really_has(value, "__wrapped__"):
        return None
    try:
        return value.__wrapped__
    except Exception:  # a proxy with nothing behind it yet
        return None


def _really_has(value: Any, name: str) -> bool:
    return name in attributes(value) or any(name in vars(base) for base in type(value).__mro__)


def attributes(value: Any) -> dict[str, Any]:
    """What an object itself holds, without waking up a `__getattr__`."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return dict(held) if type(held) is dict else {}
