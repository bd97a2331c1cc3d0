"""Access control as connections see it: a gate that each request passes before it is queued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from appliance.remoting.error_response import error_response
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.client_peer import ClientPeer


class AccessGate(Protocol):
    """Access control; see appliance/acl/access.py."""

    def __call__(self, peer: ClientPeer, request: RemotingCommand) -> None:
        """Return to let the request pass; raise the error that its client gets as response."""

    def unknown_code(self, peer: ClientPeer, code: int) -> bool:
        """Count a request with an unsupported code; True when the connection must be closed."""


def is_permitted(access: AccessGate, peer: ClientPeer, request: RemotingCommand) -> bool:
    """Whether the gate lets the request pass; otherwise its client gets the reason."""
    try:
        access(peer, request)
    except Exception as exc:  # a refusal, a malformed body, or a bug: any error refuses the request
        if not request.is_oneway:
            peer.write(error_response(request, exc).encode())
        return False
    return True
