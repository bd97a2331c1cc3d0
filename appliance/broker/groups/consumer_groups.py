"""The consumers that are online, by group, and the notices (40) they get when their group changes.

Those notices are gathered: a group is told at once, then at most every NOTICE_INTERVAL_S, or a thousand consumers that
start together would make a million pushes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from appliance.broker.groups.clients import Channels, ClientChannel, Memberships, expired
from appliance.broker.groups.subscription_agreement import FingerprintCounter, SubscriptionAgreement, fingerprint_of
from appliance.remoting.connection import ServerConnection
from gantrymq.errors import MessageRejected
from gantrymq.log_limit import LogLimit
from gantrymq.remoting.bodies import ConsumerData, ConsumerIdList, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

NOTICE_INTERVAL_S = 0.1
NOTICE_MARGIN_S = 0.02  # timers may be early by a hair
SUBSCRIBED_BYTES_MAX = 256 << 20  # of the subscriptions of all members together, about
EXPRESSION_CHARS_MAX = 32_768  # of one subscription, as of SQL conditions
SUBSCRIPTION_BYTES = 1024  # that any subscription takes
TAG_BYTES = 96  # that a tag takes beside its characters
WORD_CHARS_MAX = 256  # of names that are short or wrong


@dataclass(slots=True)
class ConsumerGroupInfo:
    """A consumer group with members online.

    subscriptions: by topic, as the newest heartbeat said. fingerprints: what the members want, each with their number;
    fingerprints_version: changes whenever a fingerprint comes or goes.
    """

    group: str
    consume_type: str
    message_model: str
    consume_from_where: str
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: Channels = field(default_factory=dict)
    fingerprints: FingerprintCounter = field(default_factory=FingerprintCounter)
    fingerprints_version: int = 0
    weight: int = 0  # bytes of the subscriptions, about
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
        """Add or refresh a member. Returns whether its connection is new.

        One that says another id takes its own place, and as in RocketMQ the others are not told: it would be a way
        to have a whole group told at each heartbeat.
        """
        known = self.channels.get(member.connection)
        self._count(known, member)
        if known is not None and known.client_id == member.client_id:
            known.last_update, known.fingerprint = member.last_update, member.fingerprint
            return False
        self.channels[member.connection] = member
        self._members_changed()
        return known is None

    def _count(self, before: ClientChannel | None, after: ClientChannel | None) -> None:
        """Have one member's fingerprint counted instead of another's."""
        old, new = before.fingerprint if before is not None else None, after.fingerprint if after is not None else None
        if old == new:
            return
        if old is not None:
            self.fingerprints[old] -= 1
            if not self.fingerprints[old]:
                del self.fingerprints[old]
                self.fingerprints_version += 1
        if new is not None:
            self.fingerprints_version += new not in self.fingerprints
            self.fingerprints[new] += 1

    def leave(self, connection: ServerConnection) -> ClientChannel | None:
        """Remove a member; None when it was none."""
        member = self.channels.pop(connection, None)
        if member is not None:
            self._count(member, None)
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
        self.weight = sum(map(_weight, self.subscriptions.values()))
        return is_changed


class ConsumerManager:
    """Consumer groups. clock: monotonic seconds.

    notify_enable: the broker-wide switch of the notices. on_group_gone: told of a group when its last member left.
    """

    def __init__(
        self,
        *,
        notify_enable: bool = True,
        on_group_gone: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_notifying = notify_enable
        self._clock = clock
        self._memberships = Memberships()
        self._log_limit = LogLimit()
        self._silent_groups: set[str] = set()  # groups whose settings switch notices off
        self._to_notify: dict[str, None] = {}  # in order of their first change
        self._has_notices = asyncio.Event()
        self._weights: dict[tuple[ServerConnection, str], int] = {}
        self.subscribed_bytes = 0  # of all members
        self.groups: dict[str, ConsumerGroupInfo] = {}
        self._on_group_gone = on_group_gone
        self.agreement = SubscriptionAgreement(clock=clock)

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
        """Note a heartbeat of one consumer group. is_notifying: the group's own switch.

        Raises MessageRejected when its subscriptions are too much to be remembered.
        """
        name = consumer.group_name
        self._weigh(connection, name, _weight_of(consumer))
        info = self.groups.get(name)
        if info is None:
            info = ConsumerGroupInfo(name, consumer.consume_type, consumer.message_model, consumer.consume_from_where)
            self.groups[name] = info
        info.consume_type = consumer.consume_type
        info.message_model = consumer.message_model
        info.consume_from_where = consumer.consume_from_where
        fingerprint = fingerprint_of(name, consumer.message_model, consumer.subscription_data_set)
        is_new = info.join(ClientChannel(connection, client_id, language, version, self._clock(), fingerprint))
        if is_new:
            self._memberships.add(connection, name)
            if self._log_limit.allows("consumer_joined", connection.remote_text.rpartition(":")[0]):
                logger.info("consumer joined", extra={"event": "consumer_joined", "group": name, "client": client_id})
        self.subscribed_bytes -= info.weight
        is_changed = info.subscribe(consumer.subscription_data_set)
        self.subscribed_bytes += info.weight
        if is_notifying:
            self._silent_groups.discard(name)
        else:
            self._silent_groups.add(name)
        if is_new or is_changed:
            self.notify(name)
        self.agreement.look(info)

    def unregister(self, group: str, connection: ServerConnection, *, is_gone: bool = False) -> None:
        """Take the connection out of a group; the others are told.

        is_gone: without a word; then the others are told even where the group's settings switch notices off, as in
        RocketMQ, whose switch is asked for heartbeats and farewells only.
        """
        info = self.groups.get(group)
        member = info.leave(connection) if info is not None else None
        if info is None or member is None:
            return
        self._memberships.remove(connection, group)
        self.subscribed_bytes -= self._weights.pop((connection, group), 0)
        if self._log_limit.allows("consumer_left", connection.remote_text.rpartition(":")[0]):
            logger.info("consumer left", extra={"event": "consumer_left", "group": group, "client": member.client_id})
        if info.channels:
            self.notify(group, always=is_gone)
            self.agreement.look(info)
        else:
            del self.groups[group]
            self.subscribed_bytes -= info.weight
            self.agreement.forget(group)
            self._silent_groups.discard(group)
            self._to_notify.pop(group, None)
            if self._on_group_gone is not None:
                self._on_group_gone(group)

    def connection_closed(self, connection: ServerConnection) -> list[str]:
        """Take the connection out of all its groups; return which these were."""
        groups = self._memberships.of(connection)
        for group in groups:
            self.unregister(group, connection, is_gone=True)
        return groups

    def scan_expired(self, now: float) -> None:
        """Close and drop members that were silent for SILENCE_S_MAX; unlike RocketMQ's, the others are told."""
        for group, member in expired({name: info.channels for name, info in self.groups.items()}, now):
            self.unregister(group, member.connection, is_gone=True)
            member.connection.close("consumer sent no heartbeat")

    def _weigh(self, connection: ServerConnection, group: str, weight: int) -> None:
        """Count what a member's heartbeat brings. It never counts for less later: an old subscription may stay."""
        known = self._weights.get((connection, group), 0)
        if weight <= known:
            return
        more = weight - known
        if self.subscribed_bytes + 2 * more > SUBSCRIBED_BYTES_MAX:  # the group keeps the newest, too
            raise MessageRejected(f"group {group}: the subscriptions of all clients take too much memory already")
        self.subscribed_bytes += more
        self._weights[connection, group] = weight

    # -- reading ------------------------------------------------------------------------------------------------------

    def get(self, group: str) -> ConsumerGroupInfo | None:
        """Return the group if it has members online."""
        return self.groups.get(group)

    def group_count(self, connection: ServerConnection) -> int:
        """How many groups the connection is a member of."""
        return self._memberships.count(connection)

    def channels(self, group: str) -> list[ClientChannel]:
        info = self.groups.get(group)
        return list(info.channels.values()) if info is not None else []

    def of_connection(self, connection: ServerConnection) -> dict[str, ClientChannel]:
        """The groups that a connection is a member of, and what it said of itself there."""
        return {group: self.groups[group].channels[connection] for group in self._memberships.of(connection)}

    def name_of(self, connection: ServerConnection) -> str:
        """The client id of a consumer; the address of what has said none."""
        member = next(iter(self.of_connection(connection).values()), None)
        return member.client_id if member is not None else connection.remote_text

    def find_subscription(self, group: str, topic: str) -> SubscriptionData | None:
        info = self.groups.get(group)
        return info.subscriptions.get(topic) if info is not None else None

    def groups_subscribing(self, topic: str) -> set[str]:
        """Return the groups online that subscribe to the topic."""
        return {name for name, info in self.groups.items() if topic in info.subscriptions}

    # -- notices ------------------------------------------------------------------------------------------------------

    def notify(self, group: str, *, always: bool = False) -> None:
        """Have the group's members told that it changed, soon; `always`: whatever the group's settings say."""
        if self._is_notifying and (always or group not in self._silent_groups):
            self._to_notify[group] = None
            self._has_notices.set()

    def notify_after(self, delay_s: float, groups: Sequence[str]) -> None:
        """Have the groups told again later: what a member left behind can be taken by then, and not before."""

        def notify() -> None:
            for group in groups:
                if group in self.groups:
                    self.notify(group, always=True)

        asyncio.get_running_loop().call_later(delay_s + NOTICE_MARGIN_S, notify)

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


def _weight_of(consumer: ConsumerData) -> int:
    """About how many bytes it takes to remember what a member subscribes to. Raises MessageRejected."""
    for word in (consumer.consume_type, consumer.message_model, consumer.consume_from_where):
        if len(str(word)) > WORD_CHARS_MAX:
            raise MessageRejected(f"group {consumer.group_name}: consumeType, messageModel or consumeFromWhere is none")
    return sum(map(_weight, consumer.subscription_data_set))


def _weight(item: SubscriptionData) -> int:
    """About how many bytes it takes to remember one subscription. Raises MessageRejected."""
    tags = len(item.tags_set) + len(item.code_set)
    chars = max(len(item.sub_string), sum(len(str(tag)) for tag in item.tags_set))
    if max(len(item.topic), len(item.expression_type)) > WORD_CHARS_MAX:
        raise MessageRejected(f"a topic and a type of expression have at most {WORD_CHARS_MAX} characters")
    if max(chars, tags) > EXPRESSION_CHARS_MAX:
        raise MessageRejected(
            f"the subscription to {item.topic} has {chars} characters, {tags} tags and codes: "
            f"at most {EXPRESSION_CHARS_MAX} of each"
        )
    return SUBSCRIPTION_BYTES + 2 * chars + TAG_BYTES * tags
