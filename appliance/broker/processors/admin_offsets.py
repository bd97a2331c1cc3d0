"""Operators' work on consumer offsets: all of them (43), correction (308), clone (314), reset (222).

A reset is pushed to the group's online consumers, who commit the new offsets themselves. Consumers that pop keep none:
for a group that pops the topic the broker moves the offsets, and all leases of the topic are void.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from appliance.broker.groups.reset_offset import OffsetReset, ResetOrder
from appliance.broker.pop.leases import Key
from appliance.broker.processors.admin_topics import AdminTopicParts
from appliance.errors import BrokerError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

OFFSET_MAX = (1 << 63) - 1
VERSION_WITH_RESET = 28  # MQVersion ordinal of V3_0_7_SNAPSHOT
UNSET_REMARK = "not set any response code"  # RocketMQ forgets to remove its template's remark from this answer


async def get_all_offsets(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """43: every committed offset."""
    return request.reply(body=await parts.offsets.body())


def query_correction_offset(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """308: the smallest offset of any group on each queue; "no limit" where that is beyond compareGroup's."""
    fields = request.ext_fields
    topic = fields["topic"]
    left_out = set(filter(None, fields.get("filterGroups", "").split(",")))
    smallest: dict[int, int] = {}
    for group in parts.offsets.groups_of(topic) - left_out:
        for queue_id, offset in parts.offsets.offsets(topic, group).items():
            if offset >= parts.store.min_offset(topic, queue_id):
                smallest[queue_id] = min(offset, smallest.get(queue_id, OFFSET_MAX))
    for queue_id, offset in parts.offsets.offsets(topic, fields["compareGroup"]).items():
        if smallest.get(queue_id, OFFSET_MAX) > offset:
            smallest[queue_id] = OFFSET_MAX
    return request.reply(body=fastjson.dumps({"correctionOffsets": smallest}))


def clone_group_offset(
    parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """314: give one group the offsets of another, on one topic or on all (RocketMQ copies nothing then).

    Unless the source is said to be offline, topics that it no longer subscribes to are left out.
    """
    parts.offsets.check_may_move()
    fields = request.ext_fields
    source, target = fields["srcGroup"], fields["destGroup"]
    is_offline = fields.get("offline", "").lower() == "true"
    topics = [fields["topic"]] if fields.get("topic") else sorted(parts.offsets.topics_of(source))
    for topic in topics:
        if parts.topics.get(topic) is None:
            continue
        if not is_offline and not _consumes(parts, source, topic):
            continue
        for queue_id, offset in parts.offsets.offsets(topic, source).items():
            parts.offsets.commit(target, topic, queue_id, offset)
    parts.pop.book.drop_void()
    logger.info(
        "offsets cloned by a request",
        extra={"event": "admin_offsets_cloned", "peer": connection.remote_text, "source": source, "target": target},
    )
    return request.reply()


def _consumes(parts: AdminTopicParts, group: str, topic: str) -> bool:
    """False when the group is online without subscribing to the topic."""
    info = parts.consumers.get(group)
    return info is None or not info.subscriptions or topic in info.subscriptions


def reset_offset(parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """222: have the group go on at a time. Its online consumers commit the new offsets, unless it pops the topic."""
    order = ResetOrder.of(request.ext_fields)
    table = OffsetReset(parts.config.broker_name, parts.topics, parts.offsets, parts.store).targets(order)
    if parts.pop.modes.pops(order.topic, order.group):
        return _reset_pops(parts, connection, request, order, table)
    channels = parts.consumers.channels(order.group)
    if not channels:
        raise BrokerError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {order.group} Topic: {order.topic} "
            f"Timestamp: {order.timestamp_ms}",
        )
    for channel in channels:
        if channel.version < VERSION_WITH_RESET:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR, f"the client does not support this feature. version={channel.version}"
            )
    fields = {
        "topic": order.topic,
        "group": order.group,
        "timestamp": str(order.timestamp_ms),
        "isForce": "false",  # as RocketMQ leaves it: what is forced is already in the offsets
    }
    push_body = _reset_body(table, as_list=request.language == "CPP")
    for channel in channels:
        push = RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, dict(fields), push_body)
        channel.connection.invoke_oneway(push)
    logger.info(
        "offset reset pushed",
        extra={
            "event": "admin_offset_reset",
            "peer": connection.remote_text,
            "group": order.group,
            "topic": order.topic,
            "timestamp": order.timestamp_ms,
            "consumers": len(channels),
        },
    )
    return request.reply(remark=UNSET_REMARK, body=_reset_body(table, as_list=False))


def _reset_pops(
    parts: AdminTopicParts,
    connection: ServerConnection,
    request: RemotingCommand,
    order: ResetOrder,
    table: dict[MessageQueue, int],
) -> RemotingCommand:
    """What was out and not acknowledged counts by the new offsets alone; the group's retry topic stays as it is."""
    parts.offsets.check_may_move()
    for queue, offset in table.items():
        parts.pop.book.go_to(Key(order.group, order.topic, queue.queue_id), offset)
    parts.pop.hold.wake(order.topic, order.group)
    logger.info(
        "offset reset",
        extra={
            "event": "admin_pop_offset_reset",
            "peer": connection.remote_text,
            "group": order.group,
            "topic": order.topic,
            "timestamp": order.timestamp_ms,
        },
    )
    return request.reply(remark=UNSET_REMARK, body=_reset_body(table, as_list=False))


def _reset_body(table: dict[MessageQueue, int], *, as_list: bool) -> bytes:
    """Raw object keys, the one form that Java and Go both read; a list for the C++ client."""
    if not as_list:
        return fastjson.dumps({"offsetTable": table})
    rows = [
        {"brokerName": queue.broker_name, "offset": offset, "queueId": queue.queue_id, "topic": queue.topic}
        for queue, offset in table.items()
    ]
    return fastjson.dumps({"offsetTable": rows})
