"""Documents <-> calls. Knows the name, type and place of every field of a call; knows no file and no YAML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from stepfork.cassette import (
    emitter,
    fields,
    json_style,
    message_contents,
    question,
    shared,
    stream,
    tool_fields,
)
from stepfork.cassette.extension import Extension
from stepfork.cassette.fields import Fault
from stepfork.core.lanes import Mark
from stepfork.core.model import Incoming, Plain, Recorded

RESPONSE_FIELDS: Final = ("response", "text", "body", "stream")
"""The forms an LLM call's answer can take: JSON, other text, bytes, an event stream."""

STREAM_ERRORS: Final = frozenset(
    ("CloseError", "ConnectError", "ConnectTimeout", "DecodingError", "LocalProtocolError", "NetworkError")
    + ("PoolTimeout", "ProtocolError", "ProxyError", "ReadError", "ReadTimeout", "RemoteProtocolError")
    + ("RequestError", "TimeoutException", "TooManyRedirects", "TransportError", "UnsupportedProtocol")
    + ("WriteError", "WriteTimeout")
)
"""The errors of the HTTP library, which break a stream and stand with a bare name."""

_TOOL: Final = tool_fields.FIELDS
_LLM: Final = {
    "method": "text",
    "path": "text",
    "query": "any",
    "content_type": "text",
    "attempts": "sequence",
    **question.FIELDS,
    "response": "any",
    "text": "text",
    "body": "any",
    "stream": "mapping",
    "json": "text",
    "status": "number",
    "headers": "mapping",
    "error": "mapping",
}
_SAYS: Final = {message_contents.FIELD: "flag"}
_STREAM_ENDS: Final = {"broken": "mapping", "closed": "flag", "cancelled": "flag"}
_TARGET: Final = ("method", "path", "query", "content_type")
_COMMON: Final = {
    "depth": "number",
    "lane": "text",
    "started": "any",
    "after": "sequence",
    "start": "number",
    "parent": "number",
    "line": "number",
    "lines": "sequence",
    "unfinished": "flag",
    "cancelled": "flag",
    "late": "flag",
    shared.FIELD: "mapping",
}
_ENDS: Final = ("cancelled", "late")


@dataclass(frozen=True, slots=True)
class Started:
    """A line of control as a recording in progress has it: its number, its starter's (None: the main line
    of its scope, -1: nobody), where it was started, and which lines had ended by then."""

    line: int
    starter: int | None
    calls: int
    forks: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stood while it was recorded: its number by start, its parent's, the line that made it.

    `lines` are the lines that no call before it has told of.
    """

    start: int
    parent: int | None = None
    line: int | None = None
    lines: tuple[Started, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """What a document says: a call, its place if it was written while recording, and what its request
    changes of an earlier one. Where it does, the call's `args` are not known from the document alone."""

    recorded: Recorded
    place: Place | None = None
    extension: Extension | None = None


def place_fields(place: Place) -> dict[str, Plain]:
    """The fields that stand before all others while a file grows, where its order does not say it all.

    >>> place_fields(Place(3, parent=1))
    {'start': 3, 'parent': 1}
    """
    document: dict[str, Plain] = {"start": place.start}
    if place.parent is not None:
        document["parent"] = place.parent
    if place.line is not None:
        document["line"] = place.line
    if place.lines:
        document["lines"] = [
            [line.line, line.starter, line.calls, line.forks, list(line.after)] for line in place.lines
        ]
    return document


def call_document(recorded: Recorded, extension: Extension | None = None) -> dict[str, Plain]:
    """The document of a call; `extension` stands in place of the request.

    >>> call_document(Recorded(Incoming("tool", "search", {"q": "go"}), {"result": 1}))
    {'tool': 'search', 'args': {'q': 'go'}, 'result': 1}
    """
    document: dict[str, Plain] = {}
    if recorded.depth:
        document["depth"] = recorded.depth
    call = recorded.call
    document[call.kind] = call.name
    if recorded.mark is not None:
        _write_mark(document, recorded.mark)
    if call.kind == "tool":
        if call.args:
            document["args"] = call.args
    else:
        document.update(call.target)
        document.update(question.told(call.args, extension))
    document.update(recorded.outcome)
    if recorded.unfinished:
        document["unfinished"] = True
    return message_contents.marked(document) if call.kind == "llm" else document


def restored(document: Document, restore: Callable[[Plain], Plain]) -> Document:
    """The same with `restore` applied to all that its call asks and answers."""
    recorded, extension = document.recorded, document.extension
    args: Any = restore(recorded.call.args)
    outcome: Any = restore(recorded.outcome)
    if args is not recorded.call.args or outcome is not recorded.outcome:
        recorded = replace(recorded, call=replace(recorded.call, args=args), outcome=outcome)
    if extension is not None:
        told: Any = restore([list(extension.remove), extension.changed, dict(extension.append)])
        extension = Extension(extension.back, *told)
    return replace(document, recorded=recorded, extension=extension)


def read_call(document: dict[str, Plain]) -> Document:
    """What the document of a call says.

    Raises:
        Fault: naming the field.

    >>> read_call({"tool": "search", "result": 1}).recorded.call.name
    'search'
    """
    kinds = [kind for kind in ("llm", "tool", "http") if kind in document]
    if len(kinds) != 1:
        raise Fault("", "a call must have exactly one of the fields 'llm', 'tool' and 'http'")
    kind = kinds[0]
    if kind == "http":
        raise Fault("http", "calls of this kind are not supported by this version of stepfork")
    known = (_TOOL if kind == "tool" else _LLM | _SAYS) | _COMMON | {kind: "text"}
    fields.check(document, known, required=())
    if kind == "llm":
        message_contents.check(document)
        _check_answer(document)
    else:
        tool_fields.check(document)
    outcome_names = (
        _TOOL.keys() - {"args"} if kind == "tool" else _LLM.keys() - question.FIELDS.keys() - set(_TARGET)
    )
    outcome = {key: value for key, value in document.items() if key in outcome_names or key in _ENDS}
    unfinished = bool(document.get("unfinished", False))
    _check_outcome(kind, outcome, unfinished)
    if "error" in outcome:
        fields.check_error("error", outcome["error"])
    target: dict[str, Plain] = {key: document[key] for key in _TARGET if key in document}
    extension = question.read_extension(document)
    args = document.get("args", {}) if kind == "tool" else document.get("request")
    call = Incoming(kind, str(document[kind]), args, target)
    depth = fields.count("depth", document.get("depth", 0))
    place = None
    if "start" in document:
        parent = document.get("parent")
        place = Place(
            fields.count("start", document["start"]),
            None if parent is None else fields.count("parent", parent),
            None if "line" not in document else fields.count("line", document["line"]),
            _read_lines(document.get("lines", [])),
        )
    return Document(Recorded(call, outcome, depth, unfinished, _read_mark(document)), place, extension)


def _check_outcome(kind: str, outcome: dict[str, Plain], unfinished: bool) -> None:
    """A call ends in one way. A generator may return nothing, and raise while it is closed."""
    ways = [key for key in ("result", "error", "cancelled", *RESPONSE_FIELDS) if key in outcome]
    if unfinished:
        if ways or "yields" in outcome:
            raise Fault("", "an unfinished call must have no outcome")
        return
    if "yields" not in outcome and len(ways) != 1:
        raise Fault("", f"a call must have exactly one outcome, found {', '.join(ways) or 'none'}")
    if "yields" in outcome and (len(ways) > 1 or ("closed" in outcome and ways not in ([], ["error"]))):
        raise Fault("", f"a generator ends in one way, found {', '.join([*ways, 'closed'][:2])}")


def marked(text: str, call: Incoming, mark: Mark | None) -> str:
    """A call's document as text, with its mark where `call_document` would have put it."""
    if mark is None:
        return text
    fields: dict[str, Plain] = {}
    _write_mark(fields, mark)
    first = emitter.emit_document({call.kind: call.name})
    before, found, behind = text.partition(first)
    assert found, "every document has its kind and name as a whole"
    return before + first + emitter.emit_document(fields) + behind


def _write_mark(document: dict[str, Plain], mark: Mark) -> None:
    document["lane"] = mark.lane
    if mark.started:
        document["started"] = mark.started[0] if len(mark.started) == 1 else list(mark.started)
    if mark.after:
        document["after"] = list(mark.after)


def _read_mark(document: dict[str, Plain]) -> Mark | None:
    if "lane" not in document:
        for field in ("started", "after"):
            if field in document:
                raise Fault(field, "only a call with a 'lane' may say this")
        return None
    started, after = document.get("started", []), document.get("after", [])
    numbers = started if isinstance(started, list) else [started]
    if not numbers and "started" in document:
        raise Fault("started", "a number from 1 expected, or a list of them")
    for number in numbers:
        if type(number) is not int or number < 1:
            raise Fault("started", "a number from 1 expected, or a list of them")
    assert isinstance(after, list)
    for name in after:
        if not isinstance(name, str):
            raise Fault("after", f"names of lanes expected, found {fields.kind_of(name)}; add quotes")
    return Mark(str(document["lane"]), tuple(numbers), tuple(after))  # type: ignore[arg-type]


def _read_lines(rows: Plain) -> tuple[Started, ...]:
    assert isinstance(rows, list)
    found = []
    for row in rows:
        after = row[4] if isinstance(row, list) and len(row) == 5 else None
        numbers: list[Any] = [*row[:4], *after] if isinstance(row, list) and isinstance(after, list) else []
        starter = numbers[1] if numbers else None
        if not numbers or any(type(it) is not int for it in numbers[:1] + numbers[2:]):
            raise Fault("lines", "each line is five fields: number, starter, calls, lines, [ended lines]")
        if starter is not None and type(starter) is not int:
            raise Fault("lines", "the starter of a line is the number of another, or null")
        found.append(Started(numbers[0], starter, numbers[2], numbers[3], tuple(numbers[4:])))
    return tuple(found)


def _check_answer(document: dict[str, Plain]) -> None:
    style = document.get("json", json_style.DEFAULT)
    if style not in json_style.STYLES:
        raise Fault(
            "json", f"unknown style {fields.shown(style)}; the styles are {', '.join(json_style.STYLES)}"
        )
    headers = document.get("headers", {})
    assert isinstance(headers, dict)
    fields.text_mapping("headers", headers)
    streamed = document.get("stream")
    if isinstance(streamed, dict):
        _check_stream(streamed)


def _check_stream(streamed: dict[str, Plain]) -> None:
    ends = {key: value for key, value in streamed.items() if key in _STREAM_ENDS}
    fields.check(ends, _STREAM_ENDS, required=(), above="stream.")
    if "broken" in ends:
        fields.check_error("stream.broken", ends["broken"], STREAM_ERRORS)
    try:
        stream.check(streamed)
    except stream.Misfit as problem:
        raise Fault(f"stream.{problem.field}", problem.problem) from None
