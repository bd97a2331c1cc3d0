"""The body of a batch send: mini-messages one after the other, big-endian.

    i32 total size, i32 magic (0), i32 body CRC (0), i32 flag, i32 body length, body, i16 properties length, properties

The broker ignores the second and third field; the store makes an ordinary record of each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from gantrymq.errors import MessageRejected
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
