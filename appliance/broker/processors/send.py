"""Sends: 10, 310 and 320. One message or a batch into the commit log, and the answer that says where it went.

The hot path of the broker: a plain send to a known topic runs straight down `send`; whatever is unusual (unknown
topic, retry topic, refusals) is handled by functions of its own. What holds at each step, and what a crash leaves:

    checks    nothing is stored. A refusal is an answer. A topic that was created for the message stays
    put       one step of the store, on the loop's thread: the record is in the log's pages and in its queue, or nothing
              is. From here on consumers get it, and the end of this process does not take it; a power cut does,
              until it is flushed
    counted   in memory only: a crash takes the count, never the message
    answer    handed to the lanes, which write it at the end of their round; with SYNC_FLUSH it waits for the disk, with
              SYNC_MASTER for a slave, for the first messages of a topic until the name servers know the topic (a
              second at most). Whenever an answer is lost, the message is stored nonetheless, and a client that
              sends it again stores it twice
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from appliance.broker.access.cost_limits import CreationLimit, check_batch_keys, check_keys
from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.processors.recall import recall_handle
from appliance.broker.processors.transaction import half_message
from appliance.broker.replication.master.put_waits import PutWaits
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.send_target import SendTargets
from appliance.broker.topics.topic_config import UNIT_FLAG, UNIT_SUB_FLAG, TopicConfigManager
from appliance.broker.transaction.service import TransactionService
from appliance.errors import BrokerError
from appliance.process.java_time import java_time
from appliance.remoting.send_request import SendFields, SendRequest
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected, RecordError
from gantrymq.message.properties import PROPERTIES_BYTES_MAX, UNIQ_KEY, find_property
from gantrymq.message.sysflag import MULTI_TAGS, TRANSACTION_MASK
from gantrymq.message.topics import (
    RETRY_PREFIX,
    check_topic,
    may_clients_send_to,
)
from gantrymq.remoting.admin_bodies import MULTI_TAG, TopicConfig
from gantrymq.remoting.bodies import PERM_WRITE
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand
from store.base.config import MessageStoreConfig
from store.base.delay import DELAY_HINT, DELAY_MARK
from store.base.results import PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage
from store.base.timer import TIMER_MARK
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.broker.topics.send_target import SendTarget
    from appliance.remoting.connection import ServerConnection

Request = RemotingCommand | SendRequest

TELLS_TRIES_SINCE_VERSION = 121  # V3_4_9: older clients send something else in maxReconsumeTimes

_UNIQ_KEY = UNIQ_KEY.encode()
_PUT_OK = PutMessageStatus.PUT_OK

_TOO_LONG = (
    ResponseCode.MESSAGE_ILLEGAL,
    "the message is illegal, maybe msg body or properties length not matched. msg body length limit "
    "{body_bytes_max}B, msg properties length limit 32KB.",
)
# What the client is told of a put that did not work (../spec: put status -> response code).
_REFUSALS = {
    PutMessageStatus.CREATE_MAPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    PutMessageStatus.MESSAGE_ILLEGAL: _TOO_LONG,
    PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: _TOO_LONG,
    PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL: (
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay {delay_ms_max}ms; or if set del "
        "msg, the delay time should be bigger than the current time",
    ),
    PutMessageStatus.WHEEL_TIMER_NOT_ENABLE: (
        ResponseCode.SYSTEM_ERROR,
        "accurate timer message is not enabled, timerWheelEnable is false",
    ),
    PutMessageStatus.SERVICE_NOT_AVAILABLE: (
        ResponseCode.SERVICE_NOT_AVAILABLE,
        "service not available now. It may be caused by the broker's disk being full or the broker shutting down",
    ),
    PutMessageStatus.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_ERROR,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
    ),
}
_UNKNOWN_REFUSAL = (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR")
_DISKS_REFUSALS = (PutMessageStatus.SERVICE_NOT_AVAILABLE, PutMessageStatus.CREATE_MAPED_FILE_FAILED)


class SendParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store_config: MessageStoreConfig
    store: MessageStore
    stats: BrokerStatsManager
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    creations: CreationLimit
    send_targets: SendTargets
    outer_api: BrokerOuterApi
    send_answers: SendAnswers
    store_host: bytes
    cluster_property: bytes
    transactions: TransactionService
    put_waits: PutWaits


def send(parts: SendParts, connection: ServerConnection, request: Request) -> bytes | None:
    """10 SEND_MESSAGE, 310 SEND_MESSAGE_V2, 320 SEND_BATCH_MESSAGE."""
    try:
        fields = request.fields if isinstance(request, SendRequest) else SendFields.of(request.ext_fields)
        config = parts.config
        target = parts.send_targets.plain.get(fields.topic)
        if target is None or config.start_accept_send_timestamp:
            target, queue_id, properties = _unusual_target(parts, connection, request, fields)
        else:
            queue_id, properties = fields.queue_id, fields.properties
        if len(properties) > config.message_keys_max:  # shorter ones can't have so many
            check_keys(config, target.topic, properties)
        if queue_id < 0 < target.write_queue_nums:
            queue_id = random.randrange(target.write_queue_nums)
        elif not 0 <= queue_id < target.queue_id_end:
            raise no_such_queue(queue_id, target.config, connection)
        if fields.batch == "true":
            return _store_batch(parts, connection, request, fields, target, queue_id, properties)
        if "TRAN_MSG\x01" in properties or fields.sys_flag & TRANSACTION_MASK:
            half = half_message(config, parts.store_host, connection, request.body, fields, target.topic, queue_id)
            if half is not None:
                return _store_half(parts, connection, request, queue_id, target.topic, *half)
        encoded, is_waiting, may_be_delayed = without_wait(properties.encode())
        encoded = _with_cluster(encoded, parts.cluster_property)
        if len(encoded) > PROPERTIES_BYTES_MAX:
            raise _refusal(parts, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED)
        message = StoreMessage(
            target.topic, queue_id, request.body, encoded, fields.flag, fields.sys_flag, fields.born_timestamp,
            connection.born_host, parts.store_host, fields.reconsume_times, 0, target.slot,
        )  # fmt: skip
        result = parts.store.put_message(message, delay=may_be_delayed)
        if result.status is not _PUT_OK:
            raise _refusal(parts, result.status)
        if result.waits_in is None:
            target.count += 1
            target.times += 1
            target.size += result.size_bytes
        else:  # for its own topic it counts when it is delivered
            level = parts.store.delay_levels.level_of(encoded)
            parts.stats.inc_delayed_put(result.waits_in, level, result.size_bytes)
        handle = recall_handle(parts.config, target.topic, encoded, result.due_ms) if result.due_ms else ""
        more = {"recallHandle": handle} if handle else None
        return _answer(parts, connection, request, target.topic, queue_id, result, is_waiting, more)
    except BrokerError as exc:
        return parts.send_answers.refused(request, exc.code, str(exc))
    except RecordError as exc:  # a batch whose body is none
        return parts.send_answers.refused(request, ResponseCode.MESSAGE_ILLEGAL, str(exc))


# -- batches and half messages ----------------------------------------------------------------------------------------


def _store_batch(
    parts: SendParts,
    connection: ServerConnection,
    request: Request,
    fields: SendFields,
    target: SendTarget,
    queue_id: int,
    properties: str,
) -> bytes | None:
    """All messages of the batch are stored or none. properties: of the request; each message gets them, too."""
    check_batch_keys(parts.config, target.topic, request.body)
    encoded = _with_cluster(properties.encode(), parts.cluster_property)
    batch = StoreBatch(
        target.topic, queue_id, request.body, encoded, fields.flag, fields.sys_flag, fields.born_timestamp,
        connection.born_host, parts.store_host, fields.reconsume_times, 0, target.slot,
    )  # fmt: skip
    result = parts.store.put_batch(batch)
    if result.status is not _PUT_OK:
        raise _refusal(parts, result.status)
    target.count += result.message_count
    target.times += 1
    target.size += result.size_bytes
    return _answer(parts, connection, request, target.topic, queue_id, result, is_waiting=True)


def _store_half(
    parts: SendParts,
    connection: ServerConnection,
    request: Request,
    queue_id: int,
    topic: str,
    half: StoreMessage,
    is_waiting: bool,
) -> bytes | None:
    """The answer names the queue that was asked for, and where the half message is stored: consumers don't see it.

    A crash from here on leaves a half message without an end: its producer will be asked about it.
    """
    if TIMER_MARK in half.properties:  # its time counts from the commit; one that is refused then is refused now
        refused = parts.store.timer_rules.divert(half, int(time.time() * 1000))
        if isinstance(refused, PutMessageStatus):
            raise _refusal(parts, refused)
    result = parts.store.put_message(half, delay=False)
    if result.status is not _PUT_OK:
        raise _refusal(parts, result.status)
    parts.transactions.metrics.prepared += 1
    parts.stats.inc_topic_put(half.topic, 1, result.size_bytes)
    msg_id = find_property(half.properties, _UNIQ_KEY)  # brokers 5 say it, and their proxies need it
    more = {"transactionId": msg_id.decode(errors="replace")} if msg_id else None
    return _answer(parts, connection, request, topic, queue_id, result, is_waiting, more)


# -- the answer -------------------------------------------------------------------------------------------------------


def _answer(
    parts: SendParts,
    connection: ServerConnection,
    request: Request,
    topic: str,
    queue_id: int,
    result: PutMessageResult,
    is_waiting: bool,
    more: Mapping[str, str] | None = None,
) -> bytes | None:
    """The end of each send that was stored: its answer; None for one-way sends, and when it is written later.

    topic, queue_id: where the client sent it to. is_waiting: the client waits for the disk (SYNC_FLUSH) and for a
    slave (SYNC_MASTER). more: what else the answer says.
    """
    if request.flag & ONEWAY_FLAG:
        return None
    answers = parts.send_answers
    if more:
        answer = answers.stored_with(request, result.physical_offset, queue_id, result.queue_offset, more)
    elif result.offsets:
        answer = answers.stored_batch(request, result.offsets, queue_id, result.queue_offset)
    else:
        answer = answers.stored(request, result.physical_offset, queue_id, result.queue_offset)
    if is_waiting and parts.put_waits.is_needed:
        _answer_when_flushed(parts, connection, request, queue_id, result, answer, topic, more)
        return None
    if topic not in parts.send_targets.plain and parts.outer_api.is_untold(topic):
        parts.outer_api.when_told(topic, functools.partial(connection.write, answer))
        return None
    return answer


def _answer_when_flushed(
    parts: SendParts,
    connection: ServerConnection,
    request: Request,
    queue_id: int,
    result: PutMessageResult,
    answer: bytes,
    topic: str,
    more: Mapping[str, str] | None,
) -> None:
    """The answer waits for the disk (SYNC_FLUSH), a slave (SYNC_MASTER) or both; too slow is "stored, but".

    The message can be consumed meanwhile. A power cut before may take it: its client has no answer.
    """
    offsets = result.offsets or (result.physical_offset,)

    def stored(code: ResponseCode) -> None:
        answers = parts.send_answers
        if code is ResponseCode.SUCCESS:
            told = answer
        elif more:
            told = answers.stored_with(request, offsets[0], queue_id, result.queue_offset, more, code)
        else:
            told = answers.stored_batch(request, offsets, queue_id, result.queue_offset, code)
        parts.outer_api.when_told(topic, functools.partial(connection.write, told))

    parts.put_waits.when_stored(result.physical_offset + result.size_bytes, stored)


def _refusal(parts: SendParts, status: PutMessageStatus) -> BrokerError:
    """What the client is told of a put that stored nothing."""
    code, remark = _REFUSALS.get(status, _UNKNOWN_REFUSAL)
    if status in _DISKS_REFUSALS and (why := parts.store.why_refused()):
        remark = f"{remark}; {why}"
    remark = remark.replace("{delay_ms_max}", str(parts.store.timer_rules.delay_ms_max))
    return BrokerError(code, remark.replace("{body_bytes_max}", str(parts.store_config.message_bytes_max)))


def no_such_queue(queue_id: int, config: TopicConfig, connection: ServerConnection) -> BrokerError:
    """The refusal of a topic that shrank, or can't be written at all: clients try another queue on this code only."""
    return BrokerError(
        ResponseCode.SYSTEM_ERROR,
        f"request queueId[{queue_id}] is illegal, topic[{config.topic_name}] has {config.write_queue_nums} queues to "
        f"write and {config.read_queue_nums} to read, counted from 0. Producer: {connection.remote_text}",
    )


# -- properties -------------------------------------------------------------------------------------------------------


def without_wait(encoded: bytes) -> tuple[bytes, bool, bool]:
    """The properties without WAIT, which is for the broker only; whether the client wants to wait for the disk; whether
    the message may be one for later, so that the store has to look closer.

    Delayed messages keep WAIT, as RocketMQ's do.
    """
    is_waiting, may_be_delayed = True, DELAY_HINT in encoded
    rest = encoded.replace(b"\x02WAIT\x01true\x02", b"\x02", 1)  # where Java's clients put it
    if len(rest) == len(encoded) and b"WAIT\x01" in encoded:
        pairs = encoded.split(b"\x02")
        waits = [pair for pair in pairs if pair.startswith(b"WAIT\x01")]
        if waits:
            is_waiting = waits[-1].lower() != b"wait\x01false"
            rest = b"\x02".join([pair for pair in pairs if pair not in waits])
    if may_be_delayed and DELAY_MARK in encoded:
        return encoded, is_waiting, True
    return rest, is_waiting, may_be_delayed


def _with_cluster(encoded: bytes, cluster_property: bytes) -> bytes:
    """The properties with exactly one separator before the broker's own pair."""
    if not encoded:
        return cluster_property
    if encoded[-1] == 2:
        return encoded + cluster_property
    return encoded + b"\x02" + cluster_property


# -- what is not a plain send to a known topic ------------------------------------------------------------------------


def _unusual_target(
    parts: SendParts, connection: ServerConnection, request: Request, fields: SendFields
) -> tuple[SendTarget, int, str]:
    """(topic, queue id, properties) that the message really goes to. Raises BrokerError."""
    topic = fields.topic
    check_gate(parts.config)
    check_permission(parts.config, parts.topics.configs.get(topic))
    try:
        check_topic(topic)
    except MessageRejected as exc:
        raise BrokerError(ResponseCode.MESSAGE_ILLEGAL, str(exc)) from exc
    if not may_clients_send_to(topic):
        raise BrokerError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
    if topic.startswith(RETRY_PREFIX):
        return _retry_target(parts, connection, request, fields)
    config = parts.topics.get(topic)
    if config is None:
        queue_count = fields.default_topic_queue_nums
        sys_flag = UNIT_FLAG if fields.is_unit else 0
        if parts.config.auto_create_topic_enable:
            parts.creations.count(connection, f"topic {topic}")
        config = parts.topics.create_on_send(topic, fields.default_topic, queue_count, connection.remote_text, sys_flag)
    if config is None:
        raise BrokerError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please! Create it, or switch autoCreateTopicEnable on.",
        )
    return _target(parts, config, fields), fields.queue_id, fields.properties


def check_gate(config: BrokerConfig) -> None:
    """Raise BrokerError before startAcceptSendRequestTimeStamp."""
    start_ms = config.start_accept_send_timestamp
    if start_ms and time.time() * 1000 < start_ms:
        until = java_time(start_ms, "%Y-%m-%d %H:%M:%S", ",")
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {until}")


def check_permission(config: BrokerConfig, topic: TopicConfig | None) -> None:
    """Raise BrokerError for an ordered topic on a broker that may not be written.

    Other topics leave it by their routes: what is on its way is taken. Order would be lost between two brokers.
    """
    if topic is not None and topic.order and not config.permission & PERM_WRITE:
        host = config.advertised_address_host
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the broker[{host}] sending message is forbidden")


def _target(parts: SendParts, config: TopicConfig, fields: SendFields) -> SendTarget:
    """The target of a topic; messages of one with several tags a message are marked, as consumers may ask."""
    if config.topic_filter_type == MULTI_TAG:
        fields.sys_flag |= MULTI_TAGS
    return parts.send_targets.of(config, is_untold=parts.outer_api.is_untold(config.topic_name))


def _retry_target(
    parts: SendParts, connection: ServerConnection, request: Request, fields: SendFields
) -> tuple[SendTarget, int, str]:
    """A client sends a failed message to its retry topic itself: counted out, it becomes a dead letter."""
    group_name = fields.topic[len(RETRY_PREFIX) :]
    group = parts.creations.group(parts.groups, connection, group_name)
    if group is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group_name} null")
    tries_max = group.retry_max_times
    if fields.max_reconsume_times is not None and request.version >= TELLS_TRIES_SINCE_VERSION:
        tries_max = fields.max_reconsume_times
    if fields.reconsume_times >= tries_max:
        dead = parts.topics.create_dlq_topic(group_name)
        undelayed = "\x02".join(pair for pair in fields.properties.split("\x02") if not pair.startswith("DELAY\x01"))
        return _target(parts, dead, fields), 0, undelayed
    sys_flag = UNIT_SUB_FLAG if fields.is_unit else 0
    config = parts.topics.create_retry_topic(fields.topic, max(group.retry_queue_nums, 1), topic_sys_flag=sys_flag)
    return _target(parts, config, fields), fields.queue_id, fields.properties
