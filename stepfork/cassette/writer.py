"""A recording on its way to becoming a cassette: append, then one rename. Knows files, not what calls mean.

The ``.partial.yaml`` grows by one write a call. It is locked while it grows, so that a leftover of a
process that died can be told from the file of one that lives. Nothing here ever replaces a completed
recording by one that failed.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stepfork.cassette import emitter, frame, integrity, names
from stepfork.cassette.store import StoredCassette
from stepfork.errors import CassetteError, ConfigError

try:
    import fcntl
except ImportError:  # Windows: a leftover cannot be told from a live file by its lock, only by its age
    fcntl = None  # type: ignore[assignment]

SEPARATOR: Final = "---\n"
_STARTING: Final = 5.0  # seconds in which an empty partial file counts as one being started
_RECORDED_AT: Final = re.compile(r"^recorded_at: .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Written:
    """Where a recording went: `path` holds it; `kept` is the completed cassette it did not replace."""

    path: Path
    kept: Path | None = None
    unchanged: bool = False


class Writer:
    """The file of one recording in progress.

    Attributes:
        path: the cassette the recording is meant for.
        partial: the file that grows.
        header: what it began with.
    """

    def __init__(self, path: Path, header: frame.Header, *, fsync: bool = False) -> None:
        """Starts the recording; the cassette that stands there is checked and left alone.

        Raises:
            CassetteError: if an unreadable file stands at `path`, or the folder cannot be written.
            ConfigError: if another session or process is recording to the same path.
        """
        self.path = path
        self.partial = Path(names.sibling(str(path), "partial"))
        self._fsync = fsync
        self._good = self._standing()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._create()
        except OSError as error:
            raise CassetteError(f"cannot be written: {error.strerror or error}", file=self.partial) from None
        self.header = header
        self._write(_head(header))

    def _standing(self) -> StoredCassette | None:
        """What stands at the path. A broken file is an error and never an empty one."""
        try:
            return StoredCassette(self.path)
        except FileNotFoundError:
            return None

    def _create(self) -> int:
        while True:
            with contextlib.suppress(FileExistsError):
                file = os.open(
                    self.partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666
                )
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)
                return file
            self._set_aside()

    def _set_aside(self) -> None:
        """Moves the partial file of a process that died out of the way; refuses if it is alive."""
        try:
            file = os.open(self.partial, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    self._busy()
            about = os.fstat(file)
            if about.st_size == 0 and time.time() - about.st_mtime < _STARTING:
                self._busy()
            number = 1
            while (aside := Path(names.sibling(str(self.path), f"partial.{number}"))).exists():
                number += 1
            os.rename(self.partial, aside)
        finally:
            os.close(file)

    def _busy(self) -> None:
        raise ConfigError(
            f"{self.path} is being recorded by another session or process; "
            "give each recording a cassette of its own, or wait until the other one has ended"
        )

    def append(self, text: str) -> None:
        """Adds one call's document in one write: it is on disk when this returns.

        Raises:
            OSError: if the disk is full or the file is gone.
        """
        self._write(text + SEPARATOR)
        if self._fsync:
            os.fsync(self._file)

    def _write(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "surrogatepass"))
        while data:
            data = data[os.write(self._file, data) :]

    def finish(self, header: frame.Header, documents: Iterable[str], end: frame.End) -> Written:
        """Closes the recording: its documents in their final form and order, the checksum, one rename.

        Raises:
            CassetteError: if the file cannot be written; the partial file is then kept.
        """
        body = _head(header) + "".join(text + SEPARATOR for text in documents)
        text = integrity.sealed(body + emitter.emit_document(frame.end_document(end)))
        failed = end.status == "failed" or end.test == "failed"
        good, target = self._good, self.path
        if failed and good is not None and not good.failed:
            target = Path(names.sibling(str(self.path), "failed"))
        try:
            if target == self.path and good is not None and _same_but_for_the_date(self.path, text):
                self.discard()
                return Written(self.path, unchanged=True)
            self._replace(target, text)
        except OSError as error:
            self._close()
            kept = f"; what was recorded is in {self.partial}" if self.partial.exists() else ""
            raise CassetteError(f"cannot be written: {error.strerror or error}{kept}", file=target) from None
        return Written(target, kept=self.path if target != self.path else None)

    def _replace(self, target: Path, text: str) -> None:
        os.lseek(self._file, 0, os.SEEK_SET)
        data = text.encode("utf-8", "surrogatepass")
        grown = os.fstat(self._file).st_size
        standing = os.read(self._file, grown)
        while len(standing) < grown and (more := os.read(self._file, grown - len(standing))):
            standing += more
        if data.startswith(standing):  # already in its final order: only the end is missing
            self._write_at_end(data[len(standing) :])
            os.fsync(self._file)
            self._close()
            os.replace(self.partial, target)
            return
        fresh = Path(names.sibling(str(self.path), f"partial.{os.getpid()}.new"))
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
        self.discard()

    def _write_at_end(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def discard(self) -> None:
        """Drops the partial file: nothing was recorded, or nothing changed."""
        self._close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.partial)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _head(header: frame.Header) -> str:
    return emitter.emit_document(frame.header_document(header)) + SEPARATOR


def _same_but_for_the_date(path: Path, text: str) -> bool:
    standing = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    return _undated(standing) == _undated(text)


def _undated(text: str) -> str:
    body = _RECORDED_AT.sub("", text, count=1)
    return body[: body.rindex("sha256:")] if "sha256:" in body else body


def adopt(failed: Path) -> Path:
    """Puts a failed recording in the place of its cassette; gives the cassette's path.

    Raises:
        CassetteError: if the file is no readable cassette.
        ConfigError: if its name does not end in ``.failed.yaml``.
    """
    if not failed.name.endswith(".failed.yaml"):
        raise ConfigError(f"{failed} is no failed recording: its name must end in '.failed.yaml'")
    StoredCassette(failed)
    target = failed.with_name(failed.name.removesuffix(".failed.yaml") + ".yaml")
    os.replace(failed, target)
    return target
