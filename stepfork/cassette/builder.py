"""YAML events as plain values. Knows what a document may hold; knows no files and no line but its own.

It walks PyYAML's events with a stack of its own, so depth costs no recursion, an alias is refused before
it is followed, and the place of a fault is known without being kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from stepfork.cassette.emitter import TAGGED
from stepfork.cassette.scalars import MAX_DEPTH, SURROGATES, Ambiguous, read_plain, unescape_surrogates
from stepfork.core.model import Plain, Tagged

_DEPTH: Final = MAX_DEPTH + 10  # a little deeper than is written, whose last levels may stand on one line
_NOT_ONE: Final = "more than one document; what separates documents is a line that is exactly '---'"
_MERGE_KEY: Final = "merge keys ('<<') are not read: write the fields out"


class Fault(Exception):
    """What is wrong with a document.

    Attributes:
        problem: what is wrong.
        line: line in the document's text, from 0.
        field: where in it, as in ``request.messages[0].content``.
    """

    def __init__(self, problem: str, line: int, field: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.field = field


class _Problem(Exception):
    """What is wrong with the event at hand."""


def join(path: str, step: str | int) -> str:
    """The path of a field or item below another one.

    >>> join(join("request.messages", 0), "content")
    'request.messages[0].content'
    """
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{_shown(step)}" if path else _shown(step)


def build(next_event: Callable[[], Any], known_tags: frozenset[str]) -> dict[str, Plain]:
    """The mapping that the events of one document make.

    Args:
        next_event: gives PyYAML's events one by one, from the start of the stream.
        known_tags: the tags, without ``!``, that become `Tagged` values.

    Raises:
        Fault: if they make none.
    """
    stack: list[
        tuple[Any, str | None, str | None]
    ] = []  # what encloses `container`: itself, its key, its tag
    container: Any = None
    key: str | None = None  # the field of `container` whose value comes next
    tag: str | None = None
    event: Any = None
    try:
        event = _first(next_event)
        tag = _tag(event, known_tags)
        if tag is not None:
            raise _Problem("a document carries no tag")
        container = {}
        while True:
            event = next_event()
            kind = type(event)
            value: Any
            if kind is ScalarEvent:
                value = event.value
                if event.tag is not None or event.anchor is not None:
                    value = _tagged_scalar(event, known_tags)
                elif not event.style:
                    value = read_plain(value)
                if key is None and type(container) is dict:
                    if type(value) is not str:
                        raise _key_problem(event.value)
                    key = value
                    if value in container:
                        raise _Problem(f"duplicate key '{_shown(value)}'")
                    continue
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                if key is None and type(container) is dict:
                    raise _Problem("a key must be text")
                if len(stack) >= _DEPTH:
                    raise _Problem(f"nested deeper than {MAX_DEPTH} levels")
                stack.append((container, key, tag))
                tag = None  # not yet that of the new one, should it be refused
                tag = _tag(event, known_tags)
                container, key = {} if kind is MappingStartEvent else [], None
                continue
            elif kind is AliasEvent:
                raise _Problem(f"aliases ('*{_shown(event.anchor)}') are not read: write the value out")
            elif not stack:
                break
            else:
                value = container if tag is None else _tagged_collection(tag, container, known_tags)
                container, key, tag = stack.pop()
            if key is None:
                container.append(value)
            else:
                container[key] = value
                key = None
        _last(next_event)
        return container  # type: ignore[no-any-return]
    except Ambiguous:
        problem = str(_key_problem(event.value)) if _at_key(container, key) else _value_problem(event.value)
    except _Problem as found:
        problem = str(found)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 0 if mark is None else mark.line
        raise Fault(_syntax_problem(error, line), line, _path(stack, container, key)) from None
    raise Fault(problem, event.start_mark.line, _path(stack, container, key)) from None


def _first(next_event: Callable[[], Any]) -> Any:
    """The event that opens the document's mapping."""
    event = next_event()
    while type(event) in (StreamStartEvent, DocumentStartEvent):
        event = next_event()
    if type(event) is StreamEndEvent or (type(event) is ScalarEvent and not event.value and not event.style):
        raise Fault("the document is empty", 0)
    if type(event) is not MappingStartEvent:
        raise Fault("a document must be a mapping (fields with values)", event.start_mark.line)
    return event


def _last(next_event: Callable[[], Any]) -> None:
    event = next_event()
    if type(event) is DocumentEndEvent:
        event = next_event()
    if type(event) is not StreamEndEvent:
        raise Fault(_NOT_ONE, event.start_mark.line)


def _tag(event: Any, known_tags: frozenset[str]) -> str | None:
    """The known tag an event carries, without its mark."""
    if event.anchor is not None:
        raise _Problem(
            f"anchors ('&{_shown(event.anchor)}') are not read: write the value out where it belongs"
        )
    tag: str | None = event.tag
    if tag is None:
        return None
    name = tag[1:]
    if tag[:1] == "!" and (name in known_tags or name in (TAGGED, SURROGATES)):
        return name
    shown = tag.replace("tag:yaml.org,2002:", "!!", 1)
    raise _Problem(f"unknown tag '{_shown(shown)}'")


def _tagged_scalar(event: Any, known_tags: frozenset[str]) -> Any:
    tag = _tag(event, known_tags)
    value = event.value if event.style else read_plain(event.value)
    if tag == SURROGATES:
        if type(value) is not str:
            raise _Problem(f"what stands under '!{SURROGATES}' must be text")
        try:
            return unescape_surrogates(value)
        except ValueError as error:
            raise _Problem(f"under '!{SURROGATES}' {error}") from None
    if tag == TAGGED:
        raise _Problem(f"what stands under '!{TAGGED}' must be a mapping of one known tag")
    return value if tag is None else Tagged(tag, value)


def _tagged_collection(tag: str, value: Any, known_tags: frozenset[str]) -> Tagged:
    if tag == SURROGATES:
        raise _Problem(f"what stands under '!{SURROGATES}' must be text")
    if tag != TAGGED:
        return Tagged(tag, value)
    if type(value) is dict and len(value) == 1:
        ((inner, content),) = value.items()
        if inner in known_tags:
            return Tagged(inner, content)
    raise _Problem(f"what stands under '!{TAGGED}' must be a mapping of one known tag")


# -- wording ----------------------------------------------------------------------------------------


def _at_key(container: Any, key: str | None) -> bool:
    return key is None and type(container) is dict


def _key_problem(text: str) -> _Problem:
    if text == "<<":
        return _Problem(_MERGE_KEY)
    if not text:
        return _Problem("a key is missing")
    return _Problem(f"the unquoted key '{_shown(text)}' is not read as text by every reader: add quotes")


def _value_problem(text: str) -> str:
    if not text:
        return "text expected: add quotes, or write null"
    return f"ambiguous unquoted value '{_shown(text)}': add quotes if it is text"


def _syntax_problem(error: yaml.MarkedYAMLError, line: int) -> str:
    problem = f"not valid YAML: {error.problem or error.context}"
    start = error.context_mark
    if error.context and start is not None and start.line < line:
        problem += f" {error.context} that starts {line - start.line} lines above"
    return problem


def _path(stack: list[tuple[Any, str | None, str | None]], container: Any, key: str | None) -> str:
    path = ""
    for outer, step, _ in [*stack, (container, key, None)]:
        if type(outer) is list:
            path = join(path, len(outer))
        elif step is not None:
            path = join(path, step)
    return path


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
