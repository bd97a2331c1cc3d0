"""What brokers are asked about deliveries: pop, acknowledge, come back at another time, be a dead letter."""

from __future__ import annotations

import time
from typing import NamedTuple

from appliance.proxy.brokers import BrokerSession
from appliance.proxy.messages.handles import Handle, attempts_before, handles_of
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code
from gantrymq.client.connection.received_messages import read_messages
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageExt
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.failures import refused

ANY_QUEUE = "-1"
FROM_END = "1"  # where a new group begins, unless the whole queue is there and young: RocketMQ's initMode MAX
ANSWER_S = 3.0  # for a broker's answer, after the time that it may wait for messages
DEAD_LETTER_LEVEL = "-1"


class Wanted(NamedTuple):
    """What one receive asks for; topic and group: whole names."""

    group: str
    topic: str
    batch: int
    invisible_ms: int
    poll_s: float
    expression_type: str
    expression: str
    is_ordered: bool
    attempt: str
    client: str


class Delivery(NamedTuple):
    """A message that is leased to the caller. attempt: 1 for the first."""

    message: MessageExt
    handle: Handle
    attempt: int


async def pop(session: BrokerSession, broker_name: str, wanted: Wanted) -> list[Delivery]:
    """Messages of one broker, [] when none came in time. Refused when too many wait already, ResponseError, …"""
    fields = {
        "consumerGroup": wanted.group,
        "topic": wanted.topic,
        "queueId": ANY_QUEUE,
        "maxMsgNums": str(wanted.batch),
        "invisibleTime": str(wanted.invisible_ms),
        "pollTime": str(int(wanted.poll_s * 1000)),
        "bornTime": str(int(time.time() * 1000)),
        "initMode": FROM_END,
        "expType": wanted.expression_type,
        "exp": wanted.expression,
        "order": str(wanted.is_ordered).lower(),
        "attemptId": wanted.attempt,
        "clientId": wanted.client,
    }
    answer = await session.pops.call(
        session.address(broker_name),
        RequestCode.POP_MESSAGE,
        fields,
        accept=(ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT, ResponseCode.POLLING_FULL),
        timeout_s=wanted.poll_s + ANSWER_S,
    )
    if answer.code == ResponseCode.POLLING_FULL:
        raise Refused(Code.TOO_MANY_REQUESTS, answer.remark or "too many receives of the group wait already")
    if answer.code == ResponseCode.POLLING_TIMEOUT:
        return []
    messages = await read_messages(answer.body, broker_name)
    before = attempts_before(answer.ext_fields)
    handles = handles_of(messages, answer.ext_fields, broker_name)
    return [
        Delivery(message, handle, message.reconsume_times + before.get((handle.queue_id, handle.offset), 0) + 1)
        for message, handle in zip(messages, handles, strict=True)
    ]


async def acknowledge(session: BrokerSession, group: str, topic: str, handle: Handle) -> None:
    """The message is done with. Refused when the lease has ended."""
    await _about(session, RequestCode.ACK_MESSAGE, handle, handle.fields(group, topic))


async def change(session: BrokerSession, group: str, topic: str, handle: Handle, invisible_ms: int) -> Handle:
    """The message comes back after so long, from now on; return its handle. Refused when the lease has ended."""
    fields = handle.fields(group, topic) | {"invisibleTime": str(invisible_ms)}
    return handle.moved(await _about(session, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, handle, fields))


async def bury(session: BrokerSession, group: str, topic: str, handle: Handle, message_id: str) -> None:
    """Make the message a dead letter of the group, then acknowledge it: who is killed in between makes two."""
    fields = {
        "offset": handle.physical_offset,
        "group": group,
        "delayLevel": DEAD_LETTER_LEVEL,
        "originMsgId": message_id,
        "originTopic": topic,
        "unitMode": "false",
        "maxReconsumeTimes": "0",
    }
    await session.client.calls.call(session.address(handle.broker), RequestCode.CONSUMER_SEND_MSG_BACK, fields)
    await acknowledge(session, group, topic, handle)


async def _about(session: BrokerSession, code: RequestCode, handle: Handle, fields: dict[str, str]) -> dict[str, str]:
    address = session.address(handle.broker)
    answer = await session.client.calls.call(
        address, code, fields, accept=(ResponseCode.SUCCESS, ResponseCode.NO_MESSAGE)
    )
    if answer.code == ResponseCode.NO_MESSAGE:
        error: ResponseError = refused(answer, address, code)
        raise Refused(Code.INVALID_RECEIPT_HANDLE, error.remark or "the lease has ended") from error
    return answer.ext_fields
