"""A disk that fails at a given step: what `os` does to one folder's files raises, is cut short, or kills."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_BY_NUMBER = ("write", "fsync", "read", "lseek", "ftruncate", "fchmod")
_BY_NAME = ("open", "replace", "rename", "unlink")
FOR_EVER = 1 << 30


class Disk:
    """Counts the steps in a folder; from step `at` on, `times` of them fail as `how` says.

    Attributes:
        steps: the names of the steps so far.
    """

    def __init__(self, folder: Path, how: str, at: int, times: int = 1, only: str = "") -> None:
        self.steps: list[str] = []
        self._folder, self._how, self._at, self._times, self._only = str(folder), how, at, times, only

    @property
    def reached(self) -> bool:
        """Whether any step has failed."""
        return len(self.steps) > self._at

    def insert(self, patch: pytest.MonkeyPatch) -> None:
        """From now on all steps go through it."""
        for name in (*_BY_NUMBER, *_BY_NAME):
            if not self._only or name == self._only:
                patch.setattr(os, name, self._step(name, getattr(os, name)))

    def _step(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(what: Any, *rest: Any, **more: Any) -> Any:
            if self._is_here(what):
                number = len(self.steps)
                self.steps.append(name)
                if self._at <= number < self._at + self._times:
                    if name == "write" and self._how in ("short", "torn"):
                        (data,) = rest
                        taken = real(what, bytes(data)[: max(1, len(data) // 2)])
                        if self._how == "short":
                            return taken
                    if self._how == "interrupts":
                        if threading.current_thread() is threading.main_thread():  # no other is interrupted
                            raise KeyboardInterrupt
                        return real(what, *rest, **more)
                    if self._how == "dies":
                        os._exit(9)
                    if self._how != "short":
                        code = getattr(errno, self._how, errno.ENOSPC)
                        raise OSError(code, os.strerror(code))
            return real(what, *rest, **more)

        return step

    def _is_here(self, what: Any) -> bool:
        if isinstance(what, int):
            try:
                return os.readlink(f"/proc/self/fd/{what}").startswith(self._folder)
            except OSError:
                return False
        return os.fspath(what).startswith(self._folder)
