"""Files that are written as a whole or not at all, and whose they are. Knows files; not what stands in them.

A lock (``flock``) says that whoever writes a file is alive. The system drops it with the process, however
that ends, so a leftover can be told from a file in use.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

from stepfork.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows: there a file that is open cannot be moved away at all
    fcntl = None  # type: ignore[assignment]

BINARY: Final = getattr(os, "O_BINARY", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)


def is_taken(file: int) -> bool:
    """Whether somebody else holds the lock of an open file; takes it otherwise."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
    return False


def stands(file: int, path: Path) -> bool:
    """Whether an open file is still the one that stands at a path."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except OSError:
        return False


def write(file: int, data: bytes) -> None:
    """Writes all of it, in as many steps as the system takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def check_writable(path: Path) -> None:
    """Raises a PermissionError for a file that is protected: replacing it would only ask the folder.

    >>> check_writable(Path("no/such/file.yaml"))
    """
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only; make it writable first")


def keep_mode(file: int, path: Path) -> None:
    """Gives an open file the permissions of the one it is going to replace, if there is one."""
    if hasattr(os, "fchmod"):
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(file, stat.S_IMODE(os.stat(path).st_mode))


def put(path: Path, data: bytes) -> None:
    """Writes a file under a name of its own, then has it take the place of `path` in one step.

    Whatever happens meanwhile, the old file or the new one stands there as a whole. What a process that died
    has left under that other name is written over.

    Raises:
        OSError: if it cannot be written; the old file is as it was.
        ConfigError: if another process is writing the same file.
    """
    fresh = _fresh(path)
    file = _claim(fresh)
    try:
        try:
            os.ftruncate(file, 0)
            write(file, data)
            keep_mode(file, path)
            os.fsync(file)
            if os.name == "nt":  # there only a closed file can be moved
                os.close(file)
                file = -1
            os.replace(fresh, path)
        except BaseException:
            if file < 0 or stands(file, fresh):
                with contextlib.suppress(OSError):
                    os.unlink(fresh)
            raise
    finally:
        if file >= 0:
            os.close(file)


def sweep(path: Path) -> None:
    """Removes what a process that died while it was writing `path` has left.

    >>> sweep(Path("no/such/file.yaml"))
    """
    fresh = _fresh(path)
    try:
        file = os.open(fresh, os.O_RDWR | BINARY | _NOFOLLOW)
    except OSError:
        return
    try:
        if not is_taken(file) and stands(file, fresh):
            with contextlib.suppress(OSError):
                os.unlink(fresh)
    finally:
        os.close(file)


def _fresh(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _claim(fresh: Path) -> int:
    """The open and locked file of that name; made if it is not there."""
    while True:
        file = os.open(fresh, os.O_CREAT | os.O_RDWR | BINARY | _NOFOLLOW, 0o666)
        if is_taken(file):
            os.close(file)
            raise ConfigError(
                f"{fresh} is being written by another process; run this again when it has ended"
            )
        if stands(file, fresh):
            return file
        os.close(file)  # whoever had it has put it in its place in the meantime
