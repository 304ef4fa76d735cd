"""Coroutines in threads that have no event loop: there they block and never suspend. Knows no program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

LIMIT = 30.0
"""Seconds after which a line that nobody woke says so: what is tested hangs, not the program."""


def running_loop() -> Any:
    """The event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def drive(body: Coroutine[Any, Any, None]) -> None:
    """Runs a body in a thread that has no event loop: nothing in it ever suspends."""
    try:
        body.send(None)
    except StopIteration:
        return
    raise AssertionError("the body suspended outside an event loop")


def in_a_thread(body: Coroutine[Any, Any, None]) -> None:
    """Runs a body in a thread of its own and waits for it; raises what it raises."""
    errors: list[BaseException] = []

    def target() -> None:
        try:
            drive(body)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join()  # one that may give up waits for nothing
    if errors:
        raise errors[0]
