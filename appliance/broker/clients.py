"""Who is connected: the producers and consumers of each group, as their heartbeats say.

A client heartbeats every 30 s over its one connection to this broker, so a connection is a member of many groups.
Members leave when their connection closes, when they unregister, or when they have been silent for two minutes.
Whenever a consumer group's members or topics change, all its members are told (request 40), and share out the queues
anew.

Those notices are gathered: a group is told at once, then at most every NOTICE_INTERVAL_S, or a thousand consumers that
start together would make a million pushes.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from appliance.broker.rebalance_lock import RebalanceLockManager
from appliance.remoting.server import ServerConnection
from gantrymq.remoting.bodies import Connection, ConsumerData, ConsumerIdList, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

SILENCE_S_MAX = 120.0  # RocketMQ: CHANNEL_EXPIRED_TIMEOUT
SCAN_INTERVAL_S = 10.0
NOTICE_INTERVAL_S = 0.1


@dataclass(slots=True)
class ClientChannel:
    """One member of a group. last_update: the manager's clock at its last heartbeat."""

    connection: ServerConnection
    client_id: str
    language: str
    version: int
    last_update: float

    def describe(self) -> Connection:
        """What the tools show of it."""
        return Connection(self.client_id, self.connection.remote_text, self.language, self.version)


Channels = dict[ServerConnection, ClientChannel]


class _Memberships:
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

    def of(self, connection: ServerConnection) -> list[str]:
        return list(self._groups.get(connection, ()))


class ProducerManager:
    """Producer groups, and producers by client id (for replies). clock: monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._memberships = _Memberships()
        self._turn = itertools.count()
        self.groups: dict[str, Channels] = {}
        self._connection_of_client: dict[str, ServerConnection] = {}

    def register(self, group: str, connection: ServerConnection, client_id: str, language: str, version: int) -> None:
        """Note a heartbeat; a known member is refreshed."""
        members = self.groups.setdefault(group, {})
        self._connection_of_client[client_id] = connection
        member = members.get(connection)
        if member is not None and member.client_id == client_id:
            member.last_update = self._clock()
            return
        if member is not None:  # another client on the same connection: the one before is gone
            self._forget_client(member)
        members[connection] = ClientChannel(connection, client_id, language, version, self._clock())
        self._memberships.add(connection, group)
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
        if not self._memberships.of(connection):
            self._forget_client(member)
        logger.info("producer left", extra={"event": "producer_left", "group": group, "client": member.client_id})

    def _forget_client(self, member: ClientChannel) -> None:
        if self._connection_of_client.get(member.client_id) is member.connection:
            del self._connection_of_client[member.client_id]

    def connection_closed(self, connection: ServerConnection) -> None:
        """Take the connection out of all its groups."""
        for group in self._memberships.of(connection):
            self.unregister(group, connection)

    def scan_expired(self, now: float) -> None:
        """Close and drop members that were silent for SILENCE_S_MAX."""
        for group, member in _expired(self.groups, now):
            self.unregister(group, member.connection)
            member.connection.close("producer sent no heartbeat")

    def channels(self, group: str) -> list[ClientChannel]:
        return list(self.groups.get(group, {}).values())

    def connection_of(self, client_id: str) -> ServerConnection | None:
        """Return the connection of a producing client, for pushing it a reply."""
        return self._connection_of_client.get(client_id)

    def pick(self, group: str) -> ClientChannel | None:
        """Return one live member, a different one each time; None when the group has none."""
        members = [member for member in self.groups.get(group, {}).values() if not member.connection.is_closing]
        return members[next(self._turn) % len(members)] if members else None


@dataclass(slots=True)
class ConsumerGroupInfo:
    """A consumer group with members online. `subscriptions` by topic, as the newest heartbeat said."""

    group: str
    consume_type: str
    message_model: str
    consume_from_where: str
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: Channels = field(default_factory=dict)
    _id_list: bytes | None = None

    @property
    def is_broadcasting(self) -> bool:
        return self.message_model == "BROADCASTING"

    def client_ids(self) -> list[str]:
        """Return the members' ids, each once: one that reconnected may have two connections for a while."""
        return list({member.client_id: None for member in self.channels.values()})

    def id_list(self) -> bytes:
        """The body of 38; asked by every member at every rebalance, so it is made once per change."""
        if self._id_list is None:
            self._id_list = ConsumerIdList(self.client_ids()).to_json()
        return self._id_list

    def channel_of(self, client_id: str) -> ClientChannel | None:
        """Return the member with this id; the newest connection if it has several."""
        found = [member for member in self.channels.values() if member.client_id == client_id]
        return found[-1] if found else None

    def _members_changed(self) -> None:
        self._id_list = None

    def join(self, member: ClientChannel) -> bool:
        """Add or refresh a member. Returns whether it is new."""
        known = self.channels.get(member.connection)
        if known is not None and known.client_id == member.client_id:
            known.last_update = member.last_update
            return False
        self.channels[member.connection] = member
        self._members_changed()
        return True

    def leave(self, connection: ServerConnection) -> ClientChannel | None:
        """Remove a member; None when it was none."""
        member = self.channels.pop(connection, None)
        if member is not None:
            self._members_changed()
        return member

    def subscribe(self, wanted: Iterable[SubscriptionData]) -> bool:
        """Take over a heartbeat's subscriptions. Returns whether a topic came or went.

        A newer version of a known topic's subscription replaces it without notice: members needn't share out queues
        anew.
        """
        by_topic = {subscription.topic: subscription for subscription in wanted if subscription.topic}
        is_changed = by_topic.keys() != self.subscriptions.keys()
        for topic, subscription in by_topic.items():
            known = self.subscriptions.get(topic)
            if known is None or subscription.sub_version > known.sub_version:
                self.subscriptions[topic] = subscription
        for topic in self.subscriptions.keys() - by_topic.keys():
            del self.subscriptions[topic]
        return is_changed


class ConsumerManager:
    """Consumer groups. clock: monotonic seconds. notify_enable: the broker-wide switch of the notices."""

    def __init__(self, *, notify_enable: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._is_notifying = notify_enable
        self._clock = clock
        self._memberships = _Memberships()
        self._silent_groups: set[str] = set()  # groups whose settings switch notices off
        self._to_notify: dict[str, None] = {}  # in order of their first change
        self._has_notices = asyncio.Event()
        self.groups: dict[str, ConsumerGroupInfo] = {}
        self.on_group_gone: Callable[[str], None] | None = None  # told when a group's last member left

    # -- membership ---------------------------------------------------------------------------------------------------

    def register(
        self,
        consumer: ConsumerData,
        connection: ServerConnection,
        client_id: str,
        language: str,
        version: int,
        *,
        is_notifying: bool = True,
    ) -> None:
        """Note a heartbeat of one consumer group. is_notifying: the group's own switch."""
        name = consumer.group_name
        info = self.groups.get(name)
        if info is None:
            info = ConsumerGroupInfo(name, consumer.consume_type, consumer.message_model, consumer.consume_from_where)
            self.groups[name] = info
        info.consume_type = consumer.consume_type
        info.message_model = consumer.message_model
        info.consume_from_where = consumer.consume_from_where
        is_new = info.join(ClientChannel(connection, client_id, language, version, self._clock()))
        if is_new:
            self._memberships.add(connection, name)
            logger.info("consumer joined", extra={"event": "consumer_joined", "group": name, "client": client_id})
        is_changed = info.subscribe(consumer.subscription_data_set)
        if is_notifying:
            self._silent_groups.discard(name)
        else:
            self._silent_groups.add(name)
        if is_new or is_changed:
            self.notify(name)

    def unregister(self, group: str, connection: ServerConnection) -> None:
        """Take the connection out of a group; the others are told."""
        info = self.groups.get(group)
        member = info.leave(connection) if info is not None else None
        if info is None or member is None:
            return
        self._memberships.remove(connection, group)
        logger.info("consumer left", extra={"event": "consumer_left", "group": group, "client": member.client_id})
        if info.channels:
            self.notify(group)
        else:
            del self.groups[group]
            self._silent_groups.discard(group)
            self._to_notify.pop(group, None)
            if self.on_group_gone is not None:
                self.on_group_gone(group)

    def connection_closed(self, connection: ServerConnection) -> None:
        """Take the connection out of all its groups."""
        for group in self._memberships.of(connection):
            self.unregister(group, connection)

    def scan_expired(self, now: float) -> None:
        """Close and drop members that were silent for SILENCE_S_MAX; unlike RocketMQ's, the others are told."""
        for group, member in _expired({name: info.channels for name, info in self.groups.items()}, now):
            self.unregister(group, member.connection)
            member.connection.close("consumer sent no heartbeat")

    # -- reading ------------------------------------------------------------------------------------------------------

    def get(self, group: str) -> ConsumerGroupInfo | None:
        """Return the group if it has members online."""
        return self.groups.get(group)

    def channels(self, group: str) -> list[ClientChannel]:
        info = self.groups.get(group)
        return list(info.channels.values()) if info is not None else []

    def find_subscription(self, group: str, topic: str) -> SubscriptionData | None:
        info = self.groups.get(group)
        return info.subscriptions.get(topic) if info is not None else None

    def groups_subscribing(self, topic: str) -> set[str]:
        """Return the groups online that subscribe to the topic."""
        return {name for name, info in self.groups.items() if topic in info.subscriptions}

    # -- notices ------------------------------------------------------------------------------------------------------

    def notify(self, group: str) -> None:
        """Have the group's members told that it changed, soon."""
        if self._is_notifying and group not in self._silent_groups:
            self._to_notify[group] = None
            self._has_notices.set()

    def push_notices(self) -> int:
        """Tell the members of every group that changed; returns how many were told."""
        self._has_notices.clear()
        groups, self._to_notify = self._to_notify, {}
        told = 0
        for group in groups:
            for member in self.channels(group):
                if not member.connection.is_closing:
                    request = RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group})
                    member.connection.invoke_oneway(request)
                    told += 1
        return told

    async def run(self) -> None:
        """Push notices until cancelled: the first of a burst at once, the rest together."""
        while True:
            await self._has_notices.wait()
            self.push_notices()
            await asyncio.sleep(NOTICE_INTERVAL_S)


class ClientHousekeeping:
    """Drops clients that fell silent and locks nobody renews, and pushes the notices."""

    def __init__(
        self,
        producers: ProducerManager,
        consumers: ConsumerManager,
        locks: RebalanceLockManager | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producers = producers
        self._consumers = consumers
        self._locks = locks
        self._clock = clock

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._consumers.run(), name="consumer notices")
            while True:
                await asyncio.sleep(SCAN_INTERVAL_S)
                self.scan()

    def scan(self) -> None:
        """One look at everybody's last heartbeat."""
        now = self._clock()
        self._producers.scan_expired(now)
        self._consumers.scan_expired(now)
        if self._locks is not None:
            self._locks.drop_expired()


def _expired(groups: dict[str, Channels], now: float) -> Iterator[tuple[str, ClientChannel]]:
    found = [
        (group, member)
        for group, members in groups.items()
        for member in members.values()
        if now - member.last_update > SILENCE_S_MAX
    ]
    yield from found
