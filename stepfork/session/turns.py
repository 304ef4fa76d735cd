"""One thing after the other, also where one thread does both. Knows no call and no lock.

A lock that a thread may take again keeps other threads out, but not what interrupts its own: a signal
handler, or a finaliser that the garbage collector runs. What these ask for waits for what they interrupt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Turns:
    """The turns that what is under one lock takes.

    >>> turns, done = Turns(), []
    >>> with turns:
    ...     turns.take(lambda: done.append("second"))
    ...     done.append("first")
    >>> done
    ['first', 'second']
    """

    def __init__(self) -> None:
        self.taken = False
        self._later: deque[Callable[[], None]] = deque()

    def take(self, act: Callable[[], None]) -> None:
        """Does something now, or at the end of the turn that it interrupts."""
        self._later.append(act)
        if not self.taken:
            with self:
                pass

    def __enter__(self) -> None:
        self.taken = True

    def __exit__(self, *_: object) -> None:
        try:
            while self._later:
                self._later.popleft()()
        finally:
            self.taken = False
        if self._later:  # came since it was looked for the last time
            with self:
                pass
