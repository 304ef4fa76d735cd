"""Real servers that are not ours, started for the tests: llama.cpp with a small model, and llmock."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LLMOCK = ROOT / ".venv-llmock" / "bin" / "llmock"
LLAMA = Path(__file__).with_name("llama_server.py")


@contextmanager
def llama() -> Iterator[str]:
    """SmolLM2-135M on llama.cpp: chat, tools, embeddings, Responses; gives the base URL."""
    port = _free_port()
    with _running([sys.executable, str(LLAMA), str(port)], f"http://127.0.0.1:{port}/health", loading=503):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def llmock(*options: str) -> Iterator[str]:
    """llmock in its own environment (`make test` makes it); gives the base URL."""
    assert LLMOCK.exists(), "llmock is not installed: run the tests with 'make test'"
    port = _free_port()
    command = [str(LLMOCK), "serve", "--port", str(port), "--log-level", "warning", *options]
    with _running(command, f"http://127.0.0.1:{port}/v1/models"):
        yield f"http://127.0.0.1:{port}/v1"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def _running(command: list[str], url: str, loading: int = 0) -> Iterator[None]:
    """Runs a server; begins once it answers, if only with the fault it was told to (but not `loading`)."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            if not _answers(process, url, loading):
                log.seek(0)
                told = log.read().decode("utf-8", "replace")[-2000:]
                raise AssertionError(f"{command[-1]}: the server ended or was not ready in time:\n{told}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(process: subprocess.Popen[bytes], url: str, loading: int) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with direct.open(url, timeout=2):
                return True
        except urllib.error.HTTPError as error:
            if error.code != loading:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False
