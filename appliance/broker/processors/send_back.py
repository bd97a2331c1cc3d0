"""A consumer failed on a message and gives it back (36): it is stored again, to be consumed later or as a dead letter.

The message is read at the physical offset the consumer names and stored in the group's retry topic with a delay that
grows with each attempt; when the attempts are used up, it goes to the dead-letter topic and stays there.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from appliance.broker.topics.topic_config import UNIT_SUB_FLAG
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import int_field, long_field
from appliance.remoting.lane import Route
from gantrymq.errors import RecordError
from gantrymq.message import ids
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.message.model import MessageExt
from gantrymq.remoting.bodies import PERM_WRITE, SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.results import PutMessageStatus, StoreMessage

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController

FIRST_RETRY_LEVEL = 3  # delay level of the first attempt; each further one is a level higher
HEADER_MAX_RECONSUME_VERSION = 121  # V3_4_9: from here on the client's own limit counts


def send_back(context: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """Store a failed message again. BrokerError: 26 unknown group, 16 not writable, 1 not found or not stored."""
    fields = request.ext_fields
    group, physical_offset = fields["group"], long_field(fields, "offset")
    config = context.creations.group(context.groups, connection, group)
    if config is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group}")
    if not context.config.permission & PERM_WRITE:
        host = context.config.advertised_address_host
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the broker[{host}] sending message is forbidden")
    if config.retry_queue_nums <= 0:
        return request.reply()
    retry_topic = _retry_topic(context, config, is_unit=fields.get("unitMode", "").lower() == "true")
    message = _read_message(context, physical_offset)
    origin_topic = message.properties.setdefault(keys.RETRY_TOPIC, message.topic)
    level = int_field(fields, "delayLevel", 0)
    if level < 0 or message.reconsume_times >= _max_reconsume_times(config, request):
        target, level = context.topics.create_dlq_topic(group), 0
    else:
        target, level = retry_topic, level or FIRST_RETRY_LEVEL + message.reconsume_times
    _store_again(context, message, target, level)
    context.stats.inc_send_back(group, origin_topic)
    return request.reply()


def _retry_topic(context: BrokerController, config: SubscriptionGroupConfig, *, is_unit: bool) -> TopicConfig:
    topic = context.topics.create_retry_topic(
        names.retry_topic(config.group_name), config.retry_queue_nums, topic_sys_flag=UNIT_SUB_FLAG if is_unit else 0
    )
    if not topic.perm & PERM_WRITE:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the topic[{topic.topic_name}] sending message is forbidden")
    return topic


def _read_message(context: BrokerController, physical_offset: int) -> MessageExt:
    try:
        message = context.store.look_message_by_offset(physical_offset)
    except RecordError as exc:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {physical_offset}: {exc}"
        ) from exc
    if message is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {physical_offset}")
    return message


def _max_reconsume_times(config: SubscriptionGroupConfig, request: RemotingCommand) -> int:
    text = request.ext_fields.get("maxReconsumeTimes")
    if text is not None and request.version >= HEADER_MAX_RECONSUME_VERSION:
        return int_field(request.ext_fields, "maxReconsumeTimes")
    return config.retry_max_times


def _store_again(context: BrokerController, message: MessageExt, target: TopicConfig, delay_level: int) -> None:
    properties = message.properties
    properties.setdefault(keys.ORIGIN_MESSAGE_ID, message.offset_msg_id)
    properties[keys.WAIT] = "false"
    properties[keys.DELAY] = str(delay_level)
    encoded = keys.encode_properties(properties).encode()
    result = context.store.put_message(
        StoreMessage(
            target.topic_name,
            random.randrange(max(1, target.write_queue_nums)),
            message.body,
            encoded,
            message.flag,
            message.sys_flag,
            message.born_timestamp,
            ids.encode_host(*message.born_host),
            context.store_host,
            message.reconsume_times + 1,
            0,
        )
    )
    if result.status != PutMessageStatus.PUT_OK:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, result.status.name)
    if result.waits_in is not None:  # a dead letter is counted nowhere
        context.stats.inc_waiting_retry(
            result.waits_in, context.store.delay_levels.level_of(encoded), result.size_bytes
        )


HANDLERS: dict[int, Route] = {RequestCode.CONSUMER_SEND_MSG_BACK: Route(send_back, "send")}
