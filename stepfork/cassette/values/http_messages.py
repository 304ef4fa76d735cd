"""Requests and responses of httpx, httpx2 and requests, as errors hold them. Knows their content, no call.

The libraries are not imported here. What was not read cannot be written; extensions, timings, the cookies
that were read from headers, and headers that only the transport reads are not kept. Inside of an error a
message that stands there already is named by its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue, Missing, Unsupported, type_name
from stepfork.cassette.values.walk import Decoder, Encoder, Row, is_of, parts, text, whole
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

_LIBRARIES: Final = ("httpx", "httpx2")
_OF_REQUESTS: Final = ("url", "reason", "encoding")
_OF_TRANSPORT: Final = {
    "Request": re.compile(
        r"x-stainless-.*|openai-(?:organization|project)|user-agent|host|accept.*|connection|content-length"
        r"|transfer-encoding|date|(?:proxy-)?authorization"
    ),
    "Response": re.compile(
        r"date|server|server-timing|via|age|connection|keep-alive|transfer-encoding|content-length|alt-svc|nel"
        r"|report-to|reporting-endpoints|strict-transport-security|cf-.*|openai-(?!model).*|x-envoy-.*"
    ),
}
"""Headers that say which program, machine and moment it was, and nothing of what was asked or answered."""


def _is_message(name: str) -> Callable[[type], bool]:
    prepared = "PreparedRequest" if name == "Request" else name
    kinds = [is_of("requests", prepared), *(is_of(library, name) for library in _LIBRARIES)]
    return lambda kind: any(is_kind(kind) for is_kind in kinds)


def _encode_request(request: Any, encoder: Encoder, path: str) -> Plain:
    if _is_of_requests(request):
        return _encode_prepared(request, encoder, path)
    form: dict[str, Plain] = {
        "library": type(request).__module__.partition(".")[0],
        "method": request.method,
        "url": str(request.url),
    }
    return form | _headers(request) | _content(request, encoder, path)


def _decode_request(content: Any, decoder: Decoder) -> Any:
    fields = parts(content, ("library", "method", "url"), ("headers", "more_headers", "text", "content"))
    method, url = text(fields["method"]), text(fields["url"])
    if fields["library"] == "requests":
        return _decode_prepared(fields, decoder)
    headers, body = _read_headers(fields), _read_content(fields, decoder)
    request = _library(fields, decoder).Request(method, url, headers=headers, content=body)
    request.headers = type(request.headers)(headers)  # without what the constructor adds
    return request


def _encode_response(response: Any, encoder: Encoder, path: str) -> Plain:
    if _is_of_requests(response):
        return _encode_answer(response, encoder, path)
    form: dict[str, Plain] = {
        "library": type(response).__module__.partition(".")[0],
        "status": response.status_code,
    }
    if response._request is not None:
        form["request"] = encoder.encode(response._request, f"{path}.request")
    if response.history:
        form["history"] = encoder.encode(response.history, f"{path}.history")
    return form | _headers(response) | _content(response, encoder, path)


def _decode_response(content: Any, decoder: Decoder) -> Any:
    optional = ("request", "history", "headers", "more_headers", "text", "content", *_OF_REQUESTS)
    fields = parts(content, ("library", "status"), optional)
    whole(fields["status"])
    if fields["library"] == "requests":
        return _decode_answer(fields, decoder)
    request, history = _around(fields, decoder)
    headers, body = _read_headers(fields), _read_content(fields, decoder)
    # the content is what it was after its encoding was undone, so that it is put in behind the headers
    response = _library(fields, decoder).Response(
        fields["status"], content=body, request=request, history=history
    )
    response.headers = type(response.headers)(headers)
    return response


# -- requests ---------------------------------------------------------------------------------------


def _is_of_requests(message: Any) -> bool:
    return type(message).__module__.partition(".")[0] == "requests"


def _encode_prepared(request: Any, encoder: Encoder, path: str) -> Plain:
    form: dict[str, Plain] = {"library": "requests", "method": request.method, "url": request.url}
    body = request.body
    if body is None:
        return form | _headers(request)
    if not isinstance(body, str | bytes):
        raise Unsupported(path, type_name(request), "whose body is a stream")
    content = {"text": body} if isinstance(body, str) else {"content": encoder.encode(body, path)}
    return form | _headers(request) | content


def _decode_prepared(fields: dict[str, Any], decoder: Decoder) -> Any:
    headers, body = _read_headers(fields), _read_content(fields, decoder)
    request = decoder.library("requests").PreparedRequest()
    request.method, request.url = fields["method"], fields["url"]
    request.headers = _case_insensitive(headers, decoder)
    request.body = fields.get("text", body if "content" in fields else None)
    request._cookies = decoder.library("requests").cookies.RequestsCookieJar()
    return request


def _encode_answer(response: Any, encoder: Encoder, path: str) -> Plain:
    if response._content is False and response.raw is not None:
        raise Unsupported(path, type_name(response), "whose content was not read")
    form: dict[str, Plain] = {"library": "requests", "status": response.status_code}
    if response.request is not None:
        form["request"] = encoder.encode(response.request, f"{path}.request")
    if response.history:
        form["history"] = encoder.encode(response.history, f"{path}.history")
    form |= {name: encoder.encode(getattr(response, name), f"{path}.{name}") for name in _OF_REQUESTS}
    return form | _headers(response) | _content(response, encoder, path)


def _decode_answer(fields: dict[str, Any], decoder: Decoder) -> Any:
    request, history = _around(fields, decoder)
    headers, content = _read_headers(fields), _read_content(fields, decoder)
    said = {name: fields.get(name) for name in _OF_REQUESTS}
    for name, value in said.items():
        if value is not None and not isinstance(value, str):
            raise BadValue(f"{name!r} must be a text or null")
    response = decoder.library("requests").Response()
    response.status_code, response.request, response.history = fields["status"], request, history
    for name, value in said.items():
        setattr(response, name, value)
    response.headers = _case_insensitive(headers, decoder)
    response._content, response._content_consumed = content, True
    return response


def _around(fields: dict[str, Any], decoder: Decoder) -> tuple[Any, list[Any]]:
    """The request of a response, and the responses before it."""
    request, history = fields.get("request"), fields.get("history", [])
    if request is not None and not _is_tagged(request, "http-request"):
        raise BadValue("'request' must be !http-request")
    if not isinstance(history, list) or not all(_is_tagged(item, "http-response") for item in history):
        raise BadValue("'history' must be a sequence of !http-response")
    return decoder.decode(request), decoder.items(history)


def _is_tagged(value: Any, tag: str) -> bool:
    return isinstance(value, Tagged) and value.tag == tag


def _case_insensitive(headers: list[tuple[str, str]], decoder: Decoder) -> Any:
    return decoder.library("requests").structures.CaseInsensitiveDict(headers)


# -- headers and content ----------------------------------------------------------------------------


def of_transport(name: str, kind: str) -> bool:
    """Whether a header of a ``Request`` or ``Response`` is none that a program reads."""
    return _OF_TRANSPORT[kind].fullmatch(name.lower()) is not None


def _headers(message: Any) -> dict[str, Plain]:
    """The headers that a program reads, as a mapping; what stands more than once in mappings of its own."""
    kind = "Response" if hasattr(message, "status_code") else "Request"
    once: dict[str, Plain] = {}
    more: list[Plain] = []
    held = message.headers
    for name, value in held.multi_items() if hasattr(held, "multi_items") else held.items():
        value = value.decode("latin-1") if isinstance(value, bytes) else value
        if of_transport(name, kind):
            continue
        if name in once:
            more.append({name: value})
        else:
            once[name] = value
    return ({"headers": once} if once else {}) | ({"more_headers": more} if more else {})


def _read_headers(fields: dict[str, Any]) -> list[tuple[str, str]]:
    once, more = fields.get("headers", {}), fields.get("more_headers", [])
    if (
        not isinstance(once, dict)
        or not isinstance(more, list)
        or any(type(item) is not dict for item in more)
    ):
        raise BadValue("headers must be mappings")
    return [(name, text(value)) for group in (once, *more) for name, value in group.items()]


def _content(message: Any, encoder: Encoder, path: str) -> dict[str, Plain]:
    try:
        content: bytes = message.content or b""
    except Exception:
        raise Unsupported(path, type_name(message), "whose content was not read") from None
    if not content:
        return {}
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"content": encoder.encode(content, path)}


def _read_content(fields: dict[str, Any], decoder: Decoder) -> bytes:
    if "content" not in fields:
        return text(fields.get("text", "")).encode("utf-8")
    content = decoder.decode(fields["content"])
    if not isinstance(content, bytes):
        raise BadValue("'content' must be !bytes")
    return content


def _library(fields: dict[str, Any], decoder: Decoder) -> Any:
    if text(fields["library"]) not in _LIBRARIES:
        raise BadValue(f"'library' must be one of {', '.join(_LIBRARIES)}, requests")
    return decoder.library(fields["library"])


# -- messages that stand more than once -------------------------------------------------------------


def named_once(value: Plain) -> Plain:
    """The value with each message that stands in it again as the number of the first one, counted from 1.

    A message is counted after those inside of it, which is how they are decoded.

    >>> one = Tagged("http-request", {"library": "httpx", "method": "GET", "url": "http://h/"})
    >>> named_once({"request": one, "cause": {"request": one}})["cause"]
    {'request': Tagged(tag='http-request', value=1)}
    """
    return _named_once(value, {})


def _named_once(value: Plain, seen: dict[str, int]) -> Plain:
    if isinstance(value, dict):
        return {key: _named_once(item, seen) for key, item in value.items()}
    if isinstance(value, list):
        return [_named_once(item, seen) for item in value]
    if not isinstance(value, Tagged):
        return value
    if value.tag not in _TAGS:
        return Tagged(value.tag, _named_once(value.value, seen))
    name = canonical_text(value)
    if name in seen:
        return Tagged(value.tag, seen[name])
    made = Tagged(value.tag, _named_once(value.value, seen))
    seen[name] = len(seen) + 1
    return made


def _counted(decode: Callable[[Any, Decoder], Any]) -> Callable[[Any, Decoder], Any]:
    """`decode`, or the very message of that number."""

    def decode_once(content: Any, decoder: Decoder) -> Any:
        if type(content) is int:
            if not 0 < content <= len(decoder.messages):
                raise BadValue(f"there is no message {content} before this one")
            if decoder.messages[content - 1] is None:
                raise Missing(f"message {content} is not at hand")
            return decoder.messages[content - 1]
        made = None
        try:
            made = decode(content, decoder)
        finally:
            decoder.messages.append(made)
        return made

    return decode_once


_TAGS: Final = ("http-request", "http-response")
HTTP_MESSAGES = (
    Row("http-request", _is_message("Request"), _encode_request, _counted(_decode_request)),
    Row("http-response", _is_message("Response"), _encode_response, _counted(_decode_response)),
)
"""In no order."""
