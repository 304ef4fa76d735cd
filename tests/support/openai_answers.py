"""What an OpenAI server answers, endpoint by endpoint, always the same. Knows no SDK.

`answer` is given to a `ScriptedServer`. The model named in a chat request asks for a fault: ``status-429``,
``busy-twice``, ``breaks``, ``says-error`` and so on, see `_FAULTS`.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from support.chat_server import DONE, EVENTS, completion, event, json_answer
from support.scripted_server import BREAK, NO_ANSWER, Answer, Asked

NEVER = threading.Event()
SOUND = b"\xff\xfb\x90\x00" + bytes(range(256)) + b"\n\n\r\n\r\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
LIMITS = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-tokens": "6m0s"}


class OpenAIAnswers:
    """The answers of one server; counts what was asked, for those that come after others."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Answer:
        path = re.sub(r"^/(proxy/)?(v1|openai)(/deployments/[^/]+)?|^/elsewhere", "", asked.path)
        place = f"{asked.method} {path}"
        self._asked[place] += 1
        for pattern, make in _ENDPOINTS.items():
            if re.fullmatch(pattern, place):
                return make(asked, self._asked[place])
        return json_answer({"asked": place, "query": asked.query, "body": _body(asked)})


def _body(asked: Asked) -> Any:
    try:
        return asked.json
    except ValueError:
        return len(asked.content)


# -- chat -------------------------------------------------------------------------------------------


def _chat(asked: Asked, times: int) -> Answer:
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


# -- responses --------------------------------------------------------------------------------------


def _response(body: dict[str, Any], output: list[Any], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1790000000.0,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": body.get("model", "m"),
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "top_p": 1.0,
        "usage": {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 12,
        },
    }


def _output(body: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if "reasoning" in body:
        summary = [{"type": "summary_text", "text": "Ich denke nach."}]
        items.append({"id": "rs_1", "type": "reasoning", "summary": summary})
    if "tools" in body:
        call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "status": "completed"}
        return [*items, {**call, "name": "search", "arguments": '{"q": "gö"}'}]
    text = '{"severity": "P0", "pages": [1, 2]}' if "text" in body else "Guten Tag, schöne Welt."
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return [*items, {**message, "content": [part]}]


def _responses(asked: Asked, times: int) -> Answer:
    body = asked.json
    if not body.get("stream"):
        return json_answer(_response(body, _output(body)))
    return 200, EVENTS, [event(value, value["type"]) for value in _response_events(body)]


def _response_events(body: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []

    def say(kind: str, **more: Any) -> None:
        events.append({"type": kind, "sequence_number": len(events), **more})

    say("response.created", response=_response(body, [], "in_progress") | {"usage": None})
    for at, item in enumerate(_output(body)):
        here = {"output_index": at, "item_id": item["id"]}
        empty = {**item, **{key: [] for key in ("content", "summary") if key in item}}
        say("response.output_item.added", output_index=at, item=empty | _unless("arguments", item))
        if item["type"] == "reasoning":
            part = item["summary"][0]
            here_too = {**here, "summary_index": 0}
            say("response.reasoning_summary_part.added", part={**part, "text": ""}, **here_too)
            for piece in ("Ich denke ", "nach."):
                say("response.reasoning_summary_text.delta", delta=piece, **here_too)
            say("response.reasoning_summary_text.done", text=part["text"], **here_too)
            say("response.reasoning_summary_part.done", part=part, **here_too)
        elif item["type"] == "function_call":
            for piece in ('{"q": ', '"gö"}'):
                say("response.function_call_arguments.delta", delta=piece, **here)
            done = {"arguments": item["arguments"], "name": item["name"]}
            say("response.function_call_arguments.done", **done, **here)
        else:
            part = item["content"][0]
            here_too = {**here, "content_index": 0}
            say("response.content_part.added", part={**part, "text": ""}, **here_too)
            for start in range(0, len(part["text"]), 7):
                delta = part["text"][start : start + 7]
                say("response.output_text.delta", delta=delta, logprobs=[], **here_too)
            say("response.output_text.done", text=part["text"], logprobs=[], **here_too)
            say("response.content_part.done", part=part, **here_too)
        say("response.output_item.done", output_index=at, item=item)
    say("response.completed", response=_response(body, _output(body)))
    return events


def _unless(key: str, item: dict[str, Any]) -> dict[str, Any]:
    return {key: ""} if key in item else {}


# -- everything else --------------------------------------------------------------------------------


def _embeddings(asked: Asked, times: int) -> Answer:
    vector = [0.5, -1.25, 3.0, 0.1]
    packed: Any = vector
    if asked.json.get("encoding_format") == "base64":
        packed = base64.b64encode(struct.pack("<4f", *vector)).decode()
    data = [{"object": "embedding", "index": 0, "embedding": packed}]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    return json_answer({"object": "list", "data": data, "model": "e", "usage": usage})


def _completions(asked: Asked, times: int) -> Answer:
    def one(text: str, finish: str | None) -> dict[str, Any]:
        choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
        head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice]}

    if asked.json.get("stream"):
        return 200, EVENTS, [event(one("a", None)), event(one("b", "stop")), DONE]
    return json_answer(one("ab", "stop") | {"usage": USAGE})


def _always(value: Any, **headers: str) -> Callable[[Asked, int], Answer]:
    return lambda asked, times: json_answer(value, **headers)


def _bytes(kind: str, content: bytes) -> Callable[[Asked, int], Answer]:
    return lambda asked, times: (200, {"content-type": kind, "x-request-id": "req_1"}, content)


def _pages(make: Callable[[str], dict[str, Any]]) -> Callable[[Asked, int], Answer]:
    """Two pages of two, then an empty one: some SDKs stop at ``has_more``, some at an empty page."""

    def page(asked: Asked, times: int) -> Answer:
        start = {"": 0, "x2": 2}.get(asked.query.get("after", ""), 4)
        ids = [f"x{number}" for number in range(start + 1, 5)][:2]
        ends = {"first_id": ids[0], "last_id": ids[-1]} if ids else {}
        data = [make(name) for name in ids]
        return json_answer({"object": "list", "data": data, "has_more": bool(data), **ends})

    return page


def _file(name: str) -> dict[str, Any]:
    size = {"bytes": 7, "created_at": 1, "filename": "f.jsonl", "purpose": "batch", "status": "processed"}
    return {"id": name, "object": "file", **size}


def _batch(name: str) -> dict[str, Any]:
    what = {"endpoint": "/v1/chat/completions", "input_file_id": "file-1", "completion_window": "24h"}
    return {"id": name, "object": "batch", "status": "validating", "created_at": 1, **what}


def _job(name: str) -> dict[str, Any]:
    more = {
        "created_at": 1,
        "organization_id": "org",
        "training_file": "file-1",
        "seed": 1,
        "status": "queued",
    }
    none = {"error": None, "fine_tuned_model": None, "finished_at": None, "trained_tokens": None}
    lists = {"hyperparameters": {"n_epochs": "auto"}, "result_files": [], "validation_file": None}
    return {"id": name, "object": "fine_tuning.job", "model": "m", **more, **none, **lists}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1, "owned_by": "me"}


def _store_file(status: str) -> dict[str, Any]:
    place = {"vector_store_id": "vs_1", "usage_bytes": 1, "created_at": 1, "last_error": None}
    return {"id": "file-1", "object": "vector_store.file", "status": status, **place}


def _polled(asked: Asked, times: int) -> Answer:
    state = "in_progress" if times < 3 else "completed"
    return json_answer(_store_file(state), **{"openai-poll-after-ms": "1"})


def _conversation(**more: Any) -> dict[str, Any]:
    return {"id": "conv_1", "object": "conversation", "created_at": 1, "metadata": {}, **more}


_COUNTS = {"in_progress": 0, "completed": 1, "failed": 0, "cancelled": 0, "total": 1}
_STORE = {"id": "vs_1", "object": "vector_store", "created_at": 1, "name": "docs", "usage_bytes": 1}
_STORE |= {"file_counts": _COUNTS, "status": "completed", "last_active_at": 1, "metadata": {}}
_FLAGS = {"harassment": False, "violence": True}
_MODERATION = {"flagged": True, "categories": _FLAGS, "category_scores": {"violence": 0.9}}
_IMAGE = {"created": 1, "data": [{"b64_json": "aGVsbG8=", "revised_prompt": "a cat"}]}
_MODELS = [_model("m"), _model("ft:m:org::1")]

_ENDPOINTS: dict[str, Callable[[Asked, int], Answer]] = {
    "POST /chat/completions": _chat,
    "POST /responses": _responses,
    "GET /responses/resp_1": lambda asked, times: json_answer(_response({}, _output({}))),
    "GET /responses/resp_1/input_items": _pages(lambda name: {"id": name, "type": "item_reference"}),
    "DELETE /responses/resp_1": lambda asked, times: (204, {}, b""),
    "POST /conversations": lambda asked, times: json_answer(_conversation()),
    "(GET|POST) /conversations/conv_1": lambda asked, times: json_answer(_conversation(metadata={"a": "b"})),
    "DELETE /conversations/conv_1": _always(
        {"id": "conv_1", "object": "conversation.deleted", "deleted": True}
    ),
    "POST /embeddings": _embeddings,
    "POST /moderations": _always({"id": "modr-1", "model": "mod", "results": [_MODERATION]}),
    "POST /completions": _completions,
    "POST /images/(generations|edits|variations)": _always(_IMAGE),
    "POST /audio/speech": _bytes("audio/mpeg", SOUND),
    "POST /audio/(transcriptions|translations)": _always({"text": "Grüß Gott"}),
    "POST /files": lambda asked, times: json_answer(_file("file-1")),
    "GET /files/file-1": _always(_file("file-1")),
    "GET /files/file-1/content": _bytes("application/octet-stream", SOUND),
    "DELETE /files/file-1": _always({"id": "file-1", "object": "file", "deleted": True}),
    "POST /vector_stores": _always(_STORE),
    "POST /vector_stores/vs_1/files": _always(_store_file("in_progress")),
    "GET /vector_stores/vs_1/files/file-1": _polled,
    "POST /batches": _always(_batch("batch_1")),
    "GET /batches/batch_1": _always(_batch("batch_1")),
    "GET /batches": _pages(_batch),
    "POST /fine_tuning/jobs": _always(_job("ftjob-1")),
    "GET /fine_tuning/jobs": _pages(_job),
    "GET /models": _always({"object": "list", "data": _MODELS}),
    "GET /models/.*": _always(_MODELS[1]),
    "GET /moved": lambda asked, times: (307, {"location": "/elsewhere/things", "content-length": "0"}, b""),
}
