"""How far consumer groups have come: 208 for one group, 317 for all, 303 in store times."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from appliance.broker.delivery.consume_lag import StoreTimes, lag_ms
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.leases import Key
from appliance.broker.pop.service import PopService
from appliance.broker.processors.admin_topics import QUEUES_A_SLICE, known_topic, queue_entry
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.cooperative import Slices, in_slices
from appliance.process.java_time import java_time
from appliance.settings.roles import BrokerConfig
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import pop_retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import OffsetWrapper, TopicConfig
from gantrymq.remoting.command import RemotingCommand
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection


class ProgressParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore
    store_times: StoreTimes
    stats: BrokerStatsManager
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    pop: PopService
    address: str


async def get_consume_stats(
    parts: ProgressParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """208: how far a group is in one topic, in several (topicList, from 5.x tools), or in all it has offsets on."""
    group, topic = request.ext_fields["consumerGroup"], request.ext_fields.get("topic")
    several = dict.fromkeys(filter(None, request.ext_fields.get("topicList", "").split(";")))
    topics = list(several) or ([topic] if topic else sorted(parts.offsets.topics_of(group)))
    slices = Slices(QUEUES_A_SLICE)
    total = _Progress()
    for name in topics:
        await slices.step()
        config = _consumed_topic(parts, group, name)
        if config is not None:
            await total.add(parts, group, config, config.read_queue_nums, slices)
    return request.reply(body=total.to_json())


async def get_broker_consume_stats(
    parts: ProgressParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """317: the same for every group of this broker, by write queues."""
    only_ordered = request.ext_fields.get("isOrder", "").lower() == "true"
    written = [b'{"brokerAddr":%b,"consumeStatsList":[' % fastjson.dumps(parts.address)]  # megabytes: joined once
    total_behind = 0
    slices = Slices(QUEUES_A_SLICE)
    for group in list(parts.groups.configs):
        written.append(b"{%b:[" % fastjson.dumps(group) if len(written) == 1 else b",{%b:[" % fastjson.dumps(group))
        is_first = True
        for topic in sorted(parts.offsets.topics_of(group)):
            await slices.step()
            config = _consumed_topic(parts, group, topic)
            if config is None or (only_ordered and not config.order):
                continue
            progress = _Progress()
            await progress.add(parts, group, config, config.write_queue_nums, slices)
            written.append(progress.to_json() if is_first else b"," + progress.to_json())
            is_first = False
            total_behind += progress.behind
        written.append(b"]}")
        await slices.step()
    written.append(b'],"totalDiff":%d}' % total_behind)
    return request.reply(body=b"".join(written))


def _consumed_topic(parts: ProgressParts, group: str, topic: str) -> TopicConfig | None:
    """The topic, if it exists and, where the group is online, is still subscribed to; the retry topic of its pops
    belongs to the topic that they are of."""
    info = parts.consumers.get(group)
    own = topic.removeprefix(pop_retry_topic(group, ""))
    is_left = info is not None and info.subscriptions and own not in info.subscriptions
    return None if is_left else parts.topics.get(topic)


class _Progress:
    """ConsumeStats, written queue by queue: a group may be on every queue of the broker."""

    def __init__(self) -> None:
        self.behind = 0  # messages
        self._tps = 0.0
        self._entries: list[bytes] = []

    async def add(
        self, parts: ProgressParts, group: str, config: TopicConfig, queue_count: int, slices: Slices
    ) -> None:
        topic = config.topic_name
        self._tps += parts.stats.consume_per_second(group, topic)
        now_ms = int(time.time() * 1000)
        for queue_id in range(queue_count):
            place = _place(parts, group, topic, queue_id, now_ms)
            self.behind += place.lag
            self._entries.append(queue_entry(MessageQueue(topic, parts.config.broker_name, queue_id), place))
            await slices.step()

    def to_json(self) -> bytes:
        return b'{"consumeTps":%b,"offsetTable":{%b}}' % (fastjson.dumps(self._tps), b",".join(self._entries))


def _place(parts: ProgressParts, group: str, topic: str, queue_id: int, now_ms: int) -> OffsetWrapper:
    """How far a group is in one queue. What is pulled and not consumed is known to the consumer only."""
    store, time_at = parts.store, parts.store_times.at
    popped = parts.pop.book.queues.get(Key(group, topic, queue_id))
    consumed = max(parts.offsets.query(group, topic, queue_id), 0)
    low, high = store.min_offset(topic, queue_id), max(store.max_offset(topic, queue_id), 0)
    pulled, out = consumed, 0
    oldest_ms = popped.oldest_pop_ms if popped is not None else None
    if popped is not None and popped.committed == consumed:
        pulled, out = popped.read_offset, len(popped.leases)
    return OffsetWrapper(
        high,
        consumed,
        max(time_at(topic, queue_id, consumed - 1), 0),
        lag_ms(time_at, topic, queue_id, (consumed, low, high), now_ms),
        pulled,
        pulled - consumed - out,
        0 if oldest_ms is None else max(now_ms - oldest_ms, 1),
    )


async def query_consume_time_span(
    parts: ProgressParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """303: store times of each queue's first, last and last consumed message, and how long the next one waits."""
    topic, group = request.ext_fields["topic"], request.ext_fields["group"]
    now_ms = int(time.time() * 1000)
    spans = [
        _time_span(parts, group, topic, queue_id, now_ms)
        async for queue_id in in_slices(range(known_topic(parts.topics, topic).write_queue_nums), QUEUES_A_SLICE)
    ]
    return request.reply(body=fastjson.dumps({"consumeTimeSpanSet": spans}))


def _time_span(parts: ProgressParts, group: str, topic: str, queue_id: int, now_ms: int) -> dict[str, Any]:
    store, time_at = parts.store, parts.store_times.at
    high, consumed = store.max_offset(topic, queue_id), parts.offsets.query(group, topic, queue_id)
    first = store.earliest_store_timestamp(topic, queue_id)
    last = time_at(topic, queue_id, high - 1) if high > 0 else -1
    consumed_at = time_at(topic, queue_id, consumed - 1) if consumed > 0 else first
    places = max(consumed, 0), store.min_offset(topic, queue_id), high
    return {
        "consumeTimeStamp": consumed_at,
        "consumeTimeStampStr": java_time(consumed_at),
        "delayTime": lag_ms(time_at, topic, queue_id, places, now_ms),
        "maxTimeStamp": last,
        "maxTimeStampStr": java_time(last),
        "messageQueue": {"brokerName": parts.config.broker_name, "queueId": queue_id, "topic": topic},
        "minTimeStamp": first,
        "minTimeStampStr": java_time(first),
    }
