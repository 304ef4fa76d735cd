"""The parts of plain forms: items, pairs, fields, and where each stands. Knows no object they stand for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from stepfork.cassette.extension import step_to
from stepfork.cassette.values.policy import ClassPolicy
from stepfork.cassette.values.walk import Decoder
from stepfork.core.canonical import canonical_text
from stepfork.core.model import Plain, Tagged

Place = Any
"""Where a part stands: a number, the name of an attribute, a key that is a text; other keys as `_Key`."""
_STEP: Final = re.compile(r"[.\[]")


class _Key(str):
    """The place of a key that is no text."""

    __slots__ = ()


def step(place: Place) -> str:
    """What a place adds to a path.

    >>> step(1), step("name"), step("two words")
    ('[1]', '.name', '["two words"]')
    """
    if isinstance(place, _Key):
        return f"[{place[1:]}]"
    return step_to(place) if isinstance(place, str) else f"[{place!r}]"


def paths_above(path: str) -> Iterator[str]:
    """The paths of all that a place may be inside of.

    >>> list(paths_above("state.items[1]"))
    ['state', 'state.items']
    """
    return (path[: found.start()] for found in _STEP.finditer(path))


def places_of(keys: Iterable[Plain]) -> Iterator[Place]:
    """The places of some keys, given in plain form. Keys that look alike (NaN) are numbered."""
    met: Counter[str] = Counter()
    for key in keys:
        if isinstance(key, str):
            yield key
            continue
        spelled = canonical_text(key)
        met[spelled] += 1
        yield _Key(f"\0{spelled}" if met[spelled] == 1 else f"\0{spelled}#{met[spelled]}")


def items_of(form: Plain) -> list[Plain]:
    """The items of a list, tuple or deque."""
    content = form.value if isinstance(form, Tagged) else form
    if isinstance(content, dict):
        content = content["items"]
    assert isinstance(content, list)
    return content


def pairs_of(form: Plain) -> list[tuple[Plain, Plain]]:
    """The keys and values of a mapping of any kind."""
    if isinstance(form, Tagged) and form.tag == "counter":
        form = form.value
    elif isinstance(form, Tagged) and form.tag == "defaultdict":
        form = form.value["items"]  # type: ignore[call-overload,index]
    if isinstance(form, Tagged):
        pairs: Any = form.value
        return [(key, item) for key, item in pairs]
    assert isinstance(form, dict)
    return list(form.items())


def fields_of(form: Plain) -> dict[Place, Plain]:
    """The attributes of an object, the fields of a named tuple."""
    content: Any = form.value  # type: ignore[union-attr]
    fields: dict[Place, Plain] = content
    if form.tag != "namespace":  # type: ignore[union-attr]
        fields = content["fields"] | content.get("attributes", {})
    return fields


def hollow(form: Plain, classes: ClassPolicy) -> Any:
    """An object of this form without its parts."""
    if isinstance(form, Tagged):
        content: Any = form.value
        if form.tag in ("map", "counter"):
            form = {} if form.tag == "map" else Tagged("counter", {})
        elif form.tag == "defaultdict":
            form = Tagged(form.tag, {**content, "items": {}})
        elif form.tag == "namespace":
            form = Tagged(form.tag, {})
        else:
            none: Callable[[Any], Any] = lambda part: dict.fromkeys(part) if isinstance(part, dict) else part  # noqa: E731
            form = Tagged(form.tag, {name: none(part) for name, part in content.items()})
    else:
        form = {}
    return Decoder(classes).decode(form)
