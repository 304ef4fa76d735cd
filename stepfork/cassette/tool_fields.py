"""A tool's document: its outcome, changed arguments, a generator's steps. Knows no other document."""

from __future__ import annotations

from typing import Final

from stepfork.cassette import change_fields, fields
from stepfork.cassette.fields import Fault
from stepfork.core.model import Plain

_CHANGES: Final = {
    "changed": "mapping",
    "kept": "mapping",
    "replaced": "sequence",
    "left": "mapping",
    "written": "mapping",
}
FIELDS: Final = {
    "args": "mapping",
    **_CHANGES,
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
    **_CHANGES,
}


def check(document: dict[str, Plain]) -> None:
    """Checks what the types of the fields do not say.

    Raises:
        Fault: naming the field.

    >>> check({"tool": "pages", "yields": [1], "steps": [{"step": 2, "sent": "more"}]})
    """
    args = document.get("args", {})
    assert isinstance(args, dict)
    if "yields" not in document:
        for field in ("steps", "closed"):
            if field in document:
                raise Fault(field, "only a generator, a call with 'yields', may say this")
        change_fields.check(document, args, "", ran=False, grown="changed" in document)
        return
    for field in _CHANGES:
        if field in document:
            raise Fault(field, "what a generator does to its arguments stands in its 'steps'")
    yields, steps = document["yields"], document.get("steps", [])
    assert isinstance(yields, list)
    assert isinstance(steps, list)
    last, grown = 0, False
    for at, step in enumerate(steps):
        field = f"steps[{at}]"
        last = _check_step(field, step, last, len(yields) + 1)
        assert isinstance(step, dict)
        grown = grown or "changed" in step
        change_fields.check(step, args, f"{field}.", ran=last > 1, grown=grown)


def _check_step(field: str, step: Plain, last: int, count: int) -> int:
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
    return number
