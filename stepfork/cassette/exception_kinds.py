"""Kinds of exceptions: the builtin one below a class, and those that are made another way. Knows no file.

pydantic's ``ValidationError`` is written in C; urllib's ``HTTPError`` is a response too, and what it was not
asked for yet is still to come from the network; those of urllib3 hold the connection.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPMessage
from types import MemberDescriptorType
from typing import Any, Final

from stepfork.cassette.values.http_messages import of_transport
from stepfork.cassette.values.policy import class_name


@dataclass(frozen=True, slots=True)
class ExceptionKind:
    """`take` gives the arguments that `make` makes it of; `hides` are attributes that they say already."""

    take: Callable[[Any], list[Any]]
    make: Callable[[Any, list[Any]], BaseException]
    hides: frozenset[str] = frozenset()


_NOT_KEPT: Final = frozenset({"obj"})
"""What `AttributeError` holds for the interpreter's suggestions: the very object, whatever it is."""


def bare_exception(kind: type, arguments: tuple[Any, ...]) -> BaseException:
    """An exception of that class, by the constructor of the builtin one it derives from."""
    base = builtin_below(kind)
    error: BaseException = base.__new__(kind, *arguments)
    base.__init__(error, *arguments)
    return error


def builtin_below(kind: type) -> Any:
    """The builtin exception that a class derives from."""
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")


def members_of(kind: type) -> Iterator[MemberDescriptorType]:
    """The fields that builtin exceptions have in C."""
    if issubclass(kind, BaseExceptionGroup):
        return  # its arguments say all of it
    for base in kind.__mro__:
        for name, member in vars(base).items() if base.__module__ == "builtins" else ():
            if type(member) is MemberDescriptorType and name not in _NOT_KEPT and name[:2] != "__":
                yield member


def kind_of(error_class: type) -> ExceptionKind | None:
    """How exceptions of exactly this class are taken apart, if not as others."""
    return _KINDS.get(class_name(error_class))


def without_handles(kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes without live connections, in whose place stands None, as when urllib3 pickles them."""
    if not any(base.__module__ == "urllib3.exceptions" for base in kind.__mro__):
        return attributes
    return {name: None if name in ("pool", "conn") else item for name, item in attributes.items()}


_METHODS: Final = ("read", "readline", "readlines", "readinto", "read1", "peek", "fileno", "isclosed")


def _take_http_error(error: Any) -> list[Any]:
    """The body is read to its end; whoever caught the error reads it from memory then."""
    body = error.fp
    if not isinstance(body, io.BytesIO):
        held = io.BytesIO(b"" if body is None else body.read())
        for name in _METHODS:
            vars(error).pop(name, None)  # a method of the response that was used before
        error.fp = error.file = body = held
    rest = body.getvalue()[body.tell() :]
    try:
        content: str | bytes = rest.decode("utf-8")
    except UnicodeDecodeError:
        content = rest
    headers: list[dict[str, str]] = [{}]
    for name, value in () if error.hdrs is None else error.hdrs.items():
        if of_transport(name, "Response"):
            continue
        if name in headers[0]:
            headers.append({name: value})
        else:
            headers[0][name] = value
    return [error.filename, error.code, error.msg, headers, content]


def _make_http_error(kind: Any, arguments: list[Any]) -> BaseException:
    url, code, message, headers, content = arguments
    found: Message = HTTPMessage()
    for group in headers:
        for name, value in group.items():
            found[name] = value
    error: BaseException = kind(
        url, code, message, found, io.BytesIO(content.encode() if isinstance(content, str) else content)
    )
    return error


def _take_validation_error(error: Any) -> list[Any]:
    """What it is made of, and `True` if it was made in Python: one that pydantic raises has no `args`.

    The addresses of pages about its own version are pydantic's to know.
    """
    title, lines, *rest = error.__reduce__()[1]
    lines = [{key: item for key, item in line.items() if key != "url"} for line in lines]
    return [title, lines, *rest, *([True] if error.args else [])]


def _make_validation_error(kind: Any, arguments: list[Any]) -> BaseException:
    error: BaseException = kind.from_exception_data(*arguments[:4])
    if not arguments[4:]:
        error.args = ()
    return error


_KINDS: Final = {
    "pydantic_core._pydantic_core:ValidationError": ExceptionKind(
        _take_validation_error,
        _make_validation_error,
    ),
    "urllib.error:HTTPError": ExceptionKind(
        _take_http_error,
        _make_http_error,
        frozenset(
            {
                *("code", "msg", "hdrs", "fp", "filename", "file", "name", "delete", "url", "headers"),
                *(
                    "_closer",
                    "read",
                    "readline",
                    "readlines",
                    "readinto",
                    "read1",
                    "peek",
                    "fileno",
                    "isclosed",
                ),
            }
        ),
    ),
}
