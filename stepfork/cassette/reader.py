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

from stepfork.cassette.builder import Fault, build, join
from stepfork.cassette.scalars import UNSAFE
from stepfork.core.model import Plain
from stepfork.errors import CassetteError

KNOWN_TAGS: Final = frozenset(
    ("tuple", "set", "frozenset", "bytes", "decimal", "date", "datetime", "time", "timedelta", "uuid", "path")
)
"""The tags that are read where the caller names no others."""

HAVE_LIBYAML: Final = bool(getattr(yaml, "__with_libyaml__", False))

_CONFLICT: Final = re.compile(r"^(?:<{7} .*|\|{7} .*|={7}|>{7} .*)$", re.MULTILINE)
_CONFLICT_SIGNS: Final = ("<<<<<<< ", ">>>>>>> ", "=======", "||||||| ")
_MARK: Final = re.compile(r"^(?:---(?=[ \t\n]|\Z).*|\.\.\.[ \t]*(?:#.*)?$)\n?", re.MULTILINE)
_END_MARK: Final = re.compile(r"^\.\.\.[ \t]*(?:#.*)?$", re.MULTILINE)
_NO_CONTENT: Final = re.compile(r"(?:[ \t]*(?:#.*)?\n|%.*\n)*(?:[ \t]*(?:#.*)?|%.*)")


def read_text(path: Path) -> str:
    """The text of a file, with LF line ends and without a byte order mark.

    Raises:
        FileNotFoundError: if there is none.
        CassetteError: if it cannot be read, or is not UTF-8; with the line of the first wrong byte.

    >>> read_text(Path("no/such/file.yaml"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/file.yaml'
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CassetteError(f"cannot be read: {error.strerror or error}", file=path) from None
    try:
        return _normal(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CassetteError(f"not UTF-8: {error.reason}", file=path, line=line) from None


def split(text: str) -> list[tuple[int, str]]:
    r"""The documents of a stream as slices that are not parsed yet, each with the line it starts on.

    A slice keeps its last newline, which a literal block at its end needs. CRLF, a byte order mark, a
    first ``---``, comments on a separator and ``%`` directives before it are understood; what follows a
    ``...`` is left to `parse_document`.

    >>> split("stepfork: 1\n---\nend: completed\n")
    [(1, 'stepfork: 1\n'), (3, 'end: completed\n')]
    """
    text = _normal(text)
    if text[:1] in "%-.# \t\n":
        return _split_marked(text)
    if text.isascii():
        parts = text.split("\n---")
    else:  # one emoji makes every character of a str four bytes wide
        wide = text.encode("utf-8", "surrogatepass").split(b"\n---")
        parts = [part.decode("utf-8", "surrogatepass") for part in wide]
    slices = []
    line = 1
    last = parts.pop()
    for part in parts:
        if line > 1:
            if part[:1] != "\n":
                return _split_marked(text)
            part = part[1:]
        slices.append((line, part + "\n"))
        line += part.count("\n") + 2
    if line > 1:
        if last[:1] != "\n":
            return _split_marked(text)
        last = last[1:]
    slices.append((line, last))
    return slices


def parse_document(
    text: str,
    *,
    file: Path | None = None,
    first_line: int = 1,
    known_tags: frozenset[str] = KNOWN_TAGS,
    pure: bool = not HAVE_LIBYAML,
) -> dict[str, Plain]:
    """One document as plain values.

    Args:
        text: one slice of `split`.
        file: the file it is from, for errors.
        first_line: the line of the file it starts on.
        known_tags: the tags, without ``!``, that become `Tagged` values.
        pure: use PyYAML's own parser instead of libyaml; slower and equal.

    Raises:
        CassetteError: if it is not exactly one mapping in the subset of YAML that cassettes use, with the
            line in the file and the field.

    >>> parse_document("args: {q: rust}\\nresult: !tuple [Go, 0.9]\\n")
    {'args': {'q': 'rust'}, 'result': Tagged(tag='tuple', value=['Go', 0.9])}
    """
    text = _normal(text)
    try:
        _refuse_conflicts(text)
        if unsafe := UNSAFE.search(text):
            raise Fault(_unsafe_problem(unsafe[0]), text.count("\n", 0, unsafe.start()))
        if "..." in text:
            text = _without_tail(text)
        try:
            return build(_events(text, pure), known_tags)
        except yaml.YAMLError as error:  # without a mark: a character that this parser does not take
            raise Fault(f"not valid YAML: {error}", 0) from None
    except Fault as fault:
        line = first_line + min(fault.line, text.rstrip("\n").count("\n"))
        raise CassetteError(fault.problem, file=file, line=line, field=fault.field) from None


def line_of(text: str, field: str, *, first_line: int = 1) -> int:
    r"""The line of the file on which a field of a document stands, or of what encloses it if it is missing.

    >>> line_of("a: 1\nb:\n- c: 2\n- c: 3\n", "b[1].c", first_line=10)
    13
    """
    try:
        node = yaml.compose(_normal(text), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return first_line
    path, line = "", 0
    found = True
    while found:
        found = False
        for step, place, value in _children(node):
            below = join(path, step)
            if field == below or field.startswith((f"{below}.", f"{below}[")):
                path, line, node, found = below, place, value, True
                break
    return first_line + line


def _normal(text: str) -> str:
    if text[:1] == "\ufeff":
        text = text[1:]
    return text.replace("\r\n", "\n") if "\r" in text else text


def _split_marked(text: str) -> list[tuple[int, str]]:
    """The slices of a stream that uses more of YAML's marks than the emitter does."""
    slices: list[tuple[int, str]] = []
    start = 0
    opened = False  # whether a "---" announced what comes, so that it counts even if it is empty

    def add(end: int) -> None:
        piece = text[start:end]
        if opened or not _NO_CONTENT.fullmatch(piece):
            slices.append((text.count("\n", 0, start) + 1, piece))

    for mark in _MARK.finditer(text):
        add(mark.start())
        opened = mark[0].startswith("---")
        start = mark.start() if opened and mark[0].rstrip() != "---" else mark.end()
    add(len(text))
    return slices or [(1, text)]


def _without_tail(text: str) -> str:
    """The document without the ``...`` that ends it and the comments and directives that may follow."""
    mark = _END_MARK.search(text)
    return text[: mark.start()] if mark and _NO_CONTENT.fullmatch(text, mark.end()) else text


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
    if pure:
        return yaml.SafeLoader(text).get_event
    return yaml.CSafeLoader(text).get_event


def _children(node: Any) -> list[tuple[str | int, int, Any]]:
    if isinstance(node, yaml.MappingNode):
        return [(str(key.value), key.start_mark.line, value) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return [(at, item.start_mark.line, item) for at, item in enumerate(node.value)]
    return []
