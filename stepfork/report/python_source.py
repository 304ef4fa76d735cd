"""Plain values as Python source laid out the way formatters lay it out. Pure; knows no test and no file.

What does not fit on a line stands one item a line with a trailing comma, which formatters keep.
"""

from __future__ import annotations

import datetime
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from stepfork.cassette.values import decode
from stepfork.core.model import Plain, Tagged

WIDTH: Final = 88
"""Columns of a line, as formatters have it where nobody says otherwise."""
_INDENT: Final = 4


@dataclass(frozen=True, slots=True)
class Group:
    """Items between brackets. `loose` says that a single item keeps its comma on one line (a tuple)."""

    opening: str
    items: tuple[Item, ...]
    closing: str
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A literal of text or bytes, which may be split over several lines."""

    value: str | bytes


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a group with what stands before it: ``key: `` or ``name=``."""

    content: Source
    before: str = ""


Source: TypeAlias = str | Text | Group


_LITERAL: Final = frozenset(
    ("tuple", "set", "frozenset", "map", "bytes", "bytearray", "complex", "decimal", "uuid")
    + ("datetime", "date", "time", "timedelta", "path", "posix-path", "windows-path")
)


_DEEPEST: Final = 60
"""Levels of an expression; Python itself refuses more than 200 brackets, and readers far fewer."""
_LONGEST: Final = 14000
"""Bits of a number that Python spells in decimal whatever its limit of digits (4300) is set to by default."""


def has_source(value: Plain, levels: int = _DEEPEST) -> bool:
    """Whether there is an expression for the value.

    There is none for instances of the user's classes, and none of more than so many levels.

    >>> has_source([Tagged("tuple", [1])]), has_source({"a": Tagged("enum", "shop:Color.RED")})
    (True, False)
    """
    if not levels:
        return False
    if isinstance(value, Tagged):
        return value.tag in _LITERAL and has_source(value.value, levels - 1)
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return all(has_source(item, levels - 1) for item in items)
    return True


def source_of(value: Plain, imports: set[str]) -> Source:
    """The expression that gives the Python value of a plain one; adds the modules it needs to `imports`.

    >>> flat(source_of({"a": [1, None], "t": Tagged("tuple", ["x"])}, set()))
    '{"a": [1, None], "t": ("x",)}'
    """
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        pairs = tuple(Item(source_of(item, imports), f"{quoted(key)}: ") for key, item in value.items())
        return Group("{", pairs, "}")
    if isinstance(value, list):
        return Group("[", _items(value, imports), "]")
    if isinstance(value, Tagged):
        return _tagged(value, imports)
    return hex(value) if type(value) is int and value.bit_length() > _LONGEST else repr(value)


def _float(value: float) -> str:
    # formatters write an exponent without its plus
    return repr(value).replace("e+", "e") if math.isfinite(value) else f'float("{value!r}")'


def _items(values: Sequence[Plain], imports: set[str]) -> tuple[Item, ...]:
    return tuple(Item(source_of(item, imports)) for item in values)


def _tagged(value: Tagged, imports: set[str]) -> Source:
    tag, content = value.tag, value.value
    if tag == "tuple" and isinstance(content, list):
        return Group("(", _items(content, imports), ")", loose=True)
    if tag in ("set", "frozenset") and isinstance(content, list):
        inner: Source = Group("{", _items(content, imports), "}") if content else "set()"
        if tag == "set":
            return inner
        return Group("frozenset(", (Item(inner),) if content else (), ")")
    if tag == "map" and isinstance(content, list):
        return _mapping(content, imports)
    return _object(decode(value), imports)


def _mapping(pairs: list[Any], imports: set[str]) -> Source:
    """A mapping whose keys are not all texts."""
    items = []
    for key, item in pairs:
        items.append(Item(source_of(item, imports), f"{flat(source_of(key, imports))}: "))
    return Group("{", tuple(items), "}")


def _object(value: Any, imports: set[str]) -> Source:
    if isinstance(value, bytes):
        return Text(value)
    if isinstance(value, bytearray):
        return Group("bytearray(", (Item(Text(bytes(value))),) if value else (), ")")
    if isinstance(value, complex):
        return _call("complex", [_float(value.real), _float(value.imag)])
    if isinstance(value, datetime.datetime | datetime.date | datetime.time | datetime.timedelta):
        return _moment(value, imports)
    name = type(value).__name__
    if isinstance(value, PurePath):
        name = "Path" if name in ("PosixPath", "WindowsPath") else name
        imports.add(f"from pathlib import {name}")
    else:
        imports.add("from uuid import UUID" if isinstance(value, UUID) else "from decimal import Decimal")
    return Group(f"{name}(", (Item(Text(str(value))),), ")")


def _moment(value: Any, imports: set[str]) -> Source:
    imports.add("import datetime")
    kind = f"datetime.{type(value).__name__}"
    if isinstance(value, datetime.timedelta):
        named = {"days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}
        return _call(kind, [f"{name}={number}" for name, number in named.items() if number])
    fields: list[int] = []
    if isinstance(value, datetime.date):
        fields += [value.year, value.month, value.day]
    items = []
    if isinstance(value, datetime.datetime | datetime.time):
        fields += [value.hour, value.minute, value.second, value.microsecond]
        if value.tzinfo is not None:
            items.append(Item(_zone(value.tzinfo, imports), "tzinfo="))
        if value.fold:
            items.append(Item("1", "fold="))
    return Group(f"{kind}(", (*(Item(str(field)) for field in fields), *items), ")")


def _zone(zone: datetime.tzinfo, imports: set[str]) -> Source:
    if zone is datetime.UTC:
        return "datetime.UTC"
    if isinstance(zone, ZoneInfo):
        imports.add("from zoneinfo import ZoneInfo")
        return Group("ZoneInfo(", (Item(Text(zone.key)),), ")")
    return Group("datetime.timezone(", (Item(_moment(zone.utcoffset(None), imports)),), ")")


def _call(name: str, arguments: Sequence[str]) -> Group:
    return Group(f"{name}(", tuple(Item(argument) for argument in arguments), ")")


# -- texts ------------------------------------------------------------------------------------------


def quoted(text: str | bytes) -> str:
    r"""Text or bytes as a literal, in the quotes that need fewer escapes; what is not printable is escaped.

    >>> print(quoted('say "hi"'), quoted("a\n\x1b\ud83d"))
    'say "hi"' "a\n\x1b\ud83d"
    """
    if isinstance(text, bytes):
        return "b" + _in_quotes(text.decode("latin-1"), _escaped_byte)
    return _in_quotes(text, _escaped)


def _in_quotes(text: str, escape: Callable[[str, str], str]) -> str:
    mark = "'" if text.count('"') > text.count("'") else '"'
    return mark + "".join(escape(character, mark) for character in text) + mark


def _escaped(character: str, mark: str) -> str:
    if character in (mark, "\\"):
        return "\\" + character
    return character if character.isprintable() else repr(character)[1:-1]


def _escaped_byte(character: str, mark: str) -> str:
    return _escaped(character, mark) if ord(character) < 0x7F else f"\\x{ord(character):02x}"


def columns(text: str) -> int:
    """How many columns a text takes on a line.

    >>> columns("ab"), columns("名")
    (2, 2)
    """
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 0 if unicodedata.category(character) in ("Mn", "Me") else 1


# -- layout -----------------------------------------------------------------------------------------


def flat(source: Source) -> str:
    """The expression on one line."""
    if isinstance(source, str):
        return source
    if isinstance(source, Text):
        return quoted(source.value)
    inner = ", ".join(item.before + flat(item.content) for item in source.items)
    comma = "," if source.loose and len(source.items) == 1 else ""
    return f"{source.opening}{inner}{comma}{source.closing}"


def layout(source: Source, *, indent: int, before: str = "", after: str = "") -> list[str]:
    """The expression as lines, the first one after `before`, the last one before `after`.

    >>> layout(source_of({"a": 1}, set()), indent=4, before="x = ")
    ['    x = {"a": 1}']
    """
    margin = " " * indent
    line = f"{margin}{before}{flat(source)}{after}"
    if isinstance(source, str) or columns(line) <= WIDTH:
        return [line]
    if isinstance(source, Text):
        room = WIDTH - indent - _INDENT
        fits = before and columns(quoted(source.value)) <= room
        pieces = (source.value,) if fits else _pieces(source.value, room)
        if len(pieces) == 1 and not fits:
            return [line]
        inner = [f"{margin}{' ' * _INDENT}{quoted(piece)}" for piece in pieces]
        return [f"{margin}{before}(", *inner, f"{margin}){after}"]
    if not source.items:
        return [line]
    lines = [f"{margin}{before}{source.opening}"]
    for item in source.items:
        lines += layout(item.content, indent=indent + _INDENT, before=item.before, after=",")
    return [*lines, f"{margin}{source.closing}{after}"]


def _pieces(text: str | bytes, room: int) -> Sequence[str | bytes]:
    """A long text cut after its line ends, and where it must be after a blank, so that each part fits."""
    room = max(room, 40)
    if isinstance(text, bytes):
        step = room // 4 - 1  # a byte takes four columns at most
        return [text[at : at + step] for at in range(0, len(text), step)]
    pieces = []
    for line in text.splitlines(keepends=True):
        while columns(quoted(line)) > room:
            cut = _fitting(line, room)
            blank = line.rfind(" ", 0, cut) + 1
            cut = blank if blank > cut // 2 else cut
            pieces.append(line[:cut])
            line = line[cut:]
        if line:
            pieces.append(line)
    return _joined(pieces, room)


def _fitting(line: str, room: int) -> int:
    low, high = 1, min(len(line), room)
    while low < high:
        middle = (low + high + 1) // 2
        if columns(quoted(line[:middle])) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _joined(pieces: list[str], room: int) -> list[str]:
    """Empty lines stay with the line before them."""
    joined: list[str] = []
    for piece in pieces:
        if joined and not piece.strip("\n") and columns(quoted(joined[-1] + piece)) <= room:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined
