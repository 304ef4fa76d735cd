"""Connections that would leave this process while it replays: refused. Knows sockets; no HTTP, no cassette.

Loopback, sockets of the file system and the hosts that ``allow_hosts`` names go through, and so does all
that a live call does.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from stepfork.core.hosts import allows, is_local, numeric
from stepfork.errors import BlockedNetworkError
from stepfork.instrument.adapter import Patch
from stepfork.session import active, network

_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)
_MOST: Final = 1000
_names: dict[str, set[str]] = {}  # address -> the allowed names that were looked up and have it


def _connect(wrapped: Callable[..., Any], sock: Any, args: Any, kwargs: Any) -> Any:
    __tracebackhide__ = True
    if args and sock.family in _INTERNET and not active.idle():
        try:
            check_address(args[0])
        except BlockedNetworkError:
            sock.close()  # `socket.create_connection` closes it for an OSError only
            raise
    return wrapped(*args, **kwargs)


def _send_to(wrapped: Callable[..., Any], sock: Any, args: Any, kwargs: Any) -> Any:
    """``sendto(data[, flags], address)``, ``sendmsg(buffers[, ancillary[, flags[, address]]])``."""
    __tracebackhide__ = True
    if len(args) > 1 and sock.family in _INTERNET and isinstance(args[-1], tuple) and not active.idle():
        check_address(args[-1])
    return wrapped(*args, **kwargs)


def _look_up(wrapped: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
    """Around what asks the name service for the addresses of a name."""
    __tracebackhide__ = True
    host = args[0] if args else kwargs.get("host")
    allowed = check_name(host, args[1] if len(args) > 1 else kwargs.get("port"))
    found = wrapped(*args, **kwargs)
    if allowed is not None:
        remember(allowed, found)
    return found


def _look_back(wrapped: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
    """Around what asks it for names: ``gethostbyaddr(host)``, ``getnameinfo(address, flags)``."""
    __tracebackhide__ = True
    check_back(*args[:2])
    return wrapped(*args, **kwargs)


def check_name(host: Any, port: Any) -> str | None:
    """The name if it may be looked up because the settings name it; None where nobody would be asked.

    Raises:
        BlockedNetworkError: if it may not. A name says more than the address that it stands for.
    """
    __tracebackhide__ = True
    if active.idle() or not isinstance(host, str | bytes):
        return None
    name = _text(host)
    if is_local(name) or numeric(name) is not None or name == socket.gethostname():
        return None
    number = int(port) if isinstance(port, int) or (isinstance(port, str) and port.isdecimal()) else None
    return name if network.check_host(name, number, lambda rules: allows(rules, name, number)) else None


def check_back(asked: Any = None, flags: Any = 0) -> None:
    """Whether the name service may be asked for the name of a host or of a socket's address.

    Raises:
        BlockedNetworkError: if not.
    """
    __tracebackhide__ = True
    if active.idle():
        return
    host = asked[0] if isinstance(asked, tuple) and asked else asked
    if not isinstance(host, str | bytes):
        return
    if numeric(_text(host)) is None:
        check_name(host, None)
    elif not (isinstance(flags, int) and flags & socket.NI_NUMERICHOST):
        check_address((host, None))


def remember(name: str, found: Any) -> None:
    """Which addresses an allowed name has."""
    if not isinstance(found, list):
        return
    if len(_names) > _MOST:
        _names.clear()
    for *_, address in found:
        if isinstance(address, tuple) and address and isinstance(address[0], str):
            _names.setdefault(address[0], set()).add(name)


def check_address(address: Any) -> None:
    """Whether the settings allow an address, if it is not this machine's.

    Raises:
        BlockedNetworkError: if not.
    """
    __tracebackhide__ = True
    if not isinstance(address, tuple) or len(address) < 2:
        return
    host, port = address[0], address[1]
    name = _text(host) if isinstance(host, bytes | bytearray) else host
    if not isinstance(name, str) or is_local(name):
        return
    known = (name, *_names.get(name, ()))
    number = port if isinstance(port, int) else None
    network.check_host(name, number, lambda rules: any(allows(rules, host, number) for host in known))


def _text(host: str | bytes | bytearray) -> str:
    return host if isinstance(host, str) else host.decode("ascii", "replace")


class _Network:
    module = "socket"

    def patches(self) -> Sequence[Patch]:
        return (
            Patch("socket:socket.connect", _connect),
            Patch("socket:socket.connect_ex", _connect),
            Patch("socket:socket.sendto", _send_to),
            Patch("socket:socket.sendmsg", _send_to, optional=True),
            Patch("socket:getaddrinfo", _look_up),
            Patch("socket:gethostbyname", _look_up),
            Patch("socket:gethostbyname_ex", _look_up),
            Patch("socket:gethostbyaddr", _look_back),
            Patch("socket:getnameinfo", _look_back),
        )


ADAPTER = _Network()
