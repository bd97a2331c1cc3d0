"""What tools and clients ask about topics and their queues, and how topics are made and deleted."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Protocol

from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.filters.consumer_filter import ConsumerFilterManager
from appliance.broker.filters.filter import filter_of, is_by_tag
from appliance.broker.filters.queue_view import unit_view
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.connected import sender_of
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import QUEUES_MAX, ConsumerOffsetManager
from appliance.broker.pop.service import PopService
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.topic_attributes import merged_attributes, read_attributes
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.topics.topic_figures import TopicFigureBook, TopicFigures
from appliance.broker.topics.topic_sharing import CREATED_ON_SEND
from appliance.errors import BrokerError
from appliance.process.cooperative import in_slices
from appliance.remoting.header_fields import INT_MAX, INT_MIN, FieldError, int_field, long_field, text_field
from appliance.remoting.request_body import read_list
from appliance.remoting.server import RemotingServer
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.message import topics as names
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import MULTI_TAG, SINGLE_TAG, GroupList, TopicConfig, TopicList, TopicOffset
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.json_body import Body
from store.message_store import MessageStore
from store.queues.filter import Filter

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

FILTER_TYPES = (SINGLE_TAG, MULTI_TAG)
PERM_MAX = 15
QUEUES_A_SLICE = 32  # looked at before others have a turn: each may take a read of its file
QUEUE_UNITS_MAX = 1024  # of one answer to 321
FIGURES_A_SLICE = 4  # topics


class AdminTopicParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore
    stats: BrokerStatsManager
    topics: TopicConfigManager
    offsets: ConsumerOffsetManager
    filters: ConsumerFilterManager
    consumers: ConsumerManager
    outer_api: BrokerOuterApi
    topic_figures: TopicFigureBook
    pop: PopService
    server: RemotingServer
    vip_server: RemotingServer
    producers: ProducerManager


# -- topics -----------------------------------------------------------------------------------------------------------


async def update_topic(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """17: create or replace a topic. Answered when it is on disk and the name servers that are up know it."""
    fields = request.ext_fields
    config = TopicConfig(
        text_field(fields, "topic"),
        int_field(fields, "readQueueNums"),
        int_field(fields, "writeQueueNums"),
        int_field(fields, "perm"),
        text_field(fields, "topicFilterType"),
        int_field(fields, "topicSysFlag", 0),
        attributes=read_attributes(fields.get("attributes", "")),
    )
    is_by_send = fields.get(CREATED_ON_SEND) == "true"
    if is_by_send:
        if parts.topics.get(config.topic_name) is not None:
            return request.reply()  # two brokers created it at once: each keeps its own
        if not parts.config.auto_create_topic_enable:
            raise BrokerError(ResponseCode.NO_PERMISSION, "autoCreateTopicEnable is false here")
    await _put_topics(parts, connection, [config], is_by_send=is_by_send)
    return request.reply()


async def update_topic_list(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """18: several at once, all or none (5.x tools)."""
    entries = read_list(request.body, "topicConfigList")
    await _put_topics(parts, connection, [TopicConfig.from_dict(entry) for entry in entries])
    return request.reply()


async def _put_topics(
    parts: AdminTopicParts, connection: ServerConnection, configs: list[TopicConfig], *, is_by_send: bool = False
) -> None:
    """is_by_send: another broker has created it for a client, as this one would: also the trace topic."""
    for config in configs:
        _check_config(parts.topics, config, is_by_send=is_by_send)
        before = parts.topics.get(config.topic_name)
        attributes = before.attributes if before is not None else None
        config.attributes = merged_attributes(attributes, config.attributes, is_new=before is None)
    for config in configs:
        known = parts.topics.get(config.topic_name)
        config.order = known.order if known is not None else False  # order comes from the name servers alone
        parts.topics.update(config)
        logger.info(
            "topic set by a request",
            extra={"event": "admin_topic_set", "peer": connection.remote_text, "topic": config.topic_name},
        )
    await parts.topics.saved()
    for config in configs:
        await parts.outer_api.register_all(topic=config)


def _check_config(topics: TopicConfigManager, config: TopicConfig, *, is_by_send: bool) -> None:
    """Raise BrokerError for what can't be a topic of an operator's, or of a send."""
    _check_name(topics, config.topic_name, is_by_send=is_by_send)
    if config.topic_filter_type not in FILTER_TYPES:
        raise FieldError(f"topicFilterType = [{config.topic_filter_type}] value invalid")
    for name, count in (("readQueueNums", config.read_queue_nums), ("writeQueueNums", config.write_queue_nums)):
        if not 0 <= count <= QUEUES_MAX:
            raise FieldError(f"{name}: {count} queues: use 0 to {QUEUES_MAX}")
    if not INT_MIN <= config.topic_sys_flag <= INT_MAX:
        raise FieldError(f"topicSysFlag={config.topic_sys_flag} is not a 32-bit number")
    if not 0 <= config.perm <= PERM_MAX:
        raise FieldError(f"perm={config.perm}: use 2 (write), 4 (read) or 6 (both)")


def _check_name(topics: TopicConfigManager, topic: str, *, is_by_send: bool = False) -> None:
    try:
        names.check_topic(topic)
    except MessageRejected as exc:
        raise FieldError(str(exc)) from exc
    if not names.may_clients_send_to(topic) if is_by_send else topics.is_system_topic(topic):
        raise FieldError(f"The topic[{topic}] is conflict with system topic.")


async def delete_topic(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """215: forget a topic with its queues, offsets and counters. The name servers are told by the tool (216)."""
    topic = request.ext_fields["topic"]
    _check_name(parts.topics, topic)
    parts.topics.delete(topic)
    await parts.topics.saved()  # the configuration goes first: a queue without a topic is cleaned, not the reverse
    parts.store.delete_topic(topic)
    parts.offsets.remove_topic(topic)
    parts.pop.book.drop_void()
    parts.stats.topic_deleted(topic)
    parts.topic_figures.forget(topic)
    await parts.offsets.saved(is_urgent=True)  # after a kill, one of the same name would go on with them
    logger.info(
        "topic deleted by a request",
        extra={"event": "admin_topic_deleted", "peer": connection.remote_text, "topic": topic},
    )
    return request.reply()


async def get_all_topic_config(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """21: every topic's configuration."""
    return request.reply(body=await parts.topics.body())


def get_topic_config(parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """351: one topic's configuration (5.x tools)."""
    return request.reply(body=known_topic(parts.topics, request.ext_fields["topic"]).to_json())


def get_system_topics(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """305: names that belong to RocketMQ or to this broker."""
    return request.reply(body=TopicList(sorted(parts.topics.system_topics)).to_json())


def clean_unused_topics(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """316: delete the queues of topics that have no configuration any more."""
    for topic in parts.store.topics() - parts.topics.configs.keys():
        if not parts.topics.is_system_topic(topic):
            parts.store.delete_topic(topic)
            logger.info("unused topic cleaned", extra={"event": "unused_topic_cleaned", "topic": topic})
    return request.reply()


async def get_topic_stats(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """202: the extent of each write queue."""
    topic = request.ext_fields["topic"]
    queue_ids = range(known_topic(parts.topics, topic).write_queue_nums)
    entries = [
        queue_entry(
            MessageQueue(topic, parts.config.broker_name, queue_id), _queue_extent(parts.store, topic, queue_id)
        )
        async for queue_id in in_slices(queue_ids, QUEUES_A_SLICE)
    ]
    return request.reply(body=b'{"offsetTable":{%b}}' % b",".join(entries))


async def get_topic_figures(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """29405: what topics take in the log, and who sent their newest messages: of `topic`, or of those behind `after`.

    next: the name to ask for then; "": that was all. An answer ends early when it has read enough of the queues.
    """
    wanted = request.ext_fields.get("topic", "")
    names = [known_topic(parts.topics, wanted).topic_name] if wanted else []
    names = names or parts.topic_figures.page_after(request.ext_fields.get("after", ""))
    found = [one async for one in in_slices(parts.topic_figures.look(names), FIGURES_A_SLICE)]
    open_ones = {one.remote_text: one for one in (*parts.server.connections, *parts.vip_server.connections)}
    rest = found[-1].name if found and not wanted and parts.topic_figures.page_after(found[-1].name) else ""
    shown = [_shown_figures(one, open_ones, parts.producers) for one in found]
    return request.reply(body=fastjson.dumps({"topics": shown, "next": rest}))


def _shown_figures(
    figures: TopicFigures, open_ones: dict[str, ServerConnection], producers: ProducerManager
) -> dict[str, Any]:
    """Of the senders those that are connected."""
    senders = [
        sender_of(open_ones[address], producers) | {"lastStoredAt": stored}
        for address, stored in figures.senders.items()
        if address in open_ones and not open_ones[address].is_closing
    ]
    return {
        "topic": figures.name,
        "messages": figures.messages,
        "countedMessages": figures.counted,
        "countedBytes": figures.size_bytes,
        "producers": senders,
    }


def queue_entry(queue: MessageQueue, value: Body) -> bytes:
    """One member of a table by message queues, with the queue itself as its key."""
    return fastjson.dumps(queue) + b":" + value.to_json()


def _queue_extent(store: MessageStore, topic: str, queue_id: int) -> TopicOffset:
    low = max(store.min_offset(topic, queue_id), 0)
    high = max(store.max_offset(topic, queue_id), 0)
    timestamp = store.store_timestamp(topic, queue_id, high - 1) if high else 0
    return TopicOffset(low, high, max(timestamp, 0))


def get_topic_consumers(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """300: groups that subscribe to the topic now, or have offsets on it."""
    topic = request.ext_fields["topic"]
    groups = parts.consumers.groups_subscribing(topic) | parts.offsets.groups_of(topic)
    return request.reply(body=GroupList(sorted(groups)).to_json())


def known_topic(topics: TopicConfigManager, topic: str) -> TopicConfig:
    """The topic's configuration. BrokerError TOPIC_NOT_EXIST when there is none."""
    config = topics.get(topic)
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    return config


# -- queues -----------------------------------------------------------------------------------------------------------


def search_offset(parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29: the offset of the message stored nearest to a time; 0 for an unknown queue."""
    topic, queue_id = _queue(request)
    offset = parts.store.offset_by_time(topic, queue_id, long_field(request.ext_fields, "timestamp"))
    return request.reply(ext_fields={"offset": str(offset)})


def get_max_offset(parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """30: the offset the next message gets; 0 for an unknown queue."""
    return request.reply(ext_fields={"offset": str(max(parts.store.shown_max_offset(*_queue(request)), 0))})


def get_min_offset(parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """31: the smallest offset that can be read; 0 for an unknown queue."""
    return request.reply(ext_fields={"offset": str(max(parts.store.min_offset(*_queue(request)), 0))})


def get_earliest_time(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """32: when the queue's first message was stored; -1 when there is none."""
    return request.reply(ext_fields={"timestamp": str(parts.store.earliest_store_timestamp(*_queue(request)))})


def query_consume_queue(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """321: units of a consume queue as they are stored, and what a group subscribes to there."""
    topic, queue_id = _queue(request)
    index, count = long_field(request.ext_fields, "index"), int_field(request.ext_fields, "count", low=0)
    config, high = parts.topics.get(topic), max(parts.store.max_offset(topic, queue_id), 0)
    queues = max(config.read_queue_nums, config.write_queue_nums) if config is not None else 0
    if not high and not 0 <= queue_id < queues:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    low = max(parts.store.min_offset(topic, queue_id), 0)
    units = parts.store.consume_queue_units(topic, queue_id, index, min(count, QUEUE_UNITS_MAX)) if index >= 0 else []
    if not units:
        return request.reply(remark=f"Index {index} of {queue_id}@{topic} is not exist!")
    body: dict[str, Any] = {
        "maxQueueIndex": high,
        "minQueueIndex": low,
    }
    group = request.ext_fields.get("consumerGroup")
    subscription = parts.consumers.find_subscription(group, topic) if group else None
    wanted: Filter | None = None
    if group and subscription is None:
        body["filterData"] = f"{group}@{topic} is not online!"
    elif group and subscription is not None:
        found = parts.filters.get(topic, group)
        filter_data = found.to_dict(parts.filters.bloom.bit_count) if found is not None else None
        body |= {"filterData": json.dumps(filter_data, indent="\t"), "subscriptionData": subscription.to_dict()}
        if is_by_tag(subscription.expression_type):
            wanted = filter_of(subscription)
        elif found is not None:
            wanted = found.content_filter
    has_group = subscription is not None
    body["queueData"] = [
        unit_view(unit, parts.store.extended_unit(topic, queue_id, unit.tags_code), wanted, has_group=has_group)
        for unit in units
    ]
    return request.reply(body=fastjson.dumps(body))


def _queue(request: RemotingCommand) -> tuple[str, int]:
    return text_field(request.ext_fields, "topic"), int_field(request.ext_fields, "queueId")
