"""A text that an answer spells once more, token by token, with log probabilities. Knows no secret."""

from __future__ import annotations

from typing import Any

from stepfork.core.model import Plain


def is_entry(value: Plain) -> bool:
    """Whether a value is a token with its log probability and those of others in its place."""
    return isinstance(value, dict) and "top_logprobs" in value and isinstance(value.get("token"), str)


def spelled(items: list[Plain]) -> str:
    """The text that a list of tokens spells; "" for any other list.

    >>> spelled([{"token": token, "top_logprobs": []} for token in "ab"]), spelled(["a"])
    ('ab', '')
    """
    if not items or not all(map(is_entry, items)):
        return ""
    entries: list[Any] = items
    return "".join(entry["token"] for entry in entries)


def respelled(items: list[Plain], text: str) -> list[Plain]:
    """The tokens such that they spell another text: the first of those that differ has all that does.

    >>> entries = [{"token": token, "logprob": 0.0, "bytes": [1], "top_logprobs": [1]} for token in "abcd"]
    >>> [(new["token"], new["bytes"]) for new in respelled(entries, "aXYd")]
    [('a', [1]), ('XY', [88, 89]), ('', []), ('d', [1])]
    """
    entries: list[Any] = items
    whole = spelled(items)
    first = at = 0
    before = _alike(whole, text)
    while first < len(entries) - 1 and at + len(entries[first]["token"]) <= before:
        at += len(entries[first]["token"])
        first += 1
    last, left = len(entries), 0
    behind = min(_alike(whole[::-1], text[::-1]), len(whole) - at, len(text) - at)
    while last > first + 1 and left + len(entries[last - 1]["token"]) <= behind:
        last -= 1
        left += len(entries[last]["token"])
    gone = [_told(entry, "") for entry in entries[first + 1 : last]]
    return [*items[:first], _told(entries[first], text[at : len(text) - left]), *gone, *items[last:]]


def _alike(one: str, other: str) -> int:
    """How many characters at the beginning of two texts that differ are the same."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _told(entry: dict[str, Plain], token: str) -> Plain:
    """An entry with another token; what else it says of the old one goes."""
    new: dict[str, Plain] = {**entry, "token": token}
    if isinstance(entry.get("bytes"), list):
        new["bytes"] = list(token.encode("utf-8", "surrogatepass"))
    if "top_logprobs" in entry:
        new["top_logprobs"] = []
    return new
