"""uvloop connects in C, past `socket`: on replay it is refused as everything else is: C142."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

import stepfork

OUTSIDE = "203.0.113.7"  # TEST-NET-3 (RFC 5737): routed nowhere
DATAGRAM = asyncio.DatagramProtocol


@pytest.fixture
def path(make_module: Any, tmp_path: Path) -> Path:
    tools = make_module("def note(text):\n    return text\n")
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.note("a")
    return path


@pytest.fixture
def replaying(path: Path) -> Iterator[Any]:
    """Every call of it is optional: the session is left before its end is judged."""
    with pytest.raises(KeyboardInterrupt), stepfork.replay(path) as run:
        yield run
        raise KeyboardInterrupt


GOES_OUT: dict[str, tuple[str, Callable[[Any], Awaitable[Any]]]] = {
    "address": (f"{OUTSIDE}:80", lambda loop: asyncio.open_connection(OUTSIDE, 80)),
    "address of version 6": ("2001:db8::1:80", lambda loop: asyncio.open_connection("2001:db8::1", 80)),
    "port as text": (f"{OUTSIDE}:80", lambda loop: asyncio.open_connection(OUTSIDE, "80")),
    "name": ("api.example.org:443", lambda loop: asyncio.open_connection("api.example.org", 443)),
    "keywords": (
        f"{OUTSIDE}:80",
        lambda loop: loop.create_connection(protocol_factory=asyncio.Protocol, host=OUTSIDE, port=80),
    ),
    "datagrams": (
        f"{OUTSIDE}:53",
        lambda loop: loop.create_datagram_endpoint(DATAGRAM, remote_addr=(OUTSIDE, 53)),
    ),
    "datagrams to a name": (
        "api.example.org:53",
        lambda loop: loop.create_datagram_endpoint(DATAGRAM, None, ("api.example.org", 53)),
    ),
    "look-up": ("api.example.org:443", lambda loop: loop.getaddrinfo("api.example.org", 443)),
    "look back": (OUTSIDE, lambda loop: loop.getnameinfo((OUTSIDE, 80))),
    "socket": (f"{OUTSIDE}:80", lambda loop: loop.sock_connect(non_blocking(), (OUTSIDE, 80))),
    "socket to a name": (
        "api.example.org:80",
        lambda loop: loop.sock_connect(non_blocking(), ("api.example.org", 80)),
    ),
}


def non_blocking() -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    return sock


@pytest.mark.parametrize("how", GOES_OUT)
@pytest.mark.filterwarnings("ignore:unclosed <socket")
def test_C142_nothing_leaves_through_uvloop(how: str, replaying: Any) -> None:
    place, connect = GOES_OUT[how]

    async def main() -> None:
        with pytest.raises(stepfork.BlockedNetworkError, match=f"blocked: a connection to {place} while "):
            await connect(asyncio.get_running_loop())

    uvloop.run(main())
    assert replaying.blocked == {place: 1}


class Echo(asyncio.DatagramProtocol):
    """Sends back what it gets."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.lost = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.got.append(data)
        if len(self.got) == 1:
            self.transport.sendto(data + b"!", addr)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


def test_datagrams_that_are_sent_anywhere_stay_on_this_machine(replaying: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
        assert transport.get_protocol() is protocol
        assert protocol.transport is transport
        with pytest.raises(stepfork.BlockedNetworkError, match=f"{OUTSIDE}:53"):
            transport.sendto(b"x", (OUTSIDE, 53))
        transport.sendto(b"x", transport.get_extra_info("sockname"))
        await protocol.lost
        assert protocol.got == [b"x", b"x!"]
        assert transport.is_closing()

    uvloop.run(main())
    assert replaying.blocked == {f"{OUTSIDE}:53": 1}


def test_what_stays_on_this_machine_goes_through_uvloop(replaying: Any, tmp_path: Path) -> None:
    async def answer(reader: Any, writer: Any) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def asked(connection: Any) -> bytes:
        reader, writer = await connection
        writer.write(b"hello\n")
        said = await reader.read()
        writer.close()
        return bytes(said)

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            assert await asked(asyncio.open_connection(host, port)) == b"hello\n"
        loop = asyncio.get_running_loop()
        sock = non_blocking()
        await loop.sock_connect(sock, ("127.0.0.1", port))
        assert await asked(asyncio.open_connection(sock=sock)) == b"hello\n"
        of_file = await asyncio.start_unix_server(answer, tmp_path / "s")
        assert await asked(asyncio.open_unix_connection(str(tmp_path / "s"))) == b"hello\n"
        assert await loop.getaddrinfo("localhost", port)
        assert await loop.getnameinfo((OUTSIDE, 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV) == (
            OUTSIDE,
            "80",
        )
        server.close()
        of_file.close()

    uvloop.run(main())
    assert replaying.blocked == {}


def test_uvloop_may_go_where_the_settings_say(path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(socket.gaierror):  # asked, and there is none
            await loop.getaddrinfo("api.invalid", 443)
        with pytest.raises(OSError):  # the same
            await asyncio.open_connection("api.invalid", 443)
        transport, _ = await loop.create_datagram_endpoint(DATAGRAM, remote_addr=(OUTSIDE, 53))
        transport.close()

    with (
        pytest.raises(KeyboardInterrupt),
        stepfork.replay(path, allow_hosts=[f"{OUTSIDE}:53", "*.invalid"]) as run,
    ):
        uvloop.run(main())
        assert run.blocked == {}
        raise KeyboardInterrupt


def test_every_patch_of_uvloop_is_undone(path: Path) -> None:
    before = dict(vars(uvloop.Loop))
    with pytest.raises(KeyboardInterrupt), stepfork.replay(path):
        assert dict(vars(uvloop.Loop)) != before
        raise KeyboardInterrupt
    assert dict(vars(uvloop.Loop)) == before
