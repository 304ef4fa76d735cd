"""What a call did to its arguments: seen while it is recorded, done again on replay. Knows values, no call.

A change is kept as the value that the argument has afterwards. On replay it is made in place: whatever is
equal afterwards stays the caller's own object, one that differs is filled anew. Where that would not be what
the body did, ``kept`` and ``replaced`` name the places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any, Final

from stepfork.cassette.values import BadValue, ClassPolicy, Unsupported, encode, type_name
from stepfork.cassette.values.holders import Holder, holder_of
from stepfork.cassette.values.plain_parts import Place, paths_above
from stepfork.cassette.values.state import state_of
from stepfork.cassette.values.wholes import inner_of
from stepfork.core.model import Plain
from stepfork.instrument.remake import Filled, HolderNode, Node, Plan, identical, made, plan

HINT: Final = "let the tool return what it changes"
_WHY: Final = "that the tool changed in a way that cannot be done again in place"
_TEXT: Final = frozenset({str})
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_LEAVES: Final = (str, int, float, bytes)
_STANDARD: Final = ("builtins", "collections")


def can_change(form: Plain) -> bool:
    """Whether the value with this plain form holds others, or can hold others.

    >>> can_change([]), can_change("text")
    (True, False)
    """
    return holder_of(form) is not None


class Watched:
    """The arguments of a call as they are before its body runs, or runs on.

    `before` are the same arguments in plain values.
    """

    def __init__(self, arguments: dict[str, Any], before: dict[str, Plain], classes: ClassPolicy) -> None:
        self._classes = classes
        self._roots: dict[str, Node] = {}
        self._nodes: list[HolderNode] = []
        self._inner: list[Node] = []  # those in sets and keys, which have no place
        self._opened: set[int] = set()  # objects whose attributes are nodes already
        self._beside: list[tuple[Node, Plain]] = []  # attributes of lists and dicts of the user's own kinds
        for name, plain in before.items():
            if can_change(plain):
                self._roots[name] = self._taken_down(arguments[name], plain, name, None)

    def _taken_down(self, value: Any, before: Plain, place: Place, above: HolderNode | None) -> Node:
        """The node of a value; those that hold something go into `_nodes`."""
        holder = holder_of(before)
        if holder is None or not holder.suits(value):
            return Node(value, before, place, above)
        node = HolderNode(value, before, place, above, holder)
        self._nodes.append(node)
        if holder.by_form:
            if id(value) in self._opened:
                return node
            self._opened.add(id(value))
        forms = holder.plain_parts(before, self._classes)
        for at, part in holder.parts(value, self._classes, forms).items():
            form = forms.get(at)
            known = type(form) in _SCALARS
            node.parts[at] = Node(part, form, at, node) if known else self._taken_down(part, form, at, node)
        return node

    def see(self) -> None:
        """Takes down also what only a recording needs: what has no place in the plain form."""
        for node in self._nodes:
            kind = type(node.value)
            if node.loose or kind is list or (kind is dict and _TEXT.issuperset(map(type, node.keys))):
                continue
            for item in inner_of(node.value):
                form = encode(item, node.path, self._classes)
                if can_change(form):
                    self._inner.append(Node(item, form, node.place, node))
            if isinstance(node.value, list | dict) and kind.__module__ not in _STANDARD:
                self._beside.append((node, self._attributes(node)))

    def _attributes(self, node: Node) -> dict[str, Plain]:
        """The attributes of a list or a dict of the user's own kind."""
        found: dict[str, Plain] = {}
        for name, item in state_of(node.value).items():
            try:
                found[name] = encode(item, name, self._classes)
            except Unsupported:
                found[name] = id(item)
        return found

    def holds(self) -> bool:
        """Whether there is anything that could change."""
        return bool(self._nodes)

    def shares(self, other: Watched) -> bool:
        """Whether one object is among the arguments of both."""
        known = {id(node.value) for node in self._nodes if node.holder.filled and not node.loose}
        return any(id(node.value) in known for node in other._nodes if not node.loose)

    def changed_under(self, other: Watched) -> HolderNode | None:
        """An object of both that is not what it was when either began."""
        theirs = {id(node.value): node for node in other._nodes if node.holder.filled and not node.loose}
        for node in self._nodes:
            known = None if node.loose else theirs.get(id(node.value))
            if known is not None and self._is_altered(node) and other._is_altered(known):
                return node
        return None

    def is_stale(self) -> bool:
        """Whether something holds something else now."""
        return any(True for _ in self._altered()) or self._altered_inside() is not None

    def _altered(self) -> Iterator[HolderNode]:
        """What holds something else now. An attribute counts only where its object's form says so too."""
        still: set[int] = set()
        for node in self._nodes:
            if node.loose and id(node.above) in still:
                still.add(id(node))
            elif self._is_altered(node):
                yield node
            elif node.holder.by_form:
                still.add(id(node))

    def _altered_inside(self) -> Node | None:
        """Of what has no place, the first that holds something else now."""
        for node in self._inner:
            if self._reads_otherwise(node):
                return node
        return next(
            (node for node, held in self._beside if not identical(held, self._attributes(node))), None
        )

    def changes(self) -> dict[str, Plain]:
        """What the body did since: ``changed``, ``kept``, ``replaced``, each if it says something.

        Raises:
            Unsupported: for a change that cannot be made again in place.
        """
        altered = list(self._altered())
        if (inside := self._altered_inside()) is not None:
            raise _refused(inside)
        if not altered:
            return {}
        for node in altered:
            _touch(node)
        changed: dict[str, Plain] = {}
        seen = _Seen(self._nodes, self._classes)
        filled: set[int] = set()
        for name, root in self._roots.items():
            if root.touched:
                after, said = encode(root.value, f"argument {name!r}", self._classes), seen.said()
                _fill(plan(seen, root, after, name, root.value), filled)
                if seen.said() > said or not identical(root.before, after):
                    changed[name] = after
        for node in altered:
            if (
                not node.loose
                and id(node.value) not in filled
                and (node.holder.filled or self._reads_otherwise(node))
            ):
                raise _refused(node)  # nothing reaches it any more, but the caller may hold it
        for inner in self._inner:  # a set keeps what is in it, nothing else that is filled as a whole does
            above = inner.above
            if above is not None and above.touched and not isinstance(above.value, set | dict):
                raise _refused(above)
        found: dict[str, Plain] = {"changed": changed} if changed else {}
        if seen.kept:
            found["kept"] = dict(seen.kept)
        return {**found, "replaced": list(seen.replaced)} if seen.replaced else found

    def _reads_otherwise(self, node: Node) -> bool:
        return not identical(node.before, encode(node.value, node.path, self._classes))

    def _is_altered(self, node: HolderNode) -> bool:
        """Whether the object itself holds something else now."""
        holder, value = node.holder, node.value
        kind = type(value)
        if (kind is list or kind is dict) and len(value) == len(node.held):  # nearly always
            items = value if kind is list else value.values()
            if all(map(is_, items, node.held)) and (kind is list or all(map(is_, value, node.keys))):
                return False
        if holder.by_form:
            return self._reads_otherwise(node)
        now = holder.parts(value, self._classes)
        if list(now) != list(node.parts) or holder.beyond(value) != node.beyond:
            return True
        return any(map(_differs, node.parts.values(), now.values()))

    def change(self, recorded: dict[str, Plain]) -> None:
        """Makes the recorded changes to the caller's own objects.

        Raises:
            BadValue: where they do not fit these.
        """
        changed, kept, replaced = (recorded.get(field) for field in ("changed", "kept", "replaced"))
        told = _Told(self._nodes, kept or {}, replaced or [], self._classes)
        fills: list[Callable[[], None]] = []  # all of them at once, when it is known what goes where
        for name, after in changed.items() if isinstance(changed, dict) else ():
            if name in self._roots:
                made(plan(told, self._roots[name], after, name), fills, self._classes)
        try:
            for fill in fills:
                fill()
        except BadValue:
            raise
        except Exception as problem:
            raise BadValue(f"a recorded change does not fit the argument: {problem}; record again") from None


def _differs(node: Node, new: Any) -> bool:
    old = node.value
    if old is new:
        return False
    leaf = type(old) is type(new) and type(old) in _LEAVES
    return not leaf or bool(old != new) or repr(old) != repr(new)


def _touch(node: HolderNode) -> None:
    here: HolderNode | None = node
    while here is not None and not here.touched:
        here.touched = True
        here = here.above


def _refused(node: Node) -> Unsupported:
    return Unsupported(f"argument {node.name()!r}", type_name(node.value), _WHY, HINT)


def _fill(way: Plan, filled: set[int]) -> None:
    """Adds the ids of the caller's objects that a plan fills."""
    if isinstance(way, Filled):
        if way.node is not None and not way.new:
            filled.add(id(way.node.value))
        for part in way.parts.values():
            _fill(part, filled)


# -- which of them stands where ---------------------------------------------------------------------


class _Seen:
    """While recording, the objects themselves say it; where it goes another way, that is taken down."""

    def __init__(self, nodes: list[HolderNode], classes: ClassPolicy) -> None:
        first = sorted(nodes, key=lambda node: not node.loose)  # places that are sure come last, and stay
        self._known: dict[int, Node] = {id(node.value): node for node in first if node.holder.filled}
        self.classes = classes
        self.kept: dict[str, str] = {}
        self.replaced: list[str] = []

    def origin(self, path: str, node: Node | None, after: Plain, actual: Any) -> tuple[Node | None, bool]:
        holder = holder_of(after)
        if holder is None or not holder.filled or (node is not None and actual is node.value):
            return node, False
        known = self._known.get(id(actual))
        if known is not None:
            self.kept[path] = known.path
            return known, False
        new = node is not None and node.holder is not None and node.holder.filled
        if new:
            self.replaced.append(path)
        return node, new

    def untouched(self, node: Node, path: str) -> bool:
        return not node.touched

    def parts(self, holder: Holder, actual: Any, forms: dict[Place, Plain]) -> dict[Place, Any]:
        return {} if actual is None else holder.parts(actual, self.classes, forms)

    def said(self) -> int:
        """How much was taken down."""
        return len(self.kept) + len(self.replaced)


class _Told:
    """On replay the recording says it."""

    def __init__(self, nodes: list[HolderNode], kept: Any, replaced: Any, classes: ClassPolicy) -> None:
        self.classes = classes
        self._known: dict[str, Node] = {node.path: node for node in nodes}
        self._kept: dict[str, str] = kept
        self._replaced = frozenset(replaced)
        self._named = frozenset(path for place in (*kept, *replaced) for path in (place, *paths_above(place)))

    def origin(self, path: str, node: Node | None, after: Plain, actual: Any) -> tuple[Node | None, bool]:
        if path in self._kept:
            origin = self._kept[path]
            if origin not in self._known and "<" not in origin:  # what stands for a secret or a directory
                raise BadValue(f"'kept' says that {origin!r} stands at {path!r}, and there is no such place")
            return self._known.get(origin), False
        return node, path in self._replaced

    def untouched(self, node: Node, path: str) -> bool:
        return path not in self._named

    def parts(self, holder: Holder, actual: Any, forms: dict[Place, Plain]) -> dict[Place, Any]:
        return {}
