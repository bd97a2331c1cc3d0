"""A stored message as clients of RocketMQ 5 see it. Made without I/O."""

from __future__ import annotations

import hashlib

from google.protobuf.timestamp_pb2 import Timestamp

from appliance.proxy.messages.properties import (
    BORN_HOST,
    BORN_TIMESTAMP,
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    RESERVED,
    SHARDING_KEY,
    TRACE_CONTEXT,
)
from appliance.proxy.protocol.definition_pb2 import (
    DeadLetterQueue,
    Digest,
    DigestType,
    Encoding,
    Message,
    MessageType,
    Resource,
    SystemProperties,
)
from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt

MS_END = 253_402_300_800_000  # the year 10000: clients know no later times


def digest_of(body: bytes) -> Digest:
    """As RocketMQ's proxy makes it. Not CRC32: Node.js's client writes that in decimals, and discards what differs."""
    return Digest(type=DigestType.MD5, checksum=hashlib.md5(body, usedforsecurity=False).hexdigest().upper())


def client_message(message: MessageExt, topic: Resource, receipt_handle: str = "") -> Message:
    """The message, decompressed already. topic: as the client names it; receipt_handle: "" outside a receive."""
    found = message.properties
    system = SystemProperties(
        keys=found.get(names.KEYS, "").split(),
        message_id=found.get(names.UNIQ_KEY) or message.msg_id,
        body_digest=digest_of(message.body),
        body_encoding=Encoding.IDENTITY,
        message_type=_type_of(found),
        born_timestamp=timestamp(_ms(found.get(BORN_TIMESTAMP)) or message.born_timestamp),
        born_host=found.get(BORN_HOST) or message.born_host[0],
        store_timestamp=timestamp(message.store_timestamp),
        store_host=f"{message.store_host[0]}:{message.store_host[1]}",
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        delivery_attempt=message.reconsume_times + 1,
    )
    if names.TAGS in found:
        system.tag = found[names.TAGS]
    if SHARDING_KEY in found:
        system.message_group = found[SHARDING_KEY]
    if TRACE_CONTEXT in found:
        system.trace_context = found[TRACE_CONTEXT]
    if deliver_ms := _ms(found.get(names.TIMER_OUT_MS)) or _ms(found.get(names.TIMER_DELIVER_MS)):
        system.delivery_timestamp.CopyFrom(timestamp(deliver_ms))
    if DLQ_ORIGIN_TOPIC in found:
        letter = DeadLetterQueue(topic=found[DLQ_ORIGIN_TOPIC], message_id=found.get(DLQ_ORIGIN_MESSAGE_ID, ""))
        system.dead_letter_queue.CopyFrom(letter)
    if receipt_handle:
        system.receipt_handle = receipt_handle
    user = {name: value for name, value in found.items() if name not in RESERVED}
    return Message(topic=topic, user_properties=user, system_properties=system, body=message.body)


def timestamp(milliseconds: int) -> Timestamp:
    seconds, rest = divmod(milliseconds, 1000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000_000)


def _ms(text: str | None) -> int:
    """A time that a producer of RocketMQ 4 may have set to anything; 0 for what is none."""
    try:
        milliseconds = int(text or 0)
    except ValueError:
        return 0
    return milliseconds if 0 < milliseconds < MS_END else 0


def _type_of(found: dict[str, str]) -> MessageType:
    if found.get(names.TRAN_MSG) == "true":
        return MessageType.TRANSACTION
    if SHARDING_KEY in found:
        return MessageType.FIFO
    if not found.keys().isdisjoint({*names.DELAYING, names.TIMER_OUT_MS}):
        return MessageType.DELAY
    return MessageType.NORMAL
