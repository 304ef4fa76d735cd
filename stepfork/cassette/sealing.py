"""A cassette that was edited gets the checksum that fits it. Knows documents; decides nothing about them.

What fits its checksum is read as if stepfork had written it: the fields of a document are looked for at the
beginning of lines. A document that an edit has brought into another style of YAML is therefore written anew;
all others stay as they are, comments included.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from stepfork.cassette import emitter, files, frame, integrity, reader, shared
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import TAGS
from stepfork.cassette.writer import SEPARATOR
from stepfork.core.model import Plain
from stepfork.errors import CassetteError

_FIELD: Final = re.compile(r"^([a-z_0-9]+):(?= |$)", re.MULTILINE)
_MARK: Final = re.compile(r"\A---[ \t]*(?:#.*)?\n")
_DOCUMENT_MARK: Final = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)
_ON_ONE_LINE: Final = ("depth", "llm", "tool", "lane", "extends", "end")


def seal(cassette: StoredCassette) -> int:
    """Writes a cassette that reads well with its checksum; gives how many documents were written anew.

    Raises:
        CassetteError: if it has no end, which a checksum would be part of, or cannot be written.
    """
    path = cassette.path
    if cassette.end is None:
        raise CassetteError(
            "is a recording that was cut off: it has no end document, and so nothing that can be sealed",
            file=path,
        )
    slices = reader.split(reader.read_text(path))
    texts, anew = [], 0
    for at in range(len(slices)):
        text = _MARK.sub("", slices.text(at))
        document = reader.parse_document(text, known_tags=TAGS | {shared.TAG})
        if at == len(slices) - 1:
            text, document = _without_checksum(text, document)
        if not _is_plain(text, document):
            first = {key: document[key] for key in ("depth",) if key in document}  # where it is looked for
            text, anew = emitter.emit_document(first | document), anew + 1
        texts.append(text)
    data = integrity.sealed(SEPARATOR.join(texts)).encode("utf-8", "surrogatepass")
    real = Path(os.path.realpath(path))
    try:
        files.check_writable(real)
        files.put(real, data)
    except OSError as error:
        raise CassetteError(f"cannot be written: {error.strerror or error}", file=path) from None
    return anew


def _without_checksum(text: str, document: dict[str, Plain]) -> tuple[str, dict[str, Plain]]:
    """The end of a cassette without its checksum, which stands on the last line if nobody has moved it."""
    rest = {key: value for key, value in document.items() if key != frame.CHECKSUM}
    if frame.CHECKSUM in document:
        before, _, behind = text.rpartition(f"\n{frame.CHECKSUM}: ")
        text = "" if behind.partition("\n")[2].strip() else f"{before}\n"
    return text, rest


def _is_plain(text: str, document: dict[str, Plain]) -> bool:
    """Whether each field begins a line, and those that are looked for stand as they are written."""
    return (
        text.endswith("\n")  # which a literal block at its end would be given
        and _DOCUMENT_MARK.search(text) is None
        and _FIELD.findall(text) == list(document)
        and ("depth" not in document or text.startswith("depth: "))
        and all(f"\n{field}: " in f"\n{text}" for field in _ON_ONE_LINE if field in document)
    )
