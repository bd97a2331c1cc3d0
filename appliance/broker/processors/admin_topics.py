"""What tools and clients ask about topics and their queues, and how topics are made and deleted."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from appliance.broker.filters.filter import filter_of, is_by_tag
from appliance.broker.filters.queue_view import unit_view
from appliance.broker.topics.topic_attributes import merged_attributes, read_attributes
from appliance.broker.topics.topic_sharing import CREATED_ON_SEND
from appliance.errors import BrokerError
from appliance.process.cooperative import in_slices
from appliance.remoting.header_fields import INT_MAX, INT_MIN, FieldError, int_field, long_field, text_field
from appliance.remoting.lane import Route
from appliance.remoting.request_body import read_document
from gantrymq.errors import BodyError, MessageRejected
from gantrymq.message import topics as names
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import MULTI_TAG, SINGLE_TAG, GroupList, TopicConfig, TopicList, TopicOffset
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.json_body import Body
from store.queues.filter import Filter

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

FILTER_TYPES = (SINGLE_TAG, MULTI_TAG)
QUEUES_MAX = 16_384  # a topic with more is a slip of the finger; many answers list every queue
PERM_MAX = 15
QUEUES_A_SLICE = 32  # looked at before others have a turn: each may take a read of its file
QUEUE_UNITS_MAX = 1024  # of one answer to 321


# -- topics -----------------------------------------------------------------------------------------------------------


async def update_topic(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
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
    if fields.get(CREATED_ON_SEND) == "true":
        if broker.topics.get(config.topic_name) is not None:
            return request.reply()  # two brokers created it at once: each keeps its own
        if not broker.config.auto_create_topic_enable:
            raise BrokerError(ResponseCode.NO_PERMISSION, "autoCreateTopicEnable is false here")
    await _put_topics(broker, connection, [config])
    return request.reply()


async def update_topic_list(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """18: several at once, all or none (5.x tools)."""
    document = read_document(request.body)
    entries = document.get("topicConfigList") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BodyError("expected topicConfigList")
    await _put_topics(broker, connection, [TopicConfig.from_dict(entry) for entry in entries])
    return request.reply()


async def _put_topics(broker: BrokerController, connection: ServerConnection, configs: list[TopicConfig]) -> None:
    for config in configs:
        _check_config(broker, config)
        before = broker.topics.get(config.topic_name)
        attributes = before.attributes if before is not None else None
        config.attributes = merged_attributes(attributes, config.attributes, is_new=before is None)
    for config in configs:
        known = broker.topics.get(config.topic_name)
        config.order = known.order if known is not None else False  # order comes from the name servers alone
        broker.topics.update(config)
        logger.info(
            "topic set by request",
            extra={"event": "admin_topic_set", "peer": connection.remote_text, "topic": config.topic_name},
        )
    await broker.topics.saved()
    for config in configs:
        await broker.outer_api.register_all(topic=config)


def _check_config(broker: BrokerController, config: TopicConfig) -> None:
    """Raise BrokerError for what can't be a topic of an operator's."""
    _check_name(broker, config.topic_name)
    if config.topic_filter_type not in FILTER_TYPES:
        raise FieldError(f"topicFilterType = [{config.topic_filter_type}] value invalid")
    for name, count in (("readQueueNums", config.read_queue_nums), ("writeQueueNums", config.write_queue_nums)):
        if not 0 <= count <= QUEUES_MAX:
            raise FieldError(f"{name}: {count} queues: use 0 to {QUEUES_MAX}")
    if not INT_MIN <= config.topic_sys_flag <= INT_MAX:
        raise FieldError(f"topicSysFlag={config.topic_sys_flag} is no 32-bit number")
    if not 0 <= config.perm <= PERM_MAX:
        raise FieldError(f"perm={config.perm}: use 2 (write), 4 (read) or 6 (both)")


def _check_name(broker: BrokerController, topic: str) -> None:
    try:
        names.check_topic(topic)
    except MessageRejected as exc:
        raise FieldError(str(exc)) from exc
    if broker.topics.is_system_topic(topic):
        raise FieldError(f"The topic[{topic}] is conflict with system topic.")


async def delete_topic(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """215: forget a topic with its queues, offsets and counters. The name servers are told by the tool (216)."""
    topic = request.ext_fields["topic"]
    _check_name(broker, topic)
    broker.topics.delete(topic)
    await broker.topics.saved()  # the configuration goes first: a queue without a topic is cleaned, not the reverse
    broker.store.delete_topic(topic)
    broker.offsets.remove_topic(topic)
    broker.stats.topic_deleted(topic)
    logger.info(
        "topic deleted by request",
        extra={"event": "admin_topic_deleted", "peer": connection.remote_text, "topic": topic},
    )
    return request.reply()


async def get_all_topic_config(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """21: every topic's configuration."""
    return request.reply(body=await broker.topics.body())


def get_topic_config(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """351: one topic's configuration (5.x tools)."""
    return request.reply(body=known_topic(broker, request.ext_fields["topic"]).to_json())


def get_system_topics(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """305: names that belong to RocketMQ or to this broker."""
    return request.reply(body=TopicList(sorted(broker.topics.system_topics)).to_json())


def clean_unused_topics(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """316: delete the queues of topics that have no configuration any more."""
    for topic in broker.store.topics() - broker.topics.configs.keys():
        if not broker.topics.is_system_topic(topic):
            broker.store.delete_topic(topic)
            logger.info("unused topic cleaned", extra={"event": "unused_topic_cleaned", "topic": topic})
    return request.reply()


async def get_topic_stats(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """202: the extent of each write queue."""
    topic = request.ext_fields["topic"]
    queue_ids = range(known_topic(broker, topic).write_queue_nums)
    entries = [
        queue_entry(broker, topic, queue_id, _queue_extent(broker, topic, queue_id))
        async for queue_id in in_slices(queue_ids, QUEUES_A_SLICE)
    ]
    return request.reply(body=b'{"offsetTable":{%b}}' % b",".join(entries))


def queue_entry(broker: BrokerController, topic: str, queue_id: int, value: Body) -> bytes:
    """One member of a table by message queues, with the queue itself as its key."""
    return fastjson.dumps(MessageQueue(topic, broker.config.broker_name, queue_id)) + b":" + value.to_json()


def _queue_extent(broker: BrokerController, topic: str, queue_id: int) -> TopicOffset:
    low = max(broker.store.min_offset(topic, queue_id), 0)
    high = max(broker.store.max_offset(topic, queue_id), 0)
    timestamp = broker.store.store_timestamp(topic, queue_id, high - 1) if high else 0
    return TopicOffset(low, high, max(timestamp, 0))


def get_topic_consumers(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """300: groups that subscribe to the topic now, or have offsets on it."""
    topic = request.ext_fields["topic"]
    groups = broker.consumers.groups_subscribing(topic) | broker.offsets.groups_of(topic)
    return request.reply(body=GroupList(sorted(groups)).to_json())


def known_topic(broker: BrokerController, topic: str) -> TopicConfig:
    """The topic's configuration. BrokerError TOPIC_NOT_EXIST when there is none."""
    config = broker.topics.get(topic)
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    return config


# -- queues -----------------------------------------------------------------------------------------------------------


def search_offset(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29: the offset of the message stored nearest to a time; 0 for an unknown queue."""
    topic, queue_id = _queue(request)
    offset = broker.store.offset_by_time(topic, queue_id, long_field(request.ext_fields, "timestamp"))
    return request.reply(ext_fields={"offset": str(offset)})


def get_max_offset(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """30: the offset the next message gets; 0 for an unknown queue."""
    return request.reply(ext_fields={"offset": str(max(broker.store.max_offset(*_queue(request)), 0))})


def get_min_offset(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """31: the smallest offset that can be read; 0 for an unknown queue."""
    return request.reply(ext_fields={"offset": str(max(broker.store.min_offset(*_queue(request)), 0))})


def get_earliest_time(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """32: when the queue's first message was stored; -1 when there is none."""
    return request.reply(ext_fields={"timestamp": str(broker.store.earliest_store_timestamp(*_queue(request)))})


def query_consume_queue(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """321: units of a consume queue as they are stored, and what a group subscribes to there."""
    topic, queue_id = _queue(request)
    index, count = long_field(request.ext_fields, "index"), int_field(request.ext_fields, "count", low=0)
    config, high = broker.topics.get(topic), max(broker.store.max_offset(topic, queue_id), 0)
    queues = max(config.read_queue_nums, config.write_queue_nums) if config is not None else 0
    if not high and not 0 <= queue_id < queues:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    low = max(broker.store.min_offset(topic, queue_id), 0)
    units = broker.store.consume_queue_units(topic, queue_id, index, min(count, QUEUE_UNITS_MAX)) if index >= 0 else []
    if not units:
        return request.reply(remark=f"Index {index} of {queue_id}@{topic} is not exist!")
    body: dict[str, Any] = {
        "maxQueueIndex": high,
        "minQueueIndex": low,
    }
    group = request.ext_fields.get("consumerGroup")
    subscription = broker.consumers.find_subscription(group, topic) if group else None
    wanted: Filter | None = None
    if group and subscription is None:
        body["filterData"] = f"{group}@{topic} is not online!"
    elif group and subscription is not None:
        found = broker.filters.get(topic, group)
        filter_data = found.to_dict(broker.filters.bloom.bit_count) if found is not None else None
        body |= {"filterData": json.dumps(filter_data, indent="\t"), "subscriptionData": subscription.to_dict()}
        if is_by_tag(subscription.expression_type):
            wanted = filter_of(subscription)
        elif found is not None:
            wanted = found.content_filter
    has_group = subscription is not None
    body["queueData"] = [
        unit_view(unit, broker.store.extended_unit(topic, queue_id, unit.tags_code), wanted, has_group=has_group)
        for unit in units
    ]
    return request.reply(body=fastjson.dumps(body))


def _queue(request: RemotingCommand) -> tuple[str, int]:
    return text_field(request.ext_fields, "topic"), int_field(request.ext_fields, "queueId")


HANDLERS: dict[int, Route] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: Route(update_topic, "admin"),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Route(update_topic_list, "admin"),
    RequestCode.DELETE_TOPIC_IN_BROKER: Route(delete_topic, "admin"),
    RequestCode.GET_ALL_TOPIC_CONFIG: Route(get_all_topic_config, "admin"),
    RequestCode.GET_TOPIC_CONFIG: Route(get_topic_config, "admin"),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: Route(get_system_topics, "admin"),
    RequestCode.CLEAN_UNUSED_TOPIC: Route(clean_unused_topics, "admin"),
    RequestCode.GET_TOPIC_STATS_INFO: Route(get_topic_stats, "admin"),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: Route(get_topic_consumers, "admin"),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: Route(search_offset, "admin"),
    RequestCode.GET_MAX_OFFSET: Route(get_max_offset, "admin"),
    RequestCode.GET_MIN_OFFSET: Route(get_min_offset, "admin"),
    RequestCode.GET_EARLIEST_MSG_STORETIME: Route(get_earliest_time, "admin"),
    RequestCode.QUERY_CONSUME_QUEUE: Route(query_consume_queue, "admin"),
}
