"""How small things of a stream are spelled in a cassette: JSON strings, runs, cuts. Knows no events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Final

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_HTML: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_WORDS: Final = ("spaced", "ascii", "html", "slash")
_ESCAPED_HTML: Final = re.compile(r"\\u00(?:3c|3e|26)")
_ESCAPED_LETTER: Final = re.compile(r"\\u(?!00[01])[0-9a-f]{4}")
_CUT: Final = re.compile(r"(?:([0-9a-z])|\(([0-9]{1,9})\))(?:\{([0-9]{1,9})\})?")
_ITEM: Final = re.compile(r"([^ {}]+)(?:\{([0-9]{1,9})\})?(?: (?=[^ ])|\Z)")
_SHORT_RUN: Final = 3
_HOLE: Final = (
    r"\$(?:(next|this|bytes|value|word|item|json|pad(?:1[0-6]|[1-9])) )?"
    r"([A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z0-9_]++)*+)"
)

HOLES: Final = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|' + _HOLE)
"""The holes of a template, how (group 1) and of what (group 2); strings match too, without groups."""

ESCAPED_HOLES: Final = re.compile(r"\\.?|" + _HOLE)
"""The same where ``\\$`` stands for a dollar sign."""


class Misfit(ValueError):
    """A recorded stream whose parts do not fit: `field` is the place in it, `problem` one clear clause.

    >>> Misfit("wire.order", "missing").args
    ('wire.order: missing',)
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)


@dataclass(frozen=True, slots=True)
class Style:
    """How a stream spells its JSON: with blanks; what is not ASCII, ``<>&``, ``/`` as escapes."""

    spaced: bool = False
    ascii: bool = False
    html: bool = False
    slash: bool = False

    @classmethod
    def guess(cls, text: str, spaced: bool) -> Style:
        r"""The style that most strings of a text have, if its strings have one.

        >>> Style.guess('{"a": "\\u00e9"}', spaced=True).words()
        'spaced ascii'
        """
        if "\\" not in text:
            return cls(spaced)
        return cls(
            spaced,
            ascii=text.isascii() and _ESCAPED_LETTER.search(_ESCAPED_HTML.sub("", text)) is not None,
            html=_ESCAPED_HTML.search(text) is not None,
            slash="\\/" in text,
        )

    @classmethod
    def read(cls, words: str) -> Style:
        """The style that `words` names.

        Raises:
            Misfit: if a word is not known.

        >>> Style.read("spaced")
        Style(spaced=True, ascii=False, html=False, slash=False)
        """
        named = words.split(" ") if words else []
        if len({*named}) < len(named) or not {*named} <= {*_WORDS}:
            raise Misfit(
                "wire.json", f"some of the words {', '.join(_WORDS)} expected, found '{shown(words)}'"
            )
        return cls(**dict.fromkeys(named, True))

    def words(self) -> str:
        """The style in words, empty for the usual one.

        >>> Style(html=True).words()
        'html'
        """
        return " ".join(word for word in _WORDS if getattr(self, word))

    def quote(self, text: str) -> str:
        r"""A text as a JSON string.

        >>> print(Style(ascii=True).quote("é\n"))
        "\u00e9\n"
        """
        quoted = encode_basestring_ascii(text) if self.ascii else encode_basestring(text)
        if self.html:
            quoted = quoted.translate(_HTML)
        return quoted.replace("/", "\\/") if self.slash else quoted

    def unquote(self, literal: str) -> str | None:
        r"""The text of a JSON string; None if it is none, or would not be quoted in just this way.

        >>> Style().unquote(r'"a\/b"') is None
        True
        """
        text = read_text(literal)
        return text if text is not None and self.quote(text) == literal else None

    def numbers(self, values: Iterable[int]) -> str:
        """Numbers as a JSON array.

        >>> Style(spaced=True).numbers(b"Hi")
        '[72, 105]'
        """
        return f"[{(', ' if self.spaced else ',').join(map(str, values))}]"


def read_text(literal: str) -> str | None:
    r"""The text of a JSON string in any spelling; None if it is none.

    >>> read_text(r'"a\/b"'), read_text("5")
    ('a/b', None)
    """
    if literal[:1] != '"':
        return None
    if "\\" not in literal:
        return literal[1:-1]
    try:
        text = json.loads(literal)
    except ValueError:
        return None
    return text if type(text) is str else None


def cuts_text(lengths: Iterable[int]) -> str:
    """Lengths of pieces, a sign each: ``0`` to ``9``, ``a`` (10) to ``z``, ``(36)``; ``4{10}`` ten times 4.

    >>> cuts_text([0, 4, 4, 4, 4, 4, 11, 40])
    '04{5}b(40)'
    """
    parts = []
    for length, run in groupby(lengths):
        count = sum(1 for _ in run)
        sign = _DIGITS[length] if length < len(_DIGITS) else f"({length})"
        parts.append(sign * count if count <= _SHORT_RUN else f"{sign}{{{count}}}")
    return "".join(parts)


def read_cuts(field: str, text: str, count: int) -> list[int]:
    """The lengths that `cuts_text` wrote.

    Raises:
        Misfit: if they are not `count`.

    >>> read_cuts("cuts", "04{5}b(40)", 8)
    [0, 4, 4, 4, 4, 4, 11, 40]
    """
    lengths: list[int] = []
    at = 0
    while at < len(text):
        found = _CUT.match(text, at)
        if found is None:
            raise Misfit(field, f"a length expected at {text[at : at + 10]!r}, as in '4{{10}}3b(40)'")
        at = found.end()
        length = _DIGITS.index(found[1]) if found[1] else int(found[2])
        times = int(found[3] or 1)
        if times > count - len(lengths):
            raise Misfit(field, f"it cuts into more than the {count} pieces that the events take")
        lengths += [length] * times
    if len(lengths) < count:
        raise Misfit(field, f"it cuts into {len(lengths)} pieces, the events take {count}")
    return lengths


def runs_text(items: Iterable[str]) -> str:
    """Items with a blank between them; ``a{5}`` is five times ``a``. No item holds a blank or a brace.

    >>> runs_text(["1", "2", "2", "2", "2", "3"])
    '1 2{4} 3'
    """
    parts = []
    for item, run in groupby(items):
        count = sum(1 for _ in run)
        parts += [item] * count if count == 1 else [f"{item}{{{count}}}"]
    return " ".join(parts)


def read_runs(field: str, text: str) -> Iterator[tuple[str, int]]:
    """The items that `runs_text` wrote, with how often each stands in a row.

    Raises:
        Misfit: if the text is no such list.

    >>> list(read_runs("order", "1 2{4} 3"))
    [('1', 1), ('2', 4), ('3', 1)]
    """
    at = 0
    while at < len(text):
        found = _ITEM.match(text, at)
        if found is None:
            raise Misfit(field, f"an item expected at {text[at : at + 20]!r}, as in '1 2{{40}} 3'")
        at = found.end()
        yield found[1], int(found[2] or 1)


def shown(text: str) -> str:
    """A text in a message, cut if it is long.

    >>> shown("a" * 100)[-5:]
    'aa...'
    """
    return text if len(text) <= 60 else f"{text[:57]}..."


def progression(literals: Sequence[str]) -> tuple[int, int] | None:
    """First number and step of three and more integers that go up or down evenly.

    >>> progression(["4", "5", "6"]), progression(["4", "4", "4"])
    ((4, 1), None)
    """
    if len(literals) < 3 or not all(len(literal) < 18 for literal in literals):
        return None
    try:
        first, step = int(literals[0]), int(literals[1]) - int(literals[0])
    except ValueError:
        return None
    if step == 0 or any(literal != str(first + step * at) for at, literal in enumerate(literals)):
        return None
    return first, step
