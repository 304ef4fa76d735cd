"""Rows of the OpenAI table: chat completions, in every way the SDK offers to ask for one."""

from __future__ import annotations

from typing import Any

from adapters.openai_rows import Go, M, headers, row, say, seen
from pydantic import BaseModel

TOOLS: Any = [
    {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
]
SCHEMA: Any = {"type": "json_schema", "json_schema": {"name": "v", "schema": {"type": "object"}}}


class Verdict(BaseModel):
    severity: str
    pages: list[int]


def parsing(client: Any) -> Any:
    """Where this version of the SDK has ``parse`` and ``stream``."""
    completions = client.chat.completions
    return completions if hasattr(completions, "parse") else client.beta.chat.completions


@row("chat")
async def plain(go: Go) -> Any:
    """plain"""
    return seen(await go.wait(go.client.chat.completions.create(model="m", messages=M)))


@row("chat")
async def tools(go: Go) -> Any:
    """tools"""
    return seen(await go.wait(go.client.chat.completions.create(model="m", messages=M, tools=TOOLS)))


@row("chat")
async def two_choices(go: Go) -> Any:
    """`n=2`"""
    return seen(await go.wait(go.client.chat.completions.create(model="m", messages=M, n=2)))


@row("chat")
async def logprobs(go: Go) -> Any:
    """logprobs"""
    return seen(await go.wait(go.client.chat.completions.create(model="m", messages=M, logprobs=True)))


@row("chat")
async def json_schema(go: Go) -> Any:
    """json_schema"""
    create = go.client.chat.completions.create
    return seen(await go.wait(create(model="m", messages=M, response_format=SCHEMA)))


@row("chat")
async def parse(go: Go) -> Any:
    """`parse`"""
    parse = parsing(go.client).parse
    answer = await go.wait(parse(model="m", messages=M, response_format=Verdict))
    parsed = answer.choices[0].message.parsed
    assert parsed == Verdict(severity="P0", pages=[1, 2])
    return seen(answer), type(parsed).__name__


@row("chat")
async def stream_helper(go: Go) -> Any:
    """the `.stream()` helper"""
    manager = parsing(go.client).stream(model="m", messages=M, response_format=Verdict)
    async with go.within(manager) as stream:
        events = [seen(event) for event in await go.all(stream)]
        final = await go.wait(stream.get_final_completion())
    assert final.choices[0].message.parsed == Verdict(severity="P0", pages=[1, 2])
    return events, seen(final)


async def _stream(go: Go, **more: Any) -> Any:
    create = go.client.chat.completions.create
    return await go.wait(create(**{"model": "m", "messages": M, "stream": True, **more}))


@row("chat")
async def stream_with_usage(go: Go) -> Any:
    """`stream=True` with usage"""
    stream = await _stream(go, stream_options={"include_usage": True})
    chunks = [seen(chunk) for chunk in await go.all(stream)]
    assert chunks[-1][1]["usage"]["total_tokens"] == 7
    return type(stream).__name__, chunks


@row("chat")
async def streamed_tools(go: Go) -> Any:
    """streamed tool calls"""
    return [seen(chunk) for chunk in await go.all(await _stream(go, tools=TOOLS))]


@row("chat")
async def stream_as_context(go: Go) -> Any:
    """a stream as context manager"""
    async with go.within(await _stream(go)) as stream:
        return [seen(chunk) for chunk in await go.all(stream)]


@row("chat")
async def closed_early(go: Go) -> Any:
    """a stream closed early"""
    stream = await _stream(go)
    first = [seen(await go.next(stream)), seen(await go.next(stream))]
    await go.wait(stream.close())
    return first


@row("chat")
async def left_half_read(go: Go) -> Any:
    """a stream left half read"""
    stream = await _stream(go)
    first = seen(await go.next(stream))
    after = seen(await go.wait(go.client.chat.completions.create(model="m", messages=M)))
    return first, after, type(stream).__name__


@row("chat")
async def left_by_break(go: Go) -> Any:
    """a stream left by an exception inside its `with`"""
    got = []
    try:
        async with go.within(await _stream(go)) as stream:
            got.append(seen(await go.next(stream)))
            raise KeyError("enough")
    except KeyError:
        return got


@row("chat")
async def never_read(go: Go) -> Any:
    """a stream never read"""
    kept = await _stream(go)
    return type(kept).__name__, seen(await go.wait(go.client.chat.completions.create(model="m", messages=M)))


@row("chat")
async def read_lazily(go: Go) -> Any:
    """streams read after other calls, in turns"""
    first, second = await _stream(go), await _stream(go, messages=say("another"))
    between = seen(await go.wait(go.client.chat.completions.create(model="m", messages=M)))
    got = [seen(await go.next(second)), seen(await go.next(first)), seen(await go.next(second))]
    return between, got, seen(await go.all(first)), seen(await go.all(second))


@row("chat")
async def raw_response(go: Go) -> Any:
    """`with_raw_response`"""
    raw = await go.wait(go.client.chat.completions.with_raw_response.create(model="m", messages=M))
    again = seen(await go.wait(raw.parse()))
    return type(raw).__name__, raw.status_code, headers(raw), raw.text, raw.content, raw.request_id, again


@row("chat")
async def raw_stream(go: Go) -> Any:
    """`with_raw_response` of a stream"""
    create = go.client.chat.completions.with_raw_response.create
    raw = await go.wait(create(model="m", messages=M, stream=True))
    stream = await go.wait(raw.parse())
    return headers(raw), [seen(chunk) for chunk in await go.all(stream)]


@row("chat")
async def streaming_response(go: Go) -> Any:
    """`with_streaming_response`"""
    create = go.client.chat.completions.with_streaming_response.create
    async with go.within(create(model="m", messages=M)) as response:
        lines = await go.all(response.iter_lines())
    async with go.within(create(model="m", messages=M)) as response:
        parsed = seen(await go.wait(response.parse()))
        return lines, parsed, type(response).__name__, headers(response)


@row("chat")
async def streaming_response_bytes(go: Go) -> Any:
    """`with_streaming_response` of a stream, byte by byte"""
    create = go.client.chat.completions.with_streaming_response.create
    async with go.within(create(model="m", messages=M, stream=True)) as response:
        pieces = await go.all(response.iter_bytes())
    async with go.within(create(model="m", messages=say("2"), stream=True)) as response:
        stream = await go.wait(response.parse())
        return pieces, [seen(chunk) for chunk in await go.all(stream)]
