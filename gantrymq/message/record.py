"""The commit-log record: a stored message as bytes, in the log and in the answer to a pull alike.

Big-endian; a host is 8 bytes (IPv4 address, i32 port) or 20 (IPv6), each by its own bit of the sys flag:

    i32 total size      i32 magic 0xDAA320A7    i32 body CRC-32 & 0x7FFFFFFF    i32 queue id    i32 flag
    i64 queue offset    i64 physical offset     i32 sys flag    i64 born timestamp ms           born host
    i64 store timestamp ms      store host      i32 reconsume times     i64 prepared transaction offset
    i32 body length, body       i8 topic length, topic (UTF-8)          i16 properties length, properties (UTF-8)

A log file ends with a blank record: i32 bytes left, i32 magic 0xCBD43194. Only the body has a checksum.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from gantrymq.errors import RecordError
from gantrymq.message import sysflag
from gantrymq.message.ids import decode_host, encode_host
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import decode_properties, encode_properties

Buffer = bytes | bytearray | memoryview

MESSAGE_MAGIC = 0xDAA320A7 - (1 << 32)
BLANK_MAGIC = 0xCBD43194 - (1 << 32)

HEAD = struct.Struct(">iiiiiqqiq")  # up to and including the born timestamp: 48 bytes
HEAD_V4 = struct.Struct(">iiiiiqqiq8sq8siqi")  # up to and including the body length, both hosts IPv4: 88 bytes
TAIL = struct.Struct(">iqi")  # reconsume times, prepared transaction offset, body length
LENGTH16 = struct.Struct(">h")
LENGTH32 = struct.Struct(">i")
TIMESTAMP = struct.Struct(">q")
BLANK = struct.Struct(">ii")

RECORD_BYTES_MIN = 91  # IPv4 hosts, nothing in body, topic or properties
_V6 = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6


class RecordFields(NamedTuple):
    """A record taken apart, its texts still bytes. `body_position` counts from the start of the buffer."""

    size_bytes: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_position: int
    body_bytes: int
    topic: bytes
    properties: bytes


def split_record(buffer: Buffer, position: int = 0) -> RecordFields:
    """Take one record apart without copying its body. RecordError when lengths or magic contradict each other."""
    try:
        (size, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born, born_host, stored,
         store_host, reconsume, prepared, body_bytes) = HEAD_V4.unpack_from(buffer, position)  # fmt: skip
        body_at = position + 88
        if sys_flag & _V6:
            born_end = position + 48 + (20 if sys_flag & sysflag.BORN_HOST_V6 else 8)
            store_end = born_end + 8 + (20 if sys_flag & sysflag.STORE_HOST_V6 else 8)
            born_host = bytes(buffer[position + 48 : born_end])
            (stored,) = TIMESTAMP.unpack_from(buffer, born_end)
            store_host = bytes(buffer[born_end + 8 : store_end])
            reconsume, prepared, body_bytes = TAIL.unpack_from(buffer, store_end)
            body_at = store_end + 16
        if magic != MESSAGE_MAGIC:
            raise RecordError(f"magic is {magic & 0xFFFFFFFF:#010x}, not a message's", position=position)
        if size < RECORD_BYTES_MIN or body_bytes < 0:
            raise RecordError(f"size {size} with a body of {body_bytes} bytes", position=position)
        topic_at = body_at + body_bytes + 1
        properties_at = topic_at + (buffer[topic_at - 1] & 0x7F) + 2  # a signed byte: the sum below sees a set sign
        (properties_bytes,) = LENGTH16.unpack_from(buffer, properties_at - 2)
    except (struct.error, IndexError) as exc:
        raise RecordError("buffer ends inside a record", position=position) from exc
    end = properties_at + properties_bytes
    if properties_bytes < 0 or end - position != size or end > len(buffer):
        raise RecordError(f"record says {size} bytes, its parts take {end - position}", position=position)
    topic = bytes(buffer[topic_at : properties_at - 2])
    return RecordFields(
        size, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born, born_host, stored, store_host,
        reconsume, prepared, body_at, body_bytes, topic, bytes(buffer[properties_at:end]),
    )  # fmt: skip


def place_in_log(buffer: Buffer) -> int:
    """Return the physical offset that the record at the start of a buffer says, -1 when it is none, or is torn."""
    if len(buffer) < HEAD.size:
        return -1
    _size, magic, _crc, _queue_id, _flag, _queue_offset, physical_offset, _sys_flag, _born = HEAD.unpack_from(buffer)
    return int(physical_offset) if magic == MESSAGE_MAGIC and physical_offset >= 0 else -1


def properties_of(buffer: Buffer, position: int, size_bytes: int) -> bytes:
    """Return the encoded properties of a whole record of `size_bytes`, and look at little else. RecordError."""
    try:
        hosts_v6 = (buffer[position + 39] & _V6).bit_count()  # in the low byte of the sys flag
        body_at = position + 88 + 12 * hosts_v6
        topic_at = body_at + LENGTH32.unpack_from(buffer, body_at - 4)[0]
        properties_at = topic_at + 1 + buffer[topic_at] + 2
        (properties_bytes,) = LENGTH16.unpack_from(buffer, properties_at - 2)
    except (struct.error, IndexError) as exc:
        raise RecordError("buffer ends inside a record", position=position) from exc
    if properties_at + properties_bytes != position + size_bytes:
        raise RecordError(f"record's parts don't take {size_bytes} bytes", position=position)
    return bytes(buffer[properties_at : properties_at + properties_bytes])


def decode_record(buffer: Buffer, position: int = 0, *, check_crc: bool = True, read_body: bool = True) -> MessageExt:
    """Return the message whose record starts at `position`. RecordError when it is torn, or its body was changed."""
    fields = split_record(buffer, position)
    body = bytes(buffer[fields.body_position : fields.body_position + fields.body_bytes]) if read_body else b""
    if read_body and check_crc and body_crc(body) != fields.body_crc:
        raise RecordError("body does not match its CRC", position=position)
    try:
        topic = fields.topic.decode()
    except UnicodeDecodeError as exc:
        raise RecordError("topic is not UTF-8", position=position) from exc
    return MessageExt(
        topic,
        body,
        fields.flag,
        decode_properties(fields.properties),
        fields.queue_id,
        fields.queue_offset,
        fields.physical_offset,
        fields.size_bytes,
        fields.sys_flag,
        fields.born_timestamp,
        decode_host(fields.born_host),
        fields.store_timestamp,
        decode_host(fields.store_host),
        fields.reconsume_times,
        fields.prepared_transaction_offset,
        fields.body_crc,
    )


def decode_records(buffer: Buffer) -> list[MessageExt]:
    """Return all messages of concatenated records, such as the body of a pull's answer. RecordError."""
    messages, damage = decode_up_to_damage(buffer)
    if damage is not None:
        raise damage
    return messages


def decode_up_to_damage(buffer: Buffer) -> tuple[list[MessageExt], RecordError | None]:
    """Return the messages of concatenated records up to the first that is damaged, and what is wrong with that one."""
    messages: list[MessageExt] = []
    position, end = 0, len(buffer)
    while position < end:
        try:
            message = decode_record(buffer, position)
        except RecordError as exc:
            return messages, exc
        messages.append(message)
        position += message.store_size
    return messages, None


def encode_fields(fields: RecordFields, body: Buffer) -> bytes:
    """Return the record of the fields; sizes and CRC are taken from the parts, not from `fields`."""
    size = 75 + len(fields.born_host) + len(fields.store_host) + len(body) + len(fields.topic) + len(fields.properties)
    head = HEAD.pack(
        size,
        MESSAGE_MAGIC,
        body_crc(body),
        fields.queue_id,
        fields.flag,
        fields.queue_offset,
        fields.physical_offset,
        sys_flag_for_hosts(fields.sys_flag, fields.born_host, fields.store_host),
        fields.born_timestamp,
    )
    return b"".join(
        (
            head,
            fields.born_host,
            TIMESTAMP.pack(fields.store_timestamp),
            fields.store_host,
            TAIL.pack(fields.reconsume_times, fields.prepared_transaction_offset, len(body)),
            body,
            len(fields.topic).to_bytes(1, "big"),
            fields.topic,
            LENGTH16.pack(len(fields.properties)),
            fields.properties,
        )
    )


def encode_record(message: MessageExt) -> bytes:
    """Return the record of a message; its properties are written in the mapping's order."""
    fields = RecordFields(
        size_bytes=0,
        body_crc=0,
        queue_id=message.queue_id,
        flag=message.flag,
        queue_offset=message.queue_offset,
        physical_offset=message.physical_offset,
        sys_flag=message.sys_flag,
        born_timestamp=message.born_timestamp,
        born_host=encode_host(*message.born_host),
        store_timestamp=message.store_timestamp,
        store_host=encode_host(*message.store_host),
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
        body_position=0,
        body_bytes=len(message.body),
        topic=message.topic.encode(),
        properties=encode_properties(message.properties).encode(),
    )
    return encode_fields(fields, message.body)


def body_crc(body: Buffer) -> int:
    """Return the stored checksum: CRC-32 without its sign bit."""
    return zlib.crc32(body) & 0x7FFFFFFF


def sys_flag_for_hosts(sys_flag: int, born_host: bytes, store_host: bytes) -> int:
    """Return the flag with the two IPv6 bits set from the widths of the hosts."""
    sys_flag &= ~_V6
    if len(born_host) == 20:
        sys_flag |= sysflag.BORN_HOST_V6
    if len(store_host) == 20:
        sys_flag |= sysflag.STORE_HOST_V6
    return sys_flag
