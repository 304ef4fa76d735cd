"""The checks all documents share: fields, their types, faults. Knows no document's fields, no file, no YAML.

Faults are raised as `Fault` (field and problem); whoever knows the file and the line turns it into a
`CassetteError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from stepfork.core.model import Plain, Tagged
from stepfork.core.wording import spell

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "text": (str,),
    "mapping": (dict,),
    "sequence": (list,),
    "number": (int,),
    "flag": (bool,),
    "text or mapping": (str, dict),
    "mapping or sequence": (dict, list),
    "any": (object,),
}


_KINDS: Final[dict[type, str]] = {
    type(None): "nothing",
    bool: "true or false",
    int: "a number",
    float: "a number with a fraction",
    dict: "a mapping",
    list: "a sequence",
}


_ERROR: Final = {
    "class": "text",
    "args": "sequence",
    "init": "sequence",
    "attributes": "mapping",
    "notes": "sequence",
    "cause": "mapping",
    "cause_left_out": "text",
    "suppress_context": "flag",
}
_CLASS: Final = re.compile(r"[^:\s]+:[^:\s]+")


class Fault(ValueError):
    """A document that does not fit: `field` is the dotted place in it, `problem` one clear clause."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)


def check(
    document: dict[str, Plain], fields: Mapping[str, str], required: tuple[str, ...], above: str = ""
) -> None:
    """Checks that a document has no other fields than these, each of its type (a name in `_TYPES`)."""
    for name in required:
        if name not in document:
            raise Fault(above + name, "missing")
    for key, value in document.items():
        expected = fields.get(key)
        if expected is None:
            raise Fault(above + key, f"unknown field; known here: {', '.join(fields)}")
        kinds = _TYPES[expected]
        if not isinstance(value, kinds) or (expected == "number" and isinstance(value, bool)):
            raise Fault(above + key, f"{expected} expected, found {kind_of(value)}{_hint(expected, value)}")


def _hint(expected: str, value: Plain) -> str:
    return "; add quotes" if expected.startswith("text") and isinstance(value, bool | int | float) else ""


def kind_of(value: Plain) -> str:
    """What a value is, in the words of a fault."""
    if isinstance(value, Tagged):
        return f"a value with the tag !{value.tag}"
    return _KINDS.get(type(value), "text")


def shown(value: Plain) -> str:
    """A value in the words of a fault, cut where it is long.

    >>> shown([1, "a"]), len(shown("a" * 1000)), shown(10**5000)[:12]
    ('[1, "a"]', 61, '0x31e2080103')
    """
    spelled = spell(value)
    return spelled if len(spelled) <= 60 else f"{spelled[:60]}…"


def check_error(name: str, value: Plain, bare: Collection[str] = ()) -> None:
    """Checks a recorded exception; `bare` are names of classes that stand without a module."""
    above = f"{name}." if name else ""
    if not isinstance(value, dict):
        raise Fault(name, f"mapping expected, found {kind_of(value)}")
    check(value, _ERROR, required=("class",), above=above)
    named = str(value["class"])
    if _CLASS.fullmatch(named) is None and named not in bare:
        known = f", or {', '.join(sorted(bare))}" if bare else ""
        raise Fault(
            f"{above}class", f"a class expected, as in 'module:ClassName'{known}; found {shown(named)}"
        )
    if "args" in value and "init" in value:
        raise Fault(f"{above}args", "it is made of 'args' or by 'init', not of both")
    texts(f"{above}notes", value.get("notes", []))
    if "cause" in value:
        check_error(f"{above}cause", value["cause"])


def optional_text(value: Plain) -> str | None:
    """A text that was checked, or None."""
    return None if value is None else str(value)


def texts(field: str, values: Any) -> list[str]:
    """A sequence of texts."""
    for at, value in enumerate(values):
        if not isinstance(value, str):
            raise Fault(f"{field}[{at}]", f"text expected, found {kind_of(value)}")
    return list(values)


def text_mapping(field: str, values: Any) -> dict[str, str]:
    """A mapping from texts to texts."""
    for key, value in values.items():
        if not isinstance(value, str):
            raise Fault(f"{field}.{key}", f"text expected, found {kind_of(value)}; add quotes")
    return dict(values)


def count(field: str, value: Plain) -> int:
    """A number that counts from zero."""
    if type(value) is not int or value < 0:
        raise Fault(field, f"a count expected, found {shown(value)}")
    return value
