"""Rows of the OpenAI table: the Responses API and conversations."""

from __future__ import annotations

from typing import Any

from adapters.openai_rows import Go, row, seen
from adapters.openai_rows_chat import Verdict

FUNCTION: Any = {
    "type": "function",
    "name": "search",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    "strict": False,
}


async def _create(go: Go, **more: Any) -> Any:
    return await go.wait(go.client.responses.create(**{"model": "m", "input": "hi", **more}))


async def _events(go: Go, **more: Any) -> Any:
    return [seen(event) for event in await go.all(await _create(go, stream=True, **more))]


@row("responses", "1.66")
async def response(go: Go) -> Any:
    """create"""
    answer = await _create(go)
    return seen(answer), answer.output_text


@row("responses", "1.66")
async def response_stream(go: Go) -> Any:
    """stream"""
    events = await _events(go)
    assert events[0][0] == "ResponseCreatedEvent"
    assert events[-1][0] == "ResponseCompletedEvent"
    return events


@row("responses", "1.66")
async def response_stream_helper(go: Go) -> Any:
    """the `.stream()` helper"""
    manager = go.client.responses.stream(model="m", input="hi", text_format=Verdict)
    async with go.within(manager) as stream:
        events = [seen(event) for event in await go.all(stream)]
        final = await go.wait(stream.get_final_response())
    assert final.output_parsed == Verdict(severity="P0", pages=[1, 2])
    return events, seen(final)


@row("responses", "1.66")
async def response_parse(go: Go) -> Any:
    """`parse`"""
    answer = await go.wait(go.client.responses.parse(model="m", input="hi", text_format=Verdict))
    assert answer.output_parsed == Verdict(severity="P0", pages=[1, 2])
    return seen(answer), type(answer.output_parsed).__name__


@row("responses", "1.66")
async def function_calls(go: Go) -> Any:
    """function calls, whole and streamed"""
    return seen(await _create(go, tools=[FUNCTION])), await _events(go, tools=[FUNCTION])


@row("responses", "1.66")
async def reasoning(go: Go) -> Any:
    """reasoning events"""
    events = await _events(go, reasoning={"summary": "auto"}, tools=[FUNCTION])
    assert sum("Reasoning" in event[0] for event in events) >= 4
    return events


@row("responses", "1.66")
async def previous_response(go: Go) -> Any:
    """`previous_response_id`"""
    first = await _create(go)
    second = await _create(go, input="and then?", previous_response_id=first.id)
    assert second.previous_response_id == "resp_1"
    return seen(first), seen(second)


@row("responses", "1.66")
async def response_by_id(go: Go) -> Any:
    """retrieve, input items, delete"""
    responses = go.client.responses
    got = seen(await go.wait(responses.retrieve("resp_1")))
    items = [seen(item) for item in await go.all(responses.input_items.list("resp_1"))]
    return got, items, seen(await go.wait(responses.delete("resp_1")))


@row("responses", "1.66")
async def response_closed_early(go: Go) -> Any:
    """a stream closed early"""
    stream = await _create(go, stream=True)
    first = [seen(await go.next(stream)) for _ in range(3)]
    await go.wait(stream.close())
    return first


@row("responses", "1.66")
async def response_raw(go: Go) -> Any:
    """`with_raw_response`, `with_streaming_response`"""
    responses = go.client.responses
    raw = await go.wait(responses.with_raw_response.create(model="m", input="hi"))
    manager = responses.with_streaming_response.create(model="m", input="hi", stream=True)
    async with go.within(manager) as streamed:
        lines = await go.all(streamed.iter_lines())
    return raw.text, seen(await go.wait(raw.parse())), lines


@row("responses", "1.101")
async def conversations(go: Go) -> Any:
    """conversations"""
    conversations = go.client.conversations
    made = await go.wait(conversations.create(metadata={"a": "b"}))
    answer = await _create(go, conversation=made.id)
    changed = await go.wait(conversations.update(made.id, metadata={"a": "c"}))
    gone = await go.wait(conversations.delete(made.id))
    return [seen(value) for value in (made, answer, changed, gone)]
