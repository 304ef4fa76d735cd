"""What stepfork reads of a cassette, in the form of `support.second_reader`. Knows both."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from stepfork.cassette import frame, stream
from stepfork.cassette.schema import RESPONSE_FIELDS
from stepfork.cassette.store import StoredCassette
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Recorded, Tagged
from stepfork.instrument.http_message import content_bytes
from support import second_reader


def readers_agree(path: Path) -> dict[str, Any]:
    """Reads a cassette with both; gives what the second one read."""
    first, second = first_reader(path), second_reader.read(path)
    assert canonical_text(second) == canonical_text(first)
    assert [list(call["outcome"]) for call in second["calls"]] == [
        list(call["outcome"]) for call in first["calls"]
    ], "the order of fields"
    return second


def first_reader(path: Path) -> dict[str, Any]:
    """A cassette as stepfork reads it, as plain JSON."""
    cassette = StoredCassette(path)
    end = None
    if cassette.end is not None:
        end = {**as_json(frame.end_document(cassette.end)), "checksum": cassette.verdict}
    return {
        "header": as_json(frame.header_document(cassette.header)),
        "calls": [_call(recorded) for recorded in cassette.all_recorded()],
        "end": end,
    }


def _call(recorded: Recorded) -> dict[str, Any]:
    call, outcome, mark = recorded.call, as_json(recorded.outcome), recorded.mark
    if call.kind == "llm" and {*outcome} & {*RESPONSE_FIELDS}:
        held: Any = recorded.outcome.get("stream")
        content = stream.decode(held) if held else content_bytes(recorded.outcome)
        outcome["bytes"] = base64.b64encode(content).decode()
    lane: dict[str, Any] = {}
    if mark is not None:
        started: Any = mark.started[0] if len(mark.started) == 1 else list(mark.started)
        lane = {"lane": mark.lane, "started": started, "after": list(mark.after)}
    return {
        "kind": call.kind,
        "name": call.name,
        "asked": as_json(call.args),
        "target": as_json(call.target),
        "outcome": outcome,
        "depth": recorded.depth,
        "unfinished": recorded.unfinished,
        "lane": {key: value for key, value in lane.items() if value},
    }


def as_json(value: Plain) -> Any:
    """A plain value, with tags as the second reader has them."""
    if isinstance(value, Tagged):
        return {f"\0{value.tag}": as_json(value.value)}
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value
