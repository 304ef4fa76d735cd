"""Whether stepfork itself looks at a value here. Knows the thread that looks; knows no value and no call.

To read or to make a value, code of the program may run: a property, a codec, a text of an exception. What it
calls is none of the trajectory's calls: on replay the value is looked at another number of times.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Final, ParamSpec, TypeVar

_ROOM: Final = 250
"""Frames that looking at an ordinary value does not take."""
P = ParamSpec("P")
T = TypeVar("T")


class _Looks(threading.local):
    depth = 0


_looks = _Looks()


def is_looking() -> bool:
    """Whether what runs here runs because stepfork looks at a value.

    >>> is_looking(), looks(is_looking)()
    (False, True)
    """
    return _looks.depth > 0


def is_out_of_stack() -> bool:
    """Whether the program has nested its calls so deep that there is no room to look at a value.

    >>> is_out_of_stack()
    False
    """
    left: int = sys.getrecursionlimit() - _ROOM
    frame: FrameType | None = sys._getframe()
    while frame is not None and left > 0:
        frame, left = frame.f_back, left - 1
    return frame is not None


def looks(function: Callable[P, T]) -> Callable[P, T]:
    """For functions of ours that may run code of the program to read or make a value."""

    @wraps(function)
    def looking(*args: P.args, **kwargs: P.kwargs) -> T:
        _looks.depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            _looks.depth -= 1

    return looking
