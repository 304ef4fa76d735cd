"""Documents <-> header, calls and end. Knows every field's name, type and place; knows no file and no YAML.

Faults are raised as `Fault` (field and problem); whoever knows the file and the line turns it into a
`CassetteError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from stepfork.cassette import json_style
from stepfork.core.model import Incoming, Plain, Recorded

FORMAT_VERSION: Final = 1

RESPONSE_FIELDS: Final = ("response", "text", "body", "stream")
"""The forms an LLM call's answer can take: JSON, other text, bytes, an event stream."""

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "text": (str,),
    "mapping": (dict,),
    "sequence": (list,),
    "number": (int,),
    "flag": (bool,),
    "text or mapping": (str, dict),
    "mapping or sequence": (dict, list),
    "any": (object,),
}
_HEADER: Final = {
    "stepfork": "number",
    "name": "text",
    "entrypoint": "text",
    "tools": "sequence",
    "args": "mapping or sequence",
    "env": "mapping",
    "recorded_at": "text",
}
_TOOL: Final = {"args": "mapping", "result": "any", "error": "mapping"}
_LLM: Final = {
    "method": "text",
    "path": "text",
    "query": "any",
    "request": "any",
    "response": "any",
    "text": "text",
    "body": "any",
    "stream": "mapping",
    "json": "text",
    "status": "number",
    "headers": "mapping",
    "error": "mapping",
}
_STREAM: Final = {"raw": "any", "broken": "mapping", "closed": "flag"}
_COMMON: Final = {
    "depth": "number",
    "start": "number",
    "parent": "number",
    "unfinished": "flag",
    "cancelled": "flag",
}
_END: Final = {"end": "text", "test": "text", "output": "any", "error": "mapping", "sha256": "text"}


class Fault(ValueError):
    """A document that does not fit: `field` is the dotted place in it, `problem` one clear clause."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)


class UnknownVersion(Fault):
    """A cassette of another format version."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first document: what was recorded, how to run it again and when it was recorded."""

    name: str
    entrypoint: str | None = None
    tools: tuple[str, ...] = ()
    args: Any = None
    env: Mapping[str, str] = field(default_factory=dict)
    recorded_at: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last document: how the run ended. `test` is ``"failed"`` for a test that failed all the same."""

    status: Literal["completed", "failed"]
    test: str | None = None
    output: Plain = None
    has_output: bool = False
    error: dict[str, Plain] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stood while it was recorded: its number by start, and its parent's."""

    start: int
    parent: int | None = None


def header_document(header: Header) -> dict[str, Plain]:
    """The document of a header.

    >>> header_document(Header("research", tools=("agent.tools",)))
    {'stepfork': 1, 'name': 'research', 'tools': ['agent.tools']}
    """
    document: dict[str, Plain] = {"stepfork": FORMAT_VERSION, "name": header.name}
    if header.entrypoint:
        document["entrypoint"] = header.entrypoint
    if header.tools:
        document["tools"] = list(header.tools)
    if header.args:
        document["args"] = header.args
    if header.env:
        document["env"] = dict(header.env)
    if header.recorded_at:
        document["recorded_at"] = header.recorded_at
    return document


def read_header(document: dict[str, Plain]) -> Header:
    """The header of a document.

    Raises:
        Fault: naming the field; `UnknownVersion` for another format.

    >>> read_header({"stepfork": 1, "name": "research"}).name
    'research'
    """
    version = document.get("stepfork")
    if "stepfork" not in document:
        raise Fault("stepfork", "missing: the first document must say 'stepfork: 1'; this is no cassette")
    if version != FORMAT_VERSION or type(version) is not int:
        raise UnknownVersion(
            "stepfork", f"format version {version!r} is not supported; this stepfork reads {FORMAT_VERSION}"
        )
    _check(document, _HEADER, required=("name",))
    return Header(
        name=str(document["name"]),
        entrypoint=_optional_text(document.get("entrypoint")),
        tools=tuple(_texts("tools", document.get("tools", []))),
        args=document.get("args"),
        env=_text_mapping("env", document.get("env", {})),
        recorded_at=_optional_text(document.get("recorded_at")),
    )


def call_document(recorded: Recorded, place: Place | None = None) -> dict[str, Plain]:
    """The document of a call; `place` is written only while recording, where it is not the plain order.

    >>> call_document(Recorded(Incoming("tool", "search", {"q": "go"}), {"result": 1}))
    {'tool': 'search', 'args': {'q': 'go'}, 'result': 1}
    """
    document: dict[str, Plain] = {}
    if place is not None:
        document["start"] = place.start
        if place.parent is not None:
            document["parent"] = place.parent
    if recorded.depth:
        document["depth"] = recorded.depth
    call = recorded.call
    document[call.kind] = call.name
    if call.kind == "tool":
        if call.args:
            document["args"] = call.args
    else:
        document.update(call.target)
        if call.args is not None:
            document["request"] = call.args
    document.update(recorded.outcome)
    if recorded.unfinished:
        document["unfinished"] = True
    return document


def read_call(document: dict[str, Plain]) -> tuple[Recorded, Place | None]:
    """The call of a document, and its place if it was written while recording.

    Raises:
        Fault: naming the field.

    >>> read_call({"tool": "search", "result": 1})[0].call.name
    'search'
    """
    kinds = [kind for kind in ("llm", "tool", "http") if kind in document]
    if len(kinds) != 1:
        raise Fault("", "a call must have exactly one of the fields 'llm', 'tool' and 'http'")
    kind = kinds[0]
    if kind == "http":
        raise Fault("http", "calls of this kind are not supported by this version of stepfork")
    fields = (_TOOL if kind == "tool" else _LLM) | _COMMON | {kind: "text"}
    _check(document, fields, required=())
    if kind == "llm":
        _check_contents(document)
        _check_answer(document)
    outcome_names = (
        _TOOL.keys() - {"args"} if kind == "tool" else _LLM.keys() - {"method", "path", "query", "request"}
    )
    outcome = {key: value for key, value in document.items() if key in outcome_names or key == "cancelled"}
    unfinished = bool(document.get("unfinished", False))
    ways = [key for key in ("result", "error", "cancelled", *RESPONSE_FIELDS) if key in outcome]
    if len(ways) != (0 if unfinished else 1) and not (kind == "llm" and ways[1:] == ["stream"]):
        raise Fault(
            "",
            "an unfinished call must have no outcome"
            if unfinished
            else f"a call must have exactly one outcome, found {', '.join(ways) or 'none'}",
        )
    if "error" in outcome:
        _check_error("error", outcome["error"])
    target: dict[str, Plain] = {key: document[key] for key in ("method", "path", "query") if key in document}
    args = document.get("args", {}) if kind == "tool" else document.get("request")
    call = Incoming(kind, str(document[kind]), args, target)
    depth = _count("depth", document.get("depth", 0))
    place = None
    if "start" in document:
        parent = document.get("parent")
        place = Place(
            _count("start", document["start"]), None if parent is None else _count("parent", parent)
        )
    return Recorded(call, outcome, depth, unfinished), place


def end_document(end: End) -> dict[str, Plain]:
    """The document of an end, without its checksum.

    >>> end_document(End("completed", output=3, has_output=True))
    {'end': 'completed', 'output': 3}
    """
    document: dict[str, Plain] = {"end": end.status}
    if end.test:
        document["test"] = end.test
    if end.has_output:
        document["output"] = end.output
    if end.error is not None:
        document["error"] = end.error
    return document


def read_end(document: dict[str, Plain]) -> End:
    """The end of a document.

    Raises:
        Fault: naming the field.

    >>> read_end({"end": "failed", "sha256": "00"}).status
    'failed'
    """
    _check(document, _END, required=("end",))
    status = document["end"]
    if status not in ("completed", "failed"):
        raise Fault("end", f"expected 'completed' or 'failed', found {status!r}")
    if document.get("test", "failed") != "failed":
        raise Fault("test", f"expected 'failed', found {document['test']!r}")
    error = document.get("error")
    if error is not None:
        _check_error("error", error)
    return End(
        status=status,  # type: ignore[arg-type]
        test=_optional_text(document.get("test")),
        output=document.get("output"),
        has_output="output" in document,
        error=error,  # type: ignore[arg-type]
    )


def _check(
    document: dict[str, Plain], fields: Mapping[str, str], required: tuple[str, ...], above: str = ""
) -> None:
    for name in required:
        if name not in document:
            raise Fault(above + name, "missing")
    for key, value in document.items():
        expected = fields.get(key)
        if expected is None:
            raise Fault(above + key, f"unknown field; known here: {', '.join(fields)}")
        kinds = _TYPES[expected]
        if not isinstance(value, kinds) or (expected == "number" and isinstance(value, bool)):
            raise Fault(above + key, f"{expected} expected, found {_kind_of(value)}{_hint(expected, value)}")


def _hint(expected: str, value: Plain) -> str:
    return "; add quotes" if expected.startswith("text") and isinstance(value, bool | int | float) else ""


def _kind_of(value: Plain) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", dict: "a mapping", list: "a sequence"}
    return (
        "nothing"
        if value is None
        else names.get(type(value), "text" if isinstance(value, str) else "a tagged value")
    )


def _check_error(name: str, value: Plain) -> None:
    if not isinstance(value, dict):
        raise Fault(name, f"mapping expected, found {_kind_of(value)}")
    if not isinstance(value.get("class"), str):
        raise Fault(f"{name}.class", "text expected, as in 'module:ClassName'")
    if not isinstance(value.get("args", []), list):
        raise Fault(f"{name}.args", f"sequence expected, found {_kind_of(value['args'])}")
    if not isinstance(value.get("attributes", {}), dict):
        raise Fault(f"{name}.attributes", f"mapping expected, found {_kind_of(value['attributes'])}")


def _check_contents(document: dict[str, Plain]) -> None:
    """What a message says is text, parts or nothing: an edit that lost its quotes is found here."""
    request = document.get("request")
    response = document.get("response")
    if isinstance(request, dict) and isinstance(request.get("messages"), list):
        _check_messages("request.messages", request["messages"])
    if isinstance(response, dict) and isinstance(response.get("choices"), list):
        for at, choice in enumerate(response["choices"]):  # type: ignore[arg-type]
            if isinstance(choice, dict):
                _check_message(f"response.choices[{at}].message", choice.get("message"))


def _check_answer(document: dict[str, Plain]) -> None:
    style = document.get("json", json_style.DEFAULT)
    if style not in json_style.STYLES:
        raise Fault("json", f"unknown style {style!r}; the styles are {', '.join(json_style.STYLES)}")
    headers = document.get("headers", {})
    assert isinstance(headers, dict)
    _text_mapping("headers", headers)
    stream = document.get("stream")
    if isinstance(stream, dict):
        _check(stream, _STREAM, required=("raw",), above="stream.")
        if "broken" in stream:
            _check_error("stream.broken", stream["broken"])


def _check_messages(field: str, messages: Any) -> None:
    for at, message in enumerate(messages):
        _check_message(f"{field}[{at}]", message)


def _check_message(field: str, message: Plain) -> None:
    if isinstance(message, dict) and isinstance(message.get("content"), bool | int | float):
        raise Fault(f"{field}.content", f"text expected, found {_kind_of(message['content'])}; add quotes")


def _optional_text(value: Plain) -> str | None:
    return None if value is None else str(value)


def _texts(field: str, values: Any) -> list[str]:
    for at, value in enumerate(values):
        if not isinstance(value, str):
            raise Fault(f"{field}[{at}]", f"text expected, found {_kind_of(value)}")
    return list(values)


def _text_mapping(field: str, values: Any) -> dict[str, str]:
    for key, value in values.items():
        if not isinstance(value, str):
            raise Fault(f"{field}.{key}", f"text expected, found {_kind_of(value)}; add quotes")
    return dict(values)


def _count(field: str, value: Plain) -> int:
    if type(value) is not int or value < 0:
        raise Fault(field, f"a count expected, found {value!r}")
    return value
