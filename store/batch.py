"""From the body of a batch to the records, units and index entries of its messages.

The inner loops of a batch: a few microseconds for each message, and nothing of the store is changed. A record's head
is packed here too where a host is IPv6, for single messages as well.
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
HEAD_BYTES = batches.HEAD.size
FIXED_BYTES = 74  # of a record: all but hosts, body, topic and properties

_pack_head = record.HEAD_V4.pack
_pack_length = struct.Struct(">h").pack
_unpack_flag_and_length = struct.Struct(f">{HEAD_BYTES - 8}xii").unpack_from  # a batch.HEAD's last two
_crc32 = zlib.crc32
_UNITS = tuple(struct.Struct(">" + "qiq" * count) for count in range(COMMON_COUNT_MAX + 1))

_Parsed = tuple[int, bytes, int, bytes, int]  # a message's flag, body, its length, properties, their length


class BuiltBatch:
    """The records of a batch, ready to be joined, with all that queue and index need of them."""

    __slots__ = ("codes", "end", "offsets", "parts", "pending", "units")

    def __init__(self, end: int, parts: list[bytes], pending: list[Pending], units: list[int]) -> None:
        """end: the physical offset behind the last record; units: three numbers for each message."""
        count = len(pending)
        self.end = end
        self.parts = parts
        self.pending = pending
        self.units = (_UNITS[count] if count <= COMMON_COUNT_MAX else struct.Struct(">" + "qiq" * count)).pack(*units)
        self.offsets: Sequence[int] = units[::3]
        self.codes: Sequence[int] = units[2::3]


def build_batch(
    tags_codes: TagsCodes, slot: TopicSlot, batch: StoreBatch, queue_offset: int, position: int, timestamp: int
) -> BuiltBatch | None:
    """Make records and units of a batch's messages, to stand at `position`; nothing is changed.

    None when own and common properties together are longer than a record can say: RocketMQ stores such a record and
    can read neither it nor anything behind it ever again. RecordError when the body is no batch.
    """
    messages = _parse(batch.body if isinstance(batch.body, bytes) else bytes(batch.body), batch.properties)
    if messages is None:
        return None
    encoded, prefix_hash = slot.encoded, slot.prefix_hash
    queue_id, born_ms, born_host, store_host = batch.queue_id, batch.born_timestamp, batch.born_host, batch.store_host
    sys_flag, reconsume = batch.sys_flag & ~V6_BITS, batch.reconsume_times
    is_v4 = len(born_host) + len(store_host) == 16
    fixed = FIXED_BYTES + len(born_host) + len(store_host) + len(encoded)
    is_plain, code_of, known = not slot.is_schedule, tags_codes.code, tags_codes.known
    parts: list[bytes] = []
    pending: list[Pending] = []
    units: list[int] = []
    for flag, content, body_bytes, properties, properties_bytes in messages:
        size = fixed + body_bytes + properties_bytes
        if is_v4:
            head = _pack_head(
                size, MESSAGE_MAGIC, _crc32(content) & 0x7FFFFFFF, queue_id, flag, queue_offset, position, sys_flag,
                born_ms, born_host, timestamp, store_host, reconsume, 0, body_bytes,
            )  # fmt: skip
        else:
            single = StoreMessage(
                slot.topic, queue_id, content, properties, flag, sys_flag, born_ms, born_host, store_host, reconsume,
            )  # fmt: skip
            head = head_with_v6(single, size, queue_offset, position, timestamp)
        parts += (head, content, encoded, _pack_length(properties_bytes), properties)
        code, tag_at = None, properties.rfind(TAGS_MARK)  # TagsCodes.code, inline: a call each costs 3 % of a batch
        if is_plain and tag_at < 0:
            code = 0
        elif is_plain and (not tag_at or properties[tag_at - 1] == 2):
            tag_stop = properties.find(b"\x02", tag_at)
            code = known.get(properties[tag_at + 5 : tag_stop] if tag_stop > 0 else properties[tag_at + 5 :])
        units += (position, size, code_of(slot, properties, timestamp) if code is None else code)
        pending.append((prefix_hash, properties, position, timestamp))
        position += size
        queue_offset += 1
    return BuiltBatch(position, parts, pending, units)


def _parse(body: bytes, common: bytes) -> list[_Parsed] | None:
    """Return a batch's messages with the common properties behind their own; None when these are too long."""
    separated = b"\x02" + common
    messages: list[_Parsed] = []
    at, end = 0, len(body)
    while at < end:
        start = at + HEAD_BYTES
        try:
            flag, body_bytes = _unpack_flag_and_length(body, at)
            stop = start + body_bytes
            properties_bytes = (body[stop] << 8) + body[stop + 1]
        except (struct.error, IndexError) as exc:
            raise RecordError("batch body ends inside a message", position=at) from exc
        at = stop + 2 + properties_bytes
        if body_bytes < 0 or properties_bytes > PROPERTIES_BYTES_MAX or at > end:
            raise RecordError("batch body says lengths it does not have", position=start - HEAD_BYTES)
        properties = body[stop + 2 : at]
        if common:
            properties += separated if properties_bytes and body[at - 1] != 2 else common
            properties_bytes = len(properties)
            if properties_bytes > PROPERTIES_BYTES_MAX:
                return None
        messages.append((flag, body[start:stop], body_bytes, properties, properties_bytes))
    return messages


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
