"""Access control of the name server: any client may read routes, but not change them.

RocketMQ's name server accepts registrations from any program that can reach it, so an attacker can redirect a topic's
messages to a broker of his own (route poisoning). Here request codes that change something, or show more than routes,
are served to programs on this machine, and to requests signed with an administrator's account. `writeAccess` decides
whether programs on this machine must sign, too.
"""

from __future__ import annotations

from appliance.acl.access import Access, AccessDenied, AccessOptions, Peer, Request
from appliance.acl.account_book import AccountBook
from appliance.acl.address import parse_address
from appliance.acl.permission_table import ADMIN
from gantrymq.remoting.codes import RequestCode

LOOPBACK, SIGNED, ANY = "loopback", "signed", "any"
WRITE_ACCESS = (LOOPBACK, SIGNED, ANY)

PROTECTED = frozenset(
    {
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.QUERY_DATA_VERSION,  # keeps a broker in the routes as a registration does
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        RequestCode.PUT_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.UPDATE_NAMESRV_CONFIG,
        RequestCode.GET_NAMESRV_CONFIG,  # shows paths
    }
)


class _NoStore:
    """A name server has no messages, and no request code that refers to one."""

    def topic_at(self, physical_offset: int) -> str | None:
        return None


class NamesrvAccess:
    """Refuses protected codes without local address or signature. book: the accounts, None without any."""

    def __init__(self, book: AccountBook | None, *, write_access: str, options: AccessOptions) -> None:
        self._is_local_enough = write_access == LOOPBACK
        self._signed = (
            Access(book, _NoStore(), table=dict.fromkeys(PROTECTED, ADMIN), options=options) if book else None
        )

    def __call__(self, peer: Peer, request: Request) -> None:
        """Return to let the request pass. Raises AccessDenied."""
        if request.code not in PROTECTED or (self._is_local_enough and is_local(peer)):
            return
        if self._signed is None:
            raise AccessDenied(
                "remote_write",
                f"request code {request.code} is served on the name server's own machine only: it has no accounts",
            )
        self._signed(peer, request)

    def unknown_code(self, peer: Peer, code: int) -> bool:
        """Never close a connection because of unknown codes."""
        return False


def is_local(peer: Peer) -> bool:
    """Whether a connection comes from this machine: over loopback, or from the address to which it connects."""
    remote = parse_address(peer.remote_address[0])
    return remote is not None and (remote.is_loopback or remote == parse_address(peer.local_host))
