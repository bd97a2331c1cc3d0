"""A consumer failed on a message and gives it back (36): it is stored again, to be consumed later or as a dead letter.

The message is read at the physical offset the consumer names and stored in the group's retry topic with a delay that
grows with each attempt; when the attempts are used up, it goes to the dead-letter topic and stays there. What our SDK
says of the failure is kept as properties.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from appliance.broker.processors.send import SendParts
from appliance.broker.topics.topic_config import UNIT_SUB_FLAG
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import int_field, long_field
from gantrymq.errors import RecordError
from gantrymq.message import ids
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.message.model import MessageExt
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.bodies import PERM_WRITE
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.results import PutMessageStatus, StoreMessage

FIRST_RETRY_LEVEL = 3  # delay level of the first attempt; each further one is a level higher
PROPERTIES_BYTES_MAX = keys.PROPERTIES_BYTES_MAX - 200  # what is stored with a retry comes on top
HEADER_MAX_RECONSUME_VERSION = 121  # V3_4_9: from here on the client's own limit counts


def send_back(parts: SendParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """Store a failed message again. BrokerError: 26 unknown group, 16 not writable, 1 not found or not stored."""
    fields = request.ext_fields
    group, physical_offset = fields["group"], long_field(fields, "offset")
    config = parts.creations.group(parts.groups, connection, group)
    if config is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group}")
    if not parts.config.permission & PERM_WRITE:
        host = parts.config.advertised_address_host
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the broker[{host}] sending message is forbidden")
    if config.retry_queue_nums <= 0:
        return request.reply()
    retry_topic = _retry_topic(parts, config, is_unit=fields.get("unitMode", "").lower() == "true")
    message = _read_message(parts, physical_offset)
    origin_topic = message.properties.setdefault(keys.RETRY_TOPIC, message.topic)
    level = int_field(fields, "delayLevel", 0)
    if level < 0 or message.reconsume_times >= _max_reconsume_times(config, request):
        target, level = parts.topics.create_dlq_topic(group), 0
    else:
        target, level = retry_topic, level or FIRST_RETRY_LEVEL + message.reconsume_times
    _note_cause(message, fields)
    _store_again(parts, message, target, level)
    parts.stats.inc_send_back(group, origin_topic)
    return request.reply()


def _retry_topic(parts: SendParts, config: SubscriptionGroupConfig, *, is_unit: bool) -> TopicConfig:
    topic = parts.topics.create_retry_topic(
        names.retry_topic(config.group_name), config.retry_queue_nums, topic_sys_flag=UNIT_SUB_FLAG if is_unit else 0
    )
    if not topic.perm & PERM_WRITE:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the topic[{topic.topic_name}] sending message is forbidden")
    return topic


def _read_message(parts: SendParts, physical_offset: int) -> MessageExt:
    try:
        message = parts.store.look_message_by_offset(physical_offset)
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


def _note_cause(message: MessageExt, fields: Mapping[str, str]) -> None:
    """Keep why the consumer failed, unless the properties would not fit any more."""
    told = keys.cause_properties(fields.get("consumeError", ""), fields.get("consumeErrorText", ""))
    if told and len(keys.encode_properties(message.properties | told).encode()) <= PROPERTIES_BYTES_MAX:
        message.properties.update(told)


def _store_again(parts: SendParts, message: MessageExt, target: TopicConfig, delay_level: int) -> None:
    properties = message.properties
    properties.setdefault(keys.ORIGIN_MESSAGE_ID, message.offset_msg_id)
    properties[keys.WAIT] = "false"
    properties[keys.DELAY] = str(delay_level)
    encoded = keys.encode_properties(properties).encode()
    result = parts.store.put_message(
        StoreMessage(
            target.topic_name,
            random.randrange(max(1, target.write_queue_nums)),
            message.body,
            encoded,
            message.flag,
            message.sys_flag,
            message.born_timestamp,
            ids.encode_host(*message.born_host),
            parts.store_host,
            message.reconsume_times + 1,
            0,
        )
    )
    if result.status != PutMessageStatus.PUT_OK:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, result.status.name)
    if result.waits_in is not None:  # a dead letter is counted nowhere
        parts.stats.inc_waiting_retry(result.waits_in, parts.store.delay_levels.level_of(encoded), result.size_bytes)
