"""The two leaves of a mismatch in colour: what was recorded red, what is now green. Knows texts only."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = "\x1b[0m"
_RED: Final = "\x1b[31m"
_GREEN: Final = "\x1b[32m"
_LEAF: Final = re.compile(r"(?P<head>(?:E +)? *(?P<side>recorded|now): +)(?P<leaf>.*)", re.DOTALL)
_MARKED: Final = re.compile(r"\[-.*-\]|\{\+.*\+\}", re.DOTALL)


def in_colour(line: str, around: str = "") -> str:
    """The line as a terminal is to show it: a leaf, or what is marked in it, in its colour.

    `around` are the codes of the colours that the rest of the line has.

    >>> in_colour("  now:      120")
    '  now:      \\x1b[0m\\x1b[32m120\\x1b[0m'
    >>> in_colour("  call 1 of 3")
    '  call 1 of 3'
    """
    found = _LEAF.fullmatch(line)
    if found is None:
        return line
    colour = _RED if found["side"] == "recorded" else _GREEN
    leaf = found["leaf"]
    marked = _MARKED.search(leaf)
    start, end = marked.span() if marked else (0, len(leaf))
    shown = f"{_PLAIN}{colour}{leaf[start:end]}{_PLAIN}{around}"
    return f"{found['head']}{leaf[:start]}{shown}{leaf[end:]}"
