"""Whether an incoming call is the recorded one, and if not, in which leaf it differs.

Pure: knows plain values and calls; knows no file, no session and no wording.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from stepfork.core.canonical import canonical_text
from stepfork.core.model import Incoming, Plain, Tagged, texts_in
from stepfork.core.placeholder_texts import MARK, opened


class _Absent:
    """The leaf is not there at all."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()

Fault: TypeAlias = Literal["kind", "name", "target", "args", "step"]
SameText: TypeAlias = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where two calls differ: `path` leads to the first differing leaf inside what `fault` names.

    `expected` and `actual` are the leaves (plain values, or `ABSENT`). `order_only` says that a list
    holds the same items in another order.
    """

    fault: Fault
    path: str
    expected: Any
    actual: Any
    order_only: bool = False


def match(
    recorded: Incoming, incoming: Incoming, same_text: SameText | None = None, *, asks_all: bool = False
) -> Mismatch | None:
    """None if `incoming` is the recorded call, else the first difference.

    `same_text` says whether two strings are equal where they differ or hold a placeholder of a secret
    (which compare up to renaming), with `asks_all` where they are equal too; without it, equal means equal.

    >>> a = Incoming("tool", "lookup", {"minutes": 60})
    >>> b = Incoming("tool", "lookup", {"minutes": 120})
    >>> match(a, a) is None, match(a, b).path
    (True, 'minutes')
    """
    if recorded.kind != incoming.kind:
        return Mismatch("kind", "", recorded.kind, incoming.kind)
    if recorded.name not in (incoming.name, incoming.alias):
        return Mismatch("name", "", recorded.name, incoming.name)
    comparison = _Comparison(same_text or str.__eq__, asks_all, tool_arguments=recorded.kind == "llm")
    found = comparison.differ(recorded.target, incoming.target, "")
    if found is not None:
        return Mismatch("target", *found)
    found = comparison.differ(recorded.args, incoming.args, "")
    if found is not None:
        return Mismatch("args", *found)
    return None


def fingerprint(call: Incoming, blur: Callable[[str], str] = str) -> bytes:
    """A digest that is equal for calls that may match, and nearly always differs for others.

    Texts that hold the placeholder of a secret count as equal, and so do the short and full name of a tool.
    `blur` makes texts equal that may count as equal for other reasons.

    >>> a = Incoming("tool", "lookup", {"minutes": 60})
    >>> fingerprint(a) == fingerprint(Incoming("tool", "ops:lookup", {"minutes": 60}))
    True
    """
    asked: list[Plain] = [
        call.kind,
        call.name.rpartition(":")[2],
        _blurred(call.target, blur, tool_arguments=False),
        _blurred(call.args, blur, tool_arguments=call.kind == "llm"),
    ]
    return sha256(canonical_text(asked).encode("utf-8", "surrogatepass")).digest()


def _blurred(value: Plain, blur: Callable[[str], str], *, tool_arguments: bool) -> Plain:
    if isinstance(value, dict):
        return {
            _blurred_text(key, str): _parsed(item, blur)
            if key == "arguments" and tool_arguments and isinstance(item, str)
            else _blurred(item, blur, tool_arguments=tool_arguments)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_blurred(item, blur, tool_arguments=tool_arguments) for item in value]
    if isinstance(value, Tagged):
        return Tagged(value.tag, _blurred(value.value, blur, tool_arguments=tool_arguments))
    if not isinstance(value, str):
        return value
    return _blurred_text(value, blur)


def _blurred_text(text: str, blur: Callable[[str], str]) -> str:
    return "<secret>" if MARK in opened(text) else blur(text)


def _parsed(arguments: str, blur: Callable[[str], str]) -> Plain:
    try:
        found: Plain = json.loads(arguments)
    except ValueError:
        found = arguments
    return _blurred(found, blur, tool_arguments=True)


def distance(recorded: Incoming, incoming: Incoming) -> float:
    """How far apart two calls of one name are: differing leaves, texts by how much of them differs.

    The measure of two texts is one minus `difflib`'s ratio (Ratcliff and Obershelp) of their first 300
    characters.

    >>> a, b = Incoming("tool", "t", {"q": "rust", "n": 1}), Incoming("tool", "t", {"q": "ruts", "n": 1})
    >>> distance(a, a), distance(a, b)
    (0.0, 0.25)
    """
    old, new = dict(_leaves(recorded.args, "")), dict(_leaves(incoming.args, ""))
    return sum(_apart(old.get(path, ABSENT), new.get(path, ABSENT)) for path in old.keys() | new.keys())


def _leaves(value: Plain, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tagged):
        value = value.value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, _step(path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}[{at}]")
    else:
        yield path, value


def _apart(old: Any, new: Any) -> float:
    if isinstance(old, str) and isinstance(new, str):
        return (
            0.0 if old == new else 1.0 - SequenceMatcher(None, old[:300], new[:300], autojunk=False).ratio()
        )
    same = type(old) is type(new) and (old == new or (old != old and new != new))  # NaN is NaN
    return 0.0 if same else 1.0


_Found: TypeAlias = tuple[str, Any, Any, bool]
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*\Z")


def _step(path: str, key: str) -> str:
    if _PLAIN_KEY.match(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


@dataclass(frozen=True, slots=True)
class _Comparison:
    same_text: SameText
    asks_all: bool
    tool_arguments: bool

    def differ(self, expected: Plain, actual: Plain, path: str) -> _Found | None:
        if type(expected) is not type(actual):
            return path, expected, actual, False
        if isinstance(expected, dict):
            return self._differ_mapping(expected, actual, path)  # type: ignore[arg-type]
        if isinstance(expected, list):
            return self._differ_list(expected, actual, path)  # type: ignore[arg-type]
        if isinstance(expected, str):
            same = self._same(expected, actual)  # type: ignore[arg-type]
        elif isinstance(expected, Tagged):
            assert isinstance(actual, Tagged)
            if expected.tag != actual.tag:
                return path, expected, actual, False
            old, new = expected.value, actual.value
            if expected.tag in ("set", "frozenset") and isinstance(old, list) and isinstance(new, list):
                return self._differ_set(expected.tag, old, new, path)
            if expected.tag == "map" and isinstance(old, list) and isinstance(new, list):
                return self._differ_list(old, self._by_keys(old, new), path)
            found = self.differ(old, new, path)
            # a tuple is shown down to its item; a date or a Decimal only says something with its tag
            inner = isinstance(expected.value, dict | list) and isinstance(actual.value, dict | list)
            return found if found is None or inner else (path, expected, actual, False)
        elif isinstance(expected, float):
            same = canonical_text(expected) == canonical_text(actual)  # NaN is NaN, -0.0 is not 0.0
        else:
            same = expected == actual
        return None if same else (path, expected, actual, False)

    def _same(self, expected: str, actual: str) -> bool:
        if expected == actual and not self.asks_all and MARK not in expected:
            return True
        return self.same_text(expected, actual)

    def _differ_mapping(
        self, expected: dict[str, Plain], actual: dict[str, Plain], path: str
    ) -> _Found | None:
        renamed: set[str] = set()
        for key, old in expected.items():
            place = _step(path, key)
            name = key if key in actual else self._renamed(key, expected, actual, renamed)
            renamed.add(name)
            new = actual.get(name, ABSENT)
            if isinstance(new, _Absent):
                return place, old, ABSENT, False
            if key == "arguments" and self.tool_arguments and isinstance(old, str) and isinstance(new, str):
                found = self._differ_arguments(old, new, place)
            else:
                found = self.differ(old, new, place)
            if found is not None:
                return found
        for key, new in actual.items():
            if key not in expected and key not in renamed:
                return _step(path, key), ABSENT, new, False
        return None

    def _renamed(
        self, key: str, expected: dict[str, Plain], actual: dict[str, Plain], taken: set[str]
    ) -> str:
        """The key that this one, with the placeholder of a secret in it, is in the run."""
        if MARK in opened(key):
            for other in actual:
                if other not in expected and other not in taken and self.same_text(key, other):
                    return other
        return key

    def _by_keys(self, expected: list[Plain], actual: list[Plain]) -> list[Plain]:
        """The pairs of a mapping whose keys are no texts in the order of those that are expected."""
        places: dict[str, list[int]] = {}
        for at in range(len(actual) - 1, -1, -1):
            places.setdefault(canonical_text(_key(actual[at])), []).append(at)
        same = [places.get(canonical_text(_key(pair)), []) for pair in expected]
        found = [known.pop() if known else None for known in same]
        left = dict.fromkeys(at for known in places.values() for at in known)
        for number, pair in enumerate(expected):
            if found[number] is None and any(MARK in opened(text) for text in texts_in(_key(pair))):
                renamed = (at for at in left if self.differ(_key(pair), _key(actual[at]), "") is None)
                found[number] = next(renamed, None)
                left.pop(found[number], None)  # type: ignore[arg-type]
        further = iter(sorted(left))
        order = [next(further, None) if at is None else at for at in found]
        return [actual[at] for at in [*order, *further] if at is not None]

    def _differ_arguments(self, expected: str, actual: str, path: str) -> _Found | None:
        """The JSON text of a tool call's arguments: spacing and key order do not count."""
        if expected == actual and not self.asks_all:
            return None
        try:
            old, new = json.loads(expected), json.loads(actual)
        except ValueError:
            return self.differ(expected, actual, path)
        return self.differ(old, new, path)

    def _differ_set(self, tag: str, expected: list[Plain], actual: list[Plain], path: str) -> _Found | None:
        """The items that only one of two sets has: they have no places, and sort one way or another."""
        old, new = expected, actual
        if any(MARK in opened(text) for text in texts_in(old)):
            old, new = _without_common(old, new)  # of secrets the rest may sort differently
        if self.differ(old, new, path) is None:
            return None
        gone, come = _without_common(expected, actual)
        if len(gone) == len(come) == 1:
            return self.differ(gone[0], come[0], path) or (path, gone[0], come[0], False)
        return path, _leaf_of_set(tag, gone), _leaf_of_set(tag, come), False

    def _differ_list(self, expected: list[Plain], actual: list[Plain], path: str) -> _Found | None:
        found: _Found | None = None
        for at, old in enumerate(expected):
            place = f"{path}[{at}]"
            found = (place, old, ABSENT, False) if at >= len(actual) else self.differ(old, actual[at], place)
            if found is not None:
                break
        else:
            if len(actual) > len(expected):
                found = f"{path}[{len(expected)}]", ABSENT, actual[len(expected)], False
        if found is not None and len(expected) == len(actual) and _same_items(expected, actual):
            return path, expected, actual, True
        return found


def _key(pair: Plain) -> Plain:
    return pair[0] if isinstance(pair, list) and pair else pair


def _without_common(old: list[Plain], new: list[Plain]) -> tuple[list[Plain], list[Plain]]:
    """What only one of two sets has."""
    here, there = ({canonical_text(item): item for item in items} for items in (old, new))
    return (
        [item for text, item in here.items() if text not in there],
        [item for text, item in there.items() if text not in here],
    )


def _leaf_of_set(tag: str, items: list[Plain]) -> Any:
    return Tagged(tag, items) if len(items) > 1 else items[0] if items else ABSENT


def _same_items(expected: list[Plain], actual: list[Plain]) -> bool:
    return Counter(map(canonical_text, expected)) == Counter(map(canonical_text, actual))
