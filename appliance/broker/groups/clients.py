"""Who is connected, as heartbeats say: members of groups in general, and the producers. Consumers: consumer_groups.py.

A client heartbeats every 30 s over its one connection to this broker, so a connection is a member of many groups.
Members leave when their connection closes, when they unregister, or when they have been silent for two minutes.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from appliance.acl.access import account_name
from appliance.broker.groups.subscription_agreement import SubscriptionFingerprint
from appliance.remoting.connection import ServerConnection
from gantrymq.log_limit import LogLimit
from gantrymq.remoting.admin_bodies import Connection

logger = logging.getLogger(__name__)

SILENCE_S_MAX = 120.0  # RocketMQ: CHANNEL_EXPIRED_TIMEOUT


@dataclass(slots=True)
class ClientChannel:
    """One member of a group. last_update: the manager's clock at its last heartbeat. fingerprint: a consumer's."""

    connection: ServerConnection
    client_id: str
    language: str
    version: int
    last_update: float
    fingerprint: SubscriptionFingerprint | None = None

    def describe(self) -> Connection:
        """What the tools show of it."""
        return Connection(self.client_id, self.connection.remote_text, self.language, self.version)


Channels = dict[ServerConnection, ClientChannel]


class Memberships:
    """Which connection is a member of which groups: so that a closed connection costs its own groups only."""

    def __init__(self) -> None:
        self._groups: dict[ServerConnection, set[str]] = {}

    def add(self, connection: ServerConnection, group: str) -> None:
        self._groups.setdefault(connection, set()).add(group)

    def remove(self, connection: ServerConnection, group: str) -> None:
        groups = self._groups.get(connection)
        if groups is not None:
            groups.discard(group)
            if not groups:
                del self._groups[connection]

    def count(self, connection: ServerConnection) -> int:
        return len(self._groups.get(connection, ()))

    def of(self, connection: ServerConnection) -> list[str]:
        return list(self._groups.get(connection, ()))


class ProducerManager:
    """Producer groups, and producers by client id (for replies).

    may_see: whether a connection may see messages of a topic; None: everyone sees everything. clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        may_see: Callable[[ServerConnection, str], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._memberships = Memberships()
        self._log_limit = LogLimit()
        self._turn = itertools.count()
        self.groups: dict[str, Channels] = {}
        self._connection_of_client: dict[str, ServerConnection] = {}
        self._group_counts: Counter[tuple[str, ServerConnection]] = Counter()  # of a client on a connection
        self._may_see = may_see

    def register(self, group: str, connection: ServerConnection, client_id: str, language: str, version: int) -> None:
        """Note a heartbeat; a known member is refreshed."""
        members = self.groups.setdefault(group, {})
        self._note_client(client_id, connection)
        member = members.get(connection)
        if member is not None and member.client_id == client_id:
            member.last_update = self._clock()
            return
        members[connection] = ClientChannel(connection, client_id, language, version, self._clock())
        self._group_counts[client_id, connection] += 1
        if member is not None:  # another client on the same connection: the one before has left the group
            self._note_left(member)
        self._memberships.add(connection, group)
        if self._log_limit.allows("producer_joined", connection.remote_text.rpartition(":")[0]):
            logger.info("producer joined", extra={"event": "producer_joined", "group": group, "client": client_id})

    def unregister(self, group: str, connection: ServerConnection) -> None:
        """Take the connection out of a group."""
        members = self.groups.get(group)
        member = members.pop(connection, None) if members is not None else None
        if member is None:
            return
        self._memberships.remove(connection, group)
        if not members:
            del self.groups[group]
        self._note_left(member)
        if self._log_limit.allows("producer_left", connection.remote_text.rpartition(":")[0]):
            logger.info("producer left", extra={"event": "producer_left", "group": group, "client": member.client_id})

    def _note_client(self, client_id: str, connection: ServerConnection) -> None:
        """The latest connection of a client gets its replies; one of another account does not take its place."""
        known = self._connection_of_client.get(client_id)
        if known is None or known.is_closing or account_name(known) == account_name(connection):
            self._connection_of_client[client_id] = connection

    def _note_left(self, member: ClientChannel) -> None:
        """Without a group left on this connection a client gets no replies there."""
        place = member.client_id, member.connection
        self._group_counts[place] -= 1
        if self._group_counts[place]:
            return
        del self._group_counts[place]
        if self._connection_of_client.get(member.client_id) is member.connection:
            del self._connection_of_client[member.client_id]

    def connection_closed(self, connection: ServerConnection) -> None:
        """Take the connection out of all its groups."""
        for group in self._memberships.of(connection):
            self.unregister(group, connection)

    def scan_expired(self, now: float) -> None:
        """Close and drop members that were silent for SILENCE_S_MAX."""
        for group, member in expired(self.groups, now):
            self.unregister(group, member.connection)
            member.connection.close("producer sent no heartbeat")

    def group_count(self, connection: ServerConnection) -> int:
        """How many groups the connection is a member of."""
        return self._memberships.count(connection)

    def channels(self, group: str) -> list[ClientChannel]:
        return list(self.groups.get(group, {}).values())

    def of_connection(self, connection: ServerConnection) -> dict[str, ClientChannel]:
        """The groups that a connection is a member of, and what it said of itself there."""
        return {group: self.groups[group][connection] for group in self._memberships.of(connection)}

    def connection_of(self, client_id: str) -> ServerConnection | None:
        """Return the connection of a producing client, for pushing it a reply."""
        return self._connection_of_client.get(client_id)

    def pick(self, group: str, topic: str = "") -> ClientChannel | None:
        """Return one live member that may see messages of the topic, a different one each time; None: there is none.

        Any client may claim a group name: with access control, who may not send to the topic is not asked about it.
        """
        may_see = self._may_see
        members = [
            member
            for member in self.groups.get(group, {}).values()
            if not member.connection.is_closing and (may_see is None or may_see(member.connection, topic))
        ]
        return members[next(self._turn) % len(members)] if members else None


def expired(groups: dict[str, Channels], now: float) -> list[tuple[str, ClientChannel]]:
    """Return the members, with their groups, that were silent for SILENCE_S_MAX."""
    return [
        (group, member)
        for group, members in groups.items()
        for member in members.values()
        if now - member.last_update > SILENCE_S_MAX
    ]
