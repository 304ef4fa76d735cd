"""What is made up anew for each answer, told from what it says. Knows fields and rules; knows no file.

Ids, times, timings, the padding of streams, request ids, dates and rate limits in headers; and what the rules
of `normalize` find. An id that comes back in a later request, or as an argument, must be the new one wherever
it was the old one.
"""

from __future__ import annotations

import re
from typing import Any, Final

from stepfork.cassette import shared
from stepfork.core.model import Plain, Tagged
from stepfork.core.volatile import Rules

_IDS: Final = "id|call_id|tool_call_id|item_id|response_id|previous_response_id|request_id|system_fingerprint"
_TIMES: Final = "created|created_at|completed_at|expires_at"
_ID: Final = re.compile(_IDS)
_TIME: Final = re.compile(_TIMES)
_SERIES: Final = re.compile(f"(?:{_IDS}|{_TIMES}|obfuscation)(?:_[0-9]+)?")
_HEADER: Final = re.compile(r"(?i:x-request-id|x-ratelimit-.*|date)")
_TIMINGS: Final = "timings"
"""How long each step took, in the answers of llama.cpp's server."""
_ID_IN_TEXT: Final = re.compile(rf'"({_IDS})": ?"([^"\\$]*)"')
_TIME_IN_TEXT: Final = re.compile(rf'"({_TIMES})": ?[0-9.]+')
_TIMINGS_IN_TEXT: Final = re.compile(r'"timings": ?\{[^{}]*\}')
_ANSWERS: Final = ("response", "stream")
_SAID: Final = frozenset(("arguments", "input", "metadata"))
"""What stands below these is the model's own or the caller's."""


class MadeUp:
    """Which new id stands for which old one, as far as it is known.

    Attributes:
        references: names of shared values, old and new, that stood in each other's place.

    >>> made_up = MadeUp()
    >>> made_up.same_answers({"response": {"id": "a"}}, {"response": {"id": "b"}})
    True
    >>> made_up.same_rest({"args": {"of": "a"}}, {"args": {"of": "b"}})
    True
    >>> made_up.same_rest({"args": {"of": "a"}}, {"args": {"of": "c"}})
    False
    """

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self.references: dict[str, str] = {}
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def same_answers(self, old: dict[str, Plain], new: dict[str, Plain]) -> bool:
        """Whether the answers of two LLM calls differ in what was made up only; takes down its ids."""
        return all(self._same(old.get(field), new.get(field), field, answer=True) for field in _ANSWERS)

    def same_rest(self, old: dict[str, Plain], new: dict[str, Plain]) -> bool:
        """Whether all else of two documents is the same, given the ids of all answers."""
        done = _ANSWERS if "llm" in old else ()
        return list(old) == list(new) and all(
            self._same(old[field], new[field], field) for field in old if field not in done
        )

    def same_value(self, old: Plain, new: Plain) -> bool:
        """Whether two shared values are the same."""
        return self._same(old, new, "", answer=True)

    def _one(self, old: str, new: str) -> bool:
        """Takes one id for another, if neither stands for a third one."""
        return self._new.setdefault(old, new) == new and self._old.setdefault(new, old) == old

    def _same(self, old: Any, new: Any, key: str, *, answer: bool = False) -> bool:
        kind = type(old)
        answer = answer and key not in _SAID
        if answer and kind in (int, float) and type(new) in (int, float) and _TIME.fullmatch(key):
            return True
        if kind is not type(new):
            return False
        if kind is dict:
            return (answer and key == _TIMINGS) or self._same_fields(old, new, key, answer)
        if kind is list:
            return len(old) == len(new) and all(
                self._same(one, other, key, answer=answer) for one, other in zip(old, new, strict=True)
            )
        if kind is Tagged:
            if old.tag == new.tag == shared.TAG and old.value != new.value:
                return self.references.setdefault(str(old.value), str(new.value)) == str(new.value)
            return old.tag == new.tag and self._same(old.value, new.value, key, answer=answer)
        if kind is str:
            if old == new or self._new.get(old) == new:
                return True
            if answer and (self._one(old, new) if _ID.fullmatch(key) else self._same_text(old, new, key)):
                return True
            return self._alike(old, new)
        if kind is float:
            return float.hex(old) == float.hex(new)  # NaN is NaN, -0.0 is not 0.0
        return bool(old == new)

    def _same_fields(self, old: dict[str, Any], new: dict[str, Any], key: str, answer: bool) -> bool:
        if key == "headers":
            old = {name: value for name, value in old.items() if not _HEADER.fullmatch(name)}
            new = {name: value for name, value in new.items() if not _HEADER.fullmatch(name)}
        return list(old) == list(new) and all(
            (answer and key == "series" and _SERIES.fullmatch(name) is not None)
            or self._same(value, new[name], name, answer=answer)
            for name, value in old.items()
        )

    def _same_text(self, old: str, new: str, key: str) -> bool:
        """The templates of a stream's events, which say ids and times too."""
        if key != "events" or not self._alike(_masked(old), _masked(new)):
            return False
        found = zip(_ID_IN_TEXT.finditer(old), _ID_IN_TEXT.finditer(new), strict=True)
        return all(one[2] == other[2] or self._one(one[2], other[2]) for one, other in found)

    def _alike(self, old: str, new: str) -> bool:
        """Whether two texts differ in what the rules find only."""
        if old == new:
            return True
        if not self._rules:
            return False
        (rest, pieces), (new_rest, new_pieces) = self._rules.cut(old), self._rules.cut(new)
        return rest == new_rest and all(
            one.rule == other.rule
            and one.text == other.text
            and (one.text is not None or self._one(one.value, other.value))
            for one, other in zip(pieces, new_pieces, strict=True)
        )


def _masked(events: str) -> str:
    events = _TIMINGS_IN_TEXT.sub("", events)
    return _TIME_IN_TEXT.sub(r'"\1":0', _ID_IN_TEXT.sub(r'"\1":""', events))
