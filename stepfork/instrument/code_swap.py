"""Puts a dispatch in the place of a function's own `__code__`. Knows code objects; knows no session, no tool.

Whoever holds a function - a registry, a partial, a closure, a default argument - holds the function object,
and the function object holds its code. Changing the code therefore reaches every reference there is, where
changing a module's attribute reaches one.

The generated code has the kind, the parameters, the free variables, the name and the first line of the
original. Python itself binds the arguments; the body packs them into a dict and hands them to a `Handler`,
together with `invoke`, which runs the original. The handler stands among the constants of the code, so that
the user's globals stay as they were. All instructions stand on the first line, without columns: a traceback
shows the ``def`` line, never a wrong place in the body.

A generated code object is compiled once for each *shape* (kind and parameter counts) with placeholders for
all names, which are then filled in. So no parameter name, mangled or not, can clash with the body's own.

The garbage collector does not look into code objects: a swapped function that is dropped without `Swap.undo`
stays in memory, with its globals.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import cache
from textwrap import dedent, indent
from types import CodeType, FunctionType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

__all__ = ["FunctionKind", "Handler", "Swap", "is_swapped", "kind_of", "swap"]

FunctionKind: TypeAlias = Literal["sync", "async", "generator", "async_generator"]
Arguments: TypeAlias = dict[str, Any]


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

    @property
    def active(self) -> bool:
        """Whether the function still runs the code this swap gave it."""
        return self.function.__code__ is self._generated

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
    function.__code__ = _generate(function.__code__, kind, switch, original)
    return Swap(function, original, switch)


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


def is_swapped(function: FunctionType) -> bool:
    """Whether the function's code is a dispatch of ours that is not inert.

    >>> is_swapped(kind_of)
    False
    """
    constants = function.__code__.co_consts
    return any(type(value) is _Switch and value.call is not _pass_through for value in constants)


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


# Shapes: what two functions must share to share a template.

_METHODS: dict[FunctionKind, str] = {
    "sync": "call",
    "async": "acall",
    "generator": "gcall",
    "async_generator": "agcall",
}

# Strings that are replaced by objects; a constant may not be called, but its attribute may.
_SWITCH, _INVOKE, _DOC = "<switch>", "<invoke>", "<doc>"
_CALL = f"{_SWITCH!r}.call(ARGUMENTS, {_INVOKE!r})"
_EXCEPTIONS: dict[str, type[BaseException]] = {
    f"<{kind.__name__}>": kind for kind in (BaseException, GeneratorExit, StopAsyncIteration)
}

# An async generator has no `yield from`: the last one is what PEP 380 says, with awaits.
_BODIES: dict[FunctionKind, str] = {
    "sync": f"return {_CALL}",
    "async": f"return await {_CALL}",
    "generator": f"return (yield from {_CALL})",
    "async_generator": f"""
        inner = {_CALL}
        try:
            item = await inner.__anext__()
            while True:
                try:
                    sent = yield item
                except '<GeneratorExit>':
                    await inner.aclose()
                    raise
                except '<BaseException>' as error:
                    item = await inner.athrow(error)
                else:
                    item = await inner.asend(sent)
        except '<StopAsyncIteration>':
            return
    """,
}


class _Shape(NamedTuple):
    kind: FunctionKind
    positional_only: int
    positional: int  # the positional-only ones included
    keyword_only: int
    has_args: bool
    has_kwargs: bool
    free: int
    has_doc: bool


def _has_doc(code: CodeType) -> bool:
    if sys.version_info >= (3, 14):
        return bool(code.co_flags & 0x4000000)  # CO_HAS_DOCSTRING, which inspect does not name
    return bool(code.co_consts) and isinstance(code.co_consts[0], str)


@cache
def _templates(shape: _Shape) -> tuple[CodeType, CodeType]:
    """The dispatch and the invoker for a shape. Parameter number i of `co_varnames` is called ``_i``."""
    last = shape.positional + shape.keyword_only
    positional = [f"_{i}" for i in range(shape.positional)]
    keyword_only = [f"_{i}" for i in range(shape.positional, last)]
    args = [f"_{last}"] if shape.has_args else []
    kwargs = [f"_{last + shape.has_args}"] if shape.has_kwargs else []

    parameters = list(positional)
    if shape.positional_only:
        parameters.insert(shape.positional_only, "/")
    if args or keyword_only:
        parameters.append("*" + "".join(args))
    parameters += keyword_only + ["**" + name for name in kwargs]

    packed = ", ".join(f"{name!r}: {name}" for name in positional + args + keyword_only + kwargs)
    unpacked = [f"a[{name!r}]" for name in positional]
    unpacked += [f"*a[{name!r}]" for name in args]
    unpacked += [f"{name}=a[{name!r}]" for name in keyword_only]
    unpacked += [f"**a[{name!r}]" for name in kwargs]

    free = [f"free_{i:03}" for i in range(shape.free)]
    head = "async def" if shape.kind.startswith("async") else "def"
    statements = [repr(_DOC)] if shape.has_doc else []
    statements += [f"if 0: {', '.join(free)}"] if free else []  # makes them free variables, runs nothing
    statements.append(_BODIES[shape.kind].replace("ARGUMENTS", f"{{{packed}}}"))
    lines = [
        f"def outer({', '.join(free)}):",
        f"    {head} dispatch({', '.join(parameters)}):",
        *(indent(dedent(statement), " " * 8) for statement in statements),
        f"def invoke(a): return original({', '.join(unpacked)})",
    ]
    # optimize=0: under -OO the docstring of the template would be dropped
    module = compile("\n".join(lines), "<stepfork>", "exec", dont_inherit=True, optimize=0)
    outer, invoke = (value for value in module.co_consts if isinstance(value, CodeType))
    (dispatch,) = (value for value in outer.co_consts if isinstance(value, CodeType))
    return dispatch, invoke


def _generate(code: CodeType, kind: FunctionKind, switch: _Switch, original: FunctionType) -> CodeType:
    shape = _Shape(
        kind,
        code.co_posonlyargcount,
        code.co_argcount,
        code.co_kwonlyargcount,
        bool(code.co_flags & inspect.CO_VARARGS),
        bool(code.co_flags & inspect.CO_VARKEYWORDS),
        len(code.co_freevars),
        _has_doc(code),
    )
    dispatch, invoke = _templates(shape)
    count = shape.positional + shape.keyword_only + shape.has_args + shape.has_kwargs
    parameters = code.co_varnames[:count]
    filling: dict[str, Any] = {f"_{i}": name for i, name in enumerate(parameters)}
    invoke = invoke.replace(co_consts=_filled(invoke.co_consts, filling))
    filling |= _EXCEPTIONS
    filling[_SWITCH] = switch
    filling[_INVOKE] = FunctionType(invoke, {"original": original})
    if shape.has_doc:
        filling[_DOC] = code.co_consts[0]
    return dispatch.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_flags=code.co_flags,
        co_consts=_filled(dispatch.co_consts, filling),
        co_varnames=parameters + tuple(f".{name}" for name in dispatch.co_varnames[count:]),
        co_freevars=code.co_freevars,
        co_linetable=_all_on_the_first_line(len(dispatch.co_code) // 2),
    )


def _filled(constants: tuple[Any, ...], filling: dict[str, Any]) -> tuple[Any, ...]:
    """The constants with the placeholders replaced, inside tuples (of dict keys and keywords) too."""
    return tuple(
        _filled(value, filling)
        if isinstance(value, tuple)
        else filling.get(value, value)  # every key is a string that nothing but a placeholder equals
        for value in constants
    )


def _all_on_the_first_line(units: int) -> bytes:
    """A location table (PEP 626, CPython's Objects/locations.md) for so many code units, without columns.

    An entry is ``0x80 | 13 << 3 | units - 1`` (13: no columns; at most 8 units) and a line delta of 0.
    """
    full, rest = divmod(units, 8)
    table = bytes([0x80 | 13 << 3 | 7, 0]) * full
    return table + (bytes([0x80 | 13 << 3 | rest - 1, 0]) if rest else b"")
