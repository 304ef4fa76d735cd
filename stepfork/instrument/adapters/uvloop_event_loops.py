"""uvloop: its event loop has a ``create_task`` of its own. What becomes of a task is `event_loops.py`'s."""

from __future__ import annotations

from collections.abc import Sequence

from stepfork.instrument.adapter import Patch
from stepfork.instrument.adapters.event_loops import create_task, run_until_complete


class _Uvloop:
    module = "uvloop"

    def patches(self) -> Sequence[Patch]:
        return (
            Patch("uvloop:Loop.create_task", create_task, optional=True),
            Patch("uvloop:Loop.run_until_complete", run_until_complete, optional=True),
        )


ADAPTER = _Uvloop()
