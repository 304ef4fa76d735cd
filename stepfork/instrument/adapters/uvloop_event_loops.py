"""uvloop: its event loop has a ``create_task`` of its own, and reaches the network past `socket`.

What becomes of a task is `event_loops.py`'s, what may leave this process `network.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepfork.instrument.adapter import Patch
from stepfork.instrument.adapters import _uvloop_network
from stepfork.instrument.adapters.event_loops import create_task, run_until_complete


class _Uvloop:
    module = "uvloop"

    def patches(self) -> Sequence[Patch]:
        return (
            Patch("uvloop:Loop.create_task", create_task, optional=True),
            Patch("uvloop:Loop.run_until_complete", run_until_complete, optional=True),
            Patch("uvloop:Loop.create_connection", _uvloop_network.connect, optional=True),
            Patch("uvloop:Loop.create_datagram_endpoint", _uvloop_network.datagrams, optional=True),
            Patch("uvloop:Loop.getaddrinfo", _uvloop_network.look_up, optional=True),
            Patch("uvloop:Loop.getnameinfo", _uvloop_network.look_back, optional=True),
        )


ADAPTER = _Uvloop()
