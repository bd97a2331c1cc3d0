"""Sends: 10, 310 and 320. One message or a batch into the commit log, and the answer that says where it went.

The hot path of the broker: a plain send to a known topic runs straight down `_send` and `_store`; whatever is unusual
(unknown topic, retry topic, refusals) is handled by functions of its own.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from appliance.errors import BrokerError
from appliance.remoting.lanes import Route
from gantrymq.errors import MessageRejected
from gantrymq.message.properties import PROPERTIES_BYTES_MAX
from gantrymq.message.sysflag import TRANSACTION_MASK
from gantrymq.message.topics import (
    CLIENTS_MAY_NOT_SEND_TO,
    RETRY_PREFIX,
    check_topic,
    may_clients_send_to,
)
from gantrymq.remoting.bodies import TopicConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand
from store.results import PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController
    from appliance.remoting.server import ServerConnection

_PUT_OK = PutMessageStatus.PUT_OK

# What the client is told of a put that did not work (../spec: put status -> response code).
_REFUSALS = {
    PutMessageStatus.CREATE_MAPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    PutMessageStatus.MESSAGE_ILLEGAL: (
        ResponseCode.MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched. msg body length limit B, "
        "msg properties length limit 32k.",
    ),
    PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: (
        ResponseCode.MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched.",
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


def send(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> bytes | None:
    """10 SEND_MESSAGE: fields under their whole names."""
    fields = request.ext_fields
    return _send(
        broker,
        connection,
        request,
        fields["topic"],
        int(fields["queueId"]),
        fields.get("properties", ""),
        int(fields["flag"]),
        int(fields["sysFlag"]),
        int(fields["bornTimestamp"]),
        int(fields.get("reconsumeTimes", 0)),
        fields.get("batch") == "true",
    )


def send_v2(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> bytes | None:
    """310 SEND_MESSAGE_V2 and 320 SEND_BATCH_MESSAGE: the same fields under one-letter names."""
    fields = request.ext_fields
    return _send(
        broker,
        connection,
        request,
        fields["b"],
        int(fields["e"]),
        fields.get("i", ""),
        int(fields["h"]),
        int(fields["f"]),
        int(fields["g"]),
        int(fields.get("j", 0)),
        fields.get("m") == "true",
    )


def _send(
    broker: BrokerController,
    connection: ServerConnection,
    request: RemotingCommand,
    topic: str,
    queue_id: int,
    properties: str,
    flag: int,
    sys_flag: int,
    born_timestamp: int,
    reconsume_times: int,
    is_batch: bool,
) -> bytes | None:
    try:
        config = broker.topics.configs.get(topic)
        if config is None or topic in CLIENTS_MAY_NOT_SEND_TO or topic[0] == "%" or broker.send_gate is not None:
            topic, queue_id, properties, config = _unusual_target(
                broker, connection, request, topic, queue_id, properties, reconsume_times
            )
        if queue_id < 0:
            queue_id = random.randrange(config.write_queue_nums)
        elif queue_id >= config.write_queue_nums and queue_id >= config.read_queue_nums:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR,
                f"request queueId[{queue_id}] is illegal, {config.to_json().decode()} "
                f"Producer: {connection.remote_text}",
            )
        if "TRAN_MSG\x01true" in properties or sys_flag & TRANSACTION_MASK:
            raise BrokerError(
                ResponseCode.NO_PERMISSION,
                f"the broker[{broker.config.broker_name}] does not take transactional messages: they are not built yet",
            )
        if is_batch:
            return _store_batch(
                broker,
                connection,
                request,
                StoreBatch(
                    topic,
                    queue_id,
                    request.body,
                    _with_cluster(properties.encode(), broker.cluster_property),
                    flag,
                    sys_flag,
                    born_timestamp,
                    connection.born_host,
                    broker.store_host,
                    reconsume_times,
                    0,
                ),
            )
        encoded = properties.encode()
        is_waiting = True
        at = encoded.find(b"WAIT\x01")
        if at >= 0 and b"DELAY\x01" not in encoded:
            encoded, is_waiting = _without_wait(encoded, at)
        encoded = _with_cluster(encoded, broker.cluster_property)
        if len(encoded) > PROPERTIES_BYTES_MAX:
            raise BrokerError(*_REFUSALS[PutMessageStatus.PROPERTIES_SIZE_EXCEEDED])
        return _store(
            broker,
            connection,
            request,
            StoreMessage(
                topic,
                queue_id,
                request.body,
                encoded,
                flag,
                sys_flag,
                born_timestamp,
                connection.born_host,
                broker.store_host,
                reconsume_times,
                0,
            ),
            is_waiting,
        )
    except BrokerError as exc:
        return broker.send_answers.refused(request, exc.code, str(exc))


# -- storing ----------------------------------------------------------------------------------------------------------


def _store(
    broker: BrokerController,
    connection: ServerConnection,
    request: RemotingCommand,
    message: StoreMessage,
    is_waiting: bool,
) -> bytes | None:
    result = broker.store.put_message(message)
    if result.status is not _PUT_OK:
        raise _refusal(result)
    broker.stats.inc_topic_put(message.topic, 1, result.size_bytes)
    broker.stats.inc_broker_put(1)
    answer = None
    if not request.flag & ONEWAY_FLAG:
        answer = broker.send_answers.stored(request, result.physical_offset, message.queue_id, result.queue_offset)
    if is_waiting and broker.store_config.is_sync_flush:
        _answer_when_flushed(broker, connection, request, message.queue_id, result, answer)
        return None
    return answer


def _store_batch(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand, batch: StoreBatch
) -> bytes | None:
    result = broker.store.put_batch(batch)
    if result.status is not _PUT_OK:
        raise _refusal(result)
    broker.stats.inc_topic_put(batch.topic, result.message_count, result.size_bytes)
    broker.stats.inc_broker_put(result.message_count)
    answer = broker.send_answers.stored_batch(request, result.offsets, batch.queue_id, result.queue_offset)
    if broker.store_config.is_sync_flush:
        _answer_when_flushed(broker, connection, request, batch.queue_id, result, answer)
        return None
    return answer


def _answer_when_flushed(
    broker: BrokerController,
    connection: ServerConnection,
    request: RemotingCommand,
    queue_id: int,
    result: PutMessageResult,
    answer: bytes | None,
) -> None:
    """SYNC_FLUSH: the answer waits for the disk; a disk that is too slow is told as "stored, but"."""
    if answer is None:
        return
    offsets = result.offsets or (result.physical_offset,)

    def flushed(is_on_disk: bool) -> None:
        connection.write(
            answer
            if is_on_disk
            else broker.send_answers.stored_batch(
                request, offsets, queue_id, result.queue_offset, ResponseCode.FLUSH_DISK_TIMEOUT
            )
        )

    broker.store.when_flushed(result.physical_offset + result.size_bytes, flushed)


def _refusal(result: PutMessageResult) -> BrokerError:
    return BrokerError(*_REFUSALS.get(result.status, _UNKNOWN_REFUSAL))


# -- properties -------------------------------------------------------------------------------------------------------


def _without_wait(encoded: bytes, at: int) -> tuple[bytes, bool]:
    """The properties without WAIT, which is for the broker only, and whether the client wants to wait for the disk.

    at: where `WAIT` 0x01 was found; it counts only at the start of a pair.
    """
    if at and encoded[at - 1] != 2:
        at = encoded.find(b"\x02WAIT\x01") + 1
        if not at:
            return encoded, True
    end = encoded.find(b"\x02", at)
    value = encoded[at + 5 :] if end < 0 else encoded[at + 5 : end]
    rest = encoded[:at] if end < 0 else encoded[:at] + encoded[end + 1 :]
    return rest, value.lower() != b"false"


def _with_cluster(encoded: bytes, cluster_property: bytes) -> bytes:
    """The properties with exactly one separator before the broker's own pair."""
    if not encoded:
        return cluster_property
    if encoded[-1] == 2:
        return encoded + cluster_property
    return encoded + b"\x02" + cluster_property


# -- what is not a plain send to a known topic ------------------------------------------------------------------------


def _unusual_target(
    broker: BrokerController,
    connection: ServerConnection,
    request: RemotingCommand,
    topic: str,
    queue_id: int,
    properties: str,
    reconsume_times: int,
) -> tuple[str, int, str, TopicConfig]:
    """(topic, queue id, properties, config) that the message really goes to. Raises BrokerError."""
    if broker.send_gate is not None and time.time() * 1000 < broker.send_gate:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {broker.send_gate}")
    try:
        check_topic(topic)
    except MessageRejected as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, str(exc)) from exc
    if not may_clients_send_to(topic):
        raise BrokerError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
    if topic.startswith(RETRY_PREFIX):
        return _retry_target(broker, request, topic, queue_id, properties, reconsume_times)
    config = broker.topics.get(topic)
    if config is None:
        fields = request.ext_fields
        template = fields.get("c") or fields.get("defaultTopic", "")
        queue_count = int(fields.get("d") or fields.get("defaultTopicQueueNums") or 4)
        config = broker.topics.create_on_send(topic, template, queue_count, connection.remote_text)
    if config is None:
        raise BrokerError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please! Create it, or switch autoCreateTopicEnable on.",
        )
    return topic, queue_id, properties, config


def _retry_target(
    broker: BrokerController,
    request: RemotingCommand,
    topic: str,
    queue_id: int,
    properties: str,
    reconsume_times: int,
) -> tuple[str, int, str, TopicConfig]:
    """A client sends a failed message to its retry topic itself: counted out, it becomes a dead letter."""
    group_name = topic[len(RETRY_PREFIX) :]
    group = broker.groups.get(group_name)
    if group is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group_name} null")
    fields = request.ext_fields
    tries_max = group.retry_max_times
    told = fields.get("l") or fields.get("maxReconsumeTimes")
    if told and request.version >= 121:  # V3_4_9: older clients send something else there
        tries_max = int(told)
    if reconsume_times >= tries_max:
        dead = broker.topics.create_dlq_topic(group_name)
        undelayed = "\x02".join(pair for pair in properties.split("\x02") if not pair.startswith("DELAY\x01"))
        return dead.topic_name, 0, undelayed, dead
    config = broker.topics.create_retry_topic(topic, max(group.retry_queue_nums, 1))
    return topic, queue_id, properties, config


HANDLERS = {
    RequestCode.SEND_MESSAGE: Route(send, "send"),
    RequestCode.SEND_MESSAGE_V2: Route(send_v2, "send"),
    RequestCode.SEND_BATCH_MESSAGE: Route(send_v2, "send"),
}
