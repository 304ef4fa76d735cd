"""Which cassettes a pytest run has recorded, by whom, and whose turn it is. Knows closed recordings only.

The workers of pytest-xdist run the same fixtures, and any two tests: what one of them has recorded the others
see in a folder that they share, a file for each cassette, locked while it is recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from stepfork.cassette import files
from stepfork.core.canonical import digest
from stepfork.session.modes import Action
from stepfork.session.run import Run

_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class Entry:
    """Who recorded a cassette first in this run, in which worker, and a digest of what was asked."""

    who: str
    worker: str
    asked: str


class Shared:
    """The cassettes recorded so far; `folder` is what the workers share, None where there are none."""

    def __init__(self, folder: Path | None, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        self._entries: dict[str, Entry] = {}
        self._held: dict[str, int] = {}

    def before(self, run: Run, who: str) -> Action:
        """Waits while another worker records the cassette; what it recorded for the same one is replayed."""
        if self._folder is None:
            return "record"
        file = os.open(self._place(run), os.O_CREAT | os.O_RDWR | files.BINARY, 0o600)
        while files.is_taken(file):
            time.sleep(_PAUSE)
        entry = _read(file)
        if entry is not None and entry.who == who and entry.worker != self._worker:
            os.close(file)
            return "replay"
        self._held[run.file] = file
        return "record"

    def clash(self, run: Run, who: str) -> str | None:
        """Who else has recorded the cassette in this pytest run, with other calls than this recording's."""
        if run.action != "record" or not run.touched:
            return None
        known = self._known(run)
        if known is None or known.who == who or known.asked == digest(list(run.asked)):
            return None
        return known.who

    def recorded(self, run: Run, who: str) -> None:
        """Keeps who recorded a cassette, and what.

        The same one again is another attempt (a plugin runs failed tests again), and the last one counts.
        """
        if run.written is None or run.written.kept is not None:
            return
        known = self._known(run)
        if known is not None and known.who != who:
            return
        new = self._entries[run.file] = Entry(who, self._worker, digest(list(run.asked)))
        if (file := self._held.get(run.file)) is not None:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            files.write(file, json.dumps(asdict(new)).encode())

    def _known(self, run: Run) -> Entry | None:
        file = self._held.get(run.file)
        return self._entries.get(run.file) if file is None else _read(file)

    def end(self, run: Run) -> None:
        """Lets the next worker have the cassette."""
        file = self._held.pop(run.file, None)
        if file is not None:
            os.close(file)

    def _place(self, run: Run) -> Path:
        assert self._folder is not None
        return self._folder / hashlib.sha256(run.file.encode("utf-8", "surrogatepass")).hexdigest()


def _read(file: int) -> Entry | None:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file), "rb") as reader:
        data = reader.read()
    return Entry(**json.loads(data)) if data else None
