"""The connections of a broker as an operator sees them: who it is, from where, since when, and how much it asks.

A page at a time: ten thousand connections at once would be a long answer, and hold up the others.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from typing import Any

from appliance.acl.access import account_name
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.proxied_clients import ProxiedClients
from appliance.remoting.connection import ServerConnection

PAGE_MAX = 500  # connections
GROUPS_SHOWN_MAX = 32  # of one connection, of each kind


def page_after(connections: Iterable[ServerConnection], number: int) -> list[ServerConnection]:
    """The next connections by their number, at most PAGE_MAX."""
    later = (connection for connection in connections if connection.number > number and not connection.is_closing)
    return heapq.nsmallest(PAGE_MAX, later, key=lambda connection: connection.number)


def described(
    connection: ServerConnection, producers: ProducerManager, consumers: ConsumerManager, proxied: ProxiedClients
) -> dict[str, Any]:
    """One connection: times in ms since the epoch, requests since it was opened; a client that said no name has none.

    groups: how many there are, when not all are named. proxy, proxied: of a proxy, where it listens and its clients.
    """
    now_ms, now_s = time.time() * 1000, time.monotonic()
    made, taken = producers.of_connection(connection), consumers.of_connection(connection)
    members = [*made.values(), *taken.values()]
    report = proxied.of_connection(connection)
    return {
        "number": connection.number,
        "address": connection.remote_text,
        "openedAt": int(now_ms - (now_s - connection.opened_at) * 1000),
        "lastSeenAt": int(now_ms - (now_s - connection.last_seen) * 1000),
        "tls": connection.has_tls,
        "account": account_name(connection) or "",
        "requests": connection.frame_count,
        "clientIds": list(dict.fromkeys(member.client_id for member in members))[:GROUPS_SHOWN_MAX],
        "language": members[0].language if members else "",
        "version": members[0].version if members else 0,
        "producerGroups": sorted(made)[:GROUPS_SHOWN_MAX],
        "consumerGroups": sorted(taken)[:GROUPS_SHOWN_MAX],
        "groups": len(made) + len(taken),
        "proxy": report.address if report is not None else "",
        "proxied": [each.to_dict() for each in report.clients] if report is not None else [],
    }


def sender_of(connection: ServerConnection, producers: ProducerManager) -> dict[str, Any]:
    """One connection as a producer; a sender that sends no heartbeat has no name but its address."""
    made = producers.of_connection(connection)
    members = [*made.values()]
    return {
        "address": connection.remote_text,
        "clientId": members[0].client_id if members else "",
        "language": members[0].language if members else "",
        "groups": sorted(made)[:GROUPS_SHOWN_MAX],
    }


def those_of(
    connections: Iterable[ServerConnection],
    client_id: str,
    address: str,
    producers: ProducerManager,
    consumers: ConsumerManager,
) -> list[ServerConnection]:
    """The open connections of a client, or of one address ("ip:port"); with both, those that are both."""

    def is_meant(connection: ServerConnection) -> bool:
        if connection.is_closing or (address and connection.remote_text != address):
            return False
        if not client_id:
            return True
        members = (*producers.of_connection(connection).values(), *consumers.of_connection(connection).values())
        return any(member.client_id == client_id for member in members)

    return [connection for connection in connections if is_meant(connection)]
