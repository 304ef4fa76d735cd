"""A real model on llama.cpp: recorded over HTTP, replayed without it. Structure only, never words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from support.servers import llama

import stepfork

M = [{"role": "user", "content": "Say one short sentence about tea."}]
MODEL = "smollm2-135m"
WEATHER: Any = [{"role": "user", "content": "What is the weather in Oslo? Use the function."}]
WEATHER_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"severity": {"type": "string", "enum": ["P0", "P1"]}},
    "required": ["severity"],
}


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with llama() as url:
        yield url


def plain(client: openai.OpenAI) -> Any:
    answer = client.chat.completions.create(model=MODEL, messages=M, max_tokens=12)
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0
    return answer.model_dump()


def stream(client: openai.OpenAI) -> Any:
    options = {"include_usage": True}
    chunks = [
        chunk.model_dump()
        for chunk in client.chat.completions.create(
            model=MODEL, messages=M, max_tokens=12, stream=True, stream_options=options
        )
    ]
    assert len(chunks) > 3
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    return chunks


def two_choices(client: openai.OpenAI) -> Any:
    answer = client.chat.completions.create(model=MODEL, messages=M, max_tokens=6, n=2)
    assert len(answer.choices) == 2
    return answer.model_dump()


def schema(client: openai.OpenAI) -> Any:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=M,
        max_tokens=30,
        response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
    )
    assert json.loads(answer.choices[0].message.content or "")["severity"] in ("P0", "P1")
    return answer.model_dump()


def tools(client: openai.OpenAI) -> Any:
    answer = client.chat.completions.create(
        model=MODEL, messages=WEATHER, tools=[WEATHER_TOOL], tool_choice="required", max_tokens=60
    )
    (call, *_) = answer.choices[0].message.tool_calls or ()
    assert call.type == "function"
    assert call.function.name == "weather"
    assert isinstance(json.loads(call.function.arguments), dict)
    return answer.model_dump()


def streamed_tools(client: openai.OpenAI) -> Any:
    chunks = client.chat.completions.create(
        model=MODEL,
        messages=WEATHER,
        tools=[WEATHER_TOOL],
        tool_choice="required",
        max_tokens=60,
        stream=True,
    )
    dumped = [chunk.model_dump() for chunk in chunks]
    deltas = [
        delta
        for chunk in dumped
        for choice in chunk["choices"]
        for delta in choice["delta"]["tool_calls"] or ()
    ]
    assert deltas[0]["function"]["name"] == "weather"
    said = "".join(delta["function"]["arguments"] or "" for delta in deltas)
    assert isinstance(json.loads(said), dict)
    assert len(deltas) > 2
    return dumped


def logprobs(client: openai.OpenAI) -> Any:
    answer = client.chat.completions.create(
        model=MODEL, messages=M, max_tokens=4, logprobs=True, top_logprobs=2
    )
    assert answer.choices[0].logprobs is not None
    assert answer.choices[0].logprobs.content
    return answer.model_dump()


def embeddings(client: openai.OpenAI) -> Any:
    as_usual = client.embeddings.create(model=MODEL, input=["tea", "coffee"])
    as_floats = client.embeddings.create(model=MODEL, input="tea", encoding_format="float")
    assert len(as_usual.data) == 2
    assert len(as_usual.data[0].embedding) == len(as_floats.data[0].embedding) > 100
    return as_usual.model_dump(), as_floats.model_dump()


def responses(client: openai.OpenAI) -> Any:
    answer = client.responses.create(model=MODEL, input="Say one short sentence.", max_output_tokens=12)
    assert answer.output_text
    assert answer.status in ("completed", "incomplete")
    return answer.model_dump()


def streamed_responses(client: openai.OpenAI) -> Any:
    tool: Any = {**WEATHER_TOOL["function"], "type": "function", "strict": False}
    asked: Any = {"model": MODEL, "max_output_tokens": 60, "stream": True}
    text = [event.model_dump() for event in client.responses.create(input="Say one sentence.", **asked)]
    calls = client.responses.create(
        input="What is the weather in Oslo? Use the function.", tools=[tool], tool_choice="required", **asked
    )
    called = [event.model_dump() for event in calls]
    kinds = {event["type"] for event in text + called}
    assert {"response.created", "response.output_text.delta", "response.completed"} <= kinds
    assert "response.function_call_arguments.delta" in kinds
    return text, called


def left_early(client: openai.OpenAI) -> Any:
    asked: Any = {"model": MODEL, "messages": M, "max_tokens": 200, "stream": True}
    with client.chat.completions.create(**asked) as chunks:
        return [next(chunks).model_dump() for _ in range(3)]


def bad_request(client: openai.OpenAI) -> Any:
    with pytest.raises(openai.APIStatusError) as caught:
        client.post("/chat/completions", cast_to=object, body={"model": MODEL})
    return type(caught.value), caught.value.status_code, caught.value.body


def not_found(client: openai.OpenAI) -> Any:
    with pytest.raises(openai.NotFoundError) as caught:
        client.post("/no/such/thing", cast_to=object, body={})
    return caught.value.status_code, caught.value.body


AGENTS = [
    plain,
    stream,
    two_choices,
    schema,
    tools,
    streamed_tools,
    logprobs,
    embeddings,
    responses,
    streamed_responses,
    left_early,
    bad_request,
    not_found,
]


@pytest.mark.parametrize("agent", AGENTS)
def test_recorded_live_and_replayed_without_the_server(
    model: str, tmp_path: Path, agent: Callable[[openai.OpenAI], Any]
) -> None:
    path = tmp_path / "run.yaml"
    with stepfork.record(path), openai.OpenAI(base_url=model, api_key="none", max_retries=0) as client:
        recorded = agent(client)
    with stepfork.replay(path) as run, openai.OpenAI(base_url="http://127.0.0.1:9/v1") as client:
        assert agent(client) == recorded
    assert (run.counts.substituted, run.counts.live) == (run.counts.recorded, 0)


def test_async_recorded_live_and_replayed(model: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"

    async def agent(url: str) -> Any:
        async with openai.AsyncOpenAI(base_url=url) as client:
            answer = await client.chat.completions.create(model=MODEL, messages=M, max_tokens=8)
            chunks = await client.chat.completions.create(model=MODEL, messages=M, max_tokens=8, stream=True)
            return answer.model_dump(), [chunk.model_dump() async for chunk in chunks]

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "none")
        with stepfork.record(path):
            recorded = asyncio.run(agent(model))
    with stepfork.replay(path):
        assert asyncio.run(agent("http://127.0.0.1:9/v1")) == recorded


def test_sampling_really_happens_live(model: str, tmp_path: Path) -> None:
    """The recording is of a live model: three recordings of one prompt do not all say the same."""
    answers = set()
    for number in range(3):
        with (
            stepfork.record(tmp_path / f"{number}.yaml"),
            openai.OpenAI(base_url=model, api_key="none") as client,
        ):
            answer = client.chat.completions.create(model=MODEL, messages=M, max_tokens=24, seed=number)
            answers.add(answer.choices[0].message.content)
    assert len(answers) > 1
