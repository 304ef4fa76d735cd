"""An HTTP server on 127.0.0.1 that answers as it is told, piece by piece if need be. Knows no endpoint."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content) if self.content else {}


BREAK = "break"
"""A piece that cuts the connection."""

Piece = bytes | threading.Event | str
Answer = tuple[int, dict[str, str], bytes | Sequence[Piece]]
"""Status, headers, content. Content in pieces is sent piece by piece; at an event the server waits for it."""

NO_ANSWER: Answer = (0, {}, b"")
"""The connection is closed without an answer."""


class ScriptedServer:
    """What the server saw, and where it is."""

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        self.respond = answer
        self.asked: list[Asked] = []
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def hits(self) -> int:
        return len(self.asked)

    def stop(self) -> None:
        if not self._stopped.is_set():
            self._stopped.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def wait_for(self, event: threading.Event) -> None:
        """Until the event comes or the server is stopped."""
        while not event.wait(0.005) and not self._stopped.is_set():
            pass

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                headers = {key.lower(): value for key, value in self.headers.items()}
                asked = Asked(self.command, parts.path, query, headers, self._read())
                outer.asked.append(asked)
                status, answer_headers, content = outer.respond(asked)
                try:
                    self._answer(status, answer_headers, content)
                except OSError:  # the client went away
                    self.close_connection = True

            do_HEAD = do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

            def _read(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length", 0)))
                content = b""
                while size := int(self.rfile.readline(), 16):
                    content += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return content

            def _answer(self, status: int, headers: dict[str, str], content: bytes | Sequence[Piece]) -> None:
                if status == 0:
                    self._cut()
                    return
                whole = isinstance(content, bytes)
                length = {"content-length": str(len(content))} if whole else {"transfer-encoding": "chunked"}
                self.send_response(status)
                for name, value in (length | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if isinstance(content, bytes):
                    self.wfile.write(content)
                else:
                    self._send(content)

            def _send(self, pieces: Sequence[Piece]) -> None:
                for piece in pieces:
                    if isinstance(piece, threading.Event):
                        outer.wait_for(piece)
                    elif isinstance(piece, bytes):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    else:
                        self._cut()
                        return
                self.wfile.write(b"0\r\n\r\n")

            def _cut(self) -> None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        return Handler
