"""370 RECALL_MESSAGE (RocketMQ 5.3 and later): a message that waits for its time is not delivered.

The broker's answer to the send had a handle that says which message. What is stored is a recall, a message of the
timer's topic as RocketMQ 5's (appliance/broker/timer/recalls.py). The answer means: it is stored, and the message will
not be delivered; a crash from then on changes nothing. That there is such a message is not checked.
"""

from __future__ import annotations

import functools
import time
from typing import Protocol

from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.replication.master.put_waits import PutWaits
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.timer.recalls import BODY, recall_properties
from appliance.broker.timer.service import TimerService
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import text_field
from appliance.settings.roles import BrokerConfig
from gantrymq.message import properties as names
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.message.topics import RETRY_PREFIX, TIMER_TOPIC
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand
from store.base.results import PutMessageStatus, StoreMessage
from store.message_store import MessageStore

_UNIQ_KEY = names.UNIQ_KEY.encode()


class RecallParts(Protocol):
    """What this handler uses of the broker."""

    config: BrokerConfig
    store: MessageStore
    stats: BrokerStatsManager
    topics: TopicConfigManager
    timer: TimerService
    send_answers: SendAnswers
    store_host: bytes
    put_waits: PutWaits


def recall_handle(config: BrokerConfig, topic: str, properties: bytes, due_ms: int) -> str:
    """What the sender of a message for a time is given; empty for one that can't be recalled: it has no id of its own,
    one that a handle can't say, or is a consumer's retry."""
    msg_id = names.find_property(properties, _UNIQ_KEY)
    if msg_id is None or b" " in msg_id or topic.startswith(RETRY_PREFIX):
        return ""
    return str(RecallHandle(topic, config.broker_name, due_ms, msg_id.decode(errors="replace")))


def recall(parts: RecallParts, connection: ServerConnection, request: RemotingCommand) -> bytes | None:
    """Store a recall. BrokerError: 17 unknown topic, 604 not a handle of that topic and this broker or too late, 1 not
    stored."""
    fields = request.ext_fields
    handle = _handle(parts, text_field(fields, "topic"), text_field(fields, "recallHandle"))
    now_ms = int(time.time() * 1000)
    rules = parts.store.timer_rules
    if not now_ms < handle.due_ms <= now_ms + rules.delay_ms_max:
        raise BrokerError(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
    if not rules.enabled:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "recall failed, execute error: timerWheelEnable is false")
    try:
        properties = recall_properties(handle, fields.get("producerGroup", ""), now_ms)
    except ValueError as exc:
        raise BrokerError(ResponseCode.ILLEGAL_OPERATION, f"recall failed, {exc}") from exc
    message = StoreMessage(TIMER_TOPIC, 0, BODY, properties, 0, 0, now_ms, connection.born_host, parts.store_host)
    result = parts.store.put_message(message, delay=False)
    if result.status is not PutMessageStatus.PUT_OK:
        why = parts.store.why_refused() or result.status.name
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"recall failed, execute error: {why}")
    parts.timer.recall_stored(result.queue_offset)
    parts.stats.inc_delayed_put(TIMER_TOPIC, 0, result.size_bytes)
    if request.flag & ONEWAY_FLAG:
        return None
    answer = parts.send_answers.told(request, ResponseCode.SUCCESS, None, {"msgId": handle.msg_id})
    if not parts.put_waits.is_needed:
        return answer
    written = functools.partial(connection.write, answer)  # as in RocketMQ, late confirmations are a success, too
    parts.put_waits.when_stored(result.physical_offset + result.size_bytes, lambda _code: written())
    return None


def _handle(parts: RecallParts, topic: str, text: str) -> RecallHandle:
    if parts.topics.get(topic) is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist")
    try:
        handle = RecallHandle.parse(text)
    except ValueError as exc:
        raise BrokerError(ResponseCode.ILLEGAL_OPERATION, str(exc)) from exc
    if handle.topic != topic:
        raise BrokerError(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
    if handle.broker_name != parts.config.broker_name:
        raise BrokerError(ResponseCode.ILLEGAL_OPERATION, "recall failed, broker service not available")
    return handle
