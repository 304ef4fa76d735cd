"""What uvloop connects to and looks up in C, past `socket`. Which may leave is `network.py`'s to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stepfork.core.hosts import numeric
from stepfork.instrument.adapters.network import check_address, check_back, check_name, remember
from stepfork.session import active

_REMOTE: Final = 2  # create_datagram_endpoint(protocol_factory, local_addr, remote_addr)


async def connect(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Around ``create_connection(protocol_factory, host, port)``."""
    __tracebackhide__ = True
    host = args[1] if len(args) > 1 else kwargs.get("host")
    _check(host, args[2] if len(args) > 2 else kwargs.get("port"))
    return await wrapped(*args, **kwargs)


async def look_up(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Around ``getaddrinfo(host, port)``."""
    __tracebackhide__ = True
    host = args[0] if args else kwargs.get("host")
    allowed = check_name(host, args[1] if len(args) > 1 else kwargs.get("port"))
    found = await wrapped(*args, **kwargs)
    if allowed is not None:
        remember(allowed, found)
    return found


async def look_back(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Around ``getnameinfo(sockaddr, flags)``."""
    __tracebackhide__ = True
    address = args[0] if args else kwargs.get("sockaddr")
    check_back(address, args[1] if len(args) > 1 else kwargs.get("flags", 0))
    return await wrapped(*args, **kwargs)


async def datagrams(wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: Any) -> Any:
    """Around ``create_datagram_endpoint(protocol_factory, local_addr, remote_addr)``.

    What it makes is connected to an address, or sends to any.
    """
    __tracebackhide__ = True
    remote = args[_REMOTE] if len(args) > _REMOTE else kwargs.get("remote_addr")
    if isinstance(remote, tuple | list) and len(remote) == 2:
        _check(*remote)
    if remote is not None or active.idle():
        return await wrapped(*args, **kwargs)
    factory, *others = args or (kwargs.pop("protocol_factory"),)
    made: list[_Protocol] = []

    def protocol() -> _Protocol:
        made.append(_Protocol(factory()))
        return made[0]

    await wrapped(protocol, *others, **kwargs)
    return made[0].transport, made[0].inner


def _check(host: Any, port: Any) -> None:
    __tracebackhide__ = True
    if host is None or active.idle():
        return
    number = int(port) if isinstance(port, str) and port.isdecimal() else port
    if check_name(host, number) is None and numeric(host if isinstance(host, str) else "") is not None:
        check_address((host, number))


class _Protocol:
    """Stands between uvloop and a protocol of datagrams, which is to get a transport that is checked."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.transport: _Transport | None = None

    def connection_made(self, transport: Any) -> None:
        """The protocol learns its transport."""
        self.transport = _Transport(transport, self)
        self.inner.connection_made(self.transport)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _Transport:
    """Stands before a transport of uvloop, whose class takes no patch; `sendto` is checked."""

    def __init__(self, inner: Any, protocol: _Protocol) -> None:
        self._inner = inner
        self._protocol = protocol

    def sendto(self, data: Any, addr: Any = None) -> None:
        """Sends it, if it may leave."""
        __tracebackhide__ = True
        if not active.idle():
            check_address(addr)
        self._inner.sendto(data, addr)

    def get_protocol(self) -> Any:
        """The protocol that was given."""
        return self._protocol.inner

    def set_protocol(self, protocol: Any) -> None:
        """Takes another."""
        self._protocol.inner = protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
