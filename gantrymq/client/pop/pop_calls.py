"""What brokers are asked about deliveries: pop, is there any, acknowledge, come back at another time, be a dead letter.

The SDK and the proxy ask the same. Topics and groups are whole names here, with their namespace.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.received_messages import read_sound_messages
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageExt
from gantrymq.message.pop_handle import PopHandle, attempts_before, handles_of
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.pop_bodies import BatchAck, BatchAckRequest

ANY_QUEUE = "-1"
FROM_START, FROM_END = "0", "1"  # where a new group begins; from the end unless the whole queue is there and young
ANSWER_S = 3.0  # for a broker's answer, after the time that it may wait for messages
DEAD_LETTER_LEVEL = "-1"
POPPED = (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT)


class Wanted(NamedTuple):
    """What one pop asks for; topic and group: whole names."""

    group: str
    topic: str
    batch: int
    invisible_ms: int
    poll_s: float
    expression_type: str
    expression: str
    is_ordered: bool = False
    attempt: str = ""
    client: str = ""
    begin: str = FROM_END

    @property
    def _common(self) -> dict[str, str]:
        return {
            "consumerGroup": self.group,
            "topic": self.topic,
            "queueId": ANY_QUEUE,
            "pollTime": str(int(self.poll_s * 1000)),
            "bornTime": str(int(time.time() * 1000)),
            "expType": self.expression_type,
            "exp": self.expression,
            "order": str(self.is_ordered).lower(),
            "attemptId": self.attempt,
        }

    def fields(self) -> dict[str, str]:
        return self._common | {
            "maxMsgNums": str(self.batch),
            "invisibleTime": str(self.invisible_ms),
            "initMode": self.begin,
            "clientId": self.client,
        }

    def notification_fields(self) -> dict[str, str]:
        return self._common


class Delivery(NamedTuple):
    """A message that is leased to the caller. attempt: 1 for the first."""

    message: MessageExt
    handle: PopHandle
    attempt: int


async def pop(calls: BrokerCalls, address: str, broker_name: str, wanted: Wanted) -> list[Delivery]:
    """Messages of one broker, [] when none came in time; without those that are damaged on its disk.

    ResponseError with POLLING_FULL when too many pops wait already.
    """
    answer = await calls.call(
        address, RequestCode.POP_MESSAGE, wanted.fields(), accept=POPPED, timeout_s=wanted.poll_s + ANSWER_S
    )
    if answer.code == ResponseCode.POLLING_TIMEOUT:
        return []
    messages = await read_sound_messages(answer.body, address)
    for message in messages:
        message.broker_name = broker_name
    before = attempts_before(answer.ext_fields)
    handles = handles_of(messages, answer.ext_fields, broker_name)
    return [
        Delivery(message, handle, message.reconsume_times + before.get((handle.queue_id, handle.offset), 0) + 1)
        for message, handle in zip(messages, handles, strict=True)
    ]


async def has_messages(calls: BrokerCalls, address: str, wanted: Wanted) -> bool:
    """Whether a pop may find something at this broker, now or within poll_s; its filter aside.

    ResponseError with POLLING_FULL when too many wait already.
    """
    answer = await calls.call(
        address, RequestCode.NOTIFICATION, wanted.notification_fields(), timeout_s=wanted.poll_s + ANSWER_S
    )
    if answer.ext_fields.get("pollingFull") == "true":
        raise ResponseError(ResponseCode.POLLING_FULL, "too many of the group wait already", address=address)
    return answer.ext_fields.get("hasMsg") == "true"


async def acknowledge(calls: BrokerCalls, address: str, group: str, topic: str, handle: PopHandle) -> None:
    """The message is done with. LeaseEnded when it was leased no longer."""
    await calls.call(address, RequestCode.ACK_MESSAGE, handle.fields(group, topic))


async def acknowledge_all(
    calls: BrokerCalls, address: str, group: str, leased: Iterable[tuple[str, PopHandle]]
) -> None:
    """Messages of one broker, each with its topic, are done with. LeaseEnded when none was leased any longer."""
    acks: dict[tuple[str, ...], tuple[BatchAck, list[int]]] = {}
    broker_name = ""
    for topic, handle in leased:
        broker_name = handle.broker
        key = (topic, *handle[:5], handle.queue_id)
        if key not in acks:
            ack = BatchAck(
                group,
                topic,
                handle.kind,
                int(handle.start_offset),
                int(handle.queue_id),
                int(handle.revive_queue),
                int(handle.pop_ms),
                int(handle.invisible_ms),
            )
            acks[key] = ack, []
        acks[key][1].append(int(handle.offset))
    body = BatchAckRequest(broker_name, [ack.with_offsets(offsets) for ack, offsets in acks.values()])
    await calls.call(address, RequestCode.BATCH_ACK_MESSAGE, {}, body.to_json())


async def change_invisible_time(
    calls: BrokerCalls, address: str, group: str, topic: str, handle: PopHandle, invisible_ms: int
) -> PopHandle:
    """The message comes back after so long, from now on; return its handle. LeaseEnded when it was leased no longer."""
    fields = handle.fields(group, topic) | {"invisibleTime": str(invisible_ms)}
    answer = await calls.call(address, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)
    return handle.moved(answer.ext_fields)


async def bury(calls: BrokerCalls, address: str, group: str, topic: str, handle: PopHandle, message_id: str) -> None:
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
    await calls.call(address, RequestCode.CONSUMER_SEND_MSG_BACK, fields)
    await acknowledge(calls, address, group, topic, handle)
