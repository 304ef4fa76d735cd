"""What a stream said and its wire -> its bytes. Trusts nothing in it; knows no file, no API and no encoder.

The templates are compiled once; then each run of events takes its values column by column.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from stepfork.cassette import json_style
from stepfork.cassette.stream.events import FRAMES, GAP, close_stream, read_envelope, unescape, usual_head
from stepfork.cassette.stream.leaves import SAID, field_of, leaves
from stepfork.cassette.stream.spelling import ESCAPED_HOLES, HOLES, Misfit, Style, read_runs, shown
from stepfork.cassette.stream.takes import TAKEN, Hole, Takes
from stepfork.core.model import Plain, Tagged

FREE: Final = 1 << 20
FREE_EVENTS: Final = 1 << 16
RATIO, RATIO_OF_LONG, LONG = 500, 20, 100_000
"""How many times as long a stream is at most as what stands for it, up to `LONG` and beyond; see `most`."""

_FIELDS: Final = {
    "json": "text",
    "arguments": "text",
    "frame": "text",
    "bom": "flag",
    "eol": "text",
    "events": "text",
    "order": "text",
    "cuts": "mapping",
    "odd": "mapping",
    "texts": "mapping",
    "series": "mapping",
    "end": "text",
    "tail": "bytes",
}
_TYPES: Final[dict[str, type]] = {"text": str, "flag": bool, "mapping": dict, "bytes": Tagged}
_DEFINITION: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*) = (.*)")


class Template(NamedTuple):
    """An event of one kind: a format with a ``%s`` for each hole."""

    form: str
    holes: tuple[Hole, ...]


def decoded(stream: dict[str, Plain]) -> bytes:
    r"""The bytes of a stream that has a wire.

    Raises:
        Misfit: if its parts do not fit together.

    >>> decoded({"text": "Hi", "wire": {"events": '[$next text]', "order": "1{2}", "cuts": {"text": "11"}}})
    b'data: ["H"]\n\ndata: ["i"]\n\n'
    """
    return _Decoder(stream).bytes()


class _Decoder:
    def __init__(self, stream: dict[str, Plain]) -> None:
        wire = _wire(stream)
        size = size_of(stream)
        self.most_characters = most(size)
        self.most_events = FREE_EVENTS + size
        self.style = Style.read(str(wire.get("json", "")))
        self.frame = str(wire.get("frame", ""))
        if self.frame not in FRAMES:
            raise Misfit(
                "wire.frame", f"one of 'tight', 'named', 'named tight' expected, found '{shown(self.frame)}'"
            )
        styled = str(wire.get("arguments", json_style.DEFAULT))
        if styled not in json_style.STYLES:
            raise Misfit(
                "wire.arguments", f"unknown style '{shown(styled)}'; one of {', '.join(json_style.STYLES)}"
            )
        self.said = leaves(stream, styled)
        self.used: set[str] = set()
        self.envelope = replace(read_envelope(wire), tail=_tail(wire.get("tail")))
        self.templates = self._compile(wire["events"])
        self.order = list(self._order(wire.get("order")))
        self.takes = self._prepare(wire)
        for name in self.said:
            if name not in self.used:
                raise Misfit(field_of(name), "no event of the stream says it; remove it, or record again")

    def bytes(self) -> bytes:
        parts: list[str] = []
        length = 0
        for number, count in self.order:
            form, holes = self.templates[number]
            columns = self.takes.columns(holes, count)
            length += len(form) * count + sum(sum(map(len, column)) for column in columns)
            if length > self.most_characters:
                raise self._too_long()
            if not columns:
                parts.append(form % () * count)
            elif len(columns) == 1:
                parts += [form % (literal,) for literal in columns[0]]
            else:
                parts += map(form.__mod__, zip(*columns, strict=True))
        return close_stream("".join(parts), self.envelope)

    # -- templates ------------------------------------------------------------------------------------

    def _compile(self, text: Any) -> list[Template]:
        templates: list[Template] = []
        macros: dict[str, list[str | Hole]] = {}
        weight = 0
        for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
            definition = _DEFINITION.fullmatch(line)
            if definition:
                parts = self._parts(definition[2], HOLES, macros, number)
            elif line[:1] in ("{", "["):
                parts = self._parts(line, HOLES, macros, number)
                payload = "".join(part if isinstance(part, str) else "$" for part in parts)
                parts.insert(0, usual_head(self.frame, payload))
            elif not line:
                raise Misfit("wire.events", f"line {number}: an event expected, found an empty line")
            else:
                parts = self._parts(line, ESCAPED_HOLES, macros, number)
            weight += sum(len(part) if isinstance(part, str) else 1 for part in parts)
            if weight > self.most_characters:
                raise self._too_long()
            if definition:
                macros[definition[1]] = parts
            else:
                templates.append(_template([*parts, GAP]))
        if not templates:
            raise Misfit("wire.events", "an event expected")
        return templates

    def _parts(
        self, line: str, holes: re.Pattern[str], macros: dict[str, list[str | Hole]], number: int
    ) -> list[str | Hole]:
        parts: list[str | Hole] = []
        length = at = 0
        for found in holes.finditer(line) if "$" in line else ():
            how, name = found.groups()
            if name is None:
                continue
            text = line[at : found.start()]
            at = found.end()
            parts.append(text if holes is HOLES else unescape(text))
            whole: list[str | Hole]
            if how is not None:
                whole = [Hole(how, name)]
            elif name in macros:
                whole = macros[name]
            elif name in self.said:
                self.used.add(name)
                whole = [self.style.quote(self.said[name])]
            else:
                raise Misfit("wire.events", f"line {number}: nothing is named '{shown(name)}'")
            length += sum(len(part) if isinstance(part, str) else 1 for part in whole)
            if length > self.most_characters:
                raise self._too_long()
            parts += whole
        parts.append(line[at:] if holes is HOLES else unescape(line[at:]))
        return parts

    # -- order and values -----------------------------------------------------------------------------

    def _order(self, order: Any) -> Iterator[tuple[int, int]]:
        if order is None:
            yield from ((number, 1) for number in range(len(self.templates)))
            return
        events = length = 0
        for item, count in read_runs("wire.order", order):
            number = int(item) if item.isdecimal() and len(item) < 9 else 0
            if not 0 < number <= len(self.templates):
                last = len(self.templates)
                raise Misfit(
                    "wire.order", f"the number of an event from 1 to {last} expected, found '{item}'"
                )
            events += count
            length += count * len(self.templates[number - 1].form)
            if events > self.most_events or length > self.most_characters:
                raise self._too_long()
            yield number - 1, count

    def _prepare(self, wire: dict[str, Any]) -> Takes:
        counts: Counter[Hole] = Counter()
        for number, count in self.order:
            for hole in self.templates[number].holes:
                if hole.how in TAKEN or hole.how.startswith("pad"):
                    counts[hole] += count
        if sum(counts.values()) > 4 * self.most_events:
            raise self._too_long()
        takes = Takes(self.style)
        cuts, odd = dict(wire.get("cuts", {})), dict(wire.get("odd", {}))
        texts, series = dict(wire.get("texts", {})), dict(wire.get("series", {}))
        for hole, count in counts.items():
            how, name = hole
            if how == "next" and name in self.said:
                self.used.add(name)
                takes.pieces(hole, self.said[name], cuts.pop(name, None), count)
                takes.odd(hole, odd.pop(name, {}))
            elif how == "next" and name in texts:
                takes.pieces(hole, texts.pop(name), cuts.pop(name, None), count)
            elif how != "next" and name in series:
                takes.series(hole, series.pop(name), count)
            else:
                field = f"wire.{'texts' if how == 'next' else 'series'}.{name}"
                here = how == "next" and name.split(".")[0] in SAID
                raise Misfit(field_of(name) if here else field, "missing; an event takes it")
        for field, left in (("cuts", cuts), ("odd", odd), ("texts", texts), ("series", series)):
            if left:
                raise Misfit(f"wire.{field}.{next(iter(left))}", "no event takes it")
        return takes

    def _too_long(self) -> Misfit:
        most = f"{self.most_characters} characters or {self.most_events} events"
        return Misfit("wire.order", f"more than {most} would come of what is written here")


def _template(parts: Sequence[str | Hole]) -> Template:
    form = "".join(part.replace("%", "%%") if isinstance(part, str) else "%s" for part in parts)
    return Template(form, tuple(part for part in parts if not isinstance(part, str)))


def _wire(stream: dict[str, Plain]) -> dict[str, Any]:
    wire = stream.get("wire")
    if not isinstance(wire, dict):
        raise Misfit("wire", "missing" if wire is None else "a mapping expected")
    for key, value in wire.items():
        if key not in _FIELDS:
            raise Misfit(f"wire.{key}", f"unknown field; known here: {', '.join(_FIELDS)}")
        if type(value) is not _TYPES[_FIELDS[key]]:
            hint = "; add quotes" if _FIELDS[key] == "text" and isinstance(value, bool | int | float) else ""
            raise Misfit(f"wire.{key}", f"{_FIELDS[key]} expected{hint}")
    if "events" not in wire:
        raise Misfit("wire.events", "missing")
    return wire


def _tail(tail: Any) -> bytes:
    if tail is None:
        return b""
    try:
        if tail.tag != "bytes":
            raise ValueError
        return base64.b64decode(tail.value, validate=True)
    except (ValueError, TypeError, binascii.Error):
        raise Misfit("wire.tail", "bytes in base64 expected") from None


def most(size: int) -> int:
    """How many characters may come of so many: a file must not blow up in memory.

    A chat stream comes to a few hundred times what stands for it, if it is long and its deltas are short.

    >>> most(2_000), most(10_000_000)
    (2048576, 249048576)
    """
    return FREE + RATIO * min(size, LONG) + RATIO_OF_LONG * max(0, size - LONG)


def size_of(value: Any) -> int:
    """How much is written, in characters and values."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Tagged):
        return size_of(value.value)
    if isinstance(value, dict):
        return sum(len(key) + 1 + size_of(item) for key, item in value.items())
    return sum(map(size_of, value)) + len(value) if isinstance(value, list) else 1
