"""What tools ask about consumer and producer groups: settings, who is online, progress, offsets.

Requests that only a running client can answer (222, 223, 307, 309) are passed on to it over its own connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from appliance.broker.processors.admin_topics import known_topic
from appliance.errors import BrokerError
from appliance.remoting.lanes import Route
from gantrymq.errors import BodyError, ConnectError, MessageRejected, RequestTimeout
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import (
    ConsumerConnection,
    ConsumeStats,
    OffsetWrapper,
    ProducerConnection,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicList,
)
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RESPONSE_FLAG, RemotingCommand

if TYPE_CHECKING:
    from appliance.broker.clients import ClientChannel
    from appliance.broker.controller import BrokerController
    from appliance.remoting.server import ServerConnection

logger = logging.getLogger(__name__)

OFFSET_MAX = (1 << 63) - 1
RELAY_TIMEOUT_S = 10.0
STATUS_TIMEOUT_S = 5.0
VERSION_WITH_RESET = 28  # MQVersion ordinal of V3_0_7_SNAPSHOT
VERSION_WITH_RUNNING_INFO = 62  # of V3_1_8_SNAPSHOT


# -- settings ---------------------------------------------------------------------------------------------------------


async def update_group(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """200: create or replace a consumer group's settings; answered when they are on disk."""
    await _put_groups(broker, connection, [SubscriptionGroupConfig.from_json(request.body)])
    return request.reply()


async def update_group_list(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """225: several at once (5.x tools)."""
    document = fastjson.loads(request.body)
    entries = document.get("groupConfigList") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BodyError("expected groupConfigList")
    await _put_groups(broker, connection, [SubscriptionGroupConfig.from_dict(entry) for entry in entries])
    return request.reply()


async def _put_groups(
    broker: BrokerController, connection: ServerConnection, configs: list[SubscriptionGroupConfig]
) -> None:
    for config in configs:
        try:
            broker.groups.update(config)
        except MessageRejected as exc:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, str(exc)) from exc
        logger.info(
            "group set by request",
            extra={"event": "admin_group_set", "peer": connection.remote_text, "group": config.group_name},
        )
    await broker.groups.saved()


async def delete_group(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """207: forget a group's settings and, if asked to, its offsets. One that is online comes back by itself."""
    fields = request.ext_fields
    group = fields["groupName"]
    broker.groups.delete(group)
    if "true" in (fields.get("removeOffset", "").lower(), fields.get("cleanOffset", "").lower()):
        broker.offsets.remove_group(group)
    broker.stats.group_deleted(group)
    await broker.groups.saved()
    logger.info(
        "group deleted by request",
        extra={"event": "admin_group_deleted", "peer": connection.remote_text, "group": group},
    )
    return request.reply()


def get_all_groups(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """201: every group's settings."""
    return request.reply(body=broker.groups.wrapper().to_json())


def get_group(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """352: one group's settings (5.x tools). Looking does not create it."""
    group = request.ext_fields["group"]
    config = broker.groups.configs.get(group)
    if config is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group[{group}] not exist")
    return request.reply(body=config.to_json())


# -- who is online ----------------------------------------------------------------------------------------------------


def get_consumer_connections(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """203: the group's consumers and what they subscribe to."""
    group = request.ext_fields["consumerGroup"]
    info = broker.consumers.get(group)
    if info is None:
        raise BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
    body = ConsumerConnection(
        [channel.describe() for channel in info.channels.values()],
        dict(info.subscriptions),
        info.consume_type,
        info.message_model,
        info.consume_from_where,
    )
    return request.reply(body=body.to_json())


def get_producer_connections(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """204: the group's producers."""
    group = request.ext_fields["producerGroup"]
    channels = broker.producers.channels(group)
    if not channels:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
    return request.reply(body=ProducerConnection([channel.describe() for channel in channels]).to_json())


def get_all_producers(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """328: every producer group with its producers."""
    now_ms, now_s = int(time.time() * 1000), time.monotonic()

    def row(channel: ClientChannel) -> dict[str, Any]:
        return {
            "clientId": channel.client_id,
            "language": channel.language,
            "lastUpdateTimestamp": now_ms - int((now_s - channel.last_update) * 1000),
            "remoteIP": f"/{channel.connection.remote_text}",  # as Java prints an address
            "version": channel.version,
        }

    data = {
        group: [row(channel) for channel in channels.values()] for group, channels in broker.producers.groups.items()
    }
    return request.reply(body=fastjson.dumps({"data": data}))


def get_subscription(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """345: what a group that is online wants of a topic (5.x tools)."""
    group, topic = request.ext_fields["group"], request.ext_fields["topic"]
    subscription = broker.consumers.find_subscription(group, topic)
    body: dict[str, Any] = {"group": group, "topic": topic}
    if subscription is not None:
        body["subscriptionData"] = subscription.to_dict()
    return request.reply(body=fastjson.dumps(body))


def get_topics_of_group(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """343: topics the group has offsets on (5.x tools)."""
    return request.reply(body=TopicList(sorted(broker.offsets.topics_of(request.ext_fields["group"]))).to_json())


# -- progress ---------------------------------------------------------------------------------------------------------


def get_consume_stats(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """208: how far a group is in one topic, or in all it has offsets on."""
    group, topic = request.ext_fields["consumerGroup"], request.ext_fields.get("topic")
    topics = [topic] if topic else sorted(broker.offsets.topics_of(group))
    total = ConsumeStats()
    for stats in _stats_by_topic(broker, group, topics).values():
        total.offset_table |= stats.offset_table
        total.consume_tps += stats.consume_tps
    return request.reply(body=total.to_json())


def get_broker_consume_stats(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """317: the same for every group of this broker."""
    only_ordered = request.ext_fields.get("isOrder", "").lower() == "true"
    rows: list[dict[str, list[dict[str, Any]]]] = []
    total_behind = 0
    for group in broker.groups.configs:
        topics = sorted(broker.offsets.topics_of(group))
        if only_ordered:
            topics = [topic for topic in topics if (config := broker.topics.get(topic)) is not None and config.order]
        per_topic = _stats_by_topic(broker, group, topics)
        rows.append({group: [stats.to_dict() for stats in per_topic.values()]})
        total_behind += sum(
            place.broker_offset - place.consumer_offset
            for stats in per_topic.values()
            for place in stats.offset_table.values()
        )
    body = {"brokerAddr": broker.address, "consumeStatsList": rows, "totalDiff": total_behind}
    return request.reply(body=fastjson.dumps(body))


def _stats_by_topic(broker: BrokerController, group: str, topics: Iterable[str]) -> dict[str, ConsumeStats]:
    """Progress by topic; topics without configuration, or no longer subscribed to by an online group, are left out."""
    info = broker.consumers.get(group)
    subscribed = info.subscriptions if info is not None else None
    configs = {topic: config for topic in topics if (config := broker.topics.get(topic)) is not None}
    return {
        topic: _topic_stats(broker, group, config)
        for topic, config in configs.items()
        if not subscribed or topic in subscribed
    }


def _topic_stats(broker: BrokerController, group: str, config: TopicConfig) -> ConsumeStats:
    topic, store = config.topic_name, broker.store
    stats = ConsumeStats(consume_tps=broker.stats.consume_per_second(group, topic))
    for queue_id in range(config.read_queue_nums):
        consumed = max(broker.offsets.query(group, topic, queue_id), 0)
        timestamp = store.store_timestamp(topic, queue_id, consumed - 1) if consumed else 0
        queue = MessageQueue(topic, broker.config.broker_name, queue_id)
        stats.offset_table[queue] = OffsetWrapper(
            max(store.max_offset(topic, queue_id), 0), consumed, max(timestamp, 0)
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
    store = broker.store
    high, consumed = store.max_offset(topic, queue_id), broker.offsets.query(group, topic, queue_id)
    first = store.earliest_store_timestamp(topic, queue_id)
    last = store.store_timestamp(topic, queue_id, high - 1) if high > 0 else -1
    consumed_at = store.store_timestamp(topic, queue_id, consumed - 1) if consumed > 0 else first
    waiting_since = store.store_timestamp(topic, queue_id, max(consumed, 0)) if max(consumed, 0) < high else -1
    queue = {"brokerName": broker.config.broker_name, "queueId": queue_id, "topic": topic}
    return {
        "consumeTimeStamp": consumed_at,
        "delayTime": now_ms - waiting_since if waiting_since > 0 else 0,
        "maxTimeStamp": last,
        "messageQueue": queue,
        "minTimeStamp": first,
    }


# -- offsets ----------------------------------------------------------------------------------------------------------


def get_all_offsets(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """43: every committed offset."""
    return request.reply(body=broker.offsets.wrapper().to_json())


def query_correction_offset(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """308: the smallest offset of any group on each queue; "no limit" where that is beyond compareGroup's."""
    fields = request.ext_fields
    topic = fields["topic"]
    left_out = set(filter(None, fields.get("filterGroups", "").split(",")))
    smallest: dict[int, int] = {}
    for group in broker.offsets.groups_of(topic) - left_out:
        for queue_id, offset in broker.offsets.offsets(topic, group).items():
            if offset >= broker.store.min_offset(topic, queue_id):
                smallest[queue_id] = min(offset, smallest.get(queue_id, OFFSET_MAX))
    for queue_id, offset in broker.offsets.offsets(topic, fields["compareGroup"]).items():
        if smallest.get(queue_id, OFFSET_MAX) > offset:
            smallest[queue_id] = OFFSET_MAX
    return request.reply(body=fastjson.dumps({"correctionOffsets": smallest}))


def clone_group_offset(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """314: give one group the offsets of another, on one topic or on all."""
    fields = request.ext_fields
    source, target = fields["srcGroup"], fields["destGroup"]
    topics = [fields["topic"]] if fields.get("topic") else sorted(broker.offsets.topics_of(source))
    for topic in topics:
        if broker.topics.get(topic) is None:
            continue
        for queue_id, offset in list(broker.offsets.offsets(topic, source).items()):
            broker.offsets.commit(target, topic, queue_id, offset)
    return request.reply()


def reset_offset(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """222: tell the group's online consumers to go on at a time. They commit the new offsets, not the broker."""
    fields = request.ext_fields
    topic, group, timestamp = fields["topic"], fields["group"], int(fields["timestamp"])
    config = broker.topics.get(topic)
    if config is None:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR, f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
        )
    is_forced = fields.get("isForce", "").lower() == "true"
    table = {
        MessageQueue(topic, broker.config.broker_name, queue_id): _reset_target(
            broker, group, topic, queue_id, timestamp, is_forced
        )
        for queue_id in range(config.write_queue_nums)
    }
    channels = broker.consumers.channels(group)
    if not channels:
        raise BrokerError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} Timestamp: {timestamp}",
        )
    for channel in channels:
        if channel.version < VERSION_WITH_RESET:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR, f"the client does not support this feature. version={channel.version}"
            )
    push_fields = {"topic": topic, "group": group, "timestamp": str(timestamp), "isForce": "false"}
    push_body = _reset_body(table, as_list=request.language == "CPP")
    for channel in channels:
        push = RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, dict(push_fields), push_body)
        channel.connection.invoke_oneway(push)
    logger.info(
        "offset reset pushed",
        extra={"event": "admin_offset_reset", "peer": connection.remote_text, "group": group, "topic": topic},
    )
    return request.reply(body=_reset_body(table, as_list=False))


def _reset_target(
    broker: BrokerController, group: str, topic: str, queue_id: int, timestamp: int, is_forced: bool
) -> int:
    """Where a queue shall go on: by time, -1 being the end. Without force never forward."""
    consumed = broker.offsets.query(group, topic, queue_id)
    if consumed < 0:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
    if timestamp == -1:
        wanted = broker.store.max_offset(topic, queue_id)
    else:
        wanted = broker.store.offset_by_time(topic, queue_id, timestamp)
    wanted = max(wanted, 0)
    return wanted if is_forced or wanted < consumed else consumed


def _reset_body(table: dict[MessageQueue, int], *, as_list: bool) -> bytes:
    """Raw object keys, the one form that Java and Go both read; a list for the C++ client."""
    if not as_list:
        return fastjson.dumps({"offsetTable": table})
    rows = [
        {"brokerName": queue.broker_name, "offset": offset, "queueId": queue.queue_id, "topic": queue.topic}
        for queue, offset in table.items()
    ]
    return fastjson.dumps({"offsetTable": rows})


# -- passed on to clients ---------------------------------------------------------------------------------------------


async def get_consumer_status(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """223: the offsets that the online consumers themselves hold (221), by client id."""
    fields = request.ext_fields
    topic, group, wanted_client = fields["topic"], fields["group"], fields.get("clientAddr")
    channels = broker.consumers.channels(group)
    if not channels:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]")
    for channel in channels:
        if channel.version < VERSION_WITH_RESET:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR, f"the client does not support this feature. version={channel.version}"
            )
    asked = [channel for channel in channels if not wanted_client or channel.client_id == wanted_client]
    answers = await asyncio.gather(*(_client_offsets(channel, topic, group) for channel in asked))
    table = {channel.client_id: offsets for channel, offsets in zip(asked, answers, strict=True) if offsets is not None}
    return request.reply(body=fastjson.dumps({"consumerTable": table, "messageQueueTable": {}}))


async def _client_offsets(channel: ClientChannel, topic: str, group: str) -> dict[Any, Any] | None:
    """One client's offsets; None when it does not answer, which must not spoil the answers of the others."""
    request = RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": topic, "group": group})
    try:
        answer = await channel.connection.invoke(request, timeout_s=STATUS_TIMEOUT_S)
        document = fastjson.loads(answer.body) if answer.code == ResponseCode.SUCCESS and answer.body else {}
    except (RequestTimeout, ConnectError, BodyError) as exc:
        logger.warning(
            "client status unknown",
            extra={"event": "client_status_unknown", "client": channel.client_id, "why": str(exc)},
        )
        return None
    table = document.get("messageQueueTable") if isinstance(document, dict) else None
    return table if isinstance(table, dict) else None


async def get_running_info(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """307: what a consumer says about itself."""
    fields = request.ext_fields
    return await _relay(broker, request, fields["consumerGroup"], fields["clientId"], dict(fields), request.body)


async def consume_directly(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """309: have one consumer consume one stored message now, and tell how it went."""
    fields = request.ext_fields
    message_id, client_id = fields.get("msgId", ""), fields.get("clientId", "")
    try:
        *_, physical_offset = decode_offset_message_id(message_id)
    except ValueError as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, str(exc)) from exc
    message = broker.store.message_bytes(physical_offset) if physical_offset >= 0 else None
    if message is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"can not find message by the id, {message_id}")
    push_fields = fields | {"brokerName": broker.config.broker_name}
    return await _relay(broker, request, fields["consumerGroup"], client_id, push_fields, bytes(message))


async def _relay(
    broker: BrokerController,
    request: RemotingCommand,
    group: str,
    client_id: str,
    ext_fields: dict[str, str],
    body: bytes,
) -> RemotingCommand:
    """Pass a request on to one consumer; its answer, unread, is the answer."""
    info = broker.consumers.get(group)
    channel = info.channel_of(client_id) if info is not None else None
    if channel is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
    if channel.version < VERSION_WITH_RUNNING_INFO:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR,
            f"The Consumer <{client_id}> Version <{channel.version}> too low to finish, "
            "please upgrade it to V3_1_8_SNAPSHOT",
        )
    push = RemotingCommand.request(request.code, ext_fields, body)
    try:
        answer = await channel.connection.invoke(push, timeout_s=RELAY_TIMEOUT_S)
    except RequestTimeout as exc:
        raise BrokerError(ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer <{group}> <{client_id}> Timeout: {exc}") from exc
    except ConnectError as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"invoke consumer <{group}> <{client_id}>: {exc}") from exc
    return RemotingCommand(
        answer.code,
        answer.ext_fields,
        answer.body,
        answer.remark,
        request.opaque,
        RESPONSE_FLAG,
        answer.language,
        answer.version,
        request.serialize_type,
    )


HANDLERS: dict[int, Route] = {
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Route(update_group, "admin"),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Route(update_group_list, "admin"),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: Route(delete_group, "admin"),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Route(get_all_groups, "admin"),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Route(get_group, "admin"),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: Route(get_consumer_connections, "admin"),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: Route(get_producer_connections, "admin"),
    RequestCode.GET_ALL_PRODUCER_INFO: Route(get_all_producers, "admin"),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: Route(get_subscription, "admin"),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: Route(get_topics_of_group, "admin"),
    RequestCode.GET_CONSUME_STATS: Route(get_consume_stats, "admin"),
    RequestCode.GET_BROKER_CONSUME_STATS: Route(get_broker_consume_stats, "admin"),
    RequestCode.QUERY_CONSUME_TIME_SPAN: Route(query_consume_time_span, "admin"),
    RequestCode.GET_ALL_CONSUMER_OFFSET: Route(get_all_offsets, "admin"),
    RequestCode.QUERY_CORRECTION_OFFSET: Route(query_correction_offset, "admin"),
    RequestCode.CLONE_GROUP_OFFSET: Route(clone_group_offset, "admin"),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: Route(reset_offset, "admin"),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Route(get_consumer_status, "admin"),
    RequestCode.GET_CONSUMER_RUNNING_INFO: Route(get_running_info, "admin"),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: Route(consume_directly, "admin"),
}
