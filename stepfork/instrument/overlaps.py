"""Calls that run at the same time and were given the same object. Knows what they hold, no session, no file.

On replay each call is over before the next begins. So what one of them does to an object that the other has
got is there too early, or too late: such a recording would never match.
"""

from __future__ import annotations

import threading
from typing import Any, Final
from weakref import WeakSet

from stepfork.cassette.values import Unsupported, type_name
from stepfork.instrument.changes import HINT, Watched

_lock: Final = threading.Lock()


class AtWork:
    """A running call with the objects that it was given.

    `run` is its session, `ticket` the call itself, `inside` the one that it was made inside of.
    """

    def __init__(self, name: str, run: Any, ticket: Any, inside: Any, watched: Watched) -> None:
        self._name = name
        self._run = run
        self._ticket = ticket
        self._watched = watched
        self._met: list[AtWork] = []
        with _lock:
            others = [other for other in _running if other._run is run]
            self._above = next((other for other in others if other._ticket is inside), None)
            for other in others:
                if not self._is_inside(other) and self._watched.shares(other._watched):
                    self._met.append(other)
                    other._met.append(self)
            _running.add(self)

    def _is_inside(self, other: AtWork) -> bool:
        here = self._above
        while here is not None and here is not other:
            here = here._above
        return here is not None

    def ended(self) -> None:
        """It does no more.

        Raises:
            Unsupported: if it changed what another one had been given meanwhile.
        """
        with _lock:
            _running.discard(self)
        for other in self._met:
            node = self._watched.changed_under(other._watched)
            if node is not None:
                why = f"that changed while this call and one of {other._name!r} ran, which was given it too"
                raise Unsupported(f"argument {node.name()!r}", type_name(node.value), why, HINT)


_running: Final[WeakSet[AtWork]] = WeakSet()
