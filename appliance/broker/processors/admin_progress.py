"""How far consumer groups have come: 208 for one group, 317 for all, 303 in store times."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from appliance.broker.consume_lag import lag_ms
from appliance.broker.processors.admin_topics import known_topic
from appliance.remoting.lanes import Route
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import ConsumeStats, OffsetWrapper, TopicConfig
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController
    from appliance.remoting.server import ServerConnection


def get_consume_stats(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """208: how far a group is in one topic, in several (topicList, from 5.x tools), or in all it has offsets on."""
    group, topic = request.ext_fields["consumerGroup"], request.ext_fields.get("topic")
    several = dict.fromkeys(filter(None, request.ext_fields.get("topicList", "").split(";")))
    topics = list(several) or ([topic] if topic else sorted(broker.offsets.topics_of(group)))
    total = ConsumeStats()
    for config in _consumed_topics(broker, group, topics):
        stats = _topic_stats(broker, group, config, config.read_queue_nums)
        total.offset_table |= stats.offset_table
        total.consume_tps += stats.consume_tps
    return request.reply(body=total.to_json())


def get_broker_consume_stats(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """317: the same for every group of this broker, by write queues."""
    only_ordered = request.ext_fields.get("isOrder", "").lower() == "true"
    rows: list[dict[str, list[dict[str, Any]]]] = []
    total_behind = 0
    for group in broker.groups.configs:
        per_topic = [
            _topic_stats(broker, group, config, config.write_queue_nums)
            for config in _consumed_topics(broker, group, sorted(broker.offsets.topics_of(group)))
            if config.order or not only_ordered
        ]
        rows.append({group: [stats.to_dict() for stats in per_topic]})
        total_behind += sum(
            place.broker_offset - place.consumer_offset for stats in per_topic for place in stats.offset_table.values()
        )
    body = {"brokerAddr": broker.address, "consumeStatsList": rows, "totalDiff": total_behind}
    return request.reply(body=fastjson.dumps(body))


def _consumed_topics(broker: BrokerController, group: str, topics: Iterable[str]) -> list[TopicConfig]:
    """The topics that exist and, if the group is online, are still subscribed to."""
    info = broker.consumers.get(group)
    subscribed = info.subscriptions if info is not None else None
    configs = (broker.topics.get(topic) for topic in topics)
    return [config for config in configs if config is not None and (not subscribed or config.topic_name in subscribed)]


def _topic_stats(broker: BrokerController, group: str, config: TopicConfig, queue_count: int) -> ConsumeStats:
    topic, store = config.topic_name, broker.store
    now_ms = int(time.time() * 1000)
    stats = ConsumeStats(consume_tps=broker.stats.consume_per_second(group, topic))
    time_at = broker.store_times.at
    for queue_id in range(queue_count):
        consumed = max(broker.offsets.query(group, topic, queue_id), 0)
        low, high = store.min_offset(topic, queue_id), max(store.max_offset(topic, queue_id), 0)
        stats.offset_table[MessageQueue(topic, broker.config.broker_name, queue_id)] = OffsetWrapper(
            high,
            consumed,
            max(time_at(topic, queue_id, consumed - 1), 0),
            lag_ms(time_at, topic, queue_id, (consumed, low, high), now_ms),
            consumed,  # what is pulled and not consumed is known to the consumer only
        )
    return stats


def query_consume_time_span(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """303: store times of each queue's first, last and last consumed message, and how long the next one waits."""
    topic, group = request.ext_fields["topic"], request.ext_fields["group"]
    now_ms = int(time.time() * 1000)
    spans = [
        _time_span(broker, group, topic, queue_id, now_ms)
        for queue_id in range(known_topic(broker, topic).write_queue_nums)
    ]
    return request.reply(body=fastjson.dumps({"consumeTimeSpanSet": spans}))


def _time_span(broker: BrokerController, group: str, topic: str, queue_id: int, now_ms: int) -> dict[str, Any]:
    store, time_at = broker.store, broker.store_times.at
    high, consumed = store.max_offset(topic, queue_id), broker.offsets.query(group, topic, queue_id)
    first = store.earliest_store_timestamp(topic, queue_id)
    last = time_at(topic, queue_id, high - 1) if high > 0 else -1
    consumed_at = time_at(topic, queue_id, consumed - 1) if consumed > 0 else first
    places = max(consumed, 0), store.min_offset(topic, queue_id), high
    return {
        "consumeTimeStamp": consumed_at,
        "consumeTimeStampStr": _java_time(consumed_at),
        "delayTime": lag_ms(time_at, topic, queue_id, places, now_ms),
        "maxTimeStamp": last,
        "maxTimeStampStr": _java_time(last),
        "messageQueue": {"brokerName": broker.config.broker_name, "queueId": queue_id, "topic": topic},
        "minTimeStamp": first,
        "minTimeStampStr": _java_time(first),
    }


def _java_time(time_ms: int) -> str:
    """Local time as RocketMQ prints it: 2026-11-21#03:52:12:293."""
    seconds, rest_ms = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%d#%H:%M:%S', time.localtime(seconds))}:{rest_ms:03d}"


HANDLERS: dict[int, Route] = {
    RequestCode.GET_CONSUME_STATS: Route(get_consume_stats, "admin"),
    RequestCode.GET_BROKER_CONSUME_STATS: Route(get_broker_consume_stats, "admin"),
    RequestCode.QUERY_CONSUME_TIME_SPAN: Route(query_consume_time_span, "admin"),
}
