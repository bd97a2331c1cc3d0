"""Which connections a client has: so that it counts as gone when its last one closed, and not before.

A client names itself in heartbeats and requests for locks. Mostly it has one connection, but a producer and a consumer
of one process may have two, and a client that connects again has the new one before the old one's end is seen.
"""

from __future__ import annotations

from appliance.remoting.connection import ServerConnection

CLIENTS_MAX = 64  # of one connection; the end of any further one goes unnoticed


class ClientConnections:
    """Connections by client id, and the other way round."""

    def __init__(self) -> None:
        self._connections: dict[str, set[ServerConnection]] = {}
        self._clients: dict[ServerConnection, set[str]] = {}

    def note(self, client_id: str, connection: ServerConnection) -> None:
        """The client said something over this open connection."""
        clients = self._clients.setdefault(connection, set())
        if client_id in clients or len(clients) >= CLIENTS_MAX:
            return
        clients.add(client_id)
        self._connections.setdefault(client_id, set()).add(connection)

    def closed(self, connection: ServerConnection) -> list[str]:
        """Forget the connection; return the clients that have no other."""
        gone = []
        for client_id in self._clients.pop(connection, ()):
            connections = self._connections[client_id]
            connections.discard(connection)
            if not connections:
                del self._connections[client_id]
                gone.append(client_id)
        return gone
