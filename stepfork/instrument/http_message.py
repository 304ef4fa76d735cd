"""Requests and responses of httpx (either generation) <-> plain values. Knows no SDK, session or file.

Response objects are built from the module of the request they answer, so a client gets its own kind.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import timedelta
from email.message import Message
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from stepfork.cassette import json_style, stream
from stepfork.cassette.values import Unsupported, decode, type_name
from stepfork.core.model import Incoming, Plain, Tagged
from stepfork.instrument import multipart
from stepfork.instrument.adapter import Outcome
from stepfork.instrument.http_stream import EVENTS, events_of, library, replayed

_KEPT_HEADERS: Final = re.compile(r"x-request-id|retry-after(-ms)?|x-should-retry|x-ratelimit-.*|location")
_WORD: Final = re.compile(r"[a-z][a-z_-]*")
_JSON: Final = "application/json"
_USUAL_TYPES: Final = {"response": _JSON, "stream": EVENTS}


# -- the question -----------------------------------------------------------------------------------


def path_below(base_url: str, url: str) -> str:
    """The path of a URL after a client's base URL, without query; the whole path if it lies elsewhere.

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
            return json.loads(text), ""
    except ValueError:
        text = None
    body: Plain = _bytes(content) if text is None else text
    return body, kind or "none"


# -- the answer, while recording --------------------------------------------------------------------


def outcome(response: Any, content: bytes) -> Outcome:
    """A response that was read to its end, as the fields of its document."""
    return _document(response, _content(content, response.headers.get("content-type", "")))


def stream_outcome(response: Any, content: bytes, end: dict[str, Plain]) -> Outcome:
    """The same for an event stream, or for a response that was not read to its end."""
    return _document(response, {"stream": {**stream.encode(content), **end}})


def is_stream(response: Any) -> bool:
    """Whether it says of itself that it is an event stream."""
    return bool(response.headers.get("content-type", "").startswith(EVENTS))


def _document(response: Any, content: Outcome) -> Outcome:
    fields: Outcome = {}
    if response.status_code != 200:
        fields["status"] = response.status_code
    fields.update(content)
    kept: dict[str, Plain] = {
        key: value for key, value in response.headers.items() if _KEPT_HEADERS.fullmatch(key)
    }
    kind = response.headers.get("content-type")
    usual = next((_USUAL_TYPES[form] for form in content if form in _USUAL_TYPES), None)
    if kind is not None and not _is_just(kind, usual):
        kept["content-type"] = kind
    if kept:
        fields["headers"] = kept
    return fields


def _is_just(kind: str, usual: str | None) -> bool:
    """Whether a content type says nothing but the usual one."""
    header = Message()
    header["content-type"] = kind
    charset = header.get_content_charset("utf-8")
    return usual is not None and header.get_content_type() == usual and charset in ("utf-8", "utf8")


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


# -- the answer, on replay --------------------------------------------------------------------------


def response(request: Any, outcome: Outcome, unread: bool, read_further: Callable[[], Exception]) -> Any:
    """The recorded response again, as the HTTP library of this request gives it.

    `unread` gives one whose content is still to be read, as for a request that asked to stream.
    `read_further` makes the error for a consumer that reads more than there was when it was recorded.
    """
    module = library(request)
    stored = outcome.get("headers")
    headers = {key: str(value) for key, value in stored.items()} if isinstance(stored, dict) else {}
    usual = next((_USUAL_TYPES[form] for form in outcome if form in _USUAL_TYPES), None)
    if usual is not None:
        headers.setdefault("content-type", usual)
    streamed: Any = outcome.get("stream")
    content = stream.decode(streamed) if streamed else content_bytes(outcome)
    how: dict[str, Any] = {"content": content}
    if unread or streamed:
        is_events = headers.get("content-type", "").startswith(EVENTS)
        pieces = events_of(content) if is_events else [content]
        how = {"stream": replayed(module, pieces, streamed or {}, read_further)}
    made = module.Response(outcome.get("status", 200), headers=headers, request=request, **how)
    made.elapsed = timedelta(0)
    return made


def content_bytes(outcome: Outcome) -> bytes:
    """The content of a recorded response that was read to its end."""
    if "response" in outcome:
        style = str(outcome.get("json", json_style.DEFAULT))
        return json_style.write(decode(outcome["response"]), style).encode("utf-8", "surrogatepass")
    if "text" in outcome:
        return str(outcome["text"]).encode("utf-8", "surrogatepass")
    content: bytes = decode(outcome.get("body"))
    return content
