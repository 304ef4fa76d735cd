"""What a call did to its arguments: seen while it is recorded, done again on replay. Knows values, no call.

A change is kept as the value that the argument has afterwards. On replay it is made in place: whatever is
equal afterwards stays the caller's own object, a list, dict, set or bytearray that differs is filled anew.
Where the body put a new container in the place of the caller's, `replaced` names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from stepfork.cassette.values import Unsupported, decode, encode, type_name
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

_CONTAINERS: Final = (list, dict, set, bytearray, tuple)
_HINT: Final = "let the tool return what it changes, or leave it out with 'exclude'"


def can_change(value: Any) -> bool:
    """Whether a value holds others, or can hold others.

    >>> can_change([]), can_change("text")
    (True, False)
    """
    return isinstance(value, _CONTAINERS)


class Watched:
    """The arguments of a call as they are before its body runs, or runs on.

    `before` are the same arguments in plain values.
    """

    def __init__(self, arguments: dict[str, Any], before: dict[str, Plain]) -> None:
        self._arguments = arguments
        self._before = before
        self._roots: dict[str, _Node] = {}
        self._nodes: dict[str, list[_Node]] = {}  # those that hold something, by argument
        for name in before:
            if can_change(arguments.get(name)):
                self._nodes[name] = []
                self._roots[name] = _taken_down(arguments[name], self._nodes[name])

    def changes(self) -> dict[str, Plain]:
        """What the body changed since: ``changed`` and ``replaced``, each only if there is something to say.

        Raises:
            Unsupported: for a change that cannot be made again in place.
        """
        changed: dict[str, Plain] = {}
        replaced: list[Plain] = []
        for name, root in self._roots.items():
            altered = {id(node.value): node for node in self._nodes[name] if node.is_altered()}
            if altered:
                path = f"argument {name!r}"
                changed[name] = after = encode(self._arguments[name], path)
                seen = _Seen(name)
                seen.look(_plan(root, self._before[name], after), root.value, name)
                for key, node in altered.items():
                    if key not in seen.filled:
                        why = "that the tool changed in a way that cannot be done again in place"
                        raise Unsupported(path, type_name(node.value), why, _HINT)
                replaced += seen.replaced
        found: dict[str, Plain] = {"changed": changed} if changed else {}
        return {**found, "replaced": replaced} if replaced else found

    def change(self, recorded: dict[str, Plain], before: dict[str, Plain] | None = None) -> None:
        """Makes the recorded changes to the caller's own objects.

        `before` are the arguments as they were recorded, where that is known: what did not change then is the
        caller's own, a secret that the recording does not show among it.
        """
        before = before or self._before
        changed, replaced = recorded.get("changed", {}), recorded.get("replaced", [])
        assert isinstance(changed, dict)
        assert isinstance(replaced, list)
        for name, after in changed.items():
            root = self._roots.get(name)
            if root is not None:
                made = _Made({str(path) for path in replaced})
                made.value(_plan(root, before.get(name), after), name)
                for fill in made.fills:
                    fill()


# -- the caller's objects ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    """An object and what it held: nodes by index or key; the content itself of sets and bytearrays."""

    value: Any
    items: Any = None

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


def _differs(node: _Node, new: Any) -> bool:
    old = node.value
    if old is new:
        return False
    leaf = type(old) is type(new) and isinstance(old, str | int | float | bytes)
    return not leaf or bool(old != new) or repr(old) != repr(new)


def _taken_down(value: Any, found: list[_Node]) -> _Node:
    """The node of a value; those that hold something go into `found`."""
    if isinstance(value, dict):
        node = _Node(value, {key: _taken_down(item, found) for key, item in value.items()})
    elif isinstance(value, list | tuple):
        node = _Node(value, [_taken_down(item, found) for item in value])
    elif isinstance(value, set | bytearray):
        node = _Node(value, frozenset(value) if isinstance(value, set) else bytes(value))
    else:
        return _Node(value)
    found.append(node)
    return node


# -- what becomes of them ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Kept:
    """The caller's object stays as it is."""

    node: _Node


@dataclass(slots=True)
class _Fresh:
    """A new value stands there."""

    plain: Plain


@dataclass(slots=True)
class _Filled:
    """The caller's container gets this content: plans by index or key, or all of it as a plain value."""

    node: _Node
    content: Any  # list[_Plan] | dict[Any, _Plan] | Tagged


_Plan: TypeAlias = _Kept | _Fresh | _Filled


def _plan(node: _Node, before: Plain, after: Plain) -> _Plan:
    """How the object comes to be what it is afterwards; the same while recording and on replay."""
    if _identical(before, after):
        return _Kept(node)
    value = node.value
    if isinstance(value, list | tuple):
        old, new = _items(before), _items(after)
        if old is None or new is None or type(before) is not type(after):
            return _Fresh(after)
        if isinstance(value, list) or len(old) == len(new) == len(node.items):
            return _Filled(node, _plan_items(node, old, new))
    elif isinstance(value, dict):
        pairs = _pairs(after)
        if pairs is not None:
            was = _pairs(before) or {}
            return _Filled(
                node,
                {
                    key: _plan(node.items[key], was[key], item)
                    if key in was and key in node.items
                    else _Fresh(item)
                    for key, item in pairs.items()
                },
            )
    elif isinstance(value, set | bytearray) and isinstance(after, Tagged):
        return _Filled(node, after)
    return _Fresh(after)


def _plan_items(node: _Node, before: list[Plain], after: list[Plain]) -> list[_Plan]:
    """First what is equal at its place, then what is equal elsewhere; what differs comes of what is left,
    from its own place if that is free."""
    count = min(len(before), len(node.items))
    sources = {at: at for at in range(min(count, len(after))) if _identical(before[at], after[at])}
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at in reversed(range(count)):
        if at not in sources:
            places[canonical_text(before[at])].append(at)
    for at, item in enumerate(after):
        if at not in sources and (found := places.get(canonical_text(item))):
            sources[at] = found.pop()
    taken = set(sources.values())
    free = dict.fromkeys(at for at in range(count) if at not in taken)
    rest = [at for at in range(len(after)) if at not in sources]
    for at in [at for at in rest if at in free] + [at for at in rest if at not in free]:
        if free:
            sources[at] = at if at in free else next(iter(free))
            del free[sources[at]]
    return [
        _plan(node.items[sources[at]], before[sources[at]], item) if at in sources else _Fresh(item)
        for at, item in enumerate(after)
    ]


def _items(value: Plain) -> list[Plain] | None:
    if isinstance(value, Tagged) and value.tag == "tuple":
        value = value.value
    return value if isinstance(value, list) else None


def _pairs(value: Plain) -> dict[Any, Plain] | None:
    if isinstance(value, Tagged) and value.tag == "map" and isinstance(value.value, list):
        return {decode(pair[0]): pair[1] for pair in value.value if isinstance(pair, list)}
    return value if isinstance(value, dict) else None


def _identical(old: Any, new: Any) -> bool:
    """Equal to the last bit, the order of keys included."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        return list(old) == list(new) and all(_identical(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(_identical, old, new))
    if isinstance(old, Tagged):
        return old.tag == new.tag and _identical(old.value, new.value)
    return repr(old) == repr(new) if isinstance(old, float) else old == new


def _below(plan: _Filled) -> list[tuple[Any, str, _Plan]]:
    """Index or key, its part of a path, and the plan for what stands there."""
    if isinstance(plan.content, list):
        return [(at, f"[{at}]", item) for at, item in enumerate(plan.content)]
    if isinstance(plan.content, dict):
        return [(key, f".{key}", item) for key, item in plan.content.items()]
    return []


class _Seen:
    """Compares a plan with what the body really did."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.filled: set[int] = set()  # ids of the caller's containers that replay will fill
        self.replaced: list[str] = []

    def look(self, plan: _Plan, actual: Any, path: str) -> None:
        if not isinstance(plan, _Filled):
            return
        if actual is plan.node.value:
            self.filled.add(id(actual))
        elif path != self._root and not isinstance(actual, tuple):
            self.replaced.append(path)
        for key, step, item in _below(plan):
            self.look(item, actual[key], path + step)


class _Made:
    """Carries a plan out: the new content of every container first, then all of it at once."""

    def __init__(self, replaced: set[str]) -> None:
        self._replaced = replaced
        self.fills: list[Callable[[], None]] = []

    def value(self, plan: _Plan, path: str) -> Any:
        """What stands there afterwards."""
        if isinstance(plan, _Kept):
            return plan.node.value
        if isinstance(plan, _Fresh):
            return decode(plan.plain)
        held = plan.node.value
        content = self._content(plan, path)
        if isinstance(held, tuple):
            same = all(new is old.value for new, old in zip(content, plan.node.items, strict=True))
            return held if same else tuple(content)
        if path in self._replaced:
            return content
        self.fills.append(lambda: _fill(held, content))
        return held

    def _content(self, plan: _Filled, path: str) -> Any:
        made = [(key, self.value(item, path + step)) for key, step, item in _below(plan)]
        if isinstance(plan.content, dict):
            return dict(made)
        return [item for _, item in made] if isinstance(plan.content, list) else decode(plan.content)


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
