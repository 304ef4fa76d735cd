"""What an OpenAI server answers to chat completions, and what goes wrong there. Knows no other endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from support.chat_server import DONE, EVENTS, completion, event, json_answer
from support.scripted_server import BREAK, NO_ANSWER, Answer, Asked

NEVER = threading.Event()
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
LIMITS = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-tokens": "6m0s"}


def chat(asked: Asked, times: int) -> Answer:
    body = asked.json
    fault = _FAULTS.get(body["model"].partition("-")[0])
    if fault is not None:
        return fault(body, times)
    if body.get("stream"):
        return 200, EVENTS, _chat_events(body)
    return json_answer(completion("", choices=_choices(body)), **LIMITS)


def _choices(body: dict[str, Any]) -> list[dict[str, Any]]:
    said = body["messages"][-1]["content"]
    message: dict[str, Any] = {"role": "assistant", "content": f"Du sagtest «{said}».", "refusal": None}
    finish = "stop"
    if "tools" in body:
        calls = [_tool_call(at, q) for at, q in enumerate(("rust", "gö"))]
        message |= {"content": None, "tool_calls": calls}
        finish = "tool_calls"
    elif "response_format" in body:
        message["content"] = '{"severity": "P0", "pages": [1, 2]}'
    logprobs = {"content": [{"token": "Du", "logprob": -0.25, "bytes": [68, 117], "top_logprobs": []}]}
    return [
        {"index": at, "finish_reason": finish, "message": message}
        | ({"logprobs": logprobs} if body.get("logprobs") else {})
        for at in range(body.get("n") or 1)
    ]


def _tool_call(at: int, q: str) -> dict[str, Any]:
    arguments = json.dumps({"q": q}, ensure_ascii=False)
    return {"id": f"call_{at}", "type": "function", "function": {"name": "search", "arguments": arguments}}


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-2", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return event({**head, "choices": [choice], **more})


def _chat_events(body: dict[str, Any]) -> list[bytes]:
    events = [_chunk({"role": "assistant", "content": ""})]
    if "tools" in body:
        for at, q in enumerate(("rust", "gö")):
            call = _tool_call(at, q)
            function = {"name": "search", "arguments": ""}
            events.append(_chunk({"tool_calls": [{"index": at, **call, "function": function}]}))
            for piece in ('{"q": ', f'"{q}"}}'):
                events.append(_chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}))
        events.append(_chunk({}, "tool_calls"))
    else:
        text = '{"severity": "P0", "pages": [1, 2]}' if "response_format" in body else "Ein schöner «Tag»\n"
        events += [_chunk({"content": text[at : at + 6]}) for at in range(0, len(text), 6)]
        events.append(_chunk({}, "stop"))
    if body.get("stream_options", {}).get("include_usage"):
        head = {"id": "chatcmpl-2", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
        events.append(event({**head, "choices": [], "usage": USAGE}))
    return [*events, DONE]


def _fails(body: dict[str, Any], times: int) -> Answer:
    """``status-422``."""
    status = int(body["model"].rpartition("-")[2])
    error = {"error": {"message": f"no: {status}", "type": "some_error", "param": None, "code": "c"}}
    return json_answer(error, status, **{"x-request-id": f"req_{status}", "retry-after": "30"} | LIMITS)


def _busy(body: dict[str, Any], times: int) -> Answer:
    """``busy-N``: N times 429, then an answer; ``busy-2-lost``: the second time without any answer."""
    how = body["model"].split("-")
    if times > int(how[1]):
        return (
            json_answer(completion("at last"))
            if not body.get("stream")
            else (200, EVENTS, _chat_events(body))
        )
    if how[2:] == ["lost"] and times == 2:
        return NO_ANSWER
    return json_answer({"error": {"message": "busy"}}, 429, **{"retry-after-ms": "1"})


def _tail(*last: Any) -> Callable[[dict[str, Any], int], Answer]:
    """Two chunks, then what is said here."""

    def make(body: dict[str, Any], times: int) -> Answer:
        return 200, EVENTS, [_chunk({"content": "one "}), _chunk({"content": "two"}), *last]

    return make


def _text(status: int, kind: str, content: bytes) -> Callable[[dict[str, Any], int], Answer]:
    return lambda body, times: (status, {"content-type": kind}, content)


def _odd(body: dict[str, Any], times: int) -> Answer:
    """A completion of another time: no usage, an unknown field, an unknown reason to finish."""
    answer = completion("x", x={"new": [1]})
    del answer["usage"]
    answer["choices"][0]["finish_reason"] = "foo"
    return json_answer(answer)


_ERROR = {"error": {"message": "overloaded", "type": "server_error", "code": "busy"}}
_FAULTS: dict[str, Callable[[dict[str, Any], int], Answer]] = {
    "status": _fails,
    "busy": _busy,
    "breaks": _tail(BREAK),
    "cuts": _tail(b'data: {"id": "chatcmpl', BREAK),
    "ends": _tail(),
    "says": _tail(event(_ERROR)),
    "waits": _tail(NEVER),
    "nonsense": _tail(b"data: {no json}\n\n", DONE),
    "silent": lambda body, times: (200, EVENTS, [NEVER]),
    "lost": lambda body, times: NO_ANSWER,
    "html": _text(502, "text/html; charset=utf-8", b"<h1>Bad gateway</h1>"),
    "latin": _text(500, "text/plain; charset=latin-1", "schön".encode("latin-1")),
    "empty": _text(500, "application/json", b""),
    "torn": _text(200, "application/json", b'{"id": "chatcmpl-1", "cho'),
    "plain": _text(200, "text/plain", b"just text"),
    "odd": _odd,
    "long": lambda body, times: json_answer(
        completion("", choices=[{**_choices(body)[0], "finish_reason": "length"}])
    ),
}
