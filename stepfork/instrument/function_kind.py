"""The four kinds of Python functions. Knows the flags of code; knows nothing of what a function does."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Literal, TypeAlias

__all__ = ["FunctionKind", "kind_of"]

FunctionKind: TypeAlias = Literal["sync", "async", "generator", "async_generator"]


def kind_of(function: FunctionType) -> FunctionKind:
    """The kind of a function, from the flags of its code.

    >>> def numbers(): yield 1
    >>> kind_of(numbers)
    'generator'
    """
    flags = function.__code__.co_flags
    if flags & inspect.CO_COROUTINE:
        return "async"
    if flags & inspect.CO_ASYNC_GENERATOR:
        return "async_generator"
    return "generator" if flags & inspect.CO_GENERATOR else "sync"
