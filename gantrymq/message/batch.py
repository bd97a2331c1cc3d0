"""The body of a batch send: mini-messages one after the other, big-endian.

    i32 total size, i32 magic (0), i32 body CRC (0), i32 flag, i32 body length, body, i16 properties length, properties

The broker ignores the second and third field; the store makes an ordinary record of each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from gantrymq.errors import MessageRejected, RecordError
from gantrymq.message.model import Message
from gantrymq.message.properties import PROPERTIES_BYTES_MAX

HEAD = struct.Struct(">iiiii")
PROPERTIES_LENGTH = struct.Struct(">h")
FIXED_BYTES = HEAD.size + PROPERTIES_LENGTH.size


def encode_batch(messages: Iterable[Message]) -> bytes:
    """Return the batch body of the messages. Topic and queue are said once, in the request."""
    parts: list[bytes] = []
    for message in messages:
        append_to_batch(parts, message, message.encoded_properties())
    return b"".join(parts)


def append_to_batch(parts: list[bytes], message: Message, property_text: str) -> None:
    """Append the pieces of one mini-message, with this property text instead of the message's own."""
    properties = property_text.encode()
    if len(properties) > PROPERTIES_BYTES_MAX:
        raise MessageRejected(f"properties take {len(properties)} bytes, more than {PROPERTIES_BYTES_MAX}")
    body, size = message.body, len(properties)
    head = HEAD.pack(FIXED_BYTES + len(body) + size, 0, 0, message.flag, len(body))
    parts += (head, body, PROPERTIES_LENGTH.pack(size), properties)


def iter_batch(body: bytes | bytearray | memoryview) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (flag, body, properties) of each mini-message. RecordError when the lengths contradict each other."""
    buffer = bytes(body)
    position, end = 0, len(buffer)
    while position < end:
        if end - position < FIXED_BYTES:
            raise RecordError("batch body ends inside a message", position=position)
        _total, _magic, _crc, flag, body_bytes = HEAD.unpack_from(buffer, position)
        start = position + HEAD.size
        body_end = start + body_bytes
        if body_bytes < 0 or body_end + 2 > end:
            raise RecordError("batch body ends inside a message's body", position=position)
        (properties_bytes,) = PROPERTIES_LENGTH.unpack_from(buffer, body_end)
        stop = body_end + 2 + properties_bytes
        if properties_bytes < 0 or stop > end:
            raise RecordError("batch body ends inside a message's properties", position=position)
        yield flag, buffer[start:body_end], buffer[body_end + 2 : stop]
        position = stop
