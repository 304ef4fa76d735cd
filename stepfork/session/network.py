"""Whether a connection may leave this process. Knows the open sessions and their settings, no socket."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepfork.errors import BlockedNetworkError
from stepfork.session import active
from stepfork.session.faults import shown


def check_host(host: str, port: int | None, allowed: Callable[[Sequence[str]], bool]) -> bool:
    """Whether the settings name a host that is not this machine; `allowed` tells it by their rules.

    Raises:
        BlockedNetworkError: if it does not, and a cassette is replayed.
    """
    __tracebackhide__ = True
    run = active.guard()
    if run is None:
        return False
    if allowed(run.settings.allow_hosts):
        return True
    place = host if port is None else f"{host}:{port}"
    run.blocked[place] = run.blocked.get(place, 0) + 1
    raise BlockedNetworkError(
        f"blocked: a connection to {place} while {shown(run.path)} is replayed; on replay nothing leaves "
        f'this process. If a tool makes it, name the tool; if it is meant, allow it: allow_hosts = ["{host}"]'
    )
