"""How a changed value is made of the one it was: kept, filled, or new. Knows values, no argument, no call.

The same plan is made while recording, where a `Guide` compares it with the objects themselves, and on replay,
where it has the recording's word for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from stepfork.cassette.extension import step_to
from stepfork.cassette.values import ClassPolicy, decode
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged


@dataclass(slots=True)
class Node:
    """An object, its plain value, its place, and what it held: nodes by index or key, or its content."""

    value: Any
    before: Plain
    path: str
    items: Any = None

    def name(self) -> str:
        """The argument it stands in."""
        return self.path.partition(".")[0].partition("[")[0]

    def is_altered(self) -> bool:
        """Whether the object itself holds something else now."""
        value, items = self.value, self.items
        if isinstance(value, dict):
            if len(value) != len(items):
                return True
            pairs = zip(items.items(), value.items(), strict=True)
            return any(key != new or _differs(node, item) for (key, node), (new, item) in pairs)
        if isinstance(value, list):
            return len(value) != len(items) or any(map(_differs, items, value))
        return bool(value != items) if isinstance(value, set | bytearray) else False


def _differs(node: Node, new: Any) -> bool:
    old = node.value
    if old is new:
        return False
    leaf = type(old) is type(new) and isinstance(old, str | int | float | bytes)
    return not leaf or bool(old != new) or repr(old) != repr(new)


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
    """A container gets this content: the caller's own, or a new one if `node` is None or `new`.

    `content` has plans by index or key, or is a plain value.
    """

    node: Node | None
    content: Any  # list[Plan] | dict[Any, Plan] | Tagged
    new: bool = False
    is_tuple: bool = False


Plan: TypeAlias = Kept | Fresh | Filled


class Guide(Protocol):
    """Says whether it goes as one would think."""

    def origin(self, path: str, node: Node | None, actual: Any) -> tuple[Node | None, bool]:
        """Which of the caller's objects stands at a place afterwards, `node` or another; True: a new one that
        is made of it."""

    def untouched(self, node: Node, path: str) -> bool:
        """Whether nothing is said of the places inside of one."""


def plan(guide: Guide, node: Node | None, after: Plain, path: str, actual: Any = None) -> Plan:
    """How what stands at a place comes to be what it is afterwards."""
    node, new = guide.origin(path, node, actual)
    if node is not None and not new and identical(node.before, after) and guide.untouched(node, path):
        return Kept(node)
    items, pairs = items_of(after), pairs_of(after)
    if items is not None:
        is_tuple = isinstance(after, Tagged)
        if node is not None and not isinstance(node.value, tuple if is_tuple else list):
            node, new = None, False
        sources = {} if node is None else _sources(items_of(node.before) or [], items)
        planned = [
            plan(
                guide,
                node.items[sources[at]] if node is not None and at in sources else None,
                item,
                f"{path}[{at}]",
                None if actual is None else actual[at],
            )
            for at, item in enumerate(items)
        ]
        fits = node is not None and (not is_tuple or len(node.items) == len(items))
        return Filled(node if fits else None, planned, new, is_tuple)
    if pairs is not None:
        if node is not None and not isinstance(node.value, dict):
            node, new = None, False
        by_key = {
            key: plan(
                guide,
                None if node is None else node.items.get(key),
                item,
                path + step(key),
                None if actual is None else actual[key],
            )
            for key, item in pairs.items()
        }
        return Filled(node, by_key, new)
    if node is not None and isinstance(node.value, set | bytearray) and isinstance(after, Tagged):
        return Filled(node, after, new)
    return Fresh(after)


def _sources(before: list[Plain], after: list[Plain]) -> dict[int, int]:
    """From which item each item afterwards comes: one that is equal, else one with the same keys, else any.

    Each time it is the one at its own place if that will do.
    """
    sources = {
        at: at for at, (old, new) in enumerate(zip(before, after, strict=False)) if identical(old, new)
    }
    for alike in (canonical_text, _shape, type):
        taken = set(sources.values())
        places: defaultdict[Any, dict[int, None]] = defaultdict(dict)
        for at, old in enumerate(before):
            if at not in taken:
                places[alike(old)][at] = None
        rest = [at for at in range(len(after)) if at not in sources]
        rest.sort(key=lambda at: at >= len(before) or at in taken)  # first those whose own place is free
        for at in rest:
            found = places[alike(after[at])]
            if found:
                sources[at] = at if at in found else next(iter(found))
                del found[sources[at]]
    return sources


def _shape(value: Plain) -> Any:
    return frozenset(value) if isinstance(value, dict) else type(value)


def made(way: Plan, fills: list[Callable[[], None]], classes: ClassPolicy) -> Any:
    """What stands there afterwards; what is to be filled for that goes into `fills`."""
    if isinstance(way, Kept):
        return way.node.value
    if isinstance(way, Fresh):
        return decode(way.plain, classes)
    node, content = way.node, way.content
    if isinstance(content, dict):
        content = {key: made(item, fills, classes) for key, item in content.items()}
    elif isinstance(content, list):
        content = [made(item, fills, classes) for item in content]
    else:
        content = decode(content, classes)
    if way.is_tuple:
        same = node is not None and all(map(lambda new, old: new is old.value, content, node.items))
        return node.value if node is not None and same else tuple(content)
    if node is None or way.new:
        return content
    held = node.value
    fills.append(lambda: _fill(held, content))
    return held


def _fill(held: Any, content: Any) -> None:
    if isinstance(held, list | bytearray):
        held[:] = content
        return
    held.clear()
    if isinstance(held, set):
        held.update(content)
    else:
        for key, item in content.items():  # one by one: `update` of a subclass may mean something else
            held[key] = item


def step(key: Any) -> str:
    """What a key adds to a path; one that is no text stands in Python's spelling."""
    return step_to(key) if isinstance(key, str) else f"[{key!r}]"


def within(path: str, above: str) -> bool:
    """Whether a place is another or inside of it.

    >>> within("items[1]", "items"), within("items", "item")
    (True, False)
    """
    return path == above or path.startswith((f"{above}.", f"{above}["))


# -- plain values -----------------------------------------------------------------------------------


def below(content: Any) -> list[Plan]:
    """The plans inside of one."""
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []


def items_of(value: Plain) -> list[Plain] | None:
    """The items of a list or tuple; None for anything else."""
    if isinstance(value, Tagged) and value.tag == "tuple":
        value = value.value
    return value if isinstance(value, list) else None


def pairs_of(value: Plain) -> dict[Any, Plain] | None:
    """The content of a dict by its real keys; None for anything else."""
    if isinstance(value, Tagged) and value.tag == "counter":
        value = value.value
    elif isinstance(value, Tagged) and value.tag == "defaultdict" and isinstance(value.value, dict):
        value = value.value["items"]
    if isinstance(value, Tagged) and value.tag == "map" and isinstance(value.value, list):
        return {decode(pair[0]): pair[1] for pair in value.value if isinstance(pair, list)}
    return value if isinstance(value, dict) else None


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
