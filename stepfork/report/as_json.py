"""Plain values and recorded calls as JSON for programs. Pure; knows what JSON lacks, no file.

What JSON lacks stands as an object of one key, the tag: ``{"!tuple": [1, 2]}``, ``{"!float": "nan"}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from stepfork.cassette.frame import End
from stepfork.cassette.store import StoredCassette
from stepfork.core.model import Plain, Recorded, Tagged
from stepfork.report.calls import Numbered, Secret

_DEEPEST: Final = 100
"""Levels of calls inside of each other that stand so in JSON: its readers take no end of them."""
_LONGEST: Final = 14000
"""Bits of a number that Python spells in decimal whatever its limit of digits (4300) is set to by default."""


def json_value(value: Plain) -> Any:
    """A plain value as what `json.dumps` writes as valid JSON.

    >>> json_value({"t": Tagged("tuple", [1]), "x": float("inf")})
    {'t': {'!tuple': [1]}, 'x': {'!float': 'inf'}}
    """
    if isinstance(value, Tagged):
        return {f"!{value.tag}": json_value(value.value)}
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"!float": repr(value)}
    if type(value) is int and value.bit_length() > _LONGEST:
        return {"!int": hex(value)}
    return value


def json_text(document: Any) -> str:
    """A document as indented JSON in ASCII, which every terminal and pipe can carry."""
    return json.dumps(document, indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def overview_json(
    shown_path: str,
    cassette: StoredCassette,
    calls: Sequence[Numbered],
    secrets: Sequence[Secret],
) -> dict[str, Any]:
    """A cassette and these calls of it."""
    header, end = cassette.header, cassette.end
    return {
        "file": shown_path,
        "name": header.name,
        "status": cassette.status,
        "test_failed": end is not None and end.test == "failed",
        "entrypoint": header.entrypoint,
        "args": json_value(header.args),
        "env": dict(header.env),
        "tools": list(header.tools),
        "recorded_at": header.recorded_at,
        "integrity": cassette.verdict,
        "warnings": cassette.warnings,
        "calls_total": len(cassette.tops),
        "calls": [call_json(call) for call in calls],
        **_end_json(end),
        "secrets": [
            {"placeholder": item.placeholder, "count": item.count, "first": item.first} for item in secrets
        ],
    }


def _end_json(end: End | None) -> dict[str, Any]:
    return {
        "has_output": end is not None and end.has_output,
        "output": None if end is None else json_value(end.output),
        "error": None if end is None or end.error is None else json_value(end.error),
    }


def call_json(call: Numbered) -> dict[str, Any]:
    """One call with the calls inside it."""
    return {"number": call.number, **_with_children(call.calls)}


def _with_children(calls: Sequence[Recorded]) -> dict[str, Any]:
    """A call with those inside of it, and of them; what is nested too deep for JSON stands side by side."""
    first, *rest = map(_alone, calls)
    around = [first]  # the calls that the next one may be inside of
    for recorded, call in zip(calls[1:], rest, strict=True):
        depth = recorded.depth - calls[0].depth
        del around[min(depth, _DEEPEST) :]
        around[-1]["children"].append(call if depth <= _DEEPEST else {"depth": depth, **call})
        around.append(call)
    return first


def _alone(recorded: Recorded) -> dict[str, Any]:
    call = recorded.call
    return {
        "kind": call.kind,
        "name": call.name,
        **{key: json_value(value) for key, value in call.target.items()},
        "args" if call.kind == "tool" else "request": json_value(call.args),
        **{key: json_value(value) for key, value in recorded.outcome.items()},
        **({"unfinished": True} if recorded.unfinished else {}),
        "children": [],
    }
