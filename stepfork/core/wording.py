"""How a difference between two calls is put into words. Pure; knows no file and no session.

Every text here stays small whatever the size of the request: leaves are cut around the first place
where they differ.
"""

from __future__ import annotations

import json
import math
from typing import Any

from stepfork.core.matching import ABSENT, Mismatch
from stepfork.core.model import Incoming, Plain, Tagged, cut, describe
from stepfork.errors import visible

LEAF_IN_LINE = 80  # bytes of a leaf in the first line
LEAF_BELOW = 600  # bytes of a leaf in the lines below it
PLACE = 200  # bytes of a path
_NAME = 120  # bytes of a call's name
_AROUND = 80  # characters on either side of what differs in a long text
_WORD = 40  # characters that a difference is widened by at most, to the edge of a word


def spell(value: Any) -> str:
    """A plain value as a reader of JSON would write it; what JSON lacks as ``tag(...)``.

    >>> spell({"a": [1, True, "x"]}), spell(Tagged("tuple", [1])), spell(None)
    ('{"a": [1, true, "x"]}', 'tuple([1])', 'null')
    """
    if value is ABSENT:
        return "nothing"
    if isinstance(value, Tagged):
        return f"{value.tag}({spell(value.value)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{spell(key)}: {spell(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spell, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        return visible(json.dumps(value, ensure_ascii=False))
    try:
        return json.dumps(value)
    except ValueError:  # a number of so many digits that Python refuses to spell it out
        return hex(value)


def spell_pair(expected: Any, actual: Any, limit: int) -> tuple[str, str]:
    """Both leaves in at most `limit` bytes each, cut so that the first difference can be seen.

    >>> spell_pair("a" * 100 + "X", "a" * 100 + "Y", 20)
    ('…aaaaaaaaaaaaaaaaX"', '…aaaaaaaaaaaaaaaaY"')
    """
    return cut_pair(*_spell_some(expected, actual), limit)


def cut_pair(old: str, new: str, limit: int) -> tuple[str, str]:
    """Two texts in at most `limit` bytes each, cut around the first difference."""
    if _size(old) <= limit and _size(new) <= limit:
        return old, new
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    width = limit
    while True:
        start = max(0, min(at - width // 3, max(len(old), len(new)) - width + 2))
        found = _window(old, start, width), _window(new, start, width)
        if width < 8 or max(map(_size, found)) <= limit + 4:  # the ellipses
            return found
        width = width * 3 // 4


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def leaves(expected: Any, actual: Any) -> list[str]:
    """Both leaves, a line each; of long texts that have much in common what differs, marked, and where.

    >>> leaves(60, 120)
    ['recorded: 60', 'now:      120']
    """
    if (
        isinstance(expected, str)
        and isinstance(actual, str)
        and len(expected) + len(actual) > 2 * LEAF_IN_LINE
    ):
        place, old, new = marked_pair(expected, actual)
        if place is not None and max(_size(old), _size(new)) <= LEAF_BELOW * 3 // 2:
            line = expected.count("\n", 0, place) + 1
            return [f"from line {line}, character {place + 1}:", f"recorded: {old}", f"now:      {new}"]
    old, new = spell_pair(expected, actual, LEAF_BELOW)
    return [f"recorded: {old}", f"now:      {new}"]


def marked_pair(expected: str, actual: str) -> tuple[int | None, str, str]:
    """Where two texts differ, by words: the place of the first difference, and both with it marked.

    What is between the first difference and the last one stands in ``[-...-]`` and ``{+...+}``, as in
    ``git diff --word-diff``, with what is around it. The place is None where hardly anything is common.

    >>> marked_pair("The outage began at 10:00 UTC.", "The outage began at 11:30 UTC.")
    (None, '"The outage began at [-10:00-] UTC."', '"The outage began at {+11:30+} UTC."')
    """
    place = start = common_length(expected, actual)
    most = min(len(expected), len(actual)) - start
    tail = min(most, common_length(expected[::-1], actual[::-1]))
    while start > 0 and place - start < _WORD and not expected[start - 1].isspace():
        start -= 1
    widest = tail - _WORD
    while tail > 0 and tail > widest and not expected[-tail].isspace():
        tail -= 1
    common = start + tail
    return (
        place if common > _WORD else None,
        _marked(expected, start, tail, "[-", "-]"),
        _marked(actual, start, tail, "{+", "+}"),
    )


def _marked(text: str, start: int, tail: int, opening: str, closing: str) -> str:
    end = len(text) - tail
    before = text[max(0, start - _AROUND) : start]
    after = text[end : end + _AROUND]
    shown = f"{before}{opening}{_shortened(text[start:end])}{closing}{after}"
    left = "…" if start > _AROUND else ""
    right = "…" if tail > _AROUND else ""
    return left + spell(shown) + right


def _shortened(text: str) -> str:
    half = (LEAF_BELOW - 2 * _AROUND) // 2
    return text if len(text) <= 2 * half else f"{text[:half]}…{text[-half:]}"


def common_length(left: str, right: str) -> int:
    """The length of the longest common prefix, by halving: slices compare at C speed."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _spell_some(expected: Any, actual: Any) -> tuple[str, str]:
    """Spells both, but of two long strings only the neighbourhood of the first difference."""
    if isinstance(expected, str) and isinstance(actual, str) and max(len(expected), len(actual)) > 4000:
        low = common_length(expected, actual)
        start = max(0, low - 1000)
        head = "…" if start else ""
        return head + spell(expected[start : low + 1000]), head + spell(actual[start : low + 1000])
    return spell(expected), spell(actual)


def _window(text: str, start: int, limit: int) -> str:
    head = "…" if start > 0 else ""
    tail = "…" if start + limit < len(text) else ""
    return head + text[start : start + limit - len(head) - len(tail)] + tail


def headline(index: int, recorded: Incoming, incoming: Incoming, mismatch: Mismatch) -> str:
    """The first line of a mismatch: the call and the fault.

    >>> a, b = Incoming("tool", "a", {}), Incoming("tool", "b", {})
    >>> headline(1, a, b, Mismatch("name", "", "a", "b"))
    "call #1: expected tool 'a' but the agent called 'b'"
    """
    if mismatch.fault in ("kind", "name"):
        old, new = cut_pair(repr(recorded.name), repr(incoming.name), _NAME)
        called = new if recorded.kind == incoming.kind else f"{incoming.kind} {new}"
        verb = "sent" if incoming.kind != "tool" else "called"
        return f"call #{index}: expected {recorded.kind} {old} but the agent {verb} {called}"
    call = describe(recorded.kind, recorded.name)
    if mismatch.fault == "target":
        part = f"request {mismatch.path.partition('.')[0]}"
        place = f" {cut(repr(mismatch.path), PLACE)}" if "." in mismatch.path else ""
    elif mismatch.fault == "step":
        part, place = cut(mismatch.path, PLACE), ""
    else:
        part = "argument" if recorded.kind == "tool" else "request"
        place = f" {cut(repr(mismatch.path), PLACE)}" if mismatch.path else ""
    start = f"call #{index}: {call} {part}{place}"
    if mismatch.order_only:
        return f"{start}: the items are the same but their order differs"
    if mismatch.actual is ABSENT:
        return f"{start}: expected {_short(mismatch.expected)}, got nothing"
    if mismatch.expected is ABSENT:
        return f"{start}: not in the recording, got {_short(mismatch.actual)}"
    old, new = spell_pair(mismatch.expected, mismatch.actual, LEAF_IN_LINE)
    return f"{start}: expected {old}, got {new}"


def _short(value: Any) -> str:
    return spell_pair(value, value, LEAF_IN_LINE)[0]


def summary(call: Incoming, limit: int = 100) -> str:
    """A call in one short line: ``tool 'search' {"q": "rust"}``.

    >>> summary(Incoming("tool", "search", {"q": "rust"}))
    'tool \\'search\\' {"q": "rust"}'
    """
    args: Plain = call.args
    if call.kind == "llm" and isinstance(args, dict):
        args = {key: args[key] for key in ("model",) if key in args}
    text = spell(args)
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return f"{describe(call.kind, call.name)} {cut(text, 3 * limit)}"
