"""Puts what a stream says in its place in the document and marks its pieces. Knows no API and no wire.

Several choices, several texts, several calls with one index: sorted out here.
"""

from __future__ import annotations

from typing import Any, Final

from stepfork.cassette import json_style
from stepfork.cassette.scalars import has_surrogates
from stepfork.cassette.stream.said import CALL_KINDS, REPEATS, TEXT_KINDS, Role, roles
from stepfork.cassette.stream.series import Column, Series, in_order
from stepfork.cassette.stream.shapes import Shape, verbatim
from stepfork.cassette.stream.spelling import Style, read_text
from stepfork.core.model import Plain

_DEEP: Final = 50
_FEW_ROWS, _MANY_COLUMNS = 3, 3


class Layout:
    """What the events of one stream say.

    Attributes:
        shapes: the shapes it was given, some of them cut in parts.
        said: the fields of the document that say it.
        arguments: the style in which arguments of calls are written; empty if none stands as a mapping.
        repeats: by key and JSON text, the mark of what was said so in pieces.
    """

    def __init__(self, events: list[str], shapes: list[Shape], style: Style, series: Series) -> None:
        self.events = events
        self.shapes = shapes
        self.style = style
        self.series = series
        self.said: dict[str, Plain] = {}
        self.arguments = ""
        self.repeats: dict[tuple[str, str], str] = {}
        self._find()

    def _find(self) -> None:
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
        """The shape without the events whose pieces are no texts, and those as they are."""
        odd = {
            at for at, row in enumerate(shape.rows) if any(read_text(row[token]) is None for token in found)
        }
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
                    if (text := self.style.unquote(literal)) is None:
                        continue
                    entry[kind] = text
                    for shape, token in call[kind]:
                        if {*shape.column(token)} == {literal}:
                            shape.marks[token] = f"${name}"
                    self._repeated(kind, literal, name)
            if entry:
                listed.append(entry)
        return listed

    def _pieces(self, name: str, kind: str, columns: list[Column]) -> str:
        """A text said in pieces, which are marked."""
        literals = in_order(columns)
        texts = [read_text(literal) or "" for literal in literals]
        self.series.said(columns, name, texts, literals)
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
