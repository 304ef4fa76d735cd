"""Recorded calls as users see them: a tree of Python values. Knows outcomes; knows no file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepfork.cassette import schema
from stepfork.cassette.fields import Fault
from stepfork.cassette.placed import look_at
from stepfork.cassette.stream import text_of
from stepfork.cassette.values import ClassPolicy
from stepfork.core.model import Call, Plain, Recorded
from stepfork.core.placeholder_texts import unescaped
from stepfork.errors import CassetteError


def _nowhere(fault: Fault, at: int) -> CassetteError:
    return CassetteError(fault.problem, field=fault.field)


def call_tree(
    recorded: list[Recorded],
    classes: ClassPolicy,
    located: Callable[[Fault, int], CassetteError] = _nowhere,
) -> tuple[Call, ...]:
    """Calls in file order, a parent before its children, as a tree.

    Raises:
        CassetteError: as `located` words it, for the call of that number (from 0) whose values are damaged.
    """
    children: list[list[Call]] = [[]]
    for at in range(len(recorded) - 1, -1, -1):
        item = recorded[at]
        while len(children) <= item.depth + 1:
            children.append([])
        inner = tuple(reversed(children[item.depth + 1]))
        children[item.depth + 1] = []
        try:
            children[item.depth].append(public_call(item, inner, classes))
        except Fault as fault:
            raise located(fault, at) from None
    return tuple(reversed(children[0]))


def public_call(recorded: Recorded, children: tuple[Call, ...], classes: ClassPolicy) -> Call:
    """The call as users see it: Python values, the JSON or text of an answer."""
    call, outcome = recorded.call, recorded.outcome
    result: Any = None
    for form in ("yields", "result", *schema.RESPONSE_FIELDS):
        if form in outcome:
            streamed = form == "stream"
            result = _text_of(outcome[form]) if streamed else look_at(form, outcome[form], classes)
            break
    error = look_at("error", outcome["error"], classes) if "error" in outcome else None
    asked = "args" if call.kind == "tool" else "request"
    return Call(call.kind, call.name, look_at(asked, call.args, classes), result, error, children)


def _text_of(streamed: Plain) -> str:
    return unescaped(text_of(streamed)) if isinstance(streamed, dict) else ""
