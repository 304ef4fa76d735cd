"""How a JSON text was written: found while recording, applied on replay, so that its bytes come back.

Knows JSON texts; knows no request and no response. The style of a text is only named where writing its
value in that style gives the very same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

DEFAULT: Final = "compact"
_LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "compact": {"separators": (",", ":")},
    "spaced": {},
    "indent 2": {"indent": 2},
    "indent 4": {"indent": 4},
}


def _styles() -> Iterator[str]:
    for layout, ascii_only, newline in product(_LAYOUTS, ("", " ascii"), ("", " newline")):
        yield layout + ascii_only + newline


STYLES: Final = tuple(_styles())


def write(value: Any, style: str) -> str:
    """The JSON text of a value in a style.

    Raises:
        KeyError: for a style that is not one of `STYLES`.

    >>> write({"a": [1, "é"]}, "spaced ascii newline")
    '{"a": [1, "\\\\u00e9"]}\\n'
    """
    if style not in STYLES:
        raise KeyError(style)
    layout = next(name for name in _LAYOUTS if style.startswith(name))
    text = json.dumps(value, ensure_ascii=" ascii" in style, **_LAYOUTS[layout])
    return text + "\n" if style.endswith("newline") else text


def find(text: str) -> tuple[Any, str] | None:
    """The value of a JSON text and the style that gives the text back; None if it is no JSON or none does.

    >>> find('{"a": 1}')
    ({'a': 1}, 'spaced')
    >>> find('{"a":1e0}') is None
    True
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for style in STYLES:
        if write(value, style) == text:
            return value, style
    return None
