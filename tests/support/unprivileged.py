"""A function run in a forked process, also by a user who owns nothing: root ignores the modes of files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that anybody may write to; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        for place, _, _ in os.walk(folder):
            os.chmod(place, 0o777)
        shutil.rmtree(folder)


def as_nobody(function: Callable[[], object]) -> str:
    """`in_child`, as nobody. Whatever it imports has to be imported before: nobody may read that."""

    def run() -> object:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return function()

    return in_child(run)


def in_child(function: Callable[[], object]) -> str:
    """What the function gives in a forked process, as text; or the class and text of what it raised."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            try:
                said = str(function())
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(write, said.encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return said
