"""What a stream says, as it stands in a cassette, by the names the wire uses. Knows no events.

``text``, ``reasoning`` and ``refusal`` are texts (lists of them, where there are several), ``tool_calls`` a
list of mappings with ``id``, ``name`` and ``arguments``; with several ``choices``, a list of all that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from stepfork.cassette import json_style
from stepfork.cassette.stream.said import CALL_KINDS, TEXT_KINDS
from stepfork.cassette.stream.spelling import Misfit
from stepfork.core.model import Plain

SAID: Final = (*TEXT_KINDS, "tool_calls", "choices")
"""The fields of a stream that say something."""

BESIDE: Final = ("wire", "broken", "closed", "cancelled")
"""The fields of a stream that are told by others."""

_NUMBER: Final = re.compile(r"\.([0-9]+)")


def leaves(stream: dict[str, Plain], arguments: str = json_style.DEFAULT) -> dict[str, str]:
    """Every text that is said, by its name in the wire; arguments as JSON in the given style.

    Raises:
        Misfit: naming the field, for an unknown one or one of the wrong type.

    >>> leaves({"text": "Hi", "tool_calls": [{"name": "search", "arguments": {"q": "go"}}]})
    {'text': 'Hi', 'tool_calls.0.name': 'search', 'tool_calls.0.arguments': '{"q":"go"}'}
    """
    beside = {key: value for key, value in stream.items() if key not in BESIDE}
    choices = beside.pop("choices", None)
    if choices is None:
        return dict(_leaves(beside, "", arguments))
    if beside:
        raise Misfit(next(iter(beside)), "a stream with 'choices' says everything there")
    found: dict[str, str] = {}
    for at, choice in enumerate(_listed(choices, "choices")):
        if not isinstance(choice, dict):
            raise Misfit(f"choices[{at}]", "a mapping expected")
        found.update(_leaves(choice, f"choices.{at}.", arguments))
    return found


def field_of(name: str) -> str:
    """A name in the wire as a field of the document.

    >>> field_of("tool_calls.0.name")
    'tool_calls[0].name'
    """
    return _NUMBER.sub(r"[\1]", name)


def _leaves(said: dict[str, Any], prefix: str, arguments: str) -> Iterator[tuple[str, str]]:
    for key, value in said.items():
        name = prefix + key
        if key in TEXT_KINDS:
            if isinstance(value, list):
                for at, text in enumerate(value):
                    yield f"{name}.{at}", _text(text, f"{name}.{at}")
            else:
                yield name, _text(value, name)
        elif key == "tool_calls":
            for at, call in enumerate(_listed(value, name)):
                if not isinstance(call, dict):
                    raise Misfit(field_of(f"{name}.{at}"), "a mapping expected")
                for kind, told in call.items():
                    where = f"{name}.{at}.{kind}"
                    if kind not in CALL_KINDS:
                        raise Misfit(field_of(where), f"unknown field; known here: {', '.join(CALL_KINDS)}")
                    if kind == "arguments" and isinstance(told, dict):
                        yield where, _written(told, arguments, where)
                    else:
                        yield where, _text(told, where)
        else:
            raise Misfit(field_of(name), f"unknown field; known here: {', '.join((*SAID, *BESIDE))}")


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit(field_of(name), "a sequence expected")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        hint = "; add quotes" if isinstance(value, bool | int | float) else ""
        raise Misfit(field_of(name), f"text expected{hint}")
    return value


def _written(value: Any, style: str, name: str) -> str:
    try:
        return json_style.write(value, style)
    except (TypeError, ValueError, RecursionError):
        raise Misfit(field_of(name), "what JSON has expected") from None
