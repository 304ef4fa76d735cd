"""Which hosts are this machine, and which a user's rules name. Pure: resolves nothing, opens nothing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

RULE: Final = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+|[0-9A-Fa-f:.]*::[0-9A-Fa-f:.]*)(:[0-9]{1,5})?")
"""``host``, ``host:port``, ``*.example.com``, ``[::1]:8080``."""


def is_local(host: str) -> bool:
    """Whether a host is this machine: loopback, the unspecified address, ``localhost`` and what ends in it.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("localhost"), is_local("10.0.0.1")
    (True, True, True, False)
    """
    name = host.rstrip(".").lower()
    if name in ("", "localhost", "localhost.localdomain", "ip6-localhost") or name.endswith(".localhost"):
        return True
    address = numeric(name)
    if address is None:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_unspecified


def numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is written as; None for a name.

    >>> numeric("10.0.0.1"), numeric("example.org")
    (IPv4Address('10.0.0.1'), None)
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0].strip("[]"))
    except ValueError:
        return None


def allows(rules: Iterable[str], host: str, port: int | None) -> bool:
    """Whether a rule names the host, or the host and port; a name that is only looked up has no port.

    >>> allows(["*.example.org", "db:5432"], "api.example.org", 443), allows(["db:5432"], "db", 80)
    (True, False)
    """
    name = _plain(host)
    for rule in rules:
        found = RULE.fullmatch(rule.strip())
        if found is not None and fnmatchcase(name, _plain(found[1])):
            wanted = found[2]
            if wanted is None or port is None or int(wanted[1:]) == port:
                return True
    return False


def _plain(host: str) -> str:
    name = host.strip("[]").rstrip(".").lower()
    address = numeric(name)
    return name if address is None else str(address)
