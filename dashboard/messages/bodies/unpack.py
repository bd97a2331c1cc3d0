"""What producers pack bodies in by themselves: gzip, zlib, Zstandard; and MessagePack. Found by their first bytes.

No body is trusted: what it unpacks to is bounded, and what is torn is shown as it is stored.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import msgspec

from gantrymq.errors import RecordError
from gantrymq.message.compression import FLAGS, decompress_body

UNPACKED_BYTES_MAX = 1 << 20
MESSAGEPACK_BYTES_MAX = 256 * 1024  # each byte can be a value of its own, and each takes time
_ZLIB_HEADS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
# Maps and arrays of MessagePack begin so; a body of another kind that does so, too, is hardly ever decoded whole.
_CONTAINERS = frozenset(bytes([head]) for head in (*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))
_AS_JSON = (str, int, float, bool, type(None))  # made once: a union made for each value takes half the time
_GZIP_WINDOW = 31  # zlib's way to say: with a gzip header


def unpack(body: bytes, most: int = UNPACKED_BYTES_MAX) -> tuple[str, bytes] | None:
    """(what it is packed in, what is inside), None for a body that is not packed or does not unpack whole, to `most`
    bytes."""
    if body[:2] == b"\x1f\x8b":
        return _inflated("gzip", body, _GZIP_WINDOW, most)
    if body[:2] in _ZLIB_HEADS:
        return _inflated("zlib", body, zlib.MAX_WBITS, most)
    if body[:4] == b"\x28\xb5\x2f\xfd":
        try:
            return "zstd", decompress_body(body, FLAGS["zstd"], max_bytes=most)
        except RecordError:  # torn, too large, or the package is not there
            return None
    return None


def messagepack(body: bytes) -> Any:
    """The map or array that the bytes are in MessagePack, as JSON knows values; None when they are none."""
    if len(body) > MESSAGEPACK_BYTES_MAX or body[:1] not in _CONTAINERS:
        return None
    try:
        return plain(msgspec.msgpack.decode(body))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError, TypeError):
        return None


def is_long_messagepack(body: bytes) -> bool:
    """Whether the bytes are a map or an array that `messagepack` leaves alone; walked over, nothing is made of it."""
    if len(body) <= MESSAGEPACK_BYTES_MAX or body[:1] not in _CONTAINERS:
        return False
    try:
        msgspec.msgpack.decode(body, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _inflated(name: str, body: bytes, window: int, most: int) -> tuple[str, bytes] | None:
    unpacker = zlib.decompressobj(window)
    try:
        plain = unpacker.decompress(body, most)
    except zlib.error:
        return None
    return (name, plain) if unpacker.eof else None


def plain(value: Any) -> Any:
    """Bytes as base64, extensions and times as text, keys as text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, _AS_JSON) else str(value)
