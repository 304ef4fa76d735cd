"""What an OpenAI server answers, endpoint by endpoint, always the same. Knows no SDK.

`answer` is given to a `ScriptedServer`. The model named in a chat request asks for a fault: ``status-429``,
``busy-2``, ``breaks`` and so on, see `openai_chat_answers`.
"""

from __future__ import annotations

import base64
import re
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from support.chat_server import DONE, EVENTS, event, json_answer
from support.openai_chat_answers import USAGE, chat
from support.openai_responses_answers import output_of, response_of, responses
from support.scripted_server import Answer, Asked

SOUND = b"\xff\xfb\x90\x00" + bytes(range(256)) + b"\n\n\r\n\r\n"


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
    "POST /chat/completions": chat,
    "POST /responses": responses,
    "GET /responses/resp_1": lambda asked, times: json_answer(response_of({}, output_of({}))),
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
