"""Replies of request-reply: 324 and 325. Pushed to the client that asked (326), and stored in a topic of the cluster.

The requester is the producer whose client id stands in REPLY_TO_CLIENT; it must be connected to this broker. What the
replier is told is how the push went; storing is for the record only, as in RocketMQ (ReplyMessageProcessor).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import weakref
from typing import TYPE_CHECKING, NamedTuple, Protocol

from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.processors.send import check_gate, check_permission, no_such_queue
from appliance.broker.replication.master.put_waits import PutWaits
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.topic_config import UNIT_FLAG, TopicConfigManager
from appliance.errors import BrokerError
from appliance.remoting.send_request import SendFields
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import ConnectError, MessageRejected, RequestTimeout
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.timeouts import timeout
from store.base.results import PutMessageResult, PutMessageStatus, StoreMessage
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

PUSH_TIMEOUT_S = 10.0  # for a turn and the client's answer together
PUSHES_PER_CLIENT_MAX = 32  # under way at once; the others wait their turn
PUSHED_BYTES_MAX = 256 * 1024 * 1024  # bodies of all replies under way


class ReplyParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore
    put_waits: PutWaits
    stats: BrokerStatsManager
    topics: TopicConfigManager
    producers: ProducerManager
    send_answers: SendAnswers
    store_host: bytes
    address: str
    reply_pushes: ReplyPushes


class Outcome(NamedTuple):
    """How a push went. remark: None when the client took it."""

    code: ResponseCode
    remark: str | None


class ReplyPushes:
    """Pushes under way, bounded in number for each client and in bytes for all."""

    def __init__(self, *, bytes_max: int = PUSHED_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self._turns: weakref.WeakKeyDictionary[ServerConnection, asyncio.Semaphore] = weakref.WeakKeyDictionary()
        self.bytes_under_way = 0

    async def push(self, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
        """Return the client's answer. ConnectError, RequestTimeout, or BrokerError when too much is under way."""
        size_bytes = len(request.body)
        if self.bytes_under_way + size_bytes > self.bytes_max:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]too many replies wait for their clients")
        turn = self._turns.setdefault(connection, asyncio.Semaphore(PUSHES_PER_CLIENT_MAX))
        self.bytes_under_way += size_bytes
        deadline = time.monotonic() + PUSH_TIMEOUT_S
        try:
            try:
                async with timeout(PUSH_TIMEOUT_S):
                    await turn.acquire()
            except TimeoutError as exc:
                raise RequestTimeout(connection.remote_text, request.code, PUSH_TIMEOUT_S) from exc
            try:
                return await connection.invoke(request, timeout_s=max(deadline - time.monotonic(), 0.001))
            finally:
                turn.release()
        finally:
            self.bytes_under_way -= size_bytes


async def send_reply(parts: ReplyParts, connection: ServerConnection, request: RemotingCommand) -> bytes:
    """324 SEND_REPLY_MESSAGE, 325 SEND_REPLY_MESSAGE_V2."""
    try:
        fields = SendFields.of(request.ext_fields)
        topic = _target(parts, connection, fields)
        queue_id = fields.queue_id if fields.queue_id >= 0 else random.randrange(topic.write_queue_nums)
        push = _push_request(parts, connection, request, fields)
        outcome = await _pushed(parts, fields, push)
        placed = {"msgId": "0", "queueId": str(queue_id), "queueOffset": "0"} if outcome.remark is None else {}
        if parts.config.store_reply_message_enable:
            placed |= await _stored(parts, connection, request, fields, queue_id)
        return parts.send_answers.told(request, outcome.code, outcome.remark, placed)
    except (BrokerError, MessageRejected) as exc:
        code = exc.code if isinstance(exc, BrokerError) else ResponseCode.MESSAGE_ILLEGAL
        return parts.send_answers.refused(request, code, str(exc))


def _target(parts: ReplyParts, connection: ServerConnection, fields: SendFields) -> TopicConfig:
    """The topic that the reply is stored in, with a queue that it has. Raises BrokerError or MessageRejected."""
    topic = fields.topic
    check_gate(parts.config)
    check_permission(parts.config, parts.topics.get(topic))
    names.check_topic(topic)
    if not names.may_clients_send_to(topic):
        raise BrokerError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
    config = parts.topics.get(topic) or parts.topics.create_on_send(
        topic,
        fields.default_topic,
        fields.default_topic_queue_nums,
        connection.remote_text,
        UNIT_FLAG if fields.is_unit else 0,
    )
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!")
    queue_count = max(config.write_queue_nums, config.read_queue_nums)
    if fields.queue_id >= queue_count or (fields.queue_id < 0 and not config.write_queue_nums):
        raise no_such_queue(fields.queue_id, config, connection)
    return config


# -- the push ---------------------------------------------------------------------------------------------------------


def _push_request(
    parts: ReplyParts, connection: ServerConnection, request: RemotingCommand, fields: SendFields
) -> RemotingCommand:
    """326 with every field of the reply, but for the properties: they depend on when it is pushed."""
    given = request.ext_fields
    group = given["a" if "b" in given else "producerGroup"]
    unit_mode = given.get("k" if "b" in given else "unitMode", "false")
    return RemotingCommand.request(
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
        {
            "producerGroup": group,
            "topic": fields.topic,
            "defaultTopic": fields.default_topic,
            "defaultTopicQueueNums": str(fields.default_topic_queue_nums),
            "queueId": str(fields.queue_id),
            "sysFlag": str(fields.sys_flag),
            "bornTimestamp": str(fields.born_timestamp),
            "flag": str(fields.flag),
            "properties": fields.properties,
            "reconsumeTimes": str(fields.reconsume_times),
            "unitMode": unit_mode,
            "bornHost": connection.remote_text,
            "storeHost": parts.address,
            "storeTimestamp": str(int(time.time() * 1000)),
        },
        bytes(request.body),
    )


async def _pushed(parts: ReplyParts, fields: SendFields, push: RemotingCommand) -> Outcome:
    """Push the reply to the client that waits for it. Every failure is an outcome, with RocketMQ's words."""
    properties = keys.decode_properties(fields.properties)
    client_id = properties.get(keys.REPLY_TO_CLIENT)
    if client_id is None:
        return Outcome(ResponseCode.SYSTEM_ERROR, f"reply message properties[{keys.REPLY_TO_CLIENT}] is null")
    connection = parts.producers.connection_of(client_id)
    if connection is None:
        return Outcome(ResponseCode.SYSTEM_ERROR, f"push reply message fail, channel of <{client_id}> not found.")
    properties.pop(keys.PUSH_REPLY_TIME, None)
    pushed_at = {keys.PUSH_REPLY_TIME: str(int(time.time() * 1000))}
    push.ext_fields["properties"] = keys.encode_properties(pushed_at | properties)
    failed = Outcome(ResponseCode.SYSTEM_ERROR, f"push reply message to {client_id}fail.")  # sic
    try:
        answer = await parts.reply_pushes.push(connection, push)
    except (ConnectError, RequestTimeout) as exc:
        logger.warning("reply not pushed", extra={"event": "reply_not_pushed", "client": client_id, "why": str(exc)})
        return failed
    if answer.code != ResponseCode.SUCCESS:
        logger.warning(
            "reply not accepted",
            extra={"event": "reply_not_taken", "client": client_id, "code": answer.code, "why": answer.remark},
        )
        return failed
    return Outcome(ResponseCode.SUCCESS, None)


# -- the record -------------------------------------------------------------------------------------------------------


async def _stored(
    parts: ReplyParts,
    connection: ServerConnection,
    request: RemotingCommand,
    fields: SendFields,
    queue_id: int,
) -> dict[str, str]:
    """Store the reply; the fields that say where, none when it was not stored: that is no failure of the reply.

    sysFlag is kept (RocketMQ drops it), or clients could not read a compressed reply.
    """
    result = parts.store.put_message(
        StoreMessage(
            fields.topic,
            queue_id,
            request.body,
            fields.properties.encode(),
            fields.flag,
            fields.sys_flag,
            fields.born_timestamp,
            connection.born_host,
            parts.store_host,
            fields.reconsume_times,
            0,
        )
    )
    if result.status is not PutMessageStatus.PUT_OK:
        logger.warning(
            "reply not stored", extra={"event": "reply_not_stored", "topic": fields.topic, "why": result.status.name}
        )
        return {}
    parts.stats.inc_topic_put(fields.topic, 1, result.size_bytes)
    if parts.put_waits.is_needed:
        await _flushed(parts, result)
    return {
        "msgId": parts.send_answers.message_id(result.physical_offset),
        "queueId": str(queue_id),
        "queueOffset": str(result.queue_offset),
    }


async def _flushed(parts: ReplyParts, result: PutMessageResult) -> None:
    """Wait until the disk has the record, or was too slow for it; the replier is told neither."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def told(_: ResponseCode) -> None:
        if not done.done():
            done.set_result(None)

    parts.put_waits.when_stored(result.physical_offset + result.size_bytes, told)
    await done
