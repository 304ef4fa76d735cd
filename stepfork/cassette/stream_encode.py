"""An event stream -> what it said and its wire. Puts the parts together; knows no file and no fallback.

The steps: cut the bytes into events (`stream_events`), group the events by shape (`stream_shapes`), find what
they say (`stream_said`), tell what else changes as series (`stream_series`), name what the templates repeat
(`stream_macros`).
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from stepfork.cassette import json_style
from stepfork.cassette.scalars import find_unsafe, has_surrogates
from stepfork.cassette.stream_events import (
    FRAMES,
    GAP,
    Envelope,
    escape,
    escaped_line,
    head_of,
    open_stream,
    usual_head,
)
from stepfork.cassette.stream_macros import Templates
from stepfork.cassette.stream_said import CALL_KINDS, REPEATS, TEXT_KINDS, Role, roles
from stepfork.cassette.stream_series import Column, Names, Series, in_order
from stepfork.cassette.stream_shapes import Shape, group, verbatim
from stepfork.cassette.stream_spelling import Style, runs_text
from stepfork.core.model import Plain, Tagged

_SAID: Final = ("text", "reasoning", "refusal", "tool_calls", "choices")
_DEEP: Final = 50
_FEW_ROWS, _MANY_COLUMNS = 3, 3


def encoded(raw: bytes) -> dict[str, Plain] | None:
    """What a stream said, and its wire; None if it is no text or holds no event.

    >>> encoded(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\ndata: [DONE]\\n\\n')
    {'text': 'Hi', 'wire': {'events': '{"choices":[{"delta":{"content":$next text}}]}\\n[DONE]\\n'}}
    """
    opened = open_stream(raw)
    if opened is None or not opened[0]:
        return None
    events, envelope = opened
    return _Encoder(events).document(envelope)


class _Encoder:
    def __init__(self, events: list[str]) -> None:
        self.events = events
        text = GAP.join(events)
        self.shapes = group(events)
        self.style = Style.guess(text, _is_spaced(self.shapes))
        self.names = Names(_SAID)
        self.series = Series(self.style, self.names)
        self.said: dict[str, Plain] = {}
        self.arguments = ""
        self.repeats: dict[tuple[str, str], str] = {}  # key and literal -> mark

    def document(self, envelope: Envelope) -> dict[str, Plain]:
        self._find_said()
        self.series.find(self.shapes)
        for shape in self.shapes:
            self._settle(shape)
        self.shapes.sort(key=lambda shape: shape.at[0])
        frame = self._frame()
        wire: dict[str, Plain] = {}
        if words := self.style.words():
            wire["json"] = words
        if self.arguments not in ("", json_style.DEFAULT):
            wire["arguments"] = self.arguments
        if frame:
            wire["frame"] = frame
        if envelope.bom:
            wire["bom"] = True
        if envelope.eol != "lf":
            wire["eol"] = envelope.eol
        wire["events"] = "".join(line + "\n" for line in self._lines(frame))
        if len(self.shapes) < len(self.events) or any(
            shape.at != [at] for at, shape in enumerate(self.shapes)
        ):
            wire["order"] = self._order()
        for name, values in (
            ("cuts", self.series.cuts),
            ("texts", self.series.texts),
            ("series", self.series.values),
        ):
            if values:
                wire[name] = values
        if envelope.end != GAP:
            wire["end"] = envelope.end
        if envelope.tail:
            wire["tail"] = Tagged("bytes", base64.b64encode(envelope.tail).decode("ascii"))
        return {**self.said, "wire": wire}

    # -- what it says ---------------------------------------------------------------------------------

    def _find_said(self) -> None:
        shapes: list[tuple[Shape, dict[int, Role]]] = []
        for shape in self.shapes:
            found = {token + shape.skip: role for token, role in roles(shape.tree).items()}
            for part in _parts(shape, found):
                kept, apart = self._checked(part, found)
                shapes += [(one, found) for one in kept] + [(one, {}) for one in apart]
        self.shapes = [shape for shape, _ in shapes]
        columns: dict[Role, list[Column]] = {}
        for shape, found in _with_calls_apart(shapes):
            for token, role in found.items():
                columns.setdefault(role, []).append((shape, token))
        self._lay_out({role: told for role, found in columns.items() if (told := _told(found))})

    def _checked(self, shape: Shape, found: dict[int, Role]) -> tuple[list[Shape], list[Shape]]:
        """The shape without the events whose pieces would be spelled otherwise, and those as they are."""
        unquote = self.style.unquote
        odd = {at for at, row in enumerate(shape.rows) if any(unquote(row[token]) is None for token in found)}
        if not odd:
            return [shape], []
        apart = [verbatim(self.events[shape.at[at]], shape.at[at]) for at in sorted(odd)]
        kept = [at for at in range(len(shape.rows)) if at not in odd]
        return [shape.part(kept)] if kept else [], apart

    def _lay_out(self, columns: dict[Role, list[Column]]) -> None:
        """Puts the texts in their places and marks their pieces."""
        choices = sorted({role.choice for role in columns})
        said: list[Plain] = []
        for place, choice in enumerate(choices):
            prefix = f"choices.{place}." if len(choices) > 1 else ""
            mine = {role: found for role, found in columns.items() if role.choice == choice}
            entry = self._texts(prefix, mine)
            if calls := self._calls(prefix, mine):
                entry["tool_calls"] = calls
            said.append(entry)
        if len(said) > 1:
            self.said = {"choices": said}
        elif said and isinstance(said[0], dict):
            self.said = said[0]

    def _texts(self, prefix: str, columns: dict[Role, list[Column]]) -> dict[str, Plain]:
        said: dict[str, Plain] = {}
        for kind in TEXT_KINDS:
            mine = [found for role, found in columns.items() if role.kind == kind]
            several = len(mine) > 1
            texts: list[Plain] = [
                self._pieces(f"{prefix}{kind}.{at}" if several else prefix + kind, kind, found)
                for at, found in enumerate(mine)
            ]
            if texts:
                said[kind] = texts if several else texts[0]
        return said

    def _calls(self, prefix: str, columns: dict[Role, list[Column]]) -> list[Plain]:
        calls: dict[tuple[Any, ...], dict[str, list[Column]]] = {}
        for role, found in columns.items():
            if role.kind in CALL_KINDS:
                calls.setdefault(role.part, {})[role.kind] = found
        listed: list[Plain] = []
        for call in calls.values():
            entry: dict[str, Plain] = {}
            for kind in CALL_KINDS:
                if kind not in call:
                    continue
                name = f"{prefix}tool_calls.{len(listed)}.{kind}"
                if kind == "arguments":
                    entry[kind] = self._parsed(self._pieces(name, kind, call[kind]))
                else:
                    literal = next(literal for literal in in_order(call[kind]) if literal != '""')
                    entry[kind] = self.style.unquote(literal)
                    self._repeated(kind, literal, name)
            listed.append(entry)
        return listed

    def _pieces(self, name: str, kind: str, columns: list[Column]) -> str:
        """A text said in pieces, which are marked."""
        texts = [self.style.unquote(literal) or "" for literal in in_order(columns)]
        self.series.said(columns, name, texts)
        self._repeated(kind, self.style.quote("".join(texts)), name)
        return "".join(texts)

    def _repeated(self, kind: str, literal: str, name: str) -> None:
        for key in REPEATS[kind]:
            self.repeats.setdefault((key, literal), f"${name}")

    def _parsed(self, arguments: str) -> Plain:
        """The arguments of a call as a mapping, where writing that gives back their text."""
        found = json_style.find(arguments) if arguments[:1] == "{" else None
        if found is None or not found[0] or not _is_plain(found[0], 0):
            return arguments
        value, style = found
        if not self.arguments:
            self.arguments = style
        elif style != self.arguments and json_style.write(value, self.arguments) != arguments:
            return arguments
        plain: Plain = value
        return plain

    # -- the wire -------------------------------------------------------------------------------------

    def _settle(self, shape: Shape) -> None:
        """Marks what never changes: repeats of what was said, else the value itself."""
        if not shape.rows:
            return
        row = shape.rows[0]
        for token, mark in enumerate(shape.marks):
            if mark is None:
                path = shape.paths[token] if shape.paths else ()
                key = path[-1] if path and isinstance(path[-1], str) else ""
                shape.marks[token] = self.repeats.get((key, row[token]), row[token])

    def _frame(self) -> str:
        counts: Counter[str] = Counter()
        for shape in self.shapes:
            if not shape.skip and shape.head != shape.texts[0]:
                payload = shape.fill(shape.marks)[len(shape.head) :]
                for frame in FRAMES:
                    counts[frame] += len(shape.at) * (usual_head(frame, payload) == shape.head)
        return max(FRAMES, key=lambda frame: counts[frame])

    def _lines(self, frame: str) -> list[str]:
        templates = Templates(self.style, self.names)
        lines: list[str] = []
        nodes: list[Any] = []
        shared: list[int] = []
        for at, shape in enumerate(self.shapes):
            whole = shape.fill(shape.marks)
            payload = whole[len(shape.head) :]
            plain = (
                not shape.skip
                and head_of(whole) == shape.head == usual_head(frame, payload)
                and (shape.tree is not None or "$" not in payload)
                and find_unsafe(payload) is None
                and payload == payload.strip()
            )
            if not plain:
                lines.append(_escaped(shape))
                continue
            lines.append(payload)
            if shape.tree is not None:
                marks = [mark or "" for mark in shape.marks]
                node = templates.build(shape.tree, marks)
                if templates.text(node) == payload:
                    nodes.append(node)
                    shared.append(at)
        for at, text in zip(shared, templates.share(nodes), strict=True):
            lines[at] = text
        return [f"${name} = {text}" for name, text in templates.definitions] + lines

    def _order(self) -> str:
        numbers = [""] * len(self.events)
        for number, shape in enumerate(self.shapes, 1):
            text = str(number)
            for at in shape.at:
                numbers[at] = text
        return runs_text(numbers)


def _escaped(shape: Shape) -> str:
    parts = [escape(shape.texts[0])]
    for mark, text in zip(shape.marks, shape.texts[1:], strict=True):
        parts += [mark if mark and mark[0] == "$" else escape(mark or ""), escape(text)]
    return escaped_line("".join(parts))


def _is_spaced(shapes: Sequence[Shape]) -> bool:
    counts: Counter[bool] = Counter()
    for shape in shapes:
        counts[any(text.endswith('": ') for text in shape.texts)] += len(shape.at) * (shape.tree is not None)
    return counts[True] > counts[False]


def _told(columns: list[Column]) -> list[Column]:
    """The columns that say anything."""
    return [column for column in columns if any(literal != '""' for literal in column[0].column(column[1]))]


def _parts(shape: Shape, found: dict[int, Role]) -> list[Shape]:
    """A shape cut where calls differ in nothing but their id, or where few events have little in common."""
    if len(shape.rows) == 1:
        return [shape]
    if len(shape.rows) <= _FEW_ROWS:
        changing = [
            token
            for token, path in enumerate(shape.paths)
            if len(path) > 1 and token not in found and len(set(shape.column(token))) > 1
        ]
        if len(changing) >= _MANY_COLUMNS:
            return [shape.part([row]) for row in range(len(shape.rows))]
    names = [token for token, role in found.items() if role.kind in ("id", "name")]
    rows: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(shape.rows if names else ()):
        rows.setdefault(tuple([row[token] for token in names]), []).append(at)
    return [shape.part(part) for part in rows.values()] if len(rows) > 1 else [shape]


def _with_calls_apart(shapes: list[tuple[Shape, dict[int, Role]]]) -> list[tuple[Shape, dict[int, Role]]]:
    """The same with the id as part of the role where several calls have one index, as some servers do."""

    def own_id(shape: Shape, found: dict[int, Role], role: Role) -> str:
        ids = [token for token, other in found.items() if other == role._replace(kind="id")]
        return shape.rows[0][ids[0]] if ids else '""'

    ids: dict[tuple[Any, ...], set[str]] = {}
    for shape, found in shapes:
        for role in found.values():
            if role.kind == "id":
                ids.setdefault((role.choice, role.part), set()).add(own_id(shape, found, role))
    crowded = {key for key, seen in ids.items() if len(seen - {'""'}) > 1}
    if not crowded:
        return shapes
    apart = []
    for shape, found in shapes:
        changed: dict[int, Role] = {}
        for token, role in found.items():
            if role.kind not in CALL_KINDS or (role.choice, role.part) not in crowded:
                changed[token] = role
            elif (call_id := own_id(shape, found, role)) != '""':
                changed[token] = role._replace(part=(*role.part, call_id))
        apart.append((shape, changed))
    return apart


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, str):
        return not has_surrogates(value)
    if depth > _DEEP:
        return False
    if isinstance(value, dict):
        return all(not has_surrogates(key) and _is_plain(item, depth + 1) for key, item in value.items())
    return not isinstance(value, list) or all(_is_plain(item, depth + 1) for item in value)
