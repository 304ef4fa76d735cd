"""Finds what the templates of a stream repeat, and names it: ``$common``. Knows JSON trees, no events, no API.

Two things are shared: a value that stands in several places, and members that follow each other in several
objects at the same place (the ``id``, ``object``, ``created``, ``model`` of every chunk).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from stepfork.cassette.stream_series import Names
from stepfork.cassette.stream_shapes import Leaf, Pairs
from stepfork.cassette.stream_spelling import Style

_LEAST_GAIN: Final = 30  # fewer characters are not worth a name

Node: TypeAlias = "str | _Object | list[Any]"
Place: TypeAlias = tuple[str, ...]


class _Object:
    """A JSON object with its members as text and node; after sharing, a member may stand for several."""

    __slots__ = ("members", "place")

    def __init__(self, members: list[tuple[str, Node]], place: Place) -> None:
        self.members = members
        self.place = place


class Macros:
    """Templates with what they repeat under names.

    Attributes:
        templates: the texts of the trees, in their order.
        definitions: name and text, each before what uses it.
    """

    def __init__(self, trees: Sequence[tuple[Any, list[str]]], style: Style, names: Names) -> None:
        self._comma = ", " if style.spaced else ","
        self._colon = ": " if style.spaced else ":"
        self._style = style
        self._names = names
        self._defined: dict[str, Node] = {}
        nodes = [self._node(tree, leaves, ()) for tree, leaves in trees]
        nodes = self._share_values(nodes)
        self._share_members([*nodes, *self._defined.values()])
        self.templates = [self.text(node) for node in nodes]
        self.definitions = self._sorted()

    def text(self, node: Node) -> str:
        """A node as it stands in a template."""
        if isinstance(node, str):
            return node
        if isinstance(node, list):
            return f"[{self._comma.join(map(self.text, node))}]"
        return f"{{{self._comma.join(self._members(node))}}}"

    def _members(self, node: _Object) -> list[str]:
        return [key + self.text(value) for key, value in node.members]

    def _node(self, tree: Any, leaves: list[str], place: Place) -> Node:
        if type(tree) is Leaf:
            return leaves[tree]
        if type(tree) is Pairs:
            quote, colon = self._style.quote, self._colon
            return _Object(
                [(quote(key) + colon, self._node(value, leaves, (*place, key))) for key, value in tree], place
            )
        if type(tree) is list:
            return [self._node(value, leaves, place) for value in tree]
        return self._style.quote(tree) if isinstance(tree, str) else _WORDS.get(repr(tree), repr(tree))

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
                self._share_runs(objects[place], place[-1] if place else "common")

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
                times = counts[row[at]]
                if times > 1 and (times - 1) * len(text) - 12 * times > _LEAST_GAIN:
                    if run not in named:
                        named[run] = self._names.new(hint)
                        self._defined[named[run]] = text
                    members.append(("", f"${named[run]}"))
                else:
                    members += node.members[at:end]
                at = end
            node.members = members

    def _sorted(self) -> list[tuple[str, str]]:
        """The definitions, each after those it uses; what is used first stands first."""
        texts = {name: self.text(node) for name, node in self._defined.items()}
        ready: dict[str, str] = {}

        def add(name: str) -> None:
            if name not in ready and name in texts:
                for used in _names_in(texts[name]):
                    if used != name:
                        add(used)
                ready[name] = texts[name]

        for template in [*self.templates, *texts.values()]:
            for name in _names_in(template):
                add(name)
        return list(ready.items())


_WORDS: Final = {"None": "null", "True": "true", "False": "false", "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _children(node: Node) -> list[Node]:
    if isinstance(node, _Object):
        return [value for _, value in node.members]
    return node if isinstance(node, list) else []


def _names_in(text: str) -> list[str]:
    return [part.split(",")[0].split("}")[0].split("]")[0] for part in text.split("$")[1:]]
