"""Rows of the OpenAI table: what goes wrong, and comes back wrong in the same way."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from adapters.openai_rows import Go, M, headers, row, seen

STATUSES = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    418: openai.APIStatusError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    503: openai.InternalServerError,
}


async def _error(go: Go, model: str, client: Any = None, **more: Any) -> Any:
    create = (client or go.client).chat.completions.create
    return await go.raised(lambda: create(model=model, messages=M, **more))


async def _broken_stream(go: Go, model: str) -> Any:
    """The chunks that came, and the error that ended them."""
    stream = await go.wait(go.client.chat.completions.create(model=model, messages=M, stream=True))
    got: list[Any] = []
    try:
        while True:
            got.append(seen(await go.next(stream)))
    except StopAsyncIteration:
        return got, "ended"
    except Exception as error:
        return got, seen(error)


@row("errors")
async def every_status(go: Go) -> Any:
    """every `APIStatusError`: status, body, headers, request id"""
    found = [await _error(go, f"status-{status}") for status in STATUSES]
    for status, (name, *told) in zip(STATUSES, found, strict=True):
        assert (name, told[1], told[3]) == (STATUSES[status].__name__, status, f"req_{status}")
        assert told[6]["retry-after"] == "30"
    return found


@row("errors")
async def other_bodies(go: Go) -> Any:
    """errors whose body is HTML, Latin-1, empty"""
    return [await _error(go, model) for model in ("html", "latin", "empty")]


@row("errors")
async def streamed_status(go: Go) -> Any:
    """a stream that fails while opening"""
    asking = await _error(go, "status-500", stream=True)
    manager = go.client.chat.completions.with_streaming_response.create(model="status-404", messages=M)
    try:
        async with go.within(manager):
            raise AssertionError("nothing was raised")
    except openai.NotFoundError as error:
        return asking, seen(error)


@row("errors")
async def lost_connection(go: Go) -> Any:
    """`APIConnectionError`"""
    return await _error(go, "lost"), await _error(go, "lost", stream=True)


@row("errors")
async def timeout(go: Go) -> Any:
    """`APITimeoutError`"""
    told = await _error(go, "silent", go.make(timeout=0.2))
    assert told[0] == "APITimeoutError"
    return told


@row("errors")
async def retried(go: Go) -> Any:
    """429 twice, then 200: one call, attempts noted, no sleep on replay"""
    client = go.make(max_retries=5)
    create = client.chat.completions.with_raw_response.create
    raw = await go.wait(create(model="busy-2", messages=M))
    return seen(await go.wait(raw.parse())), getattr(raw, "retries_taken", None), headers(raw)


@row("errors")
async def retried_after_loss(go: Go) -> Any:
    """429, a lost connection, then 200; 429 to the end"""
    client = go.make(max_retries=2)
    answer = await go.wait(client.chat.completions.create(model="busy-2-lost", messages=M))
    return seen(answer), await _error(go, "busy-9", go.make(max_retries=1))


@row("errors")
async def retried_stream(go: Go) -> Any:
    """429 twice, then a stream"""
    client = go.make(max_retries=2)
    stream = await go.wait(client.chat.completions.create(model="busy-2", messages=M, stream=True))
    return [seen(chunk) for chunk in await go.all(stream)]


@row("errors")
async def broken_midway(go: Go) -> Any:
    """a stream that breaks midway"""
    got, error = await _broken_stream(go, "breaks")
    assert len(got) == 2
    assert error != "ended"
    return got, error


@row("errors")
async def broken_in_an_event(go: Go) -> Any:
    """a stream that breaks within an event"""
    return await _broken_stream(go, "cuts")


@row("errors")
async def error_event(go: Go) -> Any:
    """a stream with an error event"""
    got, error = await _broken_stream(go, "says")
    assert (len(got), error[0]) == (2, "APIError")
    return got, error


@row("errors")
async def malformed_event(go: Go) -> Any:
    """a stream with an event that is no JSON"""
    got, error = await _broken_stream(go, "nonsense")
    assert (len(got), error[0]) == (2, "JSONDecodeError")
    return got, error


@row("errors")
async def no_done(go: Go) -> Any:
    """a stream without `[DONE]`"""
    got, error = await _broken_stream(go, "ends")
    assert (len(got), error) == (2, "ended")
    return got


@row("errors")
async def stream_timeout(go: Go) -> Any:
    """a stream that times out midway"""
    client = go.make(timeout=0.2)
    stream = await go.wait(client.chat.completions.create(model="waits", messages=M, stream=True))
    got = [seen(await go.next(stream)), seen(await go.next(stream))]
    try:
        await go.next(stream)
    except Exception as error:
        return got, seen(error)


@row("errors", kinds=("async",))
async def cancelled(go: Go) -> Any:
    """a cancelled call"""
    create = go.client.chat.completions.create
    try:
        await asyncio.wait_for(create(model="silent", messages=M), 0.2)
    except TimeoutError:
        return "timed out", seen(await create(model="m", messages=M))


@row("errors", kinds=("async",))
async def cancelled_stream(go: Go) -> Any:
    """a stream whose reader is cancelled"""
    stream = await go.client.chat.completions.create(model="waits", messages=M, stream=True)
    got = [seen(await anext(stream)), seen(await anext(stream))]
    try:
        await asyncio.wait_for(anext(stream), 0.2)
    except TimeoutError:
        return got, "timed out"


@row("errors")
async def too_long(go: Go) -> Any:
    """`parse` of an answer that was cut off"""
    from adapters.openai_rows_chat import Verdict, parsing

    parse = parsing(go.client).parse
    told = await go.raised(lambda: parse(model="long", messages=M, response_format=Verdict))
    assert told[0] == "LengthFinishReasonError"
    return told


@row("errors")
async def torn_json(go: Go) -> Any:
    """an answer that is no JSON, or no object"""
    torn = await _error(go, "torn")
    return torn, seen(await go.wait(go.client.chat.completions.create(model="plain", messages=M)))


@row("errors")
async def odd_answer(go: Go) -> Any:
    """an answer without `usage`, with an unknown field and an unknown finish reason"""
    answer = await go.wait(go.client.chat.completions.create(model="odd", messages=M))
    assert (answer.usage, answer.x, answer.choices[0].finish_reason) == (None, {"new": [1]}, "foo")
    return seen(answer)


def _realtime(go: Go) -> Any:
    client = go.client
    return client.realtime if hasattr(client, "realtime") else client.beta.realtime


@row("websockets", "1.54", refused=True)
async def realtime(go: Go) -> Any:
    """realtime: refused"""
    async with go.within(_realtime(go).connect(model="m")):
        raise AssertionError("connected")


@row("websockets", "1.54", refused=True)
async def realtime_entered(go: Go) -> Any:
    """realtime without `with`: refused"""
    await go.wait(_realtime(go).connect(model="m").enter())


@row("websockets", "2.54", refused=True)
async def responses_websocket(go: Go) -> Any:
    """Responses: refused"""
    async with go.within(go.client.responses.connect()):
        raise AssertionError("connected")
