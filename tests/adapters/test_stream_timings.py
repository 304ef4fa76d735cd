"""llama.cpp says in every chunk of a stream how long it took: the recording stays small and exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
from support.chat_server import DONE, EVENTS, event
from support.scripted_server import ScriptedServer

import stepfork

WORDS = 400


def timings(at: int) -> dict[str, Any]:
    """As `timings_per_token` has them: nine numbers, of which nearly all differ from chunk to chunk."""
    spent = 11.25 * at + 0.001 * (at * 7919 % 1000)
    return {
        "cache_n": 0,
        "prompt_n": 31,
        "prompt_ms": 118.327,
        "prompt_per_token_ms": 3.817,
        "prompt_per_second": 261.986,
        "predicted_n": at,
        "predicted_ms": round(spent, 3),
        "predicted_per_token_ms": spent / max(at, 1),
        "predicted_per_second": 1000 * at / max(spent, 1.0),
    }


def chunks() -> list[dict[str, Any]]:
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = [
        {**whole, "choices": [{"index": 0, "finish_reason": None, "delta": {"content": f"word{at} "}}]}
        for at in range(WORDS)
    ]
    last = {**whole, "choices": [{"index": 0, "finish_reason": "stop", "delta": {}}]}
    return [{**one, "timings": timings(at)} for at, one in enumerate([*said, last])]


def read(url: str) -> list[dict[str, Any]]:
    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "go"}], stream=True
    )
    return [json.loads(chunk.model_dump_json(exclude_unset=True)) for chunk in stream]


def test_C126_timings_in_every_chunk_come_back_exactly_and_stay_small(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    pieces = [event(one) for one in chunks()] + [DONE]
    server = ScriptedServer(lambda asked: (200, EVENTS, pieces))
    try:
        with stepfork.record(path):
            live = read(server.url)
    finally:
        server.stop()
    assert [one["timings"] for one in live] == [one["timings"] for one in chunks()]
    with stepfork.replay(path):
        assert read("http://127.0.0.1:9/v1") == live
    text = path.read_text("utf-8")
    assert text.count("predicted_per_second") < 8  # the form of the block stands for all kinds of chunks
    size, numbers = path.stat().st_size, json.dumps([list(timings(at).values())[5:] for at in range(WORDS)])
    assert size < 0.25 * sum(map(len, pieces))
    assert size < 1.5 * len(numbers) + len("word000 ") * WORDS
    assert text.count("\n") < 60
