"""Bits of a message's sys flag (RocketMQ: MessageSysFlag). The broker keeps all of them as they were sent."""

from __future__ import annotations

COMPRESSED = 0x1
MULTI_TAGS = 0x2

TRANSACTION_MASK = 0xC
TRANSACTION_NONE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC

BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80

COMPRESSION_MASK = 0x700
COMPRESSION_LZ4 = 0x100
COMPRESSION_ZSTD = 0x200
COMPRESSION_ZLIB = 0x300


def transaction_type(sys_flag: int) -> int:
    """Return one of the TRANSACTION_ constants."""
    return sys_flag & TRANSACTION_MASK
