"""A client is gone when its last connection closed."""

from __future__ import annotations

from typing import cast

from appliance.broker.groups.client_connections import CLIENTS_MAX, ClientConnections
from appliance.remoting.connection import ServerConnection


def connection() -> ServerConnection:
    return cast("ServerConnection", object())


def test_a_client_is_gone_with_its_last_connection() -> None:
    connections, first, second = ClientConnections(), connection(), connection()
    for _ in range(2):
        connections.note("both", first)
        connections.note("both", second)
    connections.note("one", first)
    assert connections.closed(first) == ["one"]
    assert connections.closed(first) == []
    assert connections.closed(second) == ["both"]
    assert connections._connections == {} and connections._clients == {}


def test_a_connection_that_names_ever_more_clients_takes_no_more_room() -> None:
    connections, only = ClientConnections(), connection()
    for number in range(10 * CLIENTS_MAX):
        connections.note(f"client-{number}", only)
    assert len(connections.closed(only)) == CLIENTS_MAX
