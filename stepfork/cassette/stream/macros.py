"""Finds what the templates of a stream repeat and names it: ``$common``. Knows JSON trees, no API.

Two things are shared: a value that stands in several places, and members that follow each other in several
objects at the same place (the ``id``, ``object``, ``created``, ``model`` of every chunk).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from stepfork.cassette.stream.series import Names
from stepfork.cassette.stream.shapes import Leaf, Pairs
from stepfork.cassette.stream.spelling import HOLES, Style

_LEAST_GAIN: Final = 30  # fewer characters are not worth a name

Node: TypeAlias = "str | _Object | list[Any]"
Place: TypeAlias = tuple[str, ...]


class _Object:
    """A JSON object with its members as text and node; after sharing, a member may stand for several."""

    __slots__ = ("members", "place")

    def __init__(self, members: list[tuple[str, Node]], place: Place) -> None:
        self.members = members
        self.place = place


class Templates:
    """The templates of one stream in one style: built one by one, then shared.

    Attributes:
        definitions: after `share` name and text of what was repeated, each before what uses it.
    """

    def __init__(self, style: Style, names: Names) -> None:
        self.definitions: list[tuple[str, str]] = []
        self._comma = ", " if style.spaced else ","
        self._colon = ": " if style.spaced else ":"
        self._style = style
        self._names = names
        self._defined: dict[str, Node] = {}

    def build(self, tree: Any, leaves: Sequence[str], place: Place = ()) -> Node:
        """A tree with a text for each of its leaves.

        >>> templates = Templates(Style(), Names(()))
        >>> templates.text(templates.build(Pairs([("a", [Leaf(0), None])]), ["$next b"]))
        '{"a":[$next b,null]}'
        """
        if type(tree) is Leaf:
            return leaves[tree]
        if type(tree) is Pairs:
            quote, colon = self._style.quote, self._colon
            members = [(quote(key) + colon, self.build(value, leaves, (*place, key))) for key, value in tree]
            return _Object(members, place)
        if type(tree) is list:
            return [self.build(value, leaves, place) for value in tree]
        return self._style.quote(tree) if isinstance(tree, str) else _WORDS.get(repr(tree), repr(tree))

    def text(self, node: Node) -> str:
        """A node as it stands in a template."""
        if isinstance(node, str):
            return node
        if isinstance(node, list):
            return f"[{self._comma.join(map(self.text, node))}]"
        return f"{{{self._comma.join(self._members(node))}}}"

    def share(self, nodes: list[Node]) -> list[str]:
        """The texts of the nodes, with what they repeat under names."""
        nodes = self._share_values(nodes)
        self._share_members([*nodes, *self._defined.values()])
        return self._finish([self.text(node) for node in nodes])

    def _members(self, node: _Object) -> list[str]:
        return [key + self.text(value) for key, value in node.members]

    # -- values ---------------------------------------------------------------------------------------

    def _share_values(self, nodes: list[Node]) -> list[Node]:
        counts: Counter[str] = Counter()
        texts: dict[int, str] = {}

        def count(node: Node) -> None:
            text = texts[id(node)] = self.text(node)
            if len(text) < _LEAST_GAIN or (isinstance(node, str) and text[0] == "$"):
                return
            counts[text] += 1
            if counts[text] == 1:
                for child in _children(node):
                    count(child)

        named: dict[str, str] = {}

        def share(node: Node, hint: str) -> Node:
            text = texts.get(id(node)) or self.text(node)
            times = counts[text]
            if times > 1 and (times - 1) * len(text) - 20 * times > _LEAST_GAIN:
                if text not in named:
                    named[text] = self._names.new(hint)
                    self._defined[named[text]] = inside(node, hint)
                return f"${named[text]}"
            return inside(node, hint)

        def inside(node: Node, hint: str) -> Node:
            if isinstance(node, _Object):
                members = [(key, share(value, key.strip('": '))) for key, value in node.members]
                return _Object(members, node.place)
            return [share(value, hint) for value in node] if isinstance(node, list) else node

        for node in nodes:
            for child in _children(node):
                count(child)
        return [inside(node, "data") for node in nodes]

    # -- members --------------------------------------------------------------------------------------

    def _share_members(self, nodes: list[Node]) -> None:
        objects: dict[Place, list[_Object]] = {}

        def collect(node: Node) -> None:
            if isinstance(node, _Object):
                objects.setdefault(node.place, []).append(node)
            for child in _children(node):
                collect(child)

        for node in nodes:
            collect(node)
        for place in sorted(objects, key=len, reverse=True):  # the inner ones first
            if len(objects[place]) > 1:
                self._share_runs(objects[place], place[-1] if place else "")

    def _share_runs(self, objects: list[_Object], hint: str) -> None:
        rows = [self._members(node) for node in objects]
        counts = Counter(member for row in rows for member in set(row))
        after: dict[str, str] = {}
        before: dict[str, str] = {}
        for row in rows:
            for one, other in zip(["", *row], [*row, ""], strict=True):
                after[one] = other if after.get(one, other) == other else ""
                before[other] = one if before.get(other, one) == one else ""
        glued = {one for one, other in after.items() if one and other and before[other] == one}
        if not hint:
            glued = {one for one in glued if one[:7] != '"type":'}
        named: dict[tuple[str, ...], str] = {}
        for node, row in zip(objects, rows, strict=True):
            members: list[tuple[str, Node]] = []
            at = 0
            while at < len(row):
                end = at + 1
                while row[end - 1] in glued and end < len(row):
                    end += 1
                run = tuple(row[at:end])
                text = self._comma.join(run)
                times = counts[row[at]] if hint or row[at][:7] != '"type":' else 1  # it says what an event is
                if times > 1 and (times - 1) * len(text) - 12 * times > _LEAST_GAIN:
                    if run not in named:
                        key = row[at].split(":")[0].strip('"')
                        named[run] = self._names.new(
                            f"{hint}_{key}" if hint else key if len(run) < 2 else "common"
                        )
                        self._defined[named[run]] = text
                    members.append(("", f"${named[run]}"))
                else:
                    members += node.members[at:end]
                at = end
            node.members = members

    def _finish(self, templates: list[str]) -> list[str]:
        """Sorts the definitions, each after those it uses; puts those back that are used once."""
        texts = {name: self.text(node) for name, node in self._defined.items()}
        uses = Counter(
            name for text in [*templates, *texts.values()] for how, name in HOLES.findall(text) if not how
        )
        ready: dict[str, str] = {}

        def put(found: re.Match[str]) -> str:
            how, name = found.groups()
            if how is not None or name not in texts:
                return found[0]
            if name not in ready:
                text = HOLES.sub(put, texts[name])
                if uses[name] < 2:
                    return text
                ready[name] = text
            return found[0]

        templates = [HOLES.sub(put, template) for template in templates]
        self.definitions = list(ready.items())
        return templates


_WORDS: Final = {
    "None": "null",
    "True": "true",
    "False": "false",
    "nan": "NaN",
    "inf": "Infinity",
    "-inf": "-Infinity",
}


def _children(node: Node) -> list[Node]:
    if isinstance(node, _Object):
        return [value for _, value in node.members]
    return node if isinstance(node, list) else []
