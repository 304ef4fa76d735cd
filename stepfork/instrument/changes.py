"""What a call did to its arguments: seen while it is recorded, done again on replay. Knows values, no call.

A change is kept as the value that the argument has afterwards. On replay it is made in place: whatever is
equal afterwards stays the caller's own object, a list, dict, set or bytearray that differs is filled anew.
Where that would not be what the body did, ``kept`` and ``replaced`` name the places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stepfork.cassette.values import ClassPolicy, Unsupported, encode, type_name
from stepfork.core.model import Plain
from stepfork.instrument.remake import (
    Filled,
    Node,
    Plan,
    below,
    identical,
    items_of,
    made,
    pairs_of,
    plan,
    step,
    within,
)

_FILLABLE: Final = (list, dict, set, bytearray)
_HINT: Final = "let the tool return what it changes, or leave it out with 'exclude'"


def can_change(value: Any) -> bool:
    """Whether a value holds others, or can hold others.

    >>> can_change([]), can_change("text")
    (True, False)
    """
    return isinstance(value, (*_FILLABLE, tuple))


class Watched:
    """The arguments of a call as they are before its body runs, or runs on.

    `before` are the same arguments in plain values.
    """

    def __init__(self, arguments: dict[str, Any], before: dict[str, Plain], classes: ClassPolicy) -> None:
        self._arguments = arguments
        self._classes = classes
        self._roots: dict[str, Node] = {}
        self._nodes: list[Node] = []  # those that hold something
        for name, plain in before.items():
            if can_change(arguments.get(name)):
                self._roots[name] = _taken_down(arguments[name], plain, name, self._nodes)

    def changes(self) -> dict[str, Plain]:
        """What the body changed since: ``changed``, ``kept``, ``replaced``, each if it says something.

        Raises:
            Unsupported: for a change that cannot be made again in place.
        """
        altered = [node for node in self._nodes if node.is_altered()]
        if not altered:
            return {}
        changed: dict[str, Plain] = {}
        seen = _Seen(self._nodes, altered)
        filled: set[int] = set()
        for name, root in self._roots.items():
            after = encode(self._arguments[name], f"argument {name!r}", self._classes)
            if not (identical(root.before, after) and seen.untouched(root, name)):
                changed[name] = after
                seen.fill(plan(seen, root, after, name, root.value), filled)
        for node in altered:
            if id(node.value) in filled:
                continue
            if not identical(node.before, encode(node.value, node.path, self._classes)):
                why = "that the tool changed in a way that cannot be done again in place"
                raise Unsupported(f"argument {node.name()!r}", type_name(node.value), why, _HINT)
        found: dict[str, Plain] = {"changed": changed} if changed else {}
        if seen.kept:
            found["kept"] = dict(seen.kept)
        return {**found, "replaced": list(seen.replaced)} if seen.replaced else found

    def change(self, recorded: dict[str, Plain]) -> None:
        """Makes the recorded changes to the caller's own objects."""
        changed, kept, replaced = (recorded.get(field) for field in ("changed", "kept", "replaced"))
        told = _Told(self._nodes, kept or {}, replaced or [])
        fills: list[Callable[[], None]] = []  # all of them at once, when it is known what goes where
        for name, after in changed.items() if isinstance(changed, dict) else ():
            if name in self._roots:
                made(plan(told, self._roots[name], after, name), fills, self._classes)
        for fill in fills:
            fill()


# -- the caller's objects ---------------------------------------------------------------------------


def _taken_down(value: Any, before: Plain, path: str, found: list[Node]) -> Node:
    """The node of a value; those that hold something go into `found`."""
    node = Node(value, before, path)
    if isinstance(value, dict):
        pairs = pairs_of(before) or {}
        node.items = {
            key: _taken_down(item, pairs.get(key), path + step(key), found) for key, item in value.items()
        }
    elif isinstance(value, list | tuple):
        old = items_of(before) or []
        node.items = [
            _taken_down(item, old[at] if at < len(old) else None, f"{path}[{at}]", found)
            for at, item in enumerate(value)
        ]
    elif isinstance(value, set | bytearray):
        node.items = frozenset(value) if isinstance(value, set) else bytes(value)
    if node.items is not None:
        found.append(node)
    return node


# -- which of them stands where ---------------------------------------------------------------------


class _Seen:
    """While recording, the objects themselves say it; where it goes another way, that is taken down."""

    def __init__(self, nodes: list[Node], altered: list[Node]) -> None:
        self._known = {id(node.value): node for node in nodes if isinstance(node.value, _FILLABLE)}
        self._altered = tuple(node.path for node in altered)
        self.kept: dict[str, str] = {}
        self.replaced: list[str] = []

    def origin(self, path: str, node: Node | None, actual: Any) -> tuple[Node | None, bool]:
        if not isinstance(actual, _FILLABLE) or (node is not None and actual is node.value):
            return node, False
        known = self._known.get(id(actual))
        if known is not None:
            self.kept[path] = known.path
            return known, False
        new = node is not None and isinstance(node.value, _FILLABLE)
        if new:
            self.replaced.append(path)
        return node, new

    def untouched(self, node: Node, path: str) -> bool:
        return not any(within(altered, node.path) for altered in self._altered)

    def fill(self, made: Plan, filled: set[int]) -> None:
        """Adds the ids of the caller's objects that a plan fills."""
        if isinstance(made, Filled):
            if made.node is not None and not made.new:
                filled.add(id(made.node.value))
            for item in below(made.content):
                self.fill(item, filled)


class _Told:
    """On replay the recording says it."""

    def __init__(self, nodes: list[Node], kept: Any, replaced: Any) -> None:
        self._known = {node.path: node for node in nodes}
        self._kept: dict[str, str] = kept
        self._replaced = frozenset(replaced)

    def origin(self, path: str, node: Node | None, actual: Any) -> tuple[Node | None, bool]:
        if path in self._kept:
            return self._known.get(self._kept[path]), False
        return node, path in self._replaced

    def untouched(self, node: Node, path: str) -> bool:
        return not any(within(place, path) for place in (*self._kept, *self._replaced))
