"""Large values that stand more than once, as references by content. Knows plain values; knows no file.

The document that has such a value first ends with ``shared: {NAME: value}``; there and everywhere else
``!shared NAME`` stands in its place. A name is the beginning of the SHA-256 of the value's canonical text, so
nothing that is added or taken away changes it. A shared value holds no reference itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from stepfork.cassette.fields import Fault
from stepfork.cassette.moments import long_form
from stepfork.core.canonical import canonical_text, digest
from stepfork.core.model import Plain, Tagged

TAG: Final = "shared"
FIELD: Final = "shared"

LARGE: Final = 1000
"""Characters, about, of a value that is worth sharing."""
_SHORTEST: Final = 8  # digits of a name
_NAME: Final = re.compile(r"[0-9a-f]{8,64}\Z")
_MOST: Final = 200_000_000  # characters that the references of one document may stand for
MOST_ITEMS: Final = 100_000_000
"""Values in what the references of one file stand for, all taken together: reading them takes so long."""
_WHOLE: Final = frozenset({"result", "body"})  # fields that may be a reference themselves
_INSIDE: Final = frozenset({"args", "request", "append", "response", "stream", *_WHOLE})
"""Fields with values in which references may stand."""

Large: TypeAlias = tuple[str, int]
"""The digest of a large value, and how many of those that follow stand inside of it."""


def large_values(document: dict[str, Plain], text: str) -> Sequence[Large]:
    """The large values of a document, those that enclose others before them; `text` is how it is written.

    >>> [inside for _, inside in large_values({"tool": "t", "result": ["x" * 2000, "y"]}, "x" * 2030)]
    [1, 0]
    """
    if len(text) < LARGE:
        return ()
    found: list[Large] = []
    for field, value in document.items():
        if field in _INSIDE:
            _collect(value, field in _WHOLE, _sizes(value), found)
    return found


def _collect(value: Any, may: bool, sizes: dict[int, int], found: list[Large]) -> None:
    if not _is_large(value, sizes):
        return
    at = len(found)
    if may:
        found.append((digest(value, in_order=True), 0))
    for item in _items(value):
        _collect(item, True, sizes, found)
    if may:
        found[at] = found[at][0], len(found) - at - 1


def _items(value: Any) -> Iterable[Any]:
    if type(value) is Tagged:
        value = value.value
    return value.values() if type(value) is dict else value if type(value) is list else ()


def _is_large(value: Any, sizes: dict[int, int]) -> bool:
    return len(value) >= LARGE if type(value) is str else sizes.get(id(value), 0) >= LARGE


def _sizes(value: Any) -> dict[int, int]:
    """About how many characters the large collections in a value take, by their identity."""
    sizes: dict[int, int] = {}
    _size(value, sizes)
    return sizes


def _size(value: Any, sizes: dict[int, int]) -> int:
    kind = type(value)
    if kind is str:
        return len(value)
    if kind is dict:
        size = sum([len(key) + 4 + _size(item, sizes) for key, item in value.items()])
    elif kind is list:
        size = sum([2 + _size(item, sizes) for item in value])
    elif kind is Tagged:
        size = len(value.tag) + _size(value.value, sizes)
    else:
        return 4 if kind is not float else 12
    if size >= LARGE:
        sizes[id(value)] = size
    return size


def names_of(documents: Sequence[Sequence[Large]]) -> dict[str, str]:
    """The names of the values that the documents share, by digest; given what `large_values` says of each.

    Of values inside of each other the larger ones are shared.
    """
    first = _repeated(documents, frozenset())
    repeated = _repeated(documents, first)
    length = _SHORTEST
    while len({value[:length] for value in repeated}) < len(repeated):
        length += 1
    return {value: value[:length] for value in repeated}


def _repeated(documents: Sequence[Sequence[Large]], whole: frozenset[str]) -> frozenset[str]:
    """What stands more than once, without what is inside of those in `whole` or was counted with others."""
    counts: Counter[str] = Counter()
    for found in documents:
        at = 0
        while at < len(found):
            value, inside = found[at]
            counts[value] += 1
            at += 1 + (inside if counts[value] > 1 or value in whole else 0)
    return frozenset(value for value, count in counts.items() if count > 1)


def shorten(document: dict[str, Plain], names: dict[str, str], told: set[str]) -> dict[str, Plain]:
    """A document with references in place of the values that have names.

    Those whose names are not in `told` stand at its end, and are in `told` from then on.
    """
    values: dict[str, Plain] = {}

    def short(value: Any, may: bool, sizes: dict[int, int]) -> Any:
        if not _is_large(value, sizes):
            return value
        name = names.get(digest(value, in_order=True)) if may else None
        if name is not None:
            if name not in told:
                told.add(name)
                values[name] = value
            return Tagged(TAG, name)
        if type(value) is Tagged:
            return Tagged(value.tag, short(value.value, False, sizes))
        if type(value) is dict:
            return {key: short(item, True, sizes) for key, item in value.items()}
        return [short(item, True, sizes) for item in value] if type(value) is list else value

    shortened: dict[str, Plain] = {
        field: short(value, field in _WHOLE, _sizes(value)) if field in _INSIDE else value
        for field, value in document.items()
    }
    return {**shortened, FIELD: values} if values else shortened


class Value(NamedTuple):
    """A value that documents share, how many characters it takes, and how many values are in it."""

    value: Plain
    characters: int
    items: int


def weighed(value: Plain) -> Value:
    """A value to be shared.

    >>> weighed([1, {"a": "b"}])
    Value(value=[1, {'a': 'b'}], characters=13, items=4)
    """
    return Value(value, len(canonical_text(value)), _count(value))


def _count(value: Any) -> int:
    return 1 + sum(map(_count, _items(value)))


def restore(document: dict[str, Plain], find: Callable[[str], Value]) -> dict[str, Plain]:
    """A document with the values in place of the references; they are not copied.

    `find` gives the value of a name, or raises a `Fault` without a place.

    Raises:
        Fault: naming the field, where there is no such value.
    """
    stood_for = 0

    def whole(value: Any, path: str) -> Any:
        nonlocal stood_for
        if type(value) is Tagged:
            if value.tag == TAG:
                found = _found(value.value, path, find)
                stood_for += found.characters
                if stood_for > _MOST:
                    raise Fault(path, f"this document refers to more than {_MOST} characters")
                return found.value
            return Tagged(value.tag, whole(value.value, path))
        if type(value) is dict:
            return {key: whole(item, f"{path}.{key}") for key, item in value.items()}
        if type(value) is list:
            return [whole(item, f"{path}[{at}]") for at, item in enumerate(value)]
        return value

    return {field: value if field == FIELD else whole(value, field) for field, value in document.items()}


def _found(name: Plain, path: str, find: Callable[[str], Value]) -> Value:
    if not isinstance(name, str) or not _NAME.match(name):
        raise Fault(path, "under '!shared' stands the name of a value: 8 to 64 hexadecimal digits, in quotes")
    try:
        return find(name)
    except Fault as fault:
        raise Fault(path, fault.problem) from None


def values_of(document: dict[str, Plain]) -> dict[str, Plain]:
    """The values that a document shares with others, by name.

    Raises:
        Fault: naming the field, where a value does not fit its name.
    """
    values = document.get(FIELD, {})
    if not isinstance(values, dict):
        raise Fault(FIELD, "mapping expected, of names and values")
    for name, value in values.items():
        path = f"{FIELD}.{name}"
        if not _NAME.match(name):
            raise Fault(path, "a name is 8 to 64 hexadecimal digits")
        if _holds_reference(value):
            raise Fault(path, "a shared value holds no reference itself: write the value out")
        fits, other = (digest(form, in_order=True) for form in (value, long_form(value)))
        if not fits.startswith(name) and not other.startswith(name):
            raise Fault(
                path,
                f"the value was changed: call it '{fits[: len(name)]}', here and after every '!shared'",
            )
    return values


def _holds_reference(value: Any) -> bool:
    if type(value) is Tagged and value.tag == TAG:
        return True
    return any(map(_holds_reference, _items(value)))
