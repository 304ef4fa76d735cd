"""An agent of the usual kind, for so many turns: one LLM call that asks for one tool. Opens no socket.

A system prompt of two kilobytes, six tools with schemas of 500 to 700 bytes, and results of 200 to 800 bytes;
all of it always the same. Bodies are posted as they are: typed methods take ten times as long for long ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai

_WORDS = ("checkout", "latency", "deploy", "rollback", "region", "queue", "worker", "cache", "index", "shard")

TOOLS_MODULE = """
    from support.agent_loop import text
    def look_up(topic):
        return text(200 + topic * 97 % 600, topic)
"""


def text(size: int, seed: int) -> str:
    """Words in lines, of about that many characters."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < size:
        number = len(words) * 7 + seed * 13
        words.append(_WORDS[number % len(_WORDS)] + str(number % 89) + ("\n" if len(words) % 9 == 8 else " "))
    return "".join(words).strip()


SYSTEM = text(2000, 1)


def schemas() -> list[dict[str, Any]]:
    """Six tools."""
    return [_schema(number) for number in range(6)]


def _schema(number: int) -> dict[str, Any]:
    properties = {
        name: {"type": "string", "description": text(70, number + at)}
        for at, name in enumerate(("topic", "region", "since", "format"))
    }
    parameters = {"type": "object", "properties": properties, "required": ["topic"]}
    about = {"name": f"tool_{number}", "description": text(60, number), "parameters": parameters}
    return {"type": "function", "function": about}


def model(request: httpx2.Request) -> httpx2.Response:
    """Asks for a tool, and says why."""
    asked = json.loads(request.content)
    turn = len(asked["messages"])
    call = {"name": "tool_0", "arguments": json.dumps({"topic": str(turn)})}
    message = {
        "role": "assistant",
        "content": text(120, turn),
        "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": call}],
    }
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
    }
    return httpx2.Response(200, json=body)


def nobody(request: httpx2.Request) -> httpx2.Response:
    """A model that is not asked."""
    raise AssertionError("nothing may be sent")


def client(answer: Callable[[httpx2.Request], httpx2.Response] = model) -> openai.OpenAI:
    """A client whose requests are answered in the process."""
    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(base_url="http://model.test/v1", api_key="none", http_client=http, max_retries=0)


def loop(
    ask: openai.OpenAI,
    look_up: Callable[[int], str],
    turns: int,
    *,
    system: str = SYSTEM,
    question: str = "What is wrong with the checkout?",
    tools: list[dict[str, Any]] | None = None,
) -> list[Any]:
    """Runs the agent; gives the conversation."""
    tools = schemas() if tools is None else tools
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    for turn in range(turns):
        body = {"model": "m", "messages": messages, "tools": tools}
        answer: Any = ask.post("/chat/completions", cast_to=object, body=body)
        said = answer["choices"][0]["message"]
        result = look_up(turn)
        reply = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": result}
        messages = [*messages, said, reply]
    return messages
