"""Streams as real servers send them, made here; how short they are in a cassette, and how they read."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from stepfork.cassette.emitter import emit_document
from stepfork.cassette.reader import parse_document
from stepfork.cassette.stream import decode, encode, text_of

WORDS = re.findall(
    r"\w+",
    """
the a of and to in is that for on with as it are this be from at by an or but not have which can one
service checkout deploy rollback error rate latency database connection pool traffic region incident
because recent change caused timeouts between replicas therefore suggest restoring previous version
    """,
)


def pieces(count: int, seed: int = 1) -> list[str]:
    """Text in tokens: words with their blank, some of them in two, signs, an empty line now and then."""
    rng = random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        word = rng.choice(WORDS)
        if len(word) > 8 and rng.random() < 0.4:
            found += [" " + word[:5], word[5:]]
        else:
            found.append(" " + word)
        if rng.random() < 0.12:
            found.append(rng.choice([",", ".", ":", " –", "\n\n"]))
    return ["The", *found[: count - 1]]


def sse(
    payloads: Iterable[Any], *, named: bool = False, end: str = "data: [DONE]\n\n", **dumps: Any
) -> bytes:
    style: dict[str, Any] = {"separators": (",", ":"), "ensure_ascii": False, **dumps}
    parts = []
    for payload in payloads:
        name = f"event: {payload['type']}\n" if named else ""
        parts.append(f"{name}data: {json.dumps(payload, **style)}\n\n")
    return ("".join(parts) + end).encode()


def obfuscation(said: str, rng: random.Random, to: int) -> str:
    """Letters that fill what was said up to a multiple of 16, as OpenAI sends them."""
    length = (to - len(json.dumps(said, ensure_ascii=False)) + 2) % 16 or 16
    return "".join(rng.choices(string.ascii_letters + string.digits, k=length))


def openai_chunks(deltas: Iterable[Any], finish: str, to: int | None = 10) -> Iterator[Any]:
    rng = random.Random(2)
    head = {
        "id": "chatcmpl-C42qMUkjz1QxGv7nWbPzTqEoLr9sY",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_34a54113a1",
    }

    def chunk(choices: list[Any], usage: Any, said: str) -> Any:
        pad = {} if to is None else {"obfuscation": obfuscation(said, rng, to)}
        return {**head, "choices": choices, "usage": usage, **pad}

    def choice(delta: Any, finish: str | None = None) -> list[Any]:
        return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]

    yield chunk(choice({"role": "assistant", "content": "", "refusal": None}), None, "as")
    for delta in deltas:
        calls = delta.get("tool_calls")
        said = delta["content"] if calls is None else calls[0]["function"]["arguments"]
        yield chunk(choice(delta), None, said)
    yield chunk(choice({}, finish), None, "finish")
    details = {"cached_tokens": 0, "audio_tokens": 0}
    usage = {
        "prompt_tokens": 17,
        "completion_tokens": 200,
        "total_tokens": 217,
        "prompt_tokens_details": details,
    }
    yield chunk([], usage, "usage more")


def openai_chat(count: int = 200, to: int | None = 10) -> bytes:
    return sse(openai_chunks(({"content": piece} for piece in pieces(count)), "stop", to))


def openai_tools() -> bytes:
    def deltas() -> Iterator[Any]:
        yield from ({"content": piece} for piece in ("Look", "ing both", " up."))
        for at, (name, arguments) in enumerate(
            [("search", '{"q":"rust"}'), ("summarise", '{"q":"go","n":3}')]
        ):
            function = {"name": name, "arguments": ""}
            call = {
                "index": at,
                "id": f"call_8wSWhuzOhClEzH8c2pYjRIi{at}",
                "type": "function",
                "function": function,
            }
            yield {"tool_calls": [call]}
            for start in range(0, len(arguments), 3):
                part = arguments[start : start + 3]
                yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}

    return sse(openai_chunks(deltas(), "tool_calls"))


def llama_chat(count: int = 200, timings: bool = True) -> bytes:
    """The order of llama.cpp: what the chunks share stands behind the choices, and the clock goes on."""

    def chunk(at: int, choices: Any, **more: Any) -> Any:
        return {
            "choices": choices,
            "created": 1790000000 + at // 50,
            "id": "chatcmpl-ihpCDXUJjzcOPV3yPX2xW3z0BvbMu0OE",
            "model": "smollm2-135m",
            "system_fingerprint": "b0-unknown",
            "object": "chat.completion.chunk",
            **more,
        }

    def choice(delta: Any, finish: str | None = None) -> Any:
        return [{"finish_reason": finish, "index": 0, "delta": delta}]

    def chunks() -> Iterator[Any]:
        yield chunk(0, choice({"role": "assistant", "content": None}))
        for at, piece in enumerate(pieces(count, seed=3)):
            yield chunk(at, choice({"content": piece}))
        yield chunk(count, choice({}, "length"))
        more: dict[str, Any] = {
            "usage": {"completion_tokens": count, "prompt_tokens": 38, "total_tokens": 238}
        }
        if timings:
            more["timings"] = {
                "cache_n": 0,
                "prompt_n": 38,
                "prompt_ms": 526.669,
                "prompt_per_token_ms": 13.859710526315789,
                "predicted_per_second": 42.4370284611715,
                "odd": 1e-05,
            }
        yield chunk(count, [], **more)

    return sse(chunks())


def llmock_chat() -> bytes:
    head = {
        "id": "chatcmpl-e6659ccabbe1",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "m",
    }
    deltas: list[Any] = [
        {"role": "assistant", "content": ""},
        *({"content": piece} for piece in pieces(30)),
        {},
    ]
    return sse(
        ({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas),
        separators=None,
        ensure_ascii=True,
    )


def responses(count: int = 200) -> bytes:
    """A reasoning summary, a text and a function call; the whole object is repeated three times."""
    rng = random.Random(5)
    parameters = {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": f"The {name} to use."} for name in ("city", "unit")
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    tool = {
        "type": "function",
        "description": "The weather now.",
        "name": "get_weather",
        "parameters": parameters,
    }
    base: dict[str, Any] = {
        "id": "resp_68d9303e0ef4819e9abaed38fac5de4f03aa6e5a972b3b23",
        "object": "response",
        "created_at": 1790000000,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": "You are a helpful assistant that reports weather updates. " * 4,
        "max_output_tokens": None,
        "model": "gpt-5-2025-08-07",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "service_tier": "auto",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [{**tool, "strict": True}],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "metadata": {},
    }
    ids = {
        kind: f"{kind}_68d93042784481{at}ebda216a5dcfbec4603aa6e5a"
        for at, kind in enumerate(("rs", "msg", "fc"))
    }
    events: list[Any] = []

    def send(kind: str, **fields: Any) -> None:
        events.append({"type": f"response.{kind}", "sequence_number": len(events), **fields})

    def send_deltas(kind: str, texts: list[str], **where: Any) -> str:
        more = {"logprobs": []} if "output_text" in kind else {}
        for text in texts:
            send(f"{kind}.delta", **where, delta=text, **more, obfuscation=obfuscation(text, rng, 16))
        return "".join(texts)

    send("created", response=base)
    send("in_progress", response=base)
    where: dict[str, Any] = {"item_id": ids["rs"], "output_index": 0, "summary_index": 0}
    send("output_item.added", output_index=0, item={"id": ids["rs"], "type": "reasoning", "summary": []})
    send("reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""})
    thought = send_deltas("reasoning_summary_text", pieces(count // 4, seed=6), **where)
    send("reasoning_summary_text.done", **where, text=thought)
    part = {"type": "summary_text", "text": thought}
    send("reasoning_summary_part.done", **where, part=part)
    thinking = {"id": ids["rs"], "type": "reasoning", "summary": [part]}
    send("output_item.done", output_index=0, item=thinking)

    where = {"item_id": ids["msg"], "output_index": 1, "content_index": 0}
    message: dict[str, Any] = {"id": ids["msg"], "type": "message", "status": "in_progress", "content": []}
    send("output_item.added", output_index=1, item={**message, "role": "assistant"})
    empty = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    send("content_part.added", **where, part=empty)
    said = send_deltas("output_text", pieces(count - count // 4 - 12, seed=7), **where)
    send("output_text.done", **where, text=said, logprobs=[])
    send("content_part.done", **where, part={**empty, "text": said})
    message = {**message, "status": "completed", "content": [{**empty, "text": said}], "role": "assistant"}
    send("output_item.done", output_index=1, item=message)

    call = {"id": ids["fc"], "type": "function_call", "status": "in_progress", "arguments": ""}
    call = {**call, "call_id": "call_5dp5Uj0Loqn1YcyIpqSq6sLX", "name": "get_weather"}
    send("output_item.added", output_index=2, item=call)
    parts = ["{", '"', "city", '":"', "New", " York", ",", " USA", '","', "unit", '":"', 'c"}']
    arguments = send_deltas("function_call_arguments", parts, item_id=ids["fc"], output_index=2)
    send("function_call_arguments.done", item_id=ids["fc"], output_index=2, arguments=arguments)
    call = {**call, "status": "completed", "arguments": arguments}
    send("output_item.done", output_index=2, item=call)
    usage = {"input_tokens": 75, "output_tokens": 155, "output_tokens_details": {"reasoning_tokens": 128}}
    done = {**base, "status": "completed", "output": [thinking, message, call], "service_tier": "default"}
    send("completed", response={**done, "usage": usage})
    return sse(events, named=True, end="")


def in_file(raw: bytes) -> str:
    """The stream as it stands in a cassette, proven to come back."""
    document = {"stream": encode(raw)}
    text = emit_document(document)
    for pure in (False, True):
        back = parse_document(text, pure=pure)["stream"]
        assert emit_document({"stream": back}) == text
        assert decode(back) == raw  # type: ignore[arg-type]
    return text


@pytest.mark.parametrize(
    ("sample", "most", "lines"),
    [
        pytest.param(lambda: openai_chat(to=None), 0.05, 14, id="OpenAI chat"),
        pytest.param(lambda: openai_chat(to=10), 0.05, 16, id="OpenAI chat with obfuscation"),
        pytest.param(llama_chat, 0.05, 15, id="llama.cpp chat"),
        pytest.param(responses, 0.20, 54, id="OpenAI Responses"),
    ],
)
def test_a_long_stream_is_short_in_the_file(sample: Callable[[], bytes], most: float, lines: int) -> None:
    raw = sample()
    text = in_file(raw)
    told = text_of(parse_document(text)["stream"]).count("\n")  # type: ignore[arg-type]
    print(f"{len(raw)} -> {len(text.encode())} bytes, {text.count(chr(10))} lines")
    assert len(text.encode()) <= most * len(raw)
    assert text.count("\n") - told <= lines
