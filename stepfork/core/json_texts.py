"""Which texts are JSON or base64, and where the strings of JSON stand. Knows no secret and no key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

JSONISH: Final = re.compile(r"\s*[\[{\"]")
"""How JSON begins that holds a string."""
_JSON: Final = json.JSONDecoder(strict=False)
_STRING: Final = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?', re.DOTALL)
_BLOB: Final = re.compile(r"[A-Za-z0-9+/\s]*+={0,2}\s*")


class String(NamedTuple):
    """A string in a JSON text: where it stands with its quotes, where a colon after it ends, what it says."""

    start: int
    end: int
    after: int
    text: str

    @property
    def is_key(self) -> bool:
        """Whether a colon follows."""
        return self.after > self.end


def strings(text: str) -> Iterator[String]:
    """The strings of a JSON text.

    >>> [(string.text, string.is_key) for string in strings('{"a": "b"}')]
    [('a', True), ('b', False)]
    """
    for match in _STRING.finditer(text):
        token = match[1]
        said = json.loads(token, strict=False) if "\\" in token else token[1:-1]
        yield String(match.start(), match.end(1), match.end(), said)


def is_json(text: str) -> bool:
    """Whether a text is a JSON object, array or string, or several of them."""
    at = 0
    try:
        while match := JSONISH.match(text, at):
            _, at = _JSON.raw_decode(text, match.end() - 1)
    except (ValueError, RecursionError):
        return False
    return at > 0 and not text[at:].strip()


def is_blob(text: str) -> bool:
    """Whether a text is one piece of base64, as images and audio are: no shape in it means anything."""
    if text.startswith("data:"):
        return _BLOB.fullmatch(text, text.find(",") + 1) is not None
    return len(text) >= 256 and _BLOB.fullmatch(text) is not None
