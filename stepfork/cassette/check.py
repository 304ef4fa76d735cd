"""Every fault of a cassette file, where opening one stops at the first. Knows documents; decides nothing.

`store` refuses a file for its first fault. Whoever mends a file wants all of them at once.
"""

from __future__ import annotations

from pathlib import Path

from stepfork.cassette import frame, reader, schema
from stepfork.cassette.fields import Fault
from stepfork.cassette.store import StoredCassette
from stepfork.cassette.values import TAGS
from stepfork.core.model import Plain
from stepfork.errors import CassetteError


def faults_of(path: Path) -> tuple[StoredCassette | None, list[CassetteError]]:
    """The opened cassette, or None where it cannot be opened, and every fault in order of its line.

    Raises:
        FileNotFoundError: if there is no file.

    >>> faults_of(Path("no/such/file.yaml"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/file.yaml'
    """
    try:
        cassette = StoredCassette(path)
        faults = list(cassette.problems())
    except CassetteError as first:
        found = [first, *_document_faults(path)]
        unique = {(fault.line, fault.field, fault.problem): fault for fault in reversed(found)}
        return None, sorted(unique.values(), key=lambda fault: fault.line or 0)
    return cassette, faults


def _document_faults(path: Path) -> list[CassetteError]:
    """The faults of a file's documents, each taken by itself."""
    try:
        documents = list(reader.split(reader.read_text(path)))
    except CassetteError:
        return []
    faults = []
    for at, (line, text) in enumerate(documents):
        try:
            document = reader.parse_document(text, file=path, first_line=line, known_tags=TAGS)
            _read(document, first=at == 0)
        except CassetteError as fault:
            faults.append(fault)
        except frame.UnknownVersion:
            return []  # what follows is in a format nobody here knows
        except Fault as fault:
            if at == 0 and fault.field == "stepfork":
                return []  # no cassette: its other documents would only be noise
            place = reader.line_of(text, fault.field, first_line=line)
            faults.append(CassetteError(fault.problem, file=path, line=place, field=fault.field))
    return faults


def _read(document: dict[str, Plain], *, first: bool) -> None:
    if first:
        frame.read_header(document)
    elif "end" in document:
        frame.read_end(document)
    else:
        schema.read_call(document)
