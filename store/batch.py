"""From the body of a batch to the records, units and index entries of its messages.

The inner loop of a batch: one pass, a few microseconds for each message, nothing of the store is changed. A record's
head is packed here too where a host is IPv6, for single messages as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from gantrymq.errors import RecordError
from gantrymq.message import batch as batches
from gantrymq.message import properties as names
from gantrymq.message import record, sysflag
from store.base.results import StoreBatch, StoreMessage
from store.index.service import Pending
from store.queues.tags import TAGS_MARK, TagsCodes
from store.queues.topic_slot import TopicSlot

PROPERTIES_BYTES_MAX = names.PROPERTIES_BYTES_MAX
COMMON_COUNT_MAX = 64  # messages in a batch; for more a packer is made each time
MESSAGE_MAGIC = record.MESSAGE_MAGIC
V6_BITS = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6

_pack_head = record.HEAD_V4.pack
_pack_length = struct.Struct(">h").pack
_unpack_flag_and_length = struct.Struct(f">{batches.HEAD.size - 8}xii").unpack_from  # a batch.HEAD's last two
_crc32 = zlib.crc32
_UNITS = tuple(struct.Struct(">" + "qiq" * count) for count in range(COMMON_COUNT_MAX + 1))


class BuiltBatch:
    """The records of a batch, ready to be joined, with all that dispatch needs of them."""

    __slots__ = ("codes", "end", "offsets", "parts", "pending", "units")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.units = b""
        self.codes: Sequence[int] = ()
        self.offsets: Sequence[int] = ()
        self.pending: list[Pending] = []
        self.end = 0


def build_batch(
    tags_codes: TagsCodes, slot: TopicSlot, batch: StoreBatch, queue_offset: int, position: int, timestamp: int
) -> BuiltBatch | None:
    """Make records and units of a batch's messages, to stand at `position`; nothing is changed.

    None when own and common properties together are longer than a record can say: RocketMQ stores such a record and
    can read neither it nor anything behind it ever again. RecordError when the body is no batch.
    """
    body = batch.body if isinstance(batch.body, bytes) else bytes(batch.body)
    common, encoded = batch.properties, slot.encoded
    separated = b"\x02" + common
    queue_id, born_timestamp, born_host, store_host = (
        batch.queue_id, batch.born_timestamp, batch.born_host, batch.store_host,
    )  # fmt: skip
    sys_flag, reconsume, prepared = batch.sys_flag & ~V6_BITS, batch.reconsume_times, 0
    v4 = len(born_host) + len(store_host) == 16
    fixed = 74 + len(born_host) + len(store_host) + len(encoded)
    prefix_hash = slot.prefix_hash
    is_plain, code_of, known = not slot.is_schedule, tags_codes.code, tags_codes.known
    built = BuiltBatch()
    parts, pending = built.parts, built.pending
    units: list[int] = []  # three numbers each
    at, end = 0, len(body)
    while at < end:
        start = at + 20
        try:
            flag, body_bytes = _unpack_flag_and_length(body, at)
            stop = start + body_bytes
            properties_bytes = (body[stop] << 8) + body[stop + 1]
        except (struct.error, IndexError) as exc:
            raise RecordError("batch body ends inside a message", position=at) from exc
        at = stop + 2 + properties_bytes
        if body_bytes < 0 or properties_bytes > PROPERTIES_BYTES_MAX or at > end:
            raise RecordError("batch body says lengths it does not have", position=start - 20)
        properties = body[stop + 2 : at]
        if common:
            properties += separated if properties_bytes and body[at - 1] != 2 else common
            properties_bytes = len(properties)
            if properties_bytes > PROPERTIES_BYTES_MAX:
                return None
        content = body[start:stop]
        size = fixed + body_bytes + properties_bytes
        if v4:
            head = _pack_head(
                size, MESSAGE_MAGIC, _crc32(content) & 0x7FFFFFFF, queue_id, flag, queue_offset, position, sys_flag,
                born_timestamp, born_host, timestamp, store_host, reconsume, prepared, body_bytes,
            )  # fmt: skip
        else:
            single = StoreMessage(
                slot.topic, queue_id, content, properties, flag, sys_flag, born_timestamp, born_host, store_host,
                reconsume, prepared,
            )  # fmt: skip
            head = head_with_v6(single, size, queue_offset, position, timestamp)
        parts += (head, content, encoded, _pack_length(properties_bytes), properties)
        code: int | None = None
        if is_plain:
            tag_at = properties.rfind(TAGS_MARK)
            if tag_at < 0:
                code = 0
            elif not tag_at or properties[tag_at - 1] == 2:
                tag_stop = properties.find(b"\x02", tag_at)
                code = known.get(properties[tag_at + 5 : tag_stop] if tag_stop > 0 else properties[tag_at + 5 :])
        if code is None:
            code = code_of(slot, properties, timestamp)
        units += (position, size, code)
        pending.append((prefix_hash, properties, position, timestamp))
        position += size
        queue_offset += 1
    count = len(pending)
    built.units = (_UNITS[count] if count <= COMMON_COUNT_MAX else struct.Struct(">" + "qiq" * count)).pack(*units)
    built.offsets, built.codes = units[::3], units[2::3]
    built.end = position
    return built


def head_with_v6(message: StoreMessage, size: int, queue_offset: int, position: int, timestamp: int) -> bytes:
    """Pack a record's head when a host is IPv6."""
    sys_flag = record.sys_flag_for_hosts(message.sys_flag, message.born_host, message.store_host)
    return b"".join(
        (
            record.HEAD.pack(
                size, record.MESSAGE_MAGIC, record.body_crc(message.body), message.queue_id, message.flag,
                queue_offset, position, sys_flag, message.born_timestamp,
            ),
            message.born_host,
            record.TIMESTAMP.pack(timestamp),
            message.store_host,
            record.TAIL.pack(message.reconsume_times, message.prepared_transaction_offset, len(message.body)),
        )
    )  # fmt: skip
