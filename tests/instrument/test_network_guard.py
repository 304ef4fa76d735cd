"""On replay nothing leaves the process below the recorded calls either: C142, C144."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

import stepfork
from stepfork.core.hosts import allows, is_local

OUTSIDE = "203.0.113.7"  # TEST-NET-3 (RFC 5737): routed nowhere


@pytest.fixture
def tools(make_module: Any) -> Any:
    return make_module(
        """
        import socket
        def note(text):
            return text
        def dial(host, port):
            with socket.socket() as s:
                s.setblocking(False)
                s.connect_ex((host, port))
                return "dialled"
        """
    )


@pytest.fixture
def path(tools: Any, tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        tools.note("a")
    return path


@pytest.fixture
def replaying(tools: Any, path: Path) -> Iterator[Any]:
    with stepfork.replay(path) as run:
        tools.note("a")
        yield run


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def goes_out(host: str = OUTSIDE, port: int = 80) -> None:
    """Tries to connect, whatever comes of it: there is a network here or none."""
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex((host, port))


def refused(place: str) -> Any:
    return pytest.raises(stepfork.BlockedNetworkError, match=f"blocked: a connection to {place} while ")


def test_a_public_address_is_refused_and_named(replaying: Any) -> None:
    with socket.socket() as sock, refused(f"{OUTSIDE}:80"):
        sock.connect((OUTSIDE, 80))
    with socket.socket() as sock, refused(f"{OUTSIDE}:81"):
        sock.connect_ex((OUTSIDE, 81))
    with refused(f"{OUTSIDE}:82"):
        socket.create_connection((OUTSIDE, 82), timeout=1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        with refused(f"{OUTSIDE}:83"):
            sock.sendto(b"metric:1|c", (OUTSIDE, 83))
        with refused(f"{OUTSIDE}:84"):
            sock.sendto(b"metric:1|c", 0, (OUTSIDE, 84))
        with refused(f"{OUTSIDE}:85"):
            sock.sendmsg([b"metric"], [], 0, (OUTSIDE, 85))
    with socket.socket(socket.AF_INET6) as sock, refused("2001:db8::1:86"):
        sock.connect(("2001:db8::1", 86))
    assert replaying.blocked == {f"{OUTSIDE}:{port}": 1 for port in range(80, 86)} | {"2001:db8::1:86": 1}


def test_a_name_is_refused_before_it_is_looked_up(replaying: Any) -> None:
    for look_up in (
        lambda: socket.getaddrinfo("api.example.org", 443),
        lambda: socket.create_connection(("api.example.org", "443")),
    ):
        with refused("api.example.org:443"):
            look_up()
    for look_up in (socket.gethostbyname, socket.gethostbyname_ex):
        with refused("api.example.org"):
            look_up("api.example.org")


@pytest.mark.parametrize("host", ["203.0.113.7", "2001:db8::1", "api.example.org"])
def test_the_name_of_an_address_is_not_asked_for(host: str, replaying: Any) -> None:
    for look_up in (socket.gethostbyaddr, socket.getfqdn, lambda host: socket.getnameinfo((host, 53), 0)):
        with refused(host):
            look_up(host)
    assert replaying.blocked == {host: 3}


def test_names_of_this_machine_and_numbers_are_free(replaying: Any) -> None:
    assert socket.getnameinfo((OUTSIDE, 53), socket.NI_NUMERICHOST)[0] == OUTSIDE
    for host in ("127.0.0.1", "localhost"):
        assert socket.gethostbyaddr(host)[0]
        assert socket.getfqdn(host)
    assert socket.getnameinfo(("127.0.0.1", 80), 0)[0]
    assert socket.getfqdn()
    assert replaying.blocked == {}


def test_the_name_of_an_allowed_address_is_asked_for(tools: Any, path: Path) -> None:
    with stepfork.replay(path, allow_hosts=["*.invalid", "127.0.0.2", f"{OUTSIDE}:53"]) as run:
        tools.note("a")
        with suppress(OSError):
            socket.gethostbyaddr("db.invalid")
        with suppress(OSError):
            socket.getnameinfo((OUTSIDE, 53), 0)
        assert run.blocked == {}


def test_the_error_says_what_to_do(replaying: Any, path: Path) -> None:
    with pytest.raises(stepfork.BlockedNetworkError) as caught:
        socket.getaddrinfo("prices.example.org", 443)
    assert str(caught.value) == (
        f"blocked: a connection to prices.example.org:443 while {path} is replayed; on replay nothing leaves "
        "this process. If a tool makes it, name the tool; if it is meant, allow it: "
        'allow_hosts = ["prices.example.org"]'
    )


@pytest.mark.parametrize("client", ["urllib", "requests", "httpx2"])
def test_C144_a_library_that_fetches_something_gets_the_clear_error(client: str, replaying: Any) -> None:
    """And no retry, no back-off, no 'connection error' around it."""
    with refused("tables.example.org:443"):
        if client == "urllib":
            import urllib.request

            urllib.request.urlopen("https://tables.example.org/prices.json")
        elif client == "requests":
            import requests

            requests.get("https://tables.example.org/prices.json", timeout=5)
        else:
            import httpx2

            httpx2.get("https://tables.example.org/prices.json")


def test_C142_what_stays_on_this_machine_goes_through(
    replaying: Any, listener: socket.socket, tmp_path: Path
) -> None:
    port = listener.getsockname()[1]
    for host in ("127.0.0.1", "localhost"):
        with socket.create_connection((host, port), timeout=5):
            pass
    left, right = socket.socketpair()
    left.send(b"x")
    assert right.recv(1) == b"x"
    left.close()
    right.close()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as sock:
        server.bind(str(tmp_path / "s"))
        server.listen()
        sock.connect(str(tmp_path / "s"))
    with suppress(OSError):
        socket.gethostbyname(socket.gethostname())
    socket.getaddrinfo("192.0.2.1", 80)  # nobody is asked

    async def main() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
        return await reader.read()

    thread = threading.Thread(target=lambda: [listener.accept()[0].close() for _ in range(3)])
    thread.start()
    assert asyncio.run(main()) == b""
    thread.join()
    assert replaying.blocked == {}


def test_asyncio_is_refused_too(replaying: Any) -> None:
    async def main() -> None:
        with refused("api.example.org:443"):
            await asyncio.open_connection("api.example.org", 443)
        with refused(f"{OUTSIDE}:443"):
            await asyncio.open_connection(OUTSIDE, 443)

    asyncio.run(main())


def test_threads_from_before_and_of_the_session_are_refused(tools: Any, path: Path) -> None:
    begun, done = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def dial() -> None:
        try:
            socket.create_connection((OUTSIDE, 80), timeout=0.2)
        except BaseException as error:
            errors.append(error)

    def background() -> None:
        begun.wait(10)
        dial()
        done.set()

    older = threading.Thread(target=background)
    older.start()
    with stepfork.replay(path) as run:
        tools.note("a")
        begun.set()
        assert done.wait(10)
        younger = threading.Thread(target=dial)
        younger.start()
        younger.join()
    older.join()
    assert [type(error) for error in errors] == [stepfork.BlockedNetworkError] * 2
    assert run.blocked == {f"{OUTSIDE}:80": 2}


def test_it_neither_fails_the_session_nor_enters_the_cassette(tools: Any, path: Path) -> None:
    """Telemetry that catches what it gets."""
    before = path.read_bytes()
    with stepfork.replay(path) as run:
        with suppress(Exception):
            socket.create_connection((OUTSIDE, 80), timeout=0.2)
        tools.note("a")
    assert path.read_bytes() == before
    assert run.counts.live == 0


def test_allowed_hosts_go_through(tools: Any, path: Path) -> None:
    with stepfork.replay(path, allow_hosts=[OUTSIDE, "*.invalid"]):
        tools.note("a")
        goes_out()
        with pytest.raises(socket.gaierror):  # asked, and there is none
            socket.getaddrinfo("api.invalid", 443)
        with refused("198.51.100.1:80"), socket.socket() as sock:
            sock.connect(("198.51.100.1", 80))


def test_an_allowed_name_allows_the_addresses_it_has(
    tools: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (OUTSIDE, 5432))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    with stepfork.replay(path, allow_hosts=["db.internal:5432"]):
        tools.note("a")
        with refused("db.internal:80"):
            socket.getaddrinfo("db.internal", 80)
        with refused(f"{OUTSIDE}:5432"):
            goes_out(port=5432)
        assert socket.getaddrinfo("db.internal", 5432) == answer
        goes_out(port=5432)


def test_recording_and_no_session_are_left_alone(tools: Any, tmp_path: Path) -> None:
    goes_out()
    path = tmp_path / "dial.yaml"
    with stepfork.record(path, tools=[tools.__name__]):
        goes_out()
        live = tools.dial(OUTSIDE, 80)
    with stepfork.replay(path):
        assert tools.dial(OUTSIDE, 80) == live == "dialled"
    goes_out()


def test_every_patch_is_undone(tools: Any, path: Path) -> None:
    kinds = (socket, socket.socket)
    before = [dict(vars(kind)) for kind in kinds]
    with stepfork.replay(path):
        tools.note("a")
        assert dict(vars(socket.socket)) != before[1]
    assert [dict(vars(kind)) for kind in kinds] == before


@pytest.mark.parametrize("rule", ["", "http://a", "a:b", "a b", "a:1:2", "a/b"])
def test_a_rule_that_names_no_host(rule: str, path: Path) -> None:
    with pytest.raises(stepfork.ConfigError, match="allow_hosts must hold"):
        stepfork.replay(path, allow_hosts=[rule])


@examples(100)
@given(st.ip_addresses(v=4))
def test_only_loopback_is_local(address: Any) -> None:
    assert is_local(str(address)) == (address.is_loopback or address.is_unspecified)
    assert is_local(f"::ffff:{address}") == is_local(str(address))


def test_rules() -> None:
    assert allows(["Example.ORG."], "example.org", 443)
    assert allows(["[::1]:80"], "0:0:0:0:0:0:0:1", 80)
    assert allows(["2001:db8::1"], "2001:db8:0::1", 80)
    assert not allows(["2001:db8::1"], "2001:db8::2", 80)
    assert not allows(["*.example.org"], "example.org", 80)
    assert not allows(["example.org:443"], "example.org", 80)
    assert allows(["example.org:443"], "example.org", None)
    assert is_local("app.localhost")
    assert not is_local("localhost.example.org")
