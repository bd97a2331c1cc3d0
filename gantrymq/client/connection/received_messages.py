"""The messages inside an answer, as their sender made them: bodies decompressed, flags cleared."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from gantrymq.client.connection.compression import UNPACK_ASIDE_BYTES, in_thread
from gantrymq.client.results import LostMessage
from gantrymq.errors import RecordError
from gantrymq.message import sysflag
from gantrymq.message.compression import decompress_body
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.record import decode_records, decode_up_to_damage, place_in_log, split_record

logger: logging.Logger = logging.getLogger(__name__)


async def read_messages(body: bytes, broker_name: str = "") -> list[MessageExt]:
    """The messages of an answer's body. RecordError when the bytes are damaged."""
    messages = decode_records(body)
    packed = _prepared(messages, broker_name)
    if packed:
        await unpack_all(packed)
    return messages


async def read_sound_messages(
    body: bytes, address: str, on_lost: Callable[[LostMessage], object] | None = None
) -> list[MessageExt]:
    """As read_messages, without those that are damaged: on_lost is called with each, else it is logged.

    Behind a record whose head is damaged nothing can be read: there is no telling where the next one begins.
    """
    messages: list[MessageExt] = []
    rest = memoryview(body)
    while len(rest):
        found, damage = decode_up_to_damage(rest)
        messages += found
        if damage is None:
            break
        rest = rest[sum(message.store_size for message in found) :]
        lost, size_bytes = _lost(rest, str(damage))
        if on_lost is not None:
            on_lost(lost)
        else:
            place = lost.physical_offset
            logger.warning(
                "damaged message left out (broker=%s, physical_offset=%s): %s",
                address,
                place,
                damage,
                extra={
                    "event": "message_lost", "broker": address, "physical_offset": place, "error": str(damage),
                },
            )  # fmt: skip
        if not size_bytes:
            break
        rest = rest[size_bytes:]
    packed = _prepared(messages, "")
    if packed:
        await unpack_all(packed)
    return messages


def _lost(record: memoryview, why: str) -> tuple[LostMessage, int]:
    """What a damaged record still says of itself, and its size; 0 bytes, topic "" and offset -1: it says nothing."""
    try:
        fields = split_record(record)
        queue = MessageQueue(fields.topic.decode(), "", fields.queue_id)
    except (RecordError, UnicodeDecodeError):
        return LostMessage(MessageQueue("", "", 0), -1, place_in_log(record), why), 0
    return LostMessage(queue, fields.queue_offset, fields.physical_offset, why), fields.size_bytes


def read_at_once(body: bytes, broker_name: str) -> tuple[list[MessageExt], list[MessageExt], RecordError | None]:
    """The messages up to the first damaged one, and what is wrong with that. Those whose bodies take long to decompress
    are left as they are: they come second, too, for `unpack_all`."""
    messages, damage = decode_up_to_damage(body)
    return messages, _prepared(messages, broker_name), damage


def _prepared(messages: list[MessageExt], broker_name: str) -> list[MessageExt]:
    """Name the broker, decompress; return those whose bodies take long."""
    packed: list[MessageExt] = []
    for message in messages:
        message.broker_name = broker_name
        if message.sys_flag & sysflag.COMPRESSED:
            packed.append(message)
    if packed and _is_short_work(packed):
        _unpack_each(packed)
        packed = []
    return packed


async def unpack_all(messages: list[MessageExt]) -> None:
    """Decompress the bodies in place, in a thread when that is long work."""
    if _is_short_work(messages):
        _unpack_each(messages)
    else:
        await in_thread(functools.partial(_unpack_each, messages))


def _is_short_work(messages: list[MessageExt]) -> bool:
    packed = (len(message.body) for message in messages if message.sys_flag & sysflag.COMPRESSED)
    return sum(packed) < UNPACK_ASIDE_BYTES


def _unpack_each(messages: list[MessageExt]) -> None:
    for message in messages:
        _unpack(message)


def _unpack(message: MessageExt) -> None:
    """Decompress the body in place. A body that can't be unpacked stays as it was sent; its sys_flag still says so."""
    try:
        message.body = decompress_body(message.body, message.sys_flag)
    except RecordError as exc:
        logger.warning(
            "body left compressed (msg_id=%s): %s",
            message.msg_id,
            exc,
            extra={"event": "body_left_compressed", "msg_id": message.msg_id, "error": str(exc)},
        )
        return
    message.sys_flag &= ~(sysflag.COMPRESSED | sysflag.COMPRESSION_MASK)
