"""Address, scheme and host of a request as the browser sent it, behind a trusted proxy. Values only.

Proxies report them in headers, but any client can send these headers, too. They are used only if the peer's address is
one of `trusted_proxies`, and only the family named by `proxy_headers`: a proxy that sets X-Forwarded-For passes on a
client's Forwarded header, and vice versa. In a chain of addresses each trusted hop reports the one to its left; the
first that is not trusted is the client, and everything further left is ignored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import NamedTuple

from appliance.settings.appliance_config import FORWARDED
from appliance.settings.checks import Network

HOPS_MAX = 32
PROXY_HEADERS = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"})

HeaderValues = Callable[[bytes], list[bytes]]  # a header's name to its values, in order


class Seen(NamedTuple):
    """A request as the browser sent it. Host None: as the Host header says. Port 0: only the proxy knows."""

    address: str
    port: int
    scheme: str
    host: bytes | None = None


class Hop(NamedTuple):
    """What one proxy said about its peer; empty: nothing."""

    address: str
    scheme: str = ""
    host: str = ""


class TrustedProxies:
    def __init__(self, networks: tuple[Network, ...], headers: str) -> None:
        self._networks = networks
        self._reads = _forwarded if headers == FORWARDED else _x_forwarded

    def trusts(self, host: str) -> bool:
        address = _address(host)
        return address is not None and any(address in network for network in self._networks)

    def seen(self, address: str, port: int, scheme: str, values: HeaderValues) -> Seen:
        """`address`, `port` and `scheme` of the connection itself."""
        if not self.trusts(address):
            return Seen(address, port, scheme)
        hops = self._reads(values)
        client, said = address, hops[-1] if hops else Hop("")
        for hop in reversed(hops):
            found = _address(hop.address)
            if found is None:  # obscured, unknown or nonsense: the last trusted hop stands for it
                break
            client, said = str(found), hop
            if not self.trusts(client):
                break
        host = said.host.encode("latin-1") or None
        return Seen(client, 0 if client != address else port, said.scheme or scheme, host)


def _x_forwarded(values: HeaderValues) -> list[Hop]:
    """From left to right. Schemes and hosts belong to hops when there are as many, else the last counts for all."""
    addresses = _items(values(b"X-Forwarded-For"))
    schemes = _one_each(_items(values(b"X-Forwarded-Proto")), len(addresses))
    hosts = _one_each(_items(values(b"X-Forwarded-Host")), len(addresses))
    if not addresses:
        return [Hop("", _scheme(schemes[-1]), hosts[-1])]
    return [
        Hop(address, _scheme(scheme), host) for address, scheme, host in zip(addresses, schemes, hosts, strict=True)
    ]


def _forwarded(values: HeaderValues) -> list[Hop]:
    """RFC 7239, from left to right."""
    hops = []
    for item in _items(values(b"Forwarded")):
        pairs = (pair.partition("=") for pair in item.split(";"))
        said = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        hops.append(Hop(said.get("for", ""), _scheme(said.get("proto", "")), said.get("host", "")))
    return hops


def _items(values: list[bytes]) -> list[str]:
    """The last items of a list header, wherever its lines were broken."""
    items = [item.strip() for item in b",".join(values).decode("latin-1").split(",")]
    return [item for item in items if item][-HOPS_MAX:]


def _one_each(items: list[str], count: int) -> list[str]:
    return items if len(items) == count > 0 else [items[-1] if items else ""] * max(count, 1)


def _scheme(text: str) -> str:
    """http or https; empty for what is neither."""
    return {"http": "http", "https": "https", "ws": "http", "wss": "https"}.get(text.lower(), "")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address, perhaps with a port and brackets; None for anything else."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
