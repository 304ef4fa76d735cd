"""How a changed value is made of the one it was: kept, filled, or new. Knows values, no argument, no call.

The same plan is made while recording, where a `Guide` compares it with the objects themselves, and on replay,
where it has the recording's word for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from stepfork.cassette.values import ClassPolicy, decode
from stepfork.cassette.values.holders import Holder, holder_of, likeness
from stepfork.cassette.values.plain_parts import Place, step
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged


class Node:
    """An object, its plain form, and its place in the node that holds it."""

    __slots__ = ("above", "before", "place", "value")
    holder: Holder | None = None
    loose = False
    parts: Mapping[Place, Node] = MappingProxyType({})
    touched = False

    def __init__(self, value: Any, before: Plain, place: Place, above: HolderNode | None = None) -> None:
        self.value = value
        self.before = before
        self.place = place
        self.above = above

    @property
    def path(self) -> str:
        """Where it stands: ``state.items[1]``."""
        return str(self.place) if self.above is None else self.above.path + step(self.place)

    def name(self) -> str:
        """The argument it stands in."""
        return str(self.place) if self.above is None else self.above.name()


class HolderNode(Node):
    """One that holds something: `parts` are its nodes by place.

    `keys` and `held` are those of a plain dict or list, `beyond` what any object holds beyond its parts;
    `touched` says that it, or what is in it, holds something else now, `loose` that it is an attribute of
    an object whose form alone says whether it has changed.
    """

    __slots__ = ("beyond", "held", "holder", "keys", "loose", "parts", "touched")

    def __init__(
        self, value: Any, before: Plain, place: Place, above: HolderNode | None, holder: Holder
    ) -> None:
        super().__init__(value, before, place, above)
        self.holder: Holder = holder
        self.loose = above is not None and (above.loose or above.holder.by_form)
        self.beyond = holder.beyond(value)
        self.parts: dict[Place, Node] = {}
        self.keys: list[Any] = []
        self.held: list[Any] = []
        if type(value) is list:
            self.held = list(value)
        elif type(value) is dict:
            self.keys, self.held = list(value), list(value.values())
        self.touched = False


# -- what becomes of them ---------------------------------------------------------------------------


@dataclass(slots=True)
class Kept:
    """The caller's object stays as it is."""

    node: Node


@dataclass(slots=True)
class Fresh:
    """A new value stands there."""

    plain: Plain


@dataclass(slots=True)
class Filled:
    """An object gets these parts: the caller's own, or a new one if `node` is None or `new`."""

    node: Node | None
    after: Plain
    holder: Holder
    parts: dict[Place, Plan]
    new: bool = False


Plan: TypeAlias = Kept | Fresh | Filled


class Guide(Protocol):
    """Says whether it goes as one would think."""

    classes: ClassPolicy

    def origin(self, path: str, node: Node | None, after: Plain, actual: Any) -> tuple[Node | None, bool]:
        """Which of the caller's objects stands at a place afterwards, `node` or another; True: a new one that
        is made of it."""

    def untouched(self, node: Node, path: str) -> bool:
        """Whether nothing is said of the places inside of one."""

    def parts(self, holder: Holder, actual: Any, forms: dict[Place, Plain]) -> dict[Place, Any]:
        """What the object at that place holds now, where that is known; `actual` is None where it is not."""


def plan(guide: Guide, node: Node | None, after: Plain, path: str, actual: Any = None) -> Plan:
    """How what stands at a place comes to be what it is afterwards."""
    node, new = guide.origin(path, node, after, actual)
    if node is not None and not new and identical(node.before, after) and guide.untouched(node, path):
        return Kept(node)
    holder = holder_of(after)
    if holder is None:
        return Fresh(after)
    if node is not None and (node.holder is None or likeness(node.before) != likeness(after)):
        node, new = None, False
    fits = node is not None and (new or holder.fits(node.value, node.before, after))
    parts = holder.plain_parts(after, guide.classes)
    if holder.by_form:
        parts = {} if node is None else {place: parts[place] for place in node.parts if place in parts}
    now = guide.parts(holder, actual, parts)
    if not fits and not parts:
        return Fresh(after)
    origins: Mapping[Place, Node] = {} if node is None else _origins(guide, holder, node, parts)
    planned = {
        place: plan(guide, origins.get(place), part, path + step(place), now.get(place))
        for place, part in parts.items()
    }
    return Filled(node if fits else None, after, holder, planned, new)


def _origins(guide: Guide, holder: Holder, node: Node, parts: dict[Place, Plain]) -> Mapping[Place, Node]:
    """The nodes of which the parts may be made."""
    if not holder.by_order:
        return node.parts
    before = holder.plain_parts(node.before, guide.classes)
    sources = _sources(list(before.values()), list(parts.values()))
    return {at: node.parts[old] for at, old in sources.items() if old in node.parts}


def _sources(before: list[Plain], after: list[Plain]) -> dict[int, int]:
    """From which item each item afterwards comes: one that is equal, else one with the same keys, else any.

    Each time it is the one at its own place if that will do.
    """
    sources = {
        at: at for at, (old, new) in enumerate(zip(before, after, strict=False)) if identical(old, new)
    }
    for alike in (canonical_text, _shape, likeness):
        taken = set(sources.values())
        places: defaultdict[Any, list[int]] = defaultdict(list)
        for at in range(len(before) - 1, -1, -1):
            if at not in taken:
                places[alike(before[at])].append(at)
        found = {at: places[alike(after[at])] for at in range(len(after)) if at not in sources}
        for own in (True, False):  # first those whose own place is free
            for at, old in found.items():
                if own and at < len(before) and at not in taken and alike(before[at]) == alike(after[at]):
                    sources[at] = at
                    taken.add(at)
                while not own and at not in sources and old:
                    first = old.pop()
                    if first not in taken:
                        sources[at] = first
                        taken.add(first)
    return sources


def _shape(value: Plain) -> Any:
    return frozenset(value) if isinstance(value, dict) else likeness(value)


def made(way: Plan, fills: list[Callable[[], None]], classes: ClassPolicy) -> Any:
    """What stands there afterwards; what is to be filled for that goes into `fills`."""
    if isinstance(way, Kept):
        return way.node.value
    if isinstance(way, Fresh):
        return decode(way.plain, classes)
    if not _holds_known(way):
        return decode(way.after, classes)
    node, holder = way.node, way.holder
    parts = {place: made(part, fills, classes) for place, part in way.parts.items()}
    if not holder.filled:
        same = node is not None and list(parts) == list(node.parts)
        if node is not None and same and all(part is node.parts[at].value for at, part in parts.items()):
            return node.value
    if node is None or way.new or not holder.filled:
        return holder.new(way.after, parts, classes)
    held = node.value
    fills.append(lambda: holder.fill(held, way.after, parts, classes))
    return held


def _holds_known(way: Plan) -> bool:
    """Whether something of the caller's is in it."""
    if isinstance(way, Fresh):
        return False
    if isinstance(way, Filled) and (way.node is None or way.new):
        return any(map(_holds_known, way.parts.values()))
    return True


def identical(old: Any, new: Any) -> bool:
    """Equal to the last bit, the order of keys included."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        return list(old) == list(new) and all(identical(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(identical, old, new))
    if isinstance(old, Tagged):
        return old.tag == new.tag and identical(old.value, new.value)
    return repr(old) == repr(new) if isinstance(old, float) else bool(old == new)
