"""Exceptions <-> plain values. Names, describes and rebuilds them; runs no constructor but builtins'.

An exception is described by its class (``module:qualified.name``), the arguments it is rebuilt from and
its attributes. Classes are found among modules that are imported already; nothing is imported here.
"""

from __future__ import annotations

import sys
from typing import Any

from stepfork.cassette.values import BadValue, Unsupported, decode, encode, type_name
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain


def class_name(kind: type) -> str:
    """``module:qualified.name`` of a class.

    >>> class_name(KeyError)
    'builtins:KeyError'
    """
    return f"{kind.__module__}:{kind.__qualname__}"


def find_exception_class(name: str) -> type[BaseException]:
    """The exception class of that name among the modules imported so far.

    Raises:
        BadValue: if there is none, or if it is no exception class.

    >>> find_exception_class("builtins:KeyError")
    <class 'KeyError'>
    """
    module_name, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module_name)
    if found is None:
        raise BadValue(f"exception class {name!r}: module {module_name!r} is not imported by the program")
    for part in qualified.split("."):
        # vars() and no getattr: a module's __getattr__ could run code or import something
        found = getattr(found, "__dict__", {}).get(part)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise BadValue(f"{name!r} is no exception class")
    return found


def encode_exception(error: BaseException, path: str = "error") -> dict[str, Plain]:
    """The plain form of an exception, proven to come back as the same class with the same content.

    Raises:
        Unsupported: if it would not.

    >>> encode_exception(KeyError("k"))
    {'class': 'builtins:KeyError', 'args': ['k']}
    """
    arguments = _arguments(error)
    form: dict[str, Plain] = {
        "class": class_name(type(error)),
        "args": [encode(value, f"{path}.args[{at}]") for at, value in enumerate(arguments)],
    }
    attributes = dict(vars(error))
    if attributes:
        form["attributes"] = {key: encode(value, f"{path}.{key}") for key, value in attributes.items()}
    try:
        again = decode_exception(form)
    except BadValue as problem:
        raise Unsupported(path, type_name(error), f"({problem})") from None
    try:
        same = _same(again, error, attributes)
    except Unsupported:
        raise
    except Exception as problem:  # a text or attribute that raises when it is asked for
        raise Unsupported(path, type_name(error), f"(it cannot be compared: {type_name(problem)})") from None
    if not same:
        raise Unsupported(path, type_name(error), "(it does not come back equal)")
    return form


def text_of(error: BaseException) -> str:
    """The text of an exception; one that cannot be read is empty.

    >>> text_of(ValueError("no"))
    'no'
    """
    try:
        return str(error)
    except Exception:
        return ""


def _same(again: BaseException, error: BaseException, attributes: dict[str, Any]) -> bool:
    return (
        type(again) is type(error)
        and str(again) == str(error)
        and canonical_text([encode(v) for v in again.args]) == canonical_text([encode(v) for v in error.args])
        and canonical_text(encode(vars(again))) == canonical_text(encode(attributes))
    )


def decode_exception(form: Plain) -> BaseException:
    """A fresh exception from its plain form.

    Raises:
        BadValue: if the class is not to be found or the content does not fit it.

    >>> decode_exception({"class": "builtins:ValueError", "args": ["no"]})
    ValueError('no')
    """
    if (
        not isinstance(form, dict)
        or not isinstance(form.get("class"), str)
        or not isinstance(form.get("args"), list)
    ):
        raise BadValue("an error needs 'class' (module:name) and 'args' (a sequence)")
    kind = find_exception_class(str(form["class"]))
    if not issubclass(kind, Exception | SystemExit):
        raise BadValue(f"{form['class']!r} ends a program and is no outcome of a call")
    arguments = decode(form["args"])
    attributes = decode(form.get("attributes", {}))
    if not isinstance(attributes, dict):
        raise BadValue("'attributes' must be a mapping")
    try:
        if _is_builtin(kind):
            error = kind(*arguments)
        else:
            if any("__new__" in vars(base) for base in kind.__mro__ if not _is_builtin(base)):
                raise BadValue(f"exception class {form['class']!r} has its own __new__")
            error = kind.__new__(kind, *arguments)
        error.__dict__.update(attributes)
    except BadValue:
        raise
    except Exception as problem:
        raise BadValue(
            f"exception class {form['class']!r} cannot be built from its args: {problem}"
        ) from None
    return error


def _is_builtin(kind: type) -> bool:
    return kind.__module__ == "builtins"


def _arguments(error: BaseException) -> tuple[Any, ...]:
    """What the exception is rebuilt from: ``args``, or for builtins with more state what they reduce to."""
    if _is_builtin(type(error)) or isinstance(error, OSError):
        reduced = error.__reduce__()
        if isinstance(reduced, tuple) and len(reduced) > 1 and isinstance(reduced[1], tuple):
            return reduced[1]
    return error.args
