"""Samples of secrets and of what only looks like some, put together when asked for. Knows no detector.

The samples are templates, so that nothing here is a secret or looks like one to a scanner: ``{A24}`` are 24
letters and digits (``U`` capitals and digits, ``L`` small letters and digits, ``H`` hexadecimal, ``D``
digits, ``B`` base64, ``S`` URL-safe base64), ``{TILDE}`` is ``~``, ``~`` nothing at all; what is secret
stands in ``[[...]]``.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ALPHABETS: Final = {
    "A": string.ascii_letters + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_lowercase + string.digits,
    "H": "0123456789abcdef",
    "D": string.digits,
    "B": string.ascii_letters + string.digits + "+/",
    "S": string.ascii_letters + string.digits + "-_",
}
_RANDOM: Final = re.compile(r"\{([AULHDBS])(\d+)\}")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_SECRET: Final = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)


@dataclass(frozen=True)
class Sample:
    """A text, and the parts of it that are secret."""

    name: str
    text: str
    secrets: tuple[str, ...] = ()


def build(name: str, template: str) -> Sample:
    """The sample of a template; the same one each time.

    >>> build("x", "token=[[ab~cd]]")
    Sample(name='x', text='token=abcd', secrets=('abcd',))
    """
    chance = random.Random(name)

    def characters(found: re.Match[str]) -> str:
        kind, length = found[1], int(found[2])
        # a capital, a small letter and a digit where the alphabet has them, as any real key has
        sure = [c for c in ("q", "Z", "7") if c in _ALPHABETS[kind]][:length]
        drawn = sure + chance.choices(_ALPHABETS[kind], k=length - len(sure))
        chance.shuffle(drawn)
        if drawn[0] in "-_+/":
            drawn[0] = "A"
        return "".join(drawn)

    filled = _RANDOM.sub(characters, template.replace("~", "").replace("{TILDE}", "~"))
    return Sample(name, _SECRET.sub(r"\1", filled), tuple(_SECRET.findall(filled)))


def _rows(file: str) -> Iterator[tuple[str, str]]:
    r"""Rows ``name | template``; ``\n``, ``\t``, ``\r`` are the characters, ``\\n`` a backslash and n."""
    for row in Path(__file__).with_name(f"{file}.txt").read_text("utf-8").splitlines():
        name, bar, template = row.partition(" | ")
        assert bar, f"not a row: {row}"
        yield name, re.sub(r"\\(\\[nrt]|[nrt])", lambda found: _ESCAPES.get(found[1], found[1]), template)


def positives() -> list[Sample]:
    """The samples that hold a secret."""
    return [build(name, template) for name, template in _rows("secret_positives")]


CANNOT_BE_TOLD: Final = {
    "a key of hexadecimal digits by itself": (
        "the account has [[{H32}]]",
        "digests, commits and ids look alike",
    ),
    "an AWS secret by itself": ("rotated to [[{B40}]] today", "digests and pieces of base64 look alike"),
    "a UUID as a token": ("the token of the app is [[{H8}-{H4}-{H4}-{H4}-{H12}]]", "ids are UUIDs"),
    "a password told in a sentence": ("her password is [[Tr0ub4dor&3]] now", "prose talks of passwords"),
    "a word as a password": ("log in with [[swordfish]] as bob", "it is a word"),
    "a value under a harmless key": ('{"note": "[[{A24}]]"}', "ids of products and cursors look alike"),
    "the code of an OAuth redirect": ("https://h/cb?code=[[{A24}]]", "a code may be any parameter"),
}
"""What no rule can tell from ordinary text: a template, and why. The user may name it."""


def cannot_be_told() -> list[Sample]:
    """The samples that a detector cannot tell from ordinary text."""
    return [build(name, template) for name, (template, _) in CANNOT_BE_TOLD.items()]


def negatives() -> list[Sample]:
    """The samples that hold none."""
    return [build(name, template) for name, template in _rows("secret_negatives")]
