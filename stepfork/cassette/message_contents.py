"""What the messages of an LLM call say, where that is no text. Knows those fields of its document; no file.

An edit by hand that loses the quotes of a text turns it into a number or a truth value, so that is a fault.
What was really sent or answered that way stands with a field that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stepfork.cassette import fields
from stepfork.cassette.fields import Fault
from stepfork.core.model import Plain

FIELD: Final = "odd_contents"
"""The field that says that the contents of messages are no texts and are meant so."""


def marked(document: dict[str, Plain]) -> dict[str, Plain]:
    """The document with the field if it has to have it, and without if not.

    >>> marked({"llm": "x", "request": {"messages": [{"content": 42}]}, "response": 1})["odd_contents"]
    True
    >>> marked({"llm": "x", "odd_contents": True, "response": 1})
    {'llm': 'x', 'response': 1}
    """
    if next(_odd(document), None) is not None:
        return {**document, FIELD: True}
    return {key: value for key, value in document.items() if key != FIELD}


def check(document: dict[str, Plain]) -> None:
    """Checks that what its messages say is text, parts or nothing, or that it says that it is not.

    Raises:
        Fault: naming the field.
    """
    if document.get(FIELD):
        return
    for field, content in _odd(document):
        raise Fault(field, f"text expected, found {fields.kind_of(content)}; add quotes")


def _odd(document: dict[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Where a message's content is no text, and what it is."""
    for field, message in _messages(document):
        if isinstance(message, dict) and isinstance(message.get("content"), bool | int | float):
            yield f"{field}.content", message["content"]


def _messages(document: dict[str, Plain]) -> Iterator[tuple[str, Any]]:
    for key in ("request", "append"):
        told = document.get(key)
        if isinstance(told, dict) and isinstance(messages := told.get("messages"), list):
            yield from ((f"{key}.messages[{at}]", message) for at, message in enumerate(messages))
    response = document.get("response")
    if isinstance(response, dict) and isinstance(choices := response.get("choices"), list):
        for at, choice in enumerate(choices):
            if isinstance(choice, dict):
                yield f"response.choices[{at}].message", choice.get("message")
