"""Where the dashboard may send to: no address of this machine or a private network, unless a setting has it.

A name is resolved once, every address it has is looked at, and the connection goes to the address that was looked at:
a name that means something else a moment later changes nothing (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from appliance.settings.checks import Network
from dashboard.language.sentences import gettext
from gantrymq.errors import GantryError

PORTS = {"http": 80, "https": 443}
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Python takes these for public: site-local, a NAT64 of one's own (RFC 8215), and relays of 6to4, which lead anywhere.
NOT_PUBLIC = tuple(ipaddress.ip_network(text) for text in ("fec0::/10", "64:ff9b:1::/48", "192.88.99.0/24"))
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class TargetRefused(GantryError):
    """Nothing is sent there; the text says why."""


class NotResolved(GantryError):
    """The name has no address at the moment."""


def split_url(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises TargetRefused."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        raise TargetRefused(gettext("This is not an address.")) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise TargetRefused(gettext("The address begins with https:// or http:// and names a host."))
    if parts.username is not None or parts.password is not None:
        raise TargetRefused(gettext("The address must not have a name or password before the host."))
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise TargetRefused(gettext("The address has a space or control character in it."))
    return parts.scheme, parts.hostname, port


def resolve(host: str, port: int, allowed: Sequence[Network], setting: str) -> str:
    """The address to connect to. Blocking. setting: where `allowed` comes from. Raises TargetRefused, NotResolved."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise NotResolved(gettext("%(host)s has no address (%(error)s)") % {"host": host, "error": exc}) from exc
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not may_send_to(address, allowed):
            raise TargetRefused(
                gettext(
                    "%(host)s is %(address)s, which is not a public address. If that is intended, "
                    "allow it with the appliance's setting %(setting)s."
                )
                % {"host": host, "address": address, "setting": setting}
            )
    if not addresses:
        raise NotResolved(gettext("%(host)s has no address") % {"host": host})
    return addresses[0]


def may_send_to(text: str, allowed: Sequence[Network]) -> bool:
    """Whether an address is public, or allowed by name. An IPv4 address inside an IPv6 one counts as itself."""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    address = _inner(address)
    if any(address in network for network in allowed if network.version == address.version):
        return True
    if any(address in network for network in NOT_PUBLIC if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inner(address: Address) -> Address:
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in NAT64 or int(address) >> 32 == 0:  # also the old “compatible” form
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
