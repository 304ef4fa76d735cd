"""How a document tells what a call asked: in full, or by an earlier call. Knows those fields; no file."""

from __future__ import annotations

from typing import Final

from stepfork.cassette import fields
from stepfork.cassette.extension import Extension
from stepfork.cassette.fields import Fault
from stepfork.core.model import Plain

FIELDS: Final = {"extends": "number", "remove": "sequence", "request": "any", "append": "mapping"}


def told(asked: Plain, extension: Extension | None) -> dict[str, Plain]:
    """The fields that tell a question.

    >>> told({"model": "m"}, None), told(None, Extension(1, append={"messages": [1]}))
    ({'request': {'model': 'm'}}, {'extends': 1, 'append': {'messages': [1]}})
    """
    if extension is None:
        return {} if asked is None else {"request": asked}
    document: dict[str, Plain] = {"extends": extension.back}
    if extension.remove:
        document["remove"] = list(extension.remove)
    if extension.changed:
        document["request"] = extension.changed
    if extension.append:
        document["append"] = dict(extension.append)
    return document


def retold(document: dict[str, Plain], asked: Plain, extension: Extension | None) -> dict[str, Plain]:
    """A document whose question is told in another way.

    >>> retold({"llm": "x", "extends": 1, "response": 1}, {"model": "m"}, None)
    {'llm': 'x', 'request': {'model': 'm'}, 'response': 1}
    """
    result: dict[str, Plain] = {}
    for key, value in document.items():
        if key in FIELDS:
            result.update(told(asked, extension))
        else:
            result[key] = value
    return result


def read_extension(document: dict[str, Plain]) -> Extension | None:
    """What the question of a document, whose fields were checked, changes of an earlier one.

    Raises:
        Fault: naming the field.
    """
    if "extends" not in document:
        for field in ("remove", "append"):
            if field in document:
                raise Fault(field, "only a call that 'extends' another may say this")
        return None
    back = document["extends"]
    if type(back) is not int or back < 1:
        raise Fault("extends", "how many LLM calls before this one: a number from 1")
    changed = document.get("request", {})
    if not isinstance(changed, dict):
        raise Fault("request", f"mapping expected, found {fields.kind_of(changed)}")
    append: dict[str, list[Plain]] = {}
    for path, tail in document.get("append", {}).items():  # type: ignore[union-attr]
        if not isinstance(tail, list):
            raise Fault(f"append.{path}", f"sequence expected, found {fields.kind_of(tail)}")
        append[path] = tail
    return Extension(back, fields.texts("remove", document.get("remove", [])), changed, append)
