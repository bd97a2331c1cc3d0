"""Where a request or a socket comes from: the one place that says it, for limits, logs and sessions.

It is the `client` of the ASGI scope: the peer of the connection, or, behind a trusted proxy, the forwarded address,
which dashboard/web/server.py puts there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

UNKNOWN = "unknown"
IPV6_PREFIX_BITS = 64  # one customer has all addresses of such a network


def client_address(source: HttpRequest | Mapping[str, Any]) -> str:
    """The address of a request, or of a socket by its scope; a mapped IPv4 address is written as IPv4."""
    scope: Mapping[str, Any] = source.scope if isinstance(source, HttpRequest) else source  # type: ignore[attr-defined]
    client = scope.get("client")
    if not client or not client[0]:
        return UNKNOWN
    address = _parse(client[0])
    return str(address) if address is not None else str(client[0])


def counted_address(address: str) -> str:
    """The address under which limits count: IPv6 addresses by their network, else one host would have 2⁶⁴ tries."""
    parsed = _parse(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, IPV6_PREFIX_BITS), strict=False))
    return address


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
