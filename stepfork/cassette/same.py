"""Whether a new recording says what the old one says. Knows documents; knows no session and writes nothing.

What differs from run to run and that nobody did: the date, the ids and times that a provider makes for its
answers, the padding of streams, request ids and rate limits in headers. An id that comes back in a later
request, or as an argument, must be the new one wherever it was the old one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from stepfork.cassette import frame, integrity, reader, shared
from stepfork.cassette.slices import normal
from stepfork.cassette.values import TAGS
from stepfork.core.model import Plain, Tagged
from stepfork.errors import CassetteError

_IDS: Final = "id|call_id|tool_call_id|item_id|response_id|previous_response_id|request_id|system_fingerprint"
_TIMES: Final = "created|created_at|completed_at|expires_at"
_ID: Final = re.compile(f"(?:{_IDS})")
_TIME: Final = re.compile(f"(?:{_TIMES})")
_SERIES: Final = re.compile(f"(?:{_IDS}|{_TIMES}|obfuscation)(?:_[0-9]+)?")
_HEADER: Final = re.compile(r"x-request-id|x-ratelimit-.*")
_ID_IN_TEXT: Final = re.compile(rf'"({_IDS})": ?"([^"\\$]*)"')
_TIME_IN_TEXT: Final = re.compile(rf'"({_TIMES})": ?[0-9.]+')
_ANSWERS: Final = ("response", "stream")
_SAID: Final = frozenset(("arguments", "input", "metadata"))
"""What stands below these is the model's own or the caller's."""
_DATE: Final = "recorded_at"


def same_behaviour(path: Path, text: str) -> bool:
    """Whether the cassette at a path, which its checksum fits, tells the same as the text of another one.

    >>> same_behaviour(Path("no/such/file.yaml"), "stepfork: 1")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/file.yaml'
    """
    standing = reader.read_text(path)
    if integrity.verify(standing) != "ok":
        return False
    old, new = reader.split(standing), reader.split(normal(text))
    if len(old) != len(new):
        return False
    last = len(old) - 1
    ids = _Ids()
    pairs = []
    try:
        for at in range(len(old)):
            if (one := old.text(at)) == (other := new.text(at)):
                continue
            first, second = _parsed(one), _parsed(other)
            for field, where in ((_DATE, 0), (frame.CHECKSUM, last)):
                if at == where:
                    first.pop(field, None), second.pop(field, None)
            pairs.append((first, second))
    except CassetteError:
        return False
    return all(ids.answers_alike(*pair) for pair in pairs) and all(ids.alike(*pair) for pair in pairs)


def _parsed(text: str) -> dict[str, Plain]:
    return reader.parse_document(text, known_tags=TAGS | {shared.TAG})


class _Ids:
    """Which new id stands for which old one."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def _one(self, old: str, new: str) -> bool:
        """Takes one id for another, if neither stands for a third one."""
        return self._new.setdefault(old, new) == new and self._old.setdefault(new, old) == old

    def answers_alike(self, old: dict[str, Plain], new: dict[str, Plain]) -> bool:
        """Whether the answers of two LLM calls differ in what a provider makes only; takes down its ids."""
        if "llm" not in old:
            return True
        return all(
            self._same(old.get(field), new.get(field), field, answer=True)
            for field in (*_ANSWERS, shared.FIELD)
        )

    def alike(self, old: dict[str, Plain], new: dict[str, Plain]) -> bool:
        """Whether two documents are the same, given the ids of all answers."""
        if list(old) != list(new):
            return False
        done = (*_ANSWERS, shared.FIELD) if "llm" in old else ()
        return all(self._same(old[field], new[field], field) for field in old if field not in done)

    def _same(self, old: Any, new: Any, key: str, *, answer: bool = False) -> bool:
        kind = type(old)
        answer = answer and key not in _SAID
        if answer and _TIME.fullmatch(key) and kind in (int, float) and type(new) in (int, float):
            return True
        if kind is not type(new):
            return False
        if kind is dict:
            return self._same_fields(old, new, key, answer)
        if kind is list:
            return len(old) == len(new) and all(
                self._same(one, other, key, answer=answer) for one, other in zip(old, new, strict=True)
            )
        if kind is Tagged:
            if old.tag == new.tag == shared.TAG and isinstance(old.value, str) and isinstance(new.value, str):
                return old.value == new.value or self._one(old.value, new.value)
            return old.tag == new.tag and self._same(old.value, new.value, key, answer=answer)
        if kind is str:
            if old == new or self._new.get(old) == new:
                return True
            return answer and (self._one(old, new) if _ID.fullmatch(key) else self._same_text(old, new, key))
        return bool(old == new) or (old != old and new != new)

    def _same_fields(self, old: dict[str, Any], new: dict[str, Any], key: str, answer: bool) -> bool:
        if key == shared.FIELD and answer:  # by their names, which are made of their content
            return len(old) == len(new) and all(
                (one == other or self._one(one, other)) and self._same(old[one], new[other], "", answer=True)
                for one, other in zip(old, new, strict=True)
            )
        if key == "headers":
            old = {name: value for name, value in old.items() if not _HEADER.fullmatch(name)}
            new = {name: value for name, value in new.items() if not _HEADER.fullmatch(name)}
        return list(old) == list(new) and all(
            (key == "series" and answer and _SERIES.fullmatch(name) is not None)
            or self._same(value, new[name], name, answer=answer)
            for name, value in old.items()
        )

    def _same_text(self, old: str, new: str, key: str) -> bool:
        """The templates of a stream's events, which say ids and times too."""
        if key != "events":
            return False
        found = zip(_ID_IN_TEXT.finditer(old), _ID_IN_TEXT.finditer(new), strict=False)
        return _masked(old) == _masked(new) and all(
            one[2] == other[2] or self._one(one[2], other[2]) for one, other in found
        )


def _masked(events: str) -> str:
    return _TIME_IN_TEXT.sub(r'"\1":0', _ID_IN_TEXT.sub(r'"\1":""', events))
