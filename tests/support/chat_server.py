"""A small chat-completions server on 127.0.0.1 for tests that need a scripted answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


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


def stream_answer(*contents: str, end: str = "data: [DONE]\n\n") -> Answer:
    text = "".join(f"data: {json.dumps(chunk(content), ensure_ascii=False)}\n\n" for content in contents)
    return 200, {"content-type": "text/event-stream"}, (text + end).encode()


def echo(body: dict[str, Any]) -> Answer:
    """Says the last message back, as a stream if one is asked for; refuses the message ``fail``."""
    said = body["messages"][-1]["content"]
    if said == "fail":
        return json_answer({"error": {"message": "no such model", "code": "bad"}}, 400)
    if body.get("stream"):
        return stream_answer(*said.split())
    return json_answer(completion(f"you said:\n{said}"))


class ChatServer:
    """What the server saw, and where it is."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.answer = answer
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.bodies.append(body)
                outer.headers.append(dict(self.headers))
                status, headers, data = outer.answer(body)
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self._up = True

    @property
    def hits(self) -> int:
        return len(self.bodies)

    def stop(self) -> None:
        if self._up:
            self._up = False
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Answer] = echo) -> Iterator[ChatServer]:
    server = ChatServer(answer)
    try:
        yield server
    finally:
        server.stop()
