"""What an OpenAI server answers to Responses: text, function calls, reasoning, whole and streamed."""

from __future__ import annotations

from typing import Any

from support.chat_server import EVENTS, event, json_answer
from support.scripted_server import Answer, Asked


def response_of(body: dict[str, Any], output: list[Any], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1790000000.0,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": body.get("model", "m"),
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "top_p": 1.0,
        "usage": {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 12,
        },
    }


def output_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if "reasoning" in body:
        summary = [{"type": "summary_text", "text": "Ich denke nach."}]
        items.append({"id": "rs_1", "type": "reasoning", "summary": summary})
    if "tools" in body:
        call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "status": "completed"}
        return [*items, {**call, "name": "search", "arguments": '{"q": "gö"}'}]
    text = '{"severity": "P0", "pages": [1, 2]}' if "text" in body else "Guten Tag, schöne Welt."
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return [*items, {**message, "content": [part]}]


def responses(asked: Asked, times: int) -> Answer:
    body = asked.json
    if not body.get("stream"):
        return json_answer(response_of(body, output_of(body)))
    return 200, EVENTS, [event(value, value["type"]) for value in _response_events(body)]


def _response_events(body: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []

    def say(kind: str, **more: Any) -> None:
        events.append({"type": kind, "sequence_number": len(events), **more})

    say("response.created", response=response_of(body, [], "in_progress") | {"usage": None})
    for at, item in enumerate(output_of(body)):
        here = {"output_index": at, "item_id": item["id"]}
        empty = {**item, **{key: [] for key in ("content", "summary") if key in item}}
        say("response.output_item.added", output_index=at, item=empty | _unless("arguments", item))
        if item["type"] == "reasoning":
            part = item["summary"][0]
            here_too = {**here, "summary_index": 0}
            say("response.reasoning_summary_part.added", part={**part, "text": ""}, **here_too)
            for piece in ("Ich denke ", "nach."):
                say("response.reasoning_summary_text.delta", delta=piece, **here_too)
            say("response.reasoning_summary_text.done", text=part["text"], **here_too)
            say("response.reasoning_summary_part.done", part=part, **here_too)
        elif item["type"] == "function_call":
            for piece in ('{"q": ', '"gö"}'):
                say("response.function_call_arguments.delta", delta=piece, **here)
            done = {"arguments": item["arguments"], "name": item["name"]}
            say("response.function_call_arguments.done", **done, **here)
        else:
            part = item["content"][0]
            here_too = {**here, "content_index": 0}
            say("response.content_part.added", part={**part, "text": ""}, **here_too)
            for start in range(0, len(part["text"]), 7):
                delta = part["text"][start : start + 7]
                say("response.output_text.delta", delta=delta, logprobs=[], **here_too)
            say("response.output_text.done", text=part["text"], logprobs=[], **here_too)
            say("response.content_part.done", part=part, **here_too)
        say("response.output_item.done", output_index=at, item=item)
    say("response.completed", response=response_of(body, output_of(body)))
    return events


def _unless(key: str, item: dict[str, Any]) -> dict[str, Any]:
    return {key: ""} if key in item else {}
