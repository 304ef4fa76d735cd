"""Iterators and streams as arguments: recorded by what they give, not used up by that. Knows no call.

What can be read twice (an iterator over a list, a file, `io.BytesIO`) is read ahead and put back: the tool
gets the caller's own object. A generator and its kind can be read once only: it is read to its end before the
tool runs, and the tool gets another one with the same items. On replay the caller's object is read as far as
the tool read it when it was recorded.
"""

from __future__ import annotations

import copy
import io
from collections import deque
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from operator import length_hint
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Final, Protocol

from stepfork.cassette.values import BadValue, Unsupported, type_name
from stepfork.core.model import Plain
from stepfork.core.placeholder_texts import MARK

LIMIT: Final = 10_000
"""So many items of an iterator are read; one that gives more may well be endless."""

_LIST: Final = "pass a list"
_EMPTY: Final[dict[str, str]] = {}
_VIEWS: Final = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()), range)
_ITERATED: Final[tuple[Any, ...]] = (
    *([], (), "", b"", bytearray(), set(), _EMPTY, _EMPTY.values(), _EMPTY.items()),
    *(range(0), range(1 << 70)),
)
_REREADABLE: Final = (*(type(iter(it)) for it in _ITERATED), type(reversed([])), type(reversed(_EMPTY)))
_LIVE: Final = type(iter(int, 1))  # it asks a function for each item


class Source(Protocol):
    """An argument that is recorded by its content.

    Attributes:
        content: what is recorded of it: a list, a text, bytes.
        given: what the tool gets.
    """

    content: Any
    given: Any

    def left(self) -> Plain:
        """How much of the content the tool left unread: a number of items, characters or bytes, or
        ``"closed"``."""

    def written(self) -> Any:
        """What the tool made of it, or None if that is still the content."""

    def go_on(self, left: Plain, written: Any) -> None:
        """Brings the caller's object to where the tool left it when it was recorded.

        Raises:
            BadValue: if it can be no such place in this object.
        """


class _View:
    """What can be looked at as often as one likes."""

    def __init__(self, value: Any) -> None:
        self.content = list(islice(value, LIMIT + 1))
        self.given = value

    def left(self) -> Plain:
        return 0

    def written(self) -> Any:
        return None

    def go_on(self, left: Plain, written: Any) -> None:
        pass


class _Copied(_View):
    """An iterator of which a copy can be read."""

    def __init__(self, value: Any) -> None:
        super().__init__(copy.copy(value))
        self.given = value

    def left(self) -> Plain:
        return length_hint(self.given)  # which all of them know

    def go_on(self, left: Plain, written: Any) -> None:
        read = length_hint(self.given) - _count(left, length_hint(self.given))
        deque(islice(self.given, read if left else None), maxlen=0)


class Drained(_View):
    """An iterator that can be read only once: the tool gets another one.

    Attributes:
        error: what it raised instead of its next item.
    """

    def __init__(self, value: Iterator[Any]) -> None:
        self.content = []
        self.error: Exception | None = None
        try:
            for item in islice(value, LIMIT + 1):
                self.content.append(item)
        except Exception as error:
            self.error = error
        self._rest = value
        self._pending = deque(self.content)
        self.given = self._again()

    def unread(self) -> int:
        """How many items the tool has not read."""
        return len(self._pending)

    def _again(self) -> Iterator[Any]:
        while self._pending:
            yield self._pending.popleft()
        if self.error is not None:
            raise self.error
        yield from self._rest


class AsyncDrained(Drained):
    """The same for an async generator, once `read` was awaited."""

    def __init__(self, value: AsyncGeneratorType[Any, Any]) -> None:
        super().__init__(iter(()))
        self._async_rest = value
        self.given = self._async_again()

    async def read(self) -> None:
        """Reads it to its end."""
        try:
            async for item in self._async_rest:
                self.content.append(item)
                if len(self.content) > LIMIT:
                    break
        except Exception as error:
            self.error = error
        self._pending.extend(self.content)

    async def _async_again(self) -> AsyncIterator[Any]:
        while self._pending:
            yield self._pending.popleft()
        if self.error is not None:
            raise self.error
        async for item in self._async_rest:
            yield item


class _Stream(_View):
    """A file, or a buffer in memory. What is recorded is what is left to be read."""

    def __init__(self, value: Any) -> None:
        self._start = value.tell()
        self.content = value.read()
        value.seek(self._start)
        self.given = value
        self._whole = self._buffer()

    def _buffer(self) -> Any:
        """All that a buffer in memory holds; of a file it is not known."""
        return self.given.getvalue() if isinstance(self.given, io.BytesIO | io.StringIO) else None

    def left(self) -> Plain:
        stream = self.given
        if stream.closed:
            return "closed"
        if not isinstance(stream, io.TextIOWrapper):
            return int(self._end() - stream.tell())
        left = len(stream.read())  # how far it has come `tell` does not always know
        self._go_to(left)
        return left

    def written(self) -> Any:
        if self._whole is None or self.given.closed or self._buffer() == self._whole:
            return None
        return self._buffer()

    def go_on(self, left: Plain, written: Any) -> None:
        stream = self.given
        if stream.closed:
            raise BadValue("the stream was closed before, and the recording says that it is left at a place")
        if left == "closed":
            stream.close()
            return
        if written is not None:
            if self._whole is None or type(written) is not type(self._whole):
                what = f"{type_name(written)} was written to a buffer in memory"
                raise BadValue(f"{what}, and now the argument is {type_name(stream)}; record again")
            stream.seek(0)
            stream.truncate()
            stream.write(written)
        if self._whole is None:
            self._go_to(_count(left, self._start + len(self.content)))
        else:
            stream.seek(self._end() - _count(left, self._end(), cut=_holds_placeholder(self._buffer())))

    def _end(self) -> int:
        """Where what a buffer holds ends; of a file, where it ended."""
        return self._start + len(self.content) if self.written() is None else len(self._buffer())

    def _go_to(self, left: int) -> None:
        stream, read = self.given, len(self.content) - left
        if not isinstance(stream, io.TextIOWrapper):
            stream.seek(self._start + read)
            return
        stream.seek(self._start)
        if read < 0:  # further back than where it was
            stream.seek(0)
            read = len(stream.read()) - left
            stream.seek(0)
        stream.read(read)


def _holds_placeholder(content: str | bytes) -> bool:
    return (MARK if isinstance(content, str) else MARK.encode()) in content  # type: ignore[operator]


def _count(left: Plain, most: int, *, cut: bool = False) -> int:
    """How much is left unread of so much; `cut` where a placeholder may have made it less than it was."""
    if cut and type(left) is int and left > most:
        return most
    if type(left) is not int or not 0 <= left <= most:
        raise BadValue(f"{left!r} of the argument cannot be left unread: it has {most}; record again")
    return left


def source_of(value: Any, path: str) -> Source | None:
    """How a value is recorded by its content; None if it is no iterator and no stream.

    Raises:
        Unsupported: for one whose content cannot be known without using it up.

    >>> source_of(iter([1, 2]), "argument 'rows'").content
    [1, 2]
    >>> source_of([1, 2], "argument 'rows'") is None
    True
    """
    kind = type(value)
    if issubclass(kind, io.IOBase):
        return _stream(value, path)
    if kind in _VIEWS:
        return _View(value)
    if kind in _REREADABLE:
        return _Copied(value)
    if kind is _LIVE or kind is AsyncGeneratorType:
        raise Unsupported(path, type_name(value), "whose items are made while they are read", _LIST)
    if kind is GeneratorType or (kind.__module__ in ("builtins", "itertools") and issubclass(kind, Iterator)):
        return Drained(value)
    if issubclass(kind, Iterator | AsyncIterator):
        raise Unsupported(path, type_name(value), "which cannot be read without using it up", _LIST)
    return None


def check(source: Source, path: str) -> None:
    """Whether all of its content is known.

    Raises:
        Unsupported: if it has no end, or raised.
    """
    error = source.error if isinstance(source, Drained) else None
    if error is not None:
        raise Unsupported(path, type_name(source.given), f"that raised {type_name(error)}", _LIST)
    if isinstance(source.content, list) and len(source.content) > LIMIT:
        raise Unsupported(path, type_name(source.given), f"that gives more than {LIMIT} items", _LIST)


def _stream(value: io.IOBase, path: str) -> Source:
    hint = "pass its path or its content"
    try:
        if value.readable() and value.seekable():
            return _Stream(value)
    except (OSError, ValueError) as problem:
        raise Unsupported(path, type_name(value), f"({problem})", hint) from None
    raise Unsupported(path, type_name(value), "that cannot be read twice", hint)
