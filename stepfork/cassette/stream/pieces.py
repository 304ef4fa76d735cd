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


def mended(raw: bytes, mend: Callable[[str], str]) -> bytes | None:
    r"""The stream with `mend` applied to its joined texts; None if that changes none of them.

    A changed text stands whole in the event where it began.

    >>> hide = lambda text: text.replace("secret", "***")
    >>> mended(b'data: {"t": "se"}\n\ndata: {"t": "cret"}\n\n', hide)
    b'data: {"t": "***"}\n\ndata: {"t": ""}\n\n'
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
        clean = mend(whole)
        if clean != whole and len(places) > 1:
            changed = True
            for holder, key in places:
                holder[key], clean = clean, ""
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
