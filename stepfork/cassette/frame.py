"""Documents <-> header and end, which stand around the calls. Knows their fields; knows no call, no file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from stepfork.cassette import fields
from stepfork.cassette.fields import Fault
from stepfork.core.model import Plain

FORMAT_VERSION: Final = 1
CHECKSUM: Final = "sha256"
"""The last field of the end."""
_HEADER: Final = {
    "stepfork": "number",
    "name": "text",
    "entrypoint": "text",
    "tools": "sequence",
    "args": "mapping or sequence",
    "env": "mapping",
    "recorded_at": "text",
}
_END: Final = {"end": "text", "test": "text", "output": "any", "error": "mapping", CHECKSUM: "text"}


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
            "stepfork",
            f"format version {fields.shown(version)} is not supported; this stepfork reads {FORMAT_VERSION}",
        )
    fields.check(document, _HEADER, required=("name",))
    return Header(
        name=str(document["name"]),
        entrypoint=fields.optional_text(document.get("entrypoint")),
        tools=tuple(fields.texts("tools", document.get("tools", []))),
        args=document.get("args"),
        env=fields.text_mapping("env", document.get("env", {})),
        recorded_at=fields.optional_text(document.get("recorded_at")),
    )


def changed_header(header: Header, change: Callable[[Plain], Plain]) -> Header:
    """The header with a change made to what the run was given."""
    env: Any = change(dict(header.env))
    return replace(header, args=change(header.args), env=env)


def changed_end(end: End, change: Callable[[Plain], Plain]) -> End:
    """The end with a change made to what the run came to."""
    error: Any = change(end.error)
    return replace(end, output=change(end.output), error=error)


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
    fields.check(document, _END, required=("end",))
    status = document["end"]
    if status not in ("completed", "failed"):
        raise Fault("end", f"expected 'completed' or 'failed', found {fields.shown(status)}")
    if document.get("test", "failed") != "failed":
        raise Fault("test", f"expected 'failed', found {fields.shown(document['test'])}")
    error = document.get("error")
    if error is not None:
        fields.check_error("error", error)
    return End(
        status=status,  # type: ignore[arg-type]
        test=fields.optional_text(document.get("test")),
        output=document.get("output"),
        has_output="output" in document,
        error=error,  # type: ignore[arg-type]
    )
