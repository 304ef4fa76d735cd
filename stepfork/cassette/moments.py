"""How a moment with a time zone is spelled. Knows texts and plain values; knows no class and no file."""

from __future__ import annotations

import re
from typing import Final

from stepfork.core.model import Plain, Tagged

TAGS: Final = frozenset({"datetime", "time"})
_MINUTE: Final = 60_000_000  # in microseconds
_DAY: Final = 24 * 60 * _MINUTE
_OFFSET: Final = re.compile(r"(.+)([+-])([01]\d|2[0-3]):([0-5]\d)", re.DOTALL)


def spelled(content: Plain) -> Plain:
    """The content of a moment's tag, one with an offset of whole minutes as ISO 8601 has it.

    Files written by earlier versions have the long form everywhere; it means the same.

    >>> spelled(["2026-11-29T08:30:00", 3_600_000_000, 0]), spelled(["08:30:00", -12_600_000_000, 0])
    ('2026-11-29T08:30:00+01:00', '08:30:00-03:30')
    >>> spelled(["2026-11-29T08:30:00", "Europe/Oslo", 0])
    ['2026-11-29T08:30:00', 'Europe/Oslo', 0]
    """
    if not isinstance(content, list) or list(map(type, content)) != [str, int, int]:
        return content
    text, offset, fold = content
    assert isinstance(offset, int)
    if fold or not offset or offset % _MINUTE or abs(offset) >= _DAY:
        return content
    hours, minutes = divmod(abs(offset) // _MINUTE, 60)
    return f"{text}{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"


def in_parts(text: str) -> tuple[str, int] | None:
    """The text without its offset, and that in microseconds; None where it has none, or one of zero.

    >>> in_parts("2026-11-29T08:30:00+01:00"), in_parts("08:30:00"), in_parts("08:30:00+00:00")
    (('2026-11-29T08:30:00', 3600000000), None, None)
    """
    found = _OFFSET.fullmatch(text)
    if found is None:
        return None
    offset = (int(found[3]) * 60 + int(found[4])) * _MINUTE
    return (found[1], -offset if found[2] == "-" else offset) if offset else None


def long_form(value: Plain) -> Plain:
    """A value as earlier versions wrote it, with no offset in any text.

    >>> long_form([Tagged("time", "08:30:00+01:00")])
    [Tagged(tag='time', value=['08:30:00', 3600000000, 0])]
    """
    if isinstance(value, dict):
        return {key: long_form(item) for key, item in value.items()}
    if isinstance(value, list):
        return [long_form(item) for item in value]
    if not isinstance(value, Tagged):
        return value
    parts = in_parts(value.value) if value.tag in TAGS and isinstance(value.value, str) else None
    return Tagged(value.tag, long_form(value.value) if parts is None else [*parts, 0])
