"""Puts a dispatch in the place of a function's own `__code__`. Knows functions; knows no session, no tool.

Whoever holds a function - a registry, a partial, a closure, a default argument - holds the function object,
and the function object holds its code. Changing the code therefore reaches every reference there is, where
changing a module's attribute reaches one. The code that takes its place (`generated_code`) hands the bound
arguments to a `Handler`, together with `invoke`, which runs the original.

The garbage collector does not look into code objects: a swapped function that is dropped without `Swap.undo`
stays in memory, with its globals.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from types import FunctionType
from typing import Any, Protocol, TypeAlias

from stepfork.instrument.function_kind import FunctionKind, kind_of
from stepfork.instrument.generated_code import generate

__all__ = ["Handler", "Swap", "swap"]

Arguments: TypeAlias = dict[str, Any]
_METHODS: dict[FunctionKind, str] = {
    "sync": "call",
    "async": "acall",
    "generator": "gcall",
    "async_generator": "agcall",
}


class Handler(Protocol):
    """What answers the calls of a swapped function: one method for each kind of function.

    `arguments` are the bound arguments by parameter, defaults filled in, in the order of the signature:
    ``*args`` is a tuple under its name, ``**kw`` a dict under its name. ``self`` and ``cls`` are parameters
    like any other. The dict is fresh for each call. `invoke(arguments)` runs the original function with
    such a dict and returns what it returns: a value, an awaitable, a generator or an async generator.

    >>> class Loud:
    ...     def call(self, arguments, invoke):
    ...         print(arguments)
    ...         return invoke(arguments)
    """

    def call(self, arguments: Arguments, invoke: Callable[[Arguments], Any]) -> Any:
        """Answers a call of a plain function."""

    async def acall(self, arguments: Arguments, invoke: Callable[[Arguments], Awaitable[Any]]) -> Any:
        """Answers a call of a coroutine function."""

    def gcall(
        self, arguments: Arguments, invoke: Callable[[Arguments], Generator[Any, Any, Any]]
    ) -> Generator[Any, Any, Any]:
        """The generator that stands for the original's; called at its first step, not before."""

    def agcall(
        self, arguments: Arguments, invoke: Callable[[Arguments], AsyncGenerator[Any, Any]]
    ) -> AsyncGenerator[Any, Any]:
        """The async generator that stands for the original's; called at its first step, not before."""


class Swap:
    """One function whose code was replaced; made by `swap`.

    Attributes:
        function: the function, the same object as before.
        original: a second function that still has the original code.
    """

    __slots__ = ("_code", "_generated", "_switch", "function", "original")

    def __init__(self, function: FunctionType, original: FunctionType, switch: _Switch) -> None:
        self.function = function
        self.original = original
        self._code = original.__code__
        self._generated = function.__code__
        self._switch = switch

    def undo(self) -> bool:
        """Gives the function its identical code object back; True if it has it now.

        False: someone else has replaced the code since. Theirs is left alone, and our dispatch, which they
        may have kept as *their* original, is made inert: it runs the original function and tells no one.
        May be called again, also after False.

        >>> class Nothing:
        ...     def call(self, arguments, invoke):
        ...         return None
        >>> def double(x): return 2 * x
        >>> code, done = double.__code__, swap(double, Nothing())
        >>> double(4), done.undo(), double.__code__ is code
        (None, True, True)
        """
        self._switch.call = _pass_through
        if self.function.__code__ is self._generated:
            self.function.__code__ = self._code
        return self.function.__code__ is self._code


def swap(function: FunctionType, handler: Handler) -> Swap:
    """Sends every call of `function` to `handler`, whoever holds the function; returns what undoes it.

    Signature, defaults, source, docstring, kind, identity and pickling of the function stay. Only this
    function object is affected: another closure made by the same factory is not. The function's own
    recursive calls go to the handler too.

    Raises:
        TypeError: `function` is not a plain Python function (unwrap methods and partials first).

    >>> class Plus:
    ...     def call(self, arguments, invoke):
    ...         return invoke(arguments) + 1
    >>> def double(x): return 2 * x
    >>> held, done = [double], swap(double, Plus())
    >>> held[0](4), done.undo(), held[0](4)
    (9, True, 8)
    """
    if type(function) is not FunctionType:
        raise TypeError(f"only a Python function has code that can be swapped, not {type(function).__name__}")
    kind = kind_of(function)
    original = _second(function)
    switch = _Switch()
    switch.call = getattr(handler, _METHODS[kind])
    function.__code__ = generate(function.__code__, kind, switch, original)
    return Swap(function, original, switch)


def _pass_through(arguments: Arguments, invoke: Callable[[Arguments], Any]) -> Any:
    return invoke(arguments)


class _Switch:
    """The one mutable thing in a generated code object: where calls go.

    It copies and pickles as an inert one: a function sent by value to another process runs as it was.
    """

    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call: Callable[..., Any] = _pass_through

    def __reduce__(self) -> tuple[type[_Switch], tuple[()]]:
        return (_Switch, ())


def _second(function: FunctionType) -> FunctionType:
    """A second function with the code, cells and attributes of the first."""
    second = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    names = ["__kwdefaults__", "__qualname__", "__module__", "__doc__", "__annotations__", "__type_params__"]
    if sys.version_info >= (3, 14):  # asking for __annotations__ would evaluate them
        names[0] = "__annotate__"
    for name in names:
        if hasattr(function, name):
            setattr(second, name, getattr(function, name))
    second.__dict__.update(function.__dict__)
    return second
