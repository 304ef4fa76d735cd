"""A tool's document: its outcome, changed arguments, a generator's steps. Knows no other document."""

from __future__ import annotations

from typing import Any, Final

from stepfork.cassette import fields
from stepfork.cassette.fields import Fault
from stepfork.core.model import Plain

FIELDS: Final = {
    "args": "mapping",
    "changed": "mapping",
    "kept": "mapping",
    "replaced": "sequence",
    "left": "mapping",
    "written": "mapping",
    "yields": "sequence",
    "steps": "sequence",
    "result": "any",
    "error": "mapping",
    "closed": "flag",
}
"""The fields of a tool's document and their types.

``changed`` has the arguments that the tool changed, as they were afterwards, ``kept`` the places inside them
where another of the caller's containers stood then (new place: old place), ``replaced`` those where a new one
took the caller's place. ``left`` says how much of an iterator or a stream it left unread, ``written`` what it
made of a buffer. A generator has ``yields``, ``steps`` (what its consumer gave to a step beside asking for
it, and what the step changed) and ``closed`` if it was closed before its end.
"""

_STEP: Final = {
    "step": "number",
    "sent": "any",
    "thrown": "mapping",
    "changed": "mapping",
    "kept": "mapping",
    "replaced": "sequence",
    "left": "mapping",
    "written": "mapping",
}


def check(document: dict[str, Plain]) -> None:
    """Checks what the types of the fields do not say.

    Raises:
        Fault: naming the field.

    >>> check({"tool": "pages", "yields": [1], "steps": [{"step": 2, "sent": "more"}]})
    """
    args = document.get("args", {})
    assert isinstance(args, dict)
    _check_changes(document, args, "")
    if "yields" not in document:
        for field in ("steps", "closed"):
            if field in document:
                raise Fault(field, "only a generator, a call with 'yields', may say this")
        return
    yields, steps = document["yields"], document.get("steps", [])
    assert isinstance(yields, list)
    assert isinstance(steps, list)
    last = 0
    for at, step in enumerate(steps):
        last = _check_step(f"steps[{at}]", step, last, len(yields) + 1, args)


def _check_step(field: str, step: Plain, last: int, count: int, args: dict[str, Plain]) -> int:
    if not isinstance(step, dict):
        raise Fault(field, f"mapping expected, found {fields.kind_of(step)}")
    fields.check(step, _STEP, required=("step",), above=f"{field}.")
    number = step["step"]
    assert isinstance(number, int)
    if not last < number <= count:
        raise Fault(
            f"{field}.step", f"a number from {last + 1} to {count} expected, found {fields.shown(number)}"
        )
    if "sent" in step and "thrown" in step:
        raise Fault(f"{field}.thrown", "a step begins with a value or with an error, not with both")
    if number == 1 and ("sent" in step or "thrown" in step):
        raise Fault(f"{field}.step", "nothing can be given to a generator before its first step")
    if "thrown" in step:
        fields.check_error(f"{field}.thrown", step["thrown"])
    _check_changes(step, args, f"{field}.")
    return number


def _check_changes(document: dict[str, Plain], args: dict[str, Plain], above: str) -> None:
    for name, _ in _mapping(document, "changed"):
        _check_argument(f"{above}changed.{name}", name, args)
    lefts = document.get("left", {})
    assert isinstance(lefts, dict)
    for name, left in lefts.items():
        _check_argument(f"{above}left.{name}", name, args)
        if left != "closed" and (type(left) is not int or left < 0):
            raise Fault(f"{above}left.{name}", f"a count or 'closed' expected, found {fields.shown(left)}")
    for name, _ in _mapping(document, "written"):
        _check_argument(f"{above}written.{name}", name, args)
        if name not in lefts:
            raise Fault(f"{above}left.{name}", "missing; it says where in what is written the tool stood")
    replaced: Any = document.get("replaced", [])
    fields.texts(f"{above}replaced", replaced)
    for name, origin in _mapping(document, "kept"):
        if not isinstance(origin, str):
            raise Fault(f"{above}kept.{name}", f"text expected, found {fields.kind_of(origin)}; add quotes")
    for field in ("kept", "replaced"):
        if field in document and "changed" not in document:
            raise Fault(f"{above}{field}", "only what has 'changed' may say this")


def _check_argument(field: str, name: str, args: dict[str, Plain]) -> None:
    if name.partition("[")[0] not in args:
        raise Fault(field, f"{name!r} is no argument of this call")


def _mapping(document: dict[str, Plain], field: str) -> list[tuple[str, Plain]]:
    value = document.get(field, {})
    assert isinstance(value, dict)
    return list(value.items())
