"""The text of a cassette as documents and plain values. Knows files and YAML's traps, no fields.

PyYAML parses into events (with libyaml where it is there) and `builder` makes the values: no constructor,
resolver or composer of PyYAML's runs, so a file can make nothing but plain values. An unquoted value
counts as something else than text only in the emitter's own spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from stepfork.cassette.builder import Fault, build, find_line
from stepfork.cassette.scalars import find_unsafe, has_surrogates
from stepfork.cassette.slices import Slices, normal, split, without_tail
from stepfork.core.model import Plain
from stepfork.errors import CassetteError

__all__ = ["HAVE_LIBYAML", "KNOWN_TAGS", "Slices", "line_of", "parse_document", "read_text", "split"]

KNOWN_TAGS: Final = frozenset(
    ("tuple", "set", "frozenset", "bytes", "decimal", "date", "datetime", "time", "timedelta", "uuid", "path")
    + ("map", "int", "float", "str")
)
"""The tags that are read where the caller names no others."""

HAVE_LIBYAML: Final = bool(getattr(yaml, "__with_libyaml__", False))

_BAD_ESCAPE: Final = "found invalid Unicode character escape code"
_CONFLICT: Final = re.compile(r"^(?:<{7} .*|\|{7} .*|={7}|>{7} .*)$", re.MULTILINE)
_CONFLICT_SIGNS: Final = ("<<<<<<< ", ">>>>>>> ", "=======", "||||||| ")


def read_text(path: Path, *, torn: bool = False) -> str:
    """The text of a file, with LF line ends and without a byte order mark.

    A `torn` one may end in the middle of a character, which is then left out.

    Raises:
        FileNotFoundError: if there is none.
        CassetteError: if it cannot be read, or is not UTF-8; with the line of the first wrong byte.

    >>> read_text(Path("no/such/file.yaml"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/file.yaml'
    """
    try:
        if path.exists() and not path.is_file():  # a device may have no end
            raise CassetteError("cannot be read: it is no regular file", file=path)
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CassetteError(f"cannot be read: {error.strerror or error}", file=path) from None
    try:
        return normal(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        if torn and error.end == len(data) and error.reason == "unexpected end of data":
            return normal(data[: error.start].decode("utf-8"))
        line = data.count(b"\n", 0, error.start) + 1
        raise CassetteError(f"not UTF-8: {error.reason}", file=path, line=line) from None


def parse_document(
    text: str,
    *,
    file: Path | None = None,
    first_line: int | Callable[[], int] = 1,
    known_tags: frozenset[str] = KNOWN_TAGS,
    pure: bool = not HAVE_LIBYAML,
) -> dict[str, Plain]:
    """One document as plain values.

    Args:
        text: one slice of `split`.
        file: the file it is from, for errors.
        first_line: the line of the file it starts on, or what gives it when an error needs it.
        known_tags: the tags, without ``!``, that become `Tagged` values.
        pure: use PyYAML's own parser instead of libyaml; slower and equal.

    Raises:
        CassetteError: if it is not exactly one mapping in the subset of YAML that cassettes use, with the
            line in the file and the field.

    >>> parse_document("args: {q: rust}\\nresult: !tuple [Go, 0.9]\\n")
    {'args': {'q': 'rust'}, 'result': Tagged(tag='tuple', value=['Go', 0.9])}
    """
    text = normal(text)
    try:
        _refuse_conflicts(text)
        if unsafe := find_unsafe(text):
            raise Fault(_unsafe_problem(unsafe[0]), text.count("\n", 0, unsafe.start()))
        text = without_tail(text)
        try:
            return build(_events(text, pure), known_tags)
        except yaml.YAMLError as error:  # without a mark: a character that this parser does not take
            raise Fault(f"not valid YAML: {error}", 0) from None
    except Fault as fault:
        start = first_line if isinstance(first_line, int) else first_line()
        line = start + min(fault.line, text.rstrip("\n").count("\n"))
        raise CassetteError(fault.problem, file=file, line=line, field=fault.field) from None


def line_of(text: str, field: str, *, first_line: int = 1) -> int:
    r"""The line of the file on which a field of a document stands, or of what encloses it if it is missing.

    >>> line_of("a: 1\nb:\n- c: 2\n- c: 3\n", "b[1].c", first_line=10)
    13
    """
    try:
        return first_line + find_line(_events(normal(text), not HAVE_LIBYAML), field)
    except yaml.YAMLError:
        return first_line


def _refuse_conflicts(text: str) -> None:
    if any(sign in text for sign in _CONFLICT_SIGNS) and (found := _CONFLICT.search(text)):
        raise Fault(
            f"merge conflict marker '{found[0][:7]}': resolve the conflict",
            text.count("\n", 0, found.start()),
        )


def _unsafe_problem(character: str) -> str:
    code = ord(character)
    escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return f"the character U+{code:04X} cannot stand as itself: write {escape} in double quotes"


def _events(text: str, pure: bool) -> Callable[[], Any]:
    return _pure_events(yaml.SafeLoader(text)) if pure else yaml.CSafeLoader(text).get_event


def _pure_events(loader: Any) -> Callable[[], Any]:
    """The events of PyYAML's own parser, which takes escapes that libyaml refuses."""

    def next_event() -> Any:
        try:
            event: Any = loader.get_event()
        except (ValueError, OverflowError):
            raise yaml.MarkedYAMLError(problem=_BAD_ESCAPE, problem_mark=loader.get_mark()) from None
        kind = type(event)
        if kind is yaml.ScalarEvent and has_surrogates(event.value):
            raise yaml.MarkedYAMLError(problem=_BAD_ESCAPE, problem_mark=event.start_mark)
        return event

    return next_event
