"""Generates the code that stands in for a function's own. Knows code objects; knows no handler, no swap.

The generated code has the kind, the parameters, the free variables, the name and the first line of the
original. Python itself binds the arguments; the body packs them into a dict and hands them to the `call` of
a switch, together with `invoke`, which runs the original. The switch stands among the constants of the code,
so that the user's globals stay as they were. All instructions stand on the first line, without columns: a
traceback shows the ``def`` line, never a wrong place in the body.

A code object is compiled once for each *shape* (kind and parameter counts) with placeholders for all names,
which are then filled in. So no parameter name, mangled or not, can clash with the body's own.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from textwrap import dedent, indent
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from stepfork.instrument.function_kind import FunctionKind

__all__ = ["generate"]

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


# Shapes: what two functions must share to share a template.


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


def generate(code: CodeType, kind: FunctionKind, switch: Any, original: FunctionType) -> CodeType:
    """A code object in the place of `code`, of that kind, that calls ``switch.call(arguments, invoke)``.

    `invoke(arguments)` calls `original`. What `call` returns is what the function returns, awaits or yields
    from, by its kind.
    """
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
