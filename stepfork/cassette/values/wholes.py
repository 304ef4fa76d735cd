"""What changes as a whole: sets, buffers, arrays, objects with a codec. Knows how each is filled anew."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from stepfork.cassette.values.faults import BadValue, Unsupported
from stepfork.cassette.values.policy import ClassPolicy
from stepfork.cassette.values.state import bare, replace_state, state_of
from stepfork.cassette.values.walk import Decoder, Encoder, is_of
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

NEVER_CHANGE: Final = frozenset(
    {
        *("bytes", "memoryview", "decimal", "fraction", "complex", "range", "uuid", "enum", "url", "numpy"),
        *("class", "regex", "struct-time", "slice", "timezone", "ip-address", "ip-network", "ip-interface"),
        *("secret", "index", "pandas"),
        *("path", "posix-path", "windows-path", "datetime", "time", "date", "timedelta"),
    }
)
"""Tags of values that cannot be changed, nor hold one that can."""

_IS_ARRAY: Final = is_of("numpy", "ndarray")
_IS_FRAME: Final = is_of("pandas", "DataFrame", "Series")


def inner_of(value: Any) -> Iterable[Any]:
    """What is in a value at no place that can be named: items of sets, keys, items of arrays of objects.

    >>> list(inner_of({(1, 2): "a"}))
    [(1, 2)]
    """
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, dict):
        return [key for key in dict.keys(value) if type(key) is not str]
    kind = type(value)
    if _IS_ARRAY(kind):
        return value.ravel() if value.dtype.kind == "O" else ()
    if _IS_FRAME(kind):
        columns = [value.iloc[:, at] for at in range(value.shape[1])] if value.ndim > 1 else [value]
        return [item for column in columns if column.dtype == object for item in column]
    return ()


def fits_whole(held: Any, before: Plain, after: Plain) -> bool:
    """Whether `fill_whole` can bring an object from one form to the other."""
    assert isinstance(after, Tagged)
    if not forms_fit(before, after):
        return False
    if after.tag == "array":
        return bool(held.flags.writeable)
    return after.tag not in BY_STATE or _has_state(held)


def forms_fit(before: Plain, after: Plain) -> bool:
    """Whether any object could be brought from one form to the other.

    >>> empty = Tagged("set", [])
    >>> forms_fit(empty, Tagged("set", [1])), forms_fit(empty, Tagged("bytearray", ""))
    (True, False)
    """
    if not isinstance(before, Tagged) or not isinstance(after, Tagged) or before.tag != after.tag:
        return False
    if after.tag == "array":
        return bool(_measures(before.value) == _measures(after.value))
    return after.tag in BY_STATE or after.tag in _FILLS


def _measures(content: Any) -> Any:
    values, shape = content["values"], content.get("shape")
    return content["dtype"], [len(values)] if shape is None and isinstance(values, list) else shape


def _has_state(held: Any) -> bool:
    try:
        bare(type(held))
    except BadValue:
        return False
    return True


def fill_whole(held: Any, form: Plain, classes: ClassPolicy, parts: Mapping[Any, Any]) -> None:
    """Brings an object to a form; `parts` are attributes that are at hand already."""
    assert isinstance(form, Tagged)
    if form.tag in BY_STATE:
        _fill_state(held, form, classes, parts)
    else:
        _FILLS[form.tag](held, form, classes)


def _fill_set(held: set[Any], form: Tagged, classes: ClassPolicy) -> None:
    """What is in it already stays the caller's own."""
    encoder, decoder = Encoder(classes), Decoder(classes)
    own: defaultdict[str, list[Any]] = defaultdict(list)
    for item in set.__iter__(held):
        own[canonical_text(encoder.encode(item, "item"))].append(item)
    content: Any = form.value
    items = []
    for item in content:
        known = own[canonical_text(item)]
        items.append(known.pop() if known else decoder.decode(item))
    set.clear(held)
    set.update(held, items)


def _fill_buffer(held: bytearray, form: Tagged, classes: ClassPolicy) -> None:
    held[:] = Decoder(classes).decode(form)


def _fill_array(held: Any, form: Tagged, classes: ClassPolicy) -> None:
    held[...] = Decoder(classes).decode(form)


def _fill_pickled(held: Any, form: Tagged, classes: ClassPolicy) -> None:
    """As `copy` does: by the state that the class itself gives and takes."""
    held.__setstate__(Decoder(classes).decode(form).__getstate__())
    if not isinstance(held, io.IOBase):
        vars(held).get("_item_cache", {}).clear()  # columns that pandas before version 3 has at hand


def _fill_state(held: Any, form: Tagged, classes: ClassPolicy, parts: Mapping[Any, Any]) -> None:
    """The attributes that the codec or the constructor makes; what cannot be written stays the caller's."""
    encoder = Encoder(classes)
    old, new = state_of(held), state_of(Decoder(classes).decode(form))
    new |= {name: parts[name] for name in new.keys() & parts.keys()}
    for name in old.keys() & new.keys():
        try:
            encoder.encode(old[name], name)
        except Unsupported:
            new[name] = old[name]
    replace_state(held, new)


_Fill = Callable[[Any, Tagged, ClassPolicy], None]
_FILLS: Final[dict[str, _Fill]] = {
    "set": _fill_set,
    "bytearray": _fill_buffer,
    "array": _fill_array,
    **dict.fromkeys(("dataframe", "series", "bytes-stream", "text-stream"), _fill_pickled),
}
BY_STATE: Final = frozenset({"custom", "dataclass", "attrs"})
"""Tags of what gets the attributes of a new object."""
