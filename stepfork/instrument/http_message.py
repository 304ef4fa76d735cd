"""Requests and responses of httpx (either generation) <-> plain values. Knows no SDK, session or file.

Response objects are built from the module of the request they answer, so a client gets its own kind.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from stepfork.cassette import json_style
from stepfork.cassette.values import Unsupported, decode, type_name
from stepfork.core.model import Incoming, Plain, Tagged
from stepfork.errors import ReplayMismatchError
from stepfork.instrument import multipart
from stepfork.instrument.adapter import Outcome

_KEPT_HEADERS: Final = re.compile(r"x-request-id|retry-after(-ms)?|x-should-retry|x-ratelimit-.*|location")
_WORD: Final = re.compile(r"[a-z][a-z_-]*")
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


# -- the question -----------------------------------------------------------------------------------


def path_below(base_url: str, url: str) -> str:
    """The path of a URL after a client's base URL, without query; the whole URL if it lies elsewhere.

    >>> path_below("http://127.0.0.1:80/v1/", "http://127.0.0.1:80/v1/chat/completions?a=1")
    '/chat/completions'
    """
    base, asked = urlsplit(base_url), urlsplit(url)
    root = base.path.rstrip("/")
    if asked.path == root or asked.path.startswith(root + "/"):
        return asked.path[len(root) :] or "/"
    return asked.path


def name_of(path: str) -> str:
    """What an endpoint is called: its path's words, ids left out.

    >>> name_of("/chat/completions"), name_of("/files/file-8aZ/content")
    ('chat.completions', 'files.content')
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) > 2 and parts[0] == "deployments":
        parts = parts[2:]
    words = [part for at, part in enumerate(parts) if at == 0 or _WORD.fullmatch(part)]
    return ".".join(words) or "/"


def question(request: Any, path: str) -> Incoming:
    """A request in plain values: method, path and query where the name does not say them, and the body.

    Raises:
        Unsupported: for a body that cannot be read without using it up.
    """
    name = name_of(path)
    target: dict[str, Plain] = {}
    if request.method != "POST":
        target["method"] = request.method
    if path != "/" + name.replace(".", "/"):
        target["path"] = path
    query = parse_qsl(request.url.query.decode("ascii"), keep_blank_values=True)
    if query:
        pairs: list[Plain] = [[key, value] for key, value in query]
        target["query"] = dict(query) if len(dict(query)) == len(query) else pairs
    body, content_type = _body(request)
    if content_type:
        target["content_type"] = content_type
    return Incoming("llm", name, body, target)


def _body(request: Any) -> tuple[Plain, str]:
    """The body, and its content type where the body's form does not say it."""
    kind = request.headers.get("content-type", "")
    try:
        content: bytes = request.read()  # uploads are streams until they are read
    except Exception as error:
        raise Unsupported(
            "request", type_name(request.stream), f"(it cannot be read twice: {error})"
        ) from None
    if not content:
        return None, ""
    if kind.startswith("multipart/"):
        parts = multipart.parts_of(content, kind)
        if parts is not None:
            return parts, "" if kind.startswith("multipart/form-data") else kind.partition(";")[0]
    try:
        text = content.decode("utf-8")
        if kind.startswith(_JSON):
            return _without_stream_false(json.loads(text)), ""
    except ValueError:
        text = None
    body: Plain = _bytes(content) if text is None else text
    return body, kind or "none"


def _without_stream_false(body: Plain) -> Plain:
    """Newer SDKs say ``stream: false`` in ``parse()``, older ones leave it out."""
    if isinstance(body, dict) and body.get("stream") is False:
        del body["stream"]
    return body


# -- the answer, while recording --------------------------------------------------------------------


def outcome(response: Any) -> Outcome:
    """A response that was read, as the fields of its document."""
    kind = response.headers.get("content-type", "")
    return _document(response, _content(response.content, kind))


def _document(response: Any, content: Outcome) -> Outcome:
    fields: Outcome = {}
    if response.status_code != 200:
        fields["status"] = response.status_code
    fields.update(content)
    kept: dict[str, Plain] = {
        key: value for key, value in response.headers.items() if _KEPT_HEADERS.fullmatch(key)
    }
    kind = response.headers.get("content-type")
    if kind is not None and kind.partition(";")[0].strip() not in (_JSON, _EVENTS):
        kept["content-type"] = kind
    if kept:
        fields["headers"] = kept
    return fields


def _content(content: bytes, kind: str) -> Outcome:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return {"body": _bytes(content)}
    if "json" in kind:
        found = json_style.find(text)
        if found is not None:
            value, style = found
            return {"response": value} if style == json_style.DEFAULT else {"response": value, "json": style}
    return {"text": text}


def _bytes(content: bytes) -> Tagged:
    return Tagged("bytes", base64.b64encode(content).decode("ascii"))


class Tee:
    """Takes down an event stream while its consumer reads it."""

    def __init__(self, response: Any, done: Callable[[Outcome], None]) -> None:
        self._response = response
        self._inner = response.stream
        self._done: Callable[[Outcome], None] | None = done
        self._seen: list[bytes] = []

    def stop(self) -> None:
        """The SDK made an error of it: what was read is on record elsewhere."""
        self._done = None

    def saw(self, chunk: bytes) -> None:
        """The consumer got these bytes."""
        self._seen.append(chunk)

    def ended(self, how: str | None = None, error: BaseException | None = None) -> None:
        """The stream was read to its end, closed early, or broke."""
        done, self._done = self._done, None
        if done is None:
            return
        raw = self._decoded()
        kind = self._response.headers.get("content-type", "")
        if how is None and error is None and not kind.startswith(_EVENTS):
            done(_document(self._response, _content(raw, kind)))  # no stream, only read as one
            return
        stream: dict[str, Plain] = {}
        try:
            stream["raw"] = raw.decode("utf-8")
        except UnicodeDecodeError:
            stream["raw"] = _bytes(raw)
        if error is not None:
            stream["broken"] = {"class": type(error).__name__, "args": [str(error)]}
        elif how == "closed" and not raw.rstrip().endswith(b"[DONE]"):
            stream["closed"] = True
        done(_document(self._response, {"stream": stream}))

    def _decoded(self) -> bytes:
        raw = b"".join(self._seen)
        encoding = self._response.headers.get("content-encoding")
        if not encoding:
            return raw
        again = type(self._response)(200, headers={"content-encoding": encoding}, content=raw)
        return bytes(again.content)


def tee(response: Any, done: Callable[[Outcome], None]) -> Tee:
    """Puts a `Tee` into a response that was not read yet; `done` gets the outcome once it ends."""
    made = Tee(response, done)
    module = _module(response)
    inner = response.stream
    is_async = not hasattr(inner, "__iter__")
    base = module.AsyncByteStream if is_async else module.SyncByteStream

    class _SyncTee(base):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[bytes]:
            try:
                for chunk in inner:
                    made.saw(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except BaseException as error:
                made.ended(error=error)
                raise
            made.ended()

        def close(self) -> None:
            inner.close()
            made.ended("closed")

    class _AsyncTee(base):  # type: ignore[misc, valid-type]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in inner:
                    made.saw(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except BaseException as error:
                made.ended(error=error)
                raise
            made.ended()

        async def aclose(self) -> None:
            await inner.aclose()
            made.ended("closed")

    response.stream = _AsyncTee() if is_async else _SyncTee()
    return made


# -- the answer, on replay --------------------------------------------------------------------------


def response(request: Any, outcome: Outcome) -> Any:
    """The recorded response again, as the HTTP library of this request gives it."""
    module = _module(request)
    headers: dict[str, str] = {}
    stored = outcome.get("headers")
    status = outcome.get("status", 200)
    kind = _EVENTS if "stream" in outcome else _JSON
    content: Any
    if "stream" in outcome:
        content = _replayed(module, outcome["stream"], request)
    elif "response" in outcome:
        content = json_style.write(
            decode(outcome["response"]), str(outcome.get("json", json_style.DEFAULT))
        ).encode("utf-8", "surrogatepass")
    else:
        content = outcome.get("text")
        content = (
            decode(outcome.get("body")) if content is None else str(content).encode("utf-8", "surrogatepass")
        )
    headers["content-type"] = kind
    if isinstance(stored, dict):
        headers.update({key: str(value) for key, value in stored.items()})
    how = {"stream": content} if "stream" in outcome else {"content": content}
    made = module.Response(status, headers=headers, request=request, **how)
    made.elapsed = timedelta(0)
    return made


def _replayed(module: Any, stream: Any, request: Any) -> Any:
    raw = stream["raw"]
    content: bytes = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else decode(raw)
    broken, closed = stream.get("broken"), stream.get("closed", False)

    def after() -> None:
        if broken is not None:
            kind = getattr(module, str(broken["class"]), None)
            known = isinstance(kind, type) and issubclass(kind, module.TransportError)
            raise (kind if known else module.ReadError)(*map(str, broken["args"]))  # type: ignore[misc]
        if closed:
            raise ReplayMismatchError(
                "the agent reads further in a stream than it did when it was recorded; record again",
                kind="llm",
            )

    class _Replayed(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            if content:
                yield content
            after()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if content:
                yield content
            after()

        def close(self) -> None:
            pass

        async def aclose(self) -> None:
            pass

    return _Replayed()


def _module(message: Any) -> Any:
    return sys.modules[type(message).__module__.partition(".")[0]]
