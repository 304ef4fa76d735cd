"""Real servers that are not ours, started for the tests: llama.cpp with a small model, and llmock."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LLMOCK = ROOT / ".venv-llmock" / "bin" / "llmock"


def llama() -> AbstractContextManager[str]:
    """SmolLM2-135M on llama.cpp, as the example starts it; gives the base URL."""
    place = ROOT / "examples" / "incident_triage" / "model_server.py"
    spec = importlib.util.spec_from_file_location("example_model_server", place)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    running: AbstractContextManager[str] = module.running_model()
    return running


@contextmanager
def llmock(*options: str) -> Iterator[str]:
    """llmock in its own environment (`make test` makes it); gives the base URL."""
    assert LLMOCK.exists(), "llmock is not installed: run the tests with 'make test'"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(LLMOCK), "serve", "--port", str(port), "--log-level", "warning", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            assert process.stdout is not None
            raise AssertionError(f"llmock ended with {process.returncode}: {process.stdout.read().decode()}")
        try:
            with direct.open(f"http://127.0.0.1:{port}/v1/models", timeout=2):
                return
        except urllib.error.HTTPError:
            return  # it answers, if only with the fault it was told to
        except OSError:
            time.sleep(0.1)
    raise AssertionError("llmock was not ready after 60 seconds")
