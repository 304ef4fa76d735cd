"""A small chat-completions server on 127.0.0.1 for tests that need a scripted answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.scripted_server import Answer, Asked, ScriptedServer


def completion(content: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        **more,
    }


def chunk(content: str) -> dict[str, Any]:
    delta = {"index": 0, "delta": {"content": content}, "finish_reason": None}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [delta]}


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    body = json.dumps(value, ensure_ascii=False, indent=2).encode()
    return status, {"content-type": "application/json", "x-request-id": "req_1", **headers}, body


def event(value: Any, name: str = "") -> bytes:
    """One event of a stream, as a server sends it."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


EVENTS = {"content-type": "text/event-stream", "x-request-id": "req_1"}
DONE = b"data: [DONE]\n\n"


def stream_answer(*contents: str, end: str = "data: [DONE]\n\n") -> Answer:
    text = b"".join(event(chunk(content)) for content in contents)
    return 200, {"content-type": "text/event-stream"}, text + end.encode()


def echo(body: dict[str, Any]) -> Answer:
    """Says the last message back, as a stream if one is asked for; refuses the message ``fail``."""
    said = body["messages"][-1]["content"]
    if said == "fail":
        return json_answer({"error": {"message": "no such model", "code": "bad"}}, 400)
    if body.get("stream"):
        return stream_answer(*said.split())
    return json_answer(completion(f"you said:\n{said}"))


class ChatServer(ScriptedServer):
    """A server whose answer is made of the JSON that was asked."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.answer = answer
        super().__init__(lambda asked: self.answer(asked.json))

    @property
    def bodies(self) -> list[Any]:
        return [asked.json for asked in self.asked]

    @property
    def headers(self) -> list[dict[str, str]]:
        return [asked.headers for asked in self.asked]


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Answer] = echo) -> Iterator[ChatServer]:
    server = ChatServer(answer)
    try:
        yield server
    finally:
        server.stop()


__all__ = [
    "DONE",
    "EVENTS",
    "Answer",
    "Asked",
    "ChatServer",
    "chat_server",
    "chunk",
    "completion",
    "echo",
    "event",
    "json_answer",
    "stream_answer",
]
