"""Recalling a message for a time: the request to the broker at which the message is."""

from __future__ import annotations

import asyncio

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce.sender import Sender
from gantrymq.errors import MessageRejected, ProtocolError
from gantrymq.message.model import MessageQueue
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.remoting.codes import RequestCode


def parsed(recall_handle: str) -> RecallHandle:
    """MessageRejected when it is no handle."""
    try:
        return RecallHandle.parse(recall_handle)
    except ValueError as exc:
        raise MessageRejected(f"{exc}: use the recall_handle of a send's result") from exc


async def recall(session: ClientSession, sender: Sender, recall_handle: str, timeout_s: float) -> str:
    """Look the broker up and recall the message there; its id."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    handle = parsed(recall_handle)
    topic = session.namespace.unwrap(handle.topic)
    await sender.queues(topic, timeout_s)
    address = sender.address_of(MessageQueue(topic, handle.broker_name, 0))
    left_s = max(deadline - asyncio.get_running_loop().time(), 0.001)
    group = session.namespace.wrap(sender.group)
    return await recall_at(session.calls, address, handle.topic, group, recall_handle, left_s)


async def recall_at(
    calls: BrokerCalls, address: str, topic: str, group: str, recall_handle: str, timeout_s: float | None = None
) -> str:
    """Topic and group: whole names. ResponseError when the broker has stored no recall."""
    fields = {"producerGroup": group, "topic": topic, "recallHandle": recall_handle}
    answer = await calls.call(address, RequestCode.RECALL_MESSAGE, fields, timeout_s=timeout_s)
    try:
        return answer.ext_fields["msgId"]
    except KeyError as exc:
        raise ProtocolError(f"{address} answered a recall without the message's id") from exc
