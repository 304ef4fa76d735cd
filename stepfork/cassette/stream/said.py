"""What a stream says: which values of which events are text, reasoning, calls. Knows APIs, no spelling.

The one table of what chat, completions, Responses and transcription streams look like. A stream of another
API says nothing here and keeps its values in the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from stepfork.cassette.stream.shapes import Leaf, Pairs


class Role(NamedTuple):
    """What a value is a piece of.

    Attributes:
        choice: the index of the choice, 0 where an API has none.
        kind: ``text``, ``reasoning``, ``refusal``, or of a call its ``arguments``, ``id`` or ``name``.
        part: which of several texts or calls it is; empty where there is one.
    """

    choice: int
    kind: str
    part: tuple[Any, ...] = ()


CALL_KINDS: Final = ("id", "name", "arguments")
TEXT_KINDS: Final = ("text", "reasoning", "refusal")

REPEATS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset(("text", "content", "output_text", "transcript")),
    "reasoning": frozenset(("text", "content", "reasoning", "reasoning_content", "summary")),
    "refusal": frozenset(("refusal", "text")),
    "arguments": frozenset(("arguments", "input")),
    "id": frozenset(("id", "call_id", "tool_call_id", "item_id")),
    "name": frozenset(("name",)),
}
"""Under which keys an event may repeat in full what others said in pieces."""

_CHAT: Final = {
    "content": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
    "refusal": "refusal",
}
_DELTAS: Final = {
    "response.output_text.delta": "text",
    "response.audio.transcript.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "transcript.text.delta": "text",
}
_CALL_ITEMS: Final = ("function_call", "custom_tool_call", "mcp_call")
_INDEXES: Final = ("output_index", "content_index", "summary_index")


def roles(data: Any) -> dict[int, Role]:
    """What the tokens of an event's data say, by token; each role once.

    >>> roles(Pairs([("type", "response.output_text.delta"), ("output_index", 1), ("delta", Leaf(0))]))
    {0: Role(choice=0, kind='text', part=(1,))}
    """
    if type(data) is not Pairs:
        return {}
    found = _responses(data) if isinstance(data.get("type"), str) else _chat(data)
    tokens: dict[Role, int] = {}
    for token, role in found:
        if type(token) is Leaf:
            tokens.setdefault(role, token)
    return {token: role for role, token in tokens.items()}


def _chat(data: Pairs) -> Iterator[tuple[Any, Role]]:
    choices = data.get("choices")
    for at, choice in enumerate(choices if type(choices) is list else ()):
        if type(choice) is not Pairs:
            continue
        number = _index(choice, at)
        yield choice.get("text"), Role(number, "text")
        delta = choice.get("delta")
        if type(delta) is not Pairs:
            continue
        for key, kind in _CHAT.items():
            yield delta.get(key), Role(number, kind)
        audio, calls = delta.get("audio"), delta.get("tool_calls")
        if type(audio) is Pairs:
            yield audio.get("transcript"), Role(number, "text")
        for place, call in enumerate(calls if type(calls) is list else ()):
            if type(call) is Pairs:
                part = (_index(call, place),)
                yield call.get("id"), Role(number, "id", part)
                yield from _function(call.get("function"), number, part)
        yield from _function(delta.get("function_call"), number, (-1,))


def _function(function: Any, choice: int, part: tuple[int, ...]) -> Iterator[tuple[Any, Role]]:
    if type(function) is Pairs:
        yield function.get("name"), Role(choice, "name", part)
        yield function.get("arguments"), Role(choice, "arguments", part)


def _responses(data: Pairs) -> Iterator[tuple[Any, Role]]:
    kind = _DELTAS.get(data.get("type"))
    if kind == "arguments":
        yield data.get("delta"), Role(0, kind, (data.get("output_index"),))
    elif kind is not None:
        part = tuple(data.get(key) for key in _INDEXES)
        yield data.get("delta"), Role(0, kind, tuple(index for index in part if index is not None))
    item = data.get("item")
    if (
        data.get("type") == "response.output_item.added"
        and type(item) is Pairs
        and item.get("type") in _CALL_ITEMS
    ):
        part = (data.get("output_index"),)
        call_id = item.get("call_id")
        yield call_id if type(call_id) is Leaf else item.get("id"), Role(0, "id", part)
        yield item.get("name"), Role(0, "name", part)


def _index(node: Pairs, place: int) -> int:
    index = node.get("index")
    return index if type(index) is int else place
