"""A recording on its way to becoming a cassette: append, then one rename. Knows files, not what calls mean.

The ``.partial.yaml`` grows by one write a call. It is locked while it grows, so that a leftover of a
process that died can be told from the file of one that lives. Nothing here ever replaces a completed
recording by one that failed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stepfork.cassette import emitter, files, frame, integrity, names
from stepfork.cassette.same import same_behaviour
from stepfork.cassette.store import StoredCassette
from stepfork.core.volatile import Rules
from stepfork.errors import CassetteError, ConfigError

SEPARATOR: Final = "---\n"


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

    def __init__(
        self, path: Path, header: frame.Header, *, fsync: bool = False, rules: Rules | None = None
    ) -> None:
        """Starts the recording; the cassette that stands there is checked and left alone.

        `rules`, those of `normalize`, say what makes no other recording of it.

        Raises:
            CassetteError: if an unreadable file stands at `path`, or it cannot be written.
            ConfigError: if another session or process is recording to the same path.
        """
        self.path = path
        self.partial = Path(names.sibling(str(path), "partial"))
        self._fsync = fsync
        self._rules = rules
        self._seen = _stamp(path)
        self._good = self._standing()
        self.header = header
        self._file = -1
        self._size = 0  # of what was written as a whole
        self._torn = False  # whether more may stand behind it
        self._waiting: deque[bytes] = deque()  # what the disk did not take yet
        place = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.check_writable(path)
            place = self.partial
            self._file = self._create()
            for target in (path, self._failed()):
                files.sweep(target)
            self._add(_head(header))
        except BaseException as error:
            self.discard()
            if not isinstance(error, OSError):
                raise
            raise CassetteError(f"cannot be written: {error.strerror or error}", file=place) from None

    def _standing(self) -> StoredCassette | None:
        """What stands at the path. A broken file is an error and never an empty one."""
        try:
            return StoredCassette(self.path)
        except FileNotFoundError:
            return None

    def _create(self) -> int:
        while True:
            try:
                file = os.open(self.partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | files.BINARY, 0o666)
            except FileExistsError:
                self._set_aside()
                continue
            if not files.is_taken(file) and files.stands(file, self.partial):
                return file
            os.close(file)  # it was taken for a leftover before it was locked

    def _set_aside(self) -> None:
        """Moves the partial file of a process that died out of the way; refuses if it is alive."""
        try:
            if not stat.S_ISREG(os.lstat(self.partial).st_mode):
                raise CassetteError("is in the way: it is no regular file; move it away", file=self.partial)
            file = os.open(self.partial, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            if files.is_taken(file):
                raise ConfigError(
                    f"{self.path} is being recorded by another session or process; "
                    "give each recording a cassette of its own, or wait until the other one has ended"
                )
            if not files.stands(file, self.partial):
                return
            if os.fstat(file).st_size == 0:
                os.unlink(self.partial)
                return
            number = 1
            while os.path.lexists(aside := names.sibling(str(self.path), f"partial.{number}")):
                number += 1
            os.rename(self.partial, aside)
        finally:
            os.close(file)

    def append(self, text: str) -> None:
        """Adds one call's document in one write: it is on disk when this returns.

        Raises:
            OSError: if the disk is full, say. The document then waits for the next one, and at last for
                `finish`: what is in the file is whole, and in the order in which it was given.
        """
        self._add(text + SEPARATOR)
        if self._fsync:
            os.fsync(self._file)

    def _add(self, text: str) -> None:
        self._waiting.append(_bytes(text))
        while self._waiting:
            if self._torn:
                os.lseek(self._file, self._size, os.SEEK_SET)
            self._torn = True
            files.write(self._file, self._waiting[0])
            self._size += len(self._waiting.popleft())
            self._torn = False

    def finish(self, header: frame.Header, documents: Iterable[str], end: frame.End) -> Written:
        """Closes the recording: its documents in their final form and order, the checksum, one rename.

        Raises:
            CassetteError: if the file cannot be written; the partial file is then kept, until `release`.
        """
        try:
            body = _head(header) + "".join(text + SEPARATOR for text in documents)
            text = integrity.sealed(body + emitter.emit_document(frame.end_document(end)))
            if _stamp(self.path) != self._seen:  # somebody has put another file there meanwhile
                self._good = self._standing()
            return self._finish(text, failed=end.status == "failed" or end.test == "failed")
        except OSError as error:
            raise CassetteError(
                f"cannot be written: {error.strerror or error}{self.left()}", file=self.path
            ) from None
        except CassetteError as error:
            problem = f"{error.problem}{self.left()}"
            raise CassetteError(problem, file=error.file, line=error.line, field=error.field) from None

    def _finish(self, text: str, *, failed: bool) -> Written:
        good, target = self._good, self.path
        if failed and good is not None and not good.failed:
            target = self._failed()
        elif good is not None and same_behaviour(good, text, self._rules):
            self.discard()
            self._drop_failed(failed)
            return Written(self.path, unchanged=True)
        data = _bytes(text)
        if not files.stands(self._file, self.partial):  # removed meanwhile, perhaps with its folder
            target.parent.mkdir(parents=True, exist_ok=True)
            files.put(target, data)
        elif data.startswith(written := self._written()):  # only the end is missing
            files.write(self._file, data[len(written) :])
            files.keep_mode(self._file, target)
            os.fsync(self._file)
            self._rename(target)
        else:
            files.put(target, data)
            self.discard()
        self.release()
        self._drop_failed(failed)
        return Written(target, kept=self.path if target != self.path else None)

    def _drop_failed(self, failed: bool) -> None:
        """An older failed recording is no news beside a newer good one, which `adopt` would replace by it."""
        if not failed and not self._failed().is_symlink():
            with contextlib.suppress(OSError):
                self._failed().unlink()

    def _failed(self) -> Path:
        return Path(names.sibling(str(self.path), "failed"))

    def _written(self) -> bytes:
        """All that stands in the partial file; the next write goes behind it."""
        os.lseek(self._file, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._file, max(os.fstat(self._file).st_size, 1)):
            parts.append(part)
        return b"".join(parts)

    def _rename(self, target: Path) -> None:
        if os.name == "nt":  # there only a closed file can be moved
            self.release()
        os.replace(self.partial, target)

    def left(self) -> str:
        """Where what was recorded is found if it cannot become a cassette; "" if it is nowhere."""
        if self._file < 0 or not files.stands(self._file, self.partial):
            return ""
        return f"; what was recorded is in {self.partial}"

    def discard(self) -> None:
        """Drops the partial file: nothing was recorded, or nothing changed."""
        if self._file >= 0 and files.stands(self._file, self.partial):
            with contextlib.suppress(OSError):  # it is found by the next recording
                os.unlink(self.partial)
        self.release()

    def release(self) -> None:
        """Lets go of the partial file, which stays if it is there."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _head(header: frame.Header) -> str:
    return emitter.emit_document(frame.header_document(header)) + SEPARATOR


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What tells whether another file stands at a path than before."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


def cassette_of(failed: Path) -> Path:
    """The cassette that a failed recording is one of.

    Raises:
        ConfigError: if its name does not end in ``.failed.yaml``.

    >>> str(cassette_of(Path("cassettes/a.failed.yaml")))
    'cassettes/a.yaml'
    """
    if not failed.name.endswith(".failed.yaml"):
        raise ConfigError(f"{failed} is no failed recording: its name must end in '.failed.yaml'")
    return failed.with_name(failed.name.removesuffix(".failed.yaml") + ".yaml")


def adopt(failed: Path) -> Path:
    """Puts a failed recording in the place of its cassette; gives the cassette's path.

    Raises:
        CassetteError: if it, or what stands in its place, is no readable cassette, or cannot be replaced.
        ConfigError: if its name does not end in ``.failed.yaml``.
    """
    target = Path(os.path.realpath(cassette_of(failed)))
    StoredCassette(failed)
    with contextlib.suppress(FileNotFoundError):
        StoredCassette(target)
    try:
        files.check_writable(target)
        os.replace(failed, target)
    except OSError as error:
        raise CassetteError(f"cannot be written: {error.strerror or error}", file=target) from None
    return target
