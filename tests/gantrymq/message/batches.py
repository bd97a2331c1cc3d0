"""Reads the body of a batch send, as the broker's store does."""

from __future__ import annotations

from collections.abc import Iterator

from gantrymq.errors import RecordError
from gantrymq.message.batch import FIXED_BYTES, HEAD, PROPERTIES_LENGTH


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
