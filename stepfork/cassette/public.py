"""Recorded calls as users see them: a tree of Python values. Knows outcomes; knows no file."""

from __future__ import annotations

from typing import Any

from stepfork.cassette import schema
from stepfork.cassette.stream import text_of
from stepfork.cassette.values import ClassPolicy
from stepfork.cassette.values import look as as_it_stands
from stepfork.core.model import Call, Plain, Recorded
from stepfork.core.renaming import unescaped, unescaped_value


def call_tree(recorded: list[Recorded], classes: ClassPolicy) -> tuple[Call, ...]:
    """Calls in file order, a parent before its children, as a tree."""
    children: list[list[Call]] = [[]]
    for item in reversed(recorded):
        while len(children) <= item.depth + 1:
            children.append([])
        inner = tuple(reversed(children[item.depth + 1]))
        children[item.depth + 1] = []
        children[item.depth].append(public_call(item, inner, classes))
    return tuple(reversed(children[0]))


def public_call(recorded: Recorded, children: tuple[Call, ...], classes: ClassPolicy) -> Call:
    """The call as users see it: Python values, the JSON or text of an answer."""
    call, outcome = recorded.call, recorded.outcome
    result: Any = None
    if "yields" in outcome:
        result = look(outcome["yields"], classes)
    elif "result" in outcome:
        result = look(outcome["result"], classes)
    else:
        for form in schema.RESPONSE_FIELDS:
            if form in outcome:
                result = _text_of(outcome[form]) if form == "stream" else look(outcome[form], classes)
    error = look(outcome["error"], classes) if "error" in outcome else None
    return Call(call.kind, call.name, look(call.args, classes), result, error, children)


def look(value: Plain, classes: ClassPolicy) -> Any:
    """A value of a file as users see it: what only looked like a placeholder is itself again."""
    return as_it_stands(unescaped_value(value), classes)


def _text_of(streamed: Plain) -> str:
    return unescaped(text_of(streamed)) if isinstance(streamed, dict) else ""
