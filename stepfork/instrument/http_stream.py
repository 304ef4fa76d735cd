"""Event streams of httpx (either generation): taken down while they are read, given back on replay.

Knows responses that were not read yet; knows no SDK, no session and no file. Both ways the consumer gets
one event at a time, so that what it read of a stream does not depend on how the network cut it.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from typing import Any, Final

from stepfork.cassette.exceptions import decode_exception, encode_exception
from stepfork.cassette.schema import STREAM_ERRORS
from stepfork.cassette.values import BadValue, Unsupported
from stepfork.core.model import Plain
from stepfork.instrument import driver
from stepfork.instrument.waiting import NothingLeft, until_cancelled

EVENTS: Final = "text/event-stream"
_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def events_of(content: bytes) -> list[bytes]:
    r"""The content cut behind each event.

    >>> events_of(b"data: 1\n\ndata: 2\n\nda")
    [b'data: 1\n\n', b'data: 2\n\n', b'da']
    """
    ends = [0, *(found.end() for found in _EVENT_END.finditer(content)), len(content)]
    return [content[start:end] for start, end in pairwise(ends) if start < end]


def library(message: Any) -> Any:
    """The module that a request or response came from: ``httpx`` or ``httpx2``."""
    return sys.modules[type(message).__module__.partition(".")[0]]


class Tee:
    """Takes down a response while its consumer reads it; `done` is called once, when that ends.

    `inside` is entered while the library reads: what it starts for that is none of the program's.

    Attributes:
        ended: whether it was read to its end, closed or broken.
    """

    def __init__(
        self,
        response: Any,
        done: Callable[[], None],
        inside: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.ended = False
        self._inside = inside
        self._whole = False
        self._response = response
        self._inner = response.stream
        self._done: Callable[[], None] | None = done
        self._seen: list[bytes] = []
        self._broken: BaseException | None = None
        encoded = bool(response.headers.get("content-encoding"))
        self._cut = not encoded and response.headers.get("content-type", "").startswith(EVENTS)
        response.stream = _teed(library(response), self, self._inner)

    def stop(self) -> None:
        """The SDK made an error of the response: what was read is on record elsewhere."""
        self._done = None

    def close(self) -> None:
        """Nobody will read further: the stream was closed, or its session ends."""
        self.ended = True
        done, self._done = self._done, None
        if done is not None:
            done()
            self._seen = []

    def pull(self, chunks: Iterator[bytes]) -> bytes | None:
        """What the network gives next; None at the end."""
        with self._inside():
            return next(chunks, None)

    async def apull(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The same of an async response."""
        with self._inside():
            return await anext(chunks, None)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around the loop that reads the stream: sees it end or break."""
        try:
            yield
        except GeneratorExit:  # the consumer stopped; the stream is closed next
            raise
        except BaseException as error:
            self._broken = error
            self.close()
            raise
        self._whole = True
        self.close()

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """A chunk from the network event by event, each taken down when the consumer asks for it."""
        for piece in events_of(chunk) if self._cut else [chunk]:
            self._seen.append(piece)
            yield piece

    def content(self) -> bytes:
        """What was read, without the content encoding."""
        if not self._response.headers.get("content-encoding"):
            return b"".join(self._seen)
        kept = {"content-encoding": self._response.headers["content-encoding"]}
        again = type(self._response)(200, headers=kept, content=iter(self._seen))
        decoded = bytearray()
        try:
            for chunk in again.iter_bytes():
                decoded += chunk
        except library(again).DecodingError:
            pass  # it was not read to its end
        return bytes(decoded)

    def end(self) -> dict[str, Plain]:
        """How it ended, as fields beside the content: none if it was read to its end."""
        if self._whole:
            return {}
        if self._broken is None or isinstance(self._broken, KeyboardInterrupt):
            done = self.content().rstrip().endswith(b"data: [DONE]")  # some SDKs read no further
            return {} if done else {"closed": True}
        if driver.is_cancelled(self._broken):
            return {"cancelled": True}
        return {"broken": _encoded(self._broken, library(self._response))}


def _teed(module: Any, tee: Tee, inner: Any) -> Any:
    class Teed(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            with tee.reading():
                chunks = iter(inner)
                while (chunk := tee.pull(chunks)) is not None:
                    yield from tee.pieces(chunk)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with tee.reading():
                chunks = aiter(inner)
                while (chunk := await tee.apull(chunks)) is not None:
                    for piece in tee.pieces(chunk):
                        yield piece

        def close(self) -> None:
            inner.close()
            tee.close()

        async def aclose(self) -> None:
            await inner.aclose()
            tee.close()

    return Teed()


def replayed(
    module: Any, pieces: Sequence[bytes], end: dict[str, Any], read_further: Callable[[], Exception]
) -> Any:
    """A byte stream that gives these pieces and ends as the recorded one did.

    `read_further` makes the error for a consumer that asks for more than there was when it was recorded.
    """

    def finish() -> None:
        if "broken" in end:
            try:
                error = _decoded(end["broken"], module)
            except BadValue as problem:
                raise driver.unreadable(problem, end) from None
            raise error
        if end.get("closed") or end.get("cancelled"):
            raise read_further()

    class Replayed(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            yield from pieces
            finish()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
            if end.get("cancelled"):
                with contextlib.suppress(NothingLeft):
                    await until_cancelled()  # whoever cancelled the reader does so again
            finish()

        def close(self) -> None:
            pass

        async def aclose(self) -> None:
            pass

    return Replayed()


def _encoded(error: BaseException, module: Any) -> dict[str, Plain]:
    if isinstance(error, module.RequestError):
        names = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in STREAM_ERRORS]
        return {"class": names[0], "args": [str(error)]}
    try:
        return encode_exception(error)
    except Unsupported:
        return {"class": "ReadError", "args": [str(error)]}


def _decoded(form: dict[str, Any], module: Any) -> BaseException:
    if ":" in form["class"]:
        found = decode_exception(form)
        if not isinstance(found, Exception):
            raise BadValue(f"{form['class']!r} breaks no stream")
        return found
    kind = getattr(module, form["class"], None) if form["class"] in STREAM_ERRORS else None
    if kind is None:
        raise BadValue(f"{form['class']!r} is no error of {module.__name__}")
    error: BaseException = kind(*map(str, form.get("args", [])))
    return error
