"""Every fault of a cassette file, where opening one stops at the first. Knows documents; decides nothing.

`store` refuses a file for its first fault. Whoever mends a file wants all of them at once.
"""

from __future__ import annotations

from pathlib import Path

from stepfork.cassette import frame, reader
from stepfork.cassette.documents import Documents
from stepfork.cassette.fields import Fault
from stepfork.cassette.store import StoredCassette
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
        text = reader.read_text(path)
    except CassetteError:
        return []
    documents = Documents(path, reader.split(text))
    faults: list[CassetteError] = []
    if not text.strip():
        return faults
    for at in range(len(documents.slices)):
        try:
            _read(documents, at)
        except CassetteError as fault:
            faults.append(fault)
        except frame.UnknownVersion:
            return []  # what follows is in a format nobody here knows
        except Fault as fault:
            if at == 0 and fault.field == "stepfork":
                return []  # no cassette: its other documents would only be noise
            faults.append(documents.located(fault, at))
    return faults


def _read(documents: Documents, at: int) -> None:
    if at == 0:
        frame.read_header(documents.parse(at))
    elif "end" in documents.fields_of(at):
        frame.read_end(documents.fields_of(at))
    else:
        documents.recorded(at)
