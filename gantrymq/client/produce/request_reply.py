"""Request and reply over topics: a requester sends a message that names its client id; the consumer of that message
sends an answer to the cluster's reply topic, and the broker pushes it to the requester's connection.

    reply = await producer.request(Message("quote", b"ACME"), timeout_s=3)      the requester
    await consumer.reply(message, b"42.00")                                     a listener; or producer.reply
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from gantrymq.client.connection.received_messages import unpack_all
from gantrymq.client.connection.send_codec import REPLY
from gantrymq.errors import MessageRejected, RequestTimeout
from gantrymq.message import properties as names
from gantrymq.message.headers import HeaderValue, header_texts
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import REPLY_TOPIC_POSTFIX
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.timeouts import timeout

logger: logging.Logger = logging.getLogger(__name__)

WAITING_MAX = 100_000  # requests without an answer yet


def reply_to(request: MessageExt, body: bytes, headers: Mapping[str, HeaderValue] | None = None) -> Message:
    """The answer to a request, to be sent by any producer. MessageRejected when the message is no request."""
    properties = request.properties
    cluster, correlation_id = properties.get(names.CLUSTER), properties.get(names.CORRELATION_ID)
    client_id = properties.get(names.REPLY_TO_CLIENT)
    if not cluster or not correlation_id or not client_id:
        raise MessageRejected(f"message {request.msg_id} asks for no reply: it lacks CLUSTER, CORRELATION_ID or sender")
    answer = {
        names.MSG_TYPE: REPLY,
        names.CORRELATION_ID: correlation_id,
        names.REPLY_TO_CLIENT: client_id,
        names.TTL: properties.get(names.TTL, ""),
    }
    return Message(
        f"{cluster}_{REPLY_TOPIC_POSTFIX}",
        body,
        properties=header_texts(headers or {}) | {name: value for name, value in answer.items() if value},
    )


class WaitingRequests:
    """The requests of one producer that wait for their answers."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[MessageExt]] = {}

    def begin(self, message: Message, client_id: str, timeout_s: float) -> tuple[str, Message]:
        """A correlation id, and the message as it has to be sent. MessageRejected when too many wait."""
        if len(self._waiting) >= WAITING_MAX:
            raise MessageRejected(f"{WAITING_MAX} requests wait for their answers already")
        import uuid  # few producers ask, and it takes long to import

        correlation_id = str(uuid.uuid4())
        properties = message.properties | {
            names.CORRELATION_ID: correlation_id,
            names.REPLY_TO_CLIENT: client_id,
            names.TTL: str(int(timeout_s * 1000)),
        }
        self._waiting[correlation_id] = asyncio.get_running_loop().create_future()
        return correlation_id, replace(message, properties=properties)

    async def answer(self, correlation_id: str, topic: str, timeout_s: float) -> MessageExt:
        """Wait for the answer. RequestTimeout when none comes in time."""
        try:
            async with timeout(timeout_s):
                return await self._waiting[correlation_id]
        except TimeoutError:
            code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
            raise RequestTimeout(topic, code, timeout_s, role="the consumers of", request="the request") from None

    def end(self, correlation_id: str) -> None:
        """The caller waits no longer."""
        self._waiting.pop(correlation_id, None)

    async def reply_pushed(self, address: str, request: RemotingCommand) -> RemotingCommand:
        """A broker pushes an answer (code 326)."""
        try:
            message = await read_reply(request)
        except ValueError as exc:
            logger.warning(
                "reply unreadable (address=%s): %s",
                address,
                exc,
                extra={"event": "reply_unreadable", "address": address, "error": str(exc)},
            )
            return request.reply(ResponseCode.SYSTEM_ERROR, f"process reply message fail: {exc}")
        future = self._waiting.get(message.properties.get(names.CORRELATION_ID, ""))
        if future is None or future.done():
            logger.info(
                "reply without a request (msg_id=%s)",
                message.msg_id,
                extra={"event": "reply_unexpected", "msg_id": message.msg_id},
            )
        else:
            future.set_result(message)
        return request.reply(ResponseCode.SUCCESS)


async def read_reply(request: RemotingCommand) -> MessageExt:
    """The message inside a pushed reply, its body unpacked. ValueError when a field is no number.

    The broker does not say where it is stored: offsets are zero.
    """
    fields = request.ext_fields
    properties = names.decode_properties(fields.get("properties", ""))
    properties[names.ARRIVE_TIME] = str(time.time_ns() // 1_000_000)
    message = MessageExt(
        topic=fields.get("topic", ""),
        body=request.body,
        flag=int(fields.get("flag", "0")),
        properties=properties,
        queue_id=int(fields.get("queueId", "0")),
        queue_offset=0,
        physical_offset=0,
        store_size=0,
        sys_flag=int(fields.get("sysFlag", "0")),
        born_timestamp=int(fields.get("bornTimestamp", "0")),
        born_host=_host(fields.get("bornHost", "")),
        store_timestamp=int(fields.get("storeTimestamp", "0")),
        store_host=_host(fields.get("storeHost", "")),
        reconsume_times=int(fields.get("reconsumeTimes") or "0"),
        prepared_transaction_offset=0,
        body_crc=0,
    )
    await unpack_all([message])
    return message


def _host(text: str) -> tuple[str, int]:
    """ "ip:port", by some brokers with a slash before it. Nothing usable is 0.0.0.0:0."""
    host, _, port = text.removeprefix("/").rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else ("0.0.0.0", 0)
