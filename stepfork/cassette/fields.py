"""The checks all documents share: fields, their types, faults. Knows no document's fields, no file, no YAML.

Faults are raised as `Fault` (field and problem); whoever knows the file and the line turns it into a
`CassetteError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stepfork.core.model import Plain

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
    names = {bool: "true or false", int: "a number", float: "a number", dict: "a mapping", list: "a sequence"}
    return (
        "nothing"
        if value is None
        else names.get(type(value), "text" if isinstance(value, str) else "a tagged value")
    )


def check_error(name: str, value: Plain) -> None:
    """Checks a recorded exception."""
    if not isinstance(value, dict):
        raise Fault(name, f"mapping expected, found {kind_of(value)}")
    if not isinstance(value.get("class"), str):
        raise Fault(f"{name}.class", "text expected, as in 'module:ClassName'")
    if not isinstance(value.get("args", []), list):
        raise Fault(f"{name}.args", f"sequence expected, found {kind_of(value['args'])}")
    if "cause" in value:
        check_error(f"{name}.cause", value["cause"])
    if not isinstance(value.get("attributes", {}), dict):
        raise Fault(f"{name}.attributes", f"mapping expected, found {kind_of(value['attributes'])}")


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
        raise Fault(field, f"a count expected, found {value!r}")
    return value
