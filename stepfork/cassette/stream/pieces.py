"""Texts that a stream says in pieces, whatever field they are in. Knows events; judges no text.

A secret that is cut over several events is in none of them: only the pieces joined give it away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

_BETWEEN: Final = re.compile(r"((?:\r\n|\n|\r){2,})")
_DATA: Final = re.compile(r"^data: ?(.*)$", re.MULTILINE)


def joined(raw: bytes, matters: Callable[[str], bool]) -> bytes | None:
    r"""The stream with the texts that matter whole, in the event where each began; None if none does.

    >>> joined(b'data: {"t": "se"}\n\ndata: {"t": "cret"}\n\n', lambda text: "secret" in text)
    b'data: {"t": "secret"}\n\ndata: {"t": ""}\n\n'
    """
    try:
        parts = _BETWEEN.split(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    events: dict[int, Any] = {}
    pieces: dict[tuple[str | int, ...], list[tuple[Any, str | int]]] = {}
    for at in range(0, len(parts), 2):
        try:
            events[at] = json.loads("\n".join(_DATA.findall(parts[at])))
        except ValueError:
            continue
        for path, holder, key in _texts(events[at], ()):
            pieces.setdefault(path, []).append((holder, key))
    changed = False
    for places in pieces.values():
        whole = "".join(holder[key] for holder, key in places)
        if len(places) > 1 and matters(whole):
            changed = True
            for holder, key in places:
                holder[key], whole = whole, ""
    if not changed:
        return None
    for at, event in events.items():
        head = [line for line in parts[at].splitlines() if not line.startswith("data:")]
        parts[at] = "\n".join([*head, "data: " + json.dumps(event, ensure_ascii=False)])
    return "".join(parts).encode("utf-8", "surrogatepass")


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any, str | int]]:
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in items:
        if isinstance(item, str):
            yield (*path, key), value, key
        else:
            yield from _texts(item, (*path, key))
