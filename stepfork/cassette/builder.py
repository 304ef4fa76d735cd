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
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from stepfork.cassette import moments
from stepfork.cassette.emitter import OWN_TAGS, TAGGED
from stepfork.cassette.floats import CODES, unpack
from stepfork.cassette.scalars import MAX_DEPTH, SURROGATES, Ambiguous, read_plain, unescape_surrogates
from stepfork.core.model import Plain, Tagged

_DEPTH: Final = MAX_DEPTH + 10  # a little deeper than is written, whose last levels may stand on one line
_TOO_DEEP: Final = f"nested deeper than {_DEPTH} levels"
_NOT_ONE: Final = "more than one document; what separates documents is a line that is exactly '---'"
_NO_KEY: Final = "a key must be text"
_NO_TEXT: Final = "what stands under '!{}' must be text"
_NO_WRAP: Final = f"what stands under '!{TAGGED}' must be a mapping of one known tag"
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
        if _tag(event, known_tags) is not None:
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
                        raise _key_problem(event.value) if event.tag is None else _Problem(_NO_KEY)
                    key = value
                    if value in container:
                        raise _Problem(f"duplicate key '{_shown(value)}'")
                    continue
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                if key is None and type(container) is dict:
                    raise _Problem(_NO_KEY)
                if len(stack) >= _DEPTH:
                    raise _Problem(_TOO_DEEP)
                inner = _collection_tag(event, known_tags)
                stack.append((container, key, tag))
                container, key, tag = {} if kind is MappingStartEvent else [], None, inner
                continue
            elif kind is AliasEvent:
                raise _Problem(f"aliases ('*{_shown(event.anchor)}') are not read: write the value out")
            elif not stack:
                break
            else:
                value, inner = container, tag
                container, key, tag = stack.pop()
                if inner is not None:
                    value = _of_tag(inner, value) if inner != TAGGED else _unwrapped(value, known_tags)
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


def find_line(next_event: Callable[[], Any], field: str) -> int:
    """The line, from 0, of a field or of the nearest thing that encloses it."""
    best = 0
    stack: list[list[Any]] = []  # path (None off the way), next step, line of the key
    event: Any
    while type(event := next_event()) is not StreamEndEvent:
        here = event.start_mark.line
        if isinstance(event, CollectionEndEvent):
            stack.pop()
        if not isinstance(event, NodeEvent):
            continue
        path: str | None = None if stack else ""
        if stack:
            outer, step, line = stack[-1]
            if step is None:
                stack[-1][1:] = getattr(event, "value", ""), here
            else:
                stack[-1][1] = step + 1 if isinstance(step, int) else None
                below = None if outer is None else join(outer, step)
                if below is not None and (field == below or field.startswith((f"{below}.", f"{below}["))):
                    path, best = below, here if isinstance(step, int) else line
        if isinstance(event, CollectionStartEvent):
            stack.append([path, 0 if type(event) is SequenceStartEvent else None, 0])
    return best


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
    try:
        event = next_event()
        if type(event) is DocumentEndEvent:
            event = next_event()
    except yaml.MarkedYAMLError as error:
        raise Fault(_NOT_ONE, error.problem_mark.line if error.problem_mark else 0) from None
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
    if tag[:1] == "!" and (name in known_tags or name in OWN_TAGS):
        return name
    shown = tag.replace("tag:yaml.org,2002:", "!!", 1)
    raise _Problem(f"unknown tag '{_shown(shown)}'")


def _tagged_scalar(event: Any, known_tags: frozenset[str]) -> Any:
    tag = _tag(event, known_tags)
    value = event.value if event.style else read_plain(event.value)
    if tag == SURROGATES or tag in CODES:
        assert tag is not None
        if type(value) is not str:
            raise _Problem(_NO_TEXT.format(tag))
        try:
            return unescape_surrogates(value) if tag == SURROGATES else unpack(tag, value)
        except ValueError as error:
            raise _Problem(f"under '!{tag}' {error}") from None
    if tag == TAGGED:
        raise _Problem(_NO_WRAP)
    return value if tag is None else Tagged(tag, value)


def _collection_tag(event: Any, known_tags: frozenset[str]) -> str | None:
    tag = _tag(event, known_tags)
    if tag == SURROGATES or tag in CODES:
        raise _Problem(_NO_TEXT.format(tag))
    if tag == TAGGED and type(event) is not MappingStartEvent:
        raise _Problem(_NO_WRAP)
    return tag


def _unwrapped(value: dict[str, Any], known_tags: frozenset[str]) -> Tagged:
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag in known_tags:
            return _of_tag(tag, content)
    raise _Problem(_NO_WRAP)


def _of_tag(tag: str, content: Any) -> Tagged:
    return Tagged(tag, moments.spelled(content) if tag in moments.TAGS else content)


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
    if "nesting depth" in (error.problem or ""):  # libyaml's own limit, met while it looks ahead
        return _TOO_DEEP
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
