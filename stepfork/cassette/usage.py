"""The tokens that an answer says it took. Knows what answers look like; no price, no session."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from stepfork.cassette import stream
from stepfork.core.model import Plain, texts_in


class Usage(NamedTuple):
    """Tokens of one answer, and the model that it says gave it ("" if it does not say)."""

    input: int
    output: int
    model: str = ""

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output


def usage_of(outcome: dict[str, Plain]) -> Usage | None:
    """What the outcome of an LLM call says of its tokens; None if it says nothing.

    >>> usage_of({"response": {"model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}})
    Usage(input=3, output=4, model='m')
    """
    if "response" in outcome:
        return _read(outcome["response"])
    streamed = outcome.get("stream")
    if not isinstance(streamed, dict) or not any("usage" in text for text in texts_in(streamed)):
        return None
    try:
        raw = stream.decode(streamed)
    except (stream.Misfit, ValueError):  # a recorded one that was edited; whoever reads it is told
        return None
    for line in reversed(raw.splitlines()):
        if line.startswith(b"data:") and b'"usage"' in line:
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            found = _read(event) or (_read(event.get("response")) if isinstance(event, dict) else None)
            if found is not None:
                return found
    return None


def is_silent(outcome: dict[str, Plain]) -> bool:
    """Whether a model answered and does not say what it took.

    >>> is_silent({"response": {"choices": []}}), is_silent({"response": {"object": "list"}})
    (True, False)
    """
    answer = outcome.get("response")
    answered = "stream" in outcome or (
        isinstance(answer, dict) and ("choices" in answer or "output" in answer)
    )
    return answered and usage_of(outcome) is None


def _read(answer: Any) -> Usage | None:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return None
    asked = _count(usage, "prompt_tokens", "input_tokens")
    said = _count(usage, "completion_tokens", "output_tokens")
    total = _count(usage, "total_tokens")
    if asked is None and said is None and total is None:
        return None
    if asked is None:
        asked = max((total or 0) - (said or 0), 0)
    if said is None:
        said = max((total or 0) - asked, 0)
    model = answer.get("model")
    return Usage(asked, said, model if isinstance(model, str) else "")


def _count(usage: dict[str, Any], *names: str) -> int | None:
    for name in names:
        if type(usage.get(name)) is int and usage[name] >= 0:
            return int(usage[name])
    return None
