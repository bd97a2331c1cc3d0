"""What producers compress, and how. Large bodies are packed and unpacked in a thread: 4 MiB hold the loop for 0.3 s."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gantrymq.message.compression import FLAGS, CompressType, compress_body

T = TypeVar("T")

COMPRESS_FROM_BYTES = 4096  # RocketMQ: compressMsgBodyOverHowmuch
COMPRESS_LEVEL = 5  # RocketMQ: rocketmq.message.compressLevel
PACK_ASIDE_BYTES = 64 * 1024  # packed: takes some ten times as long as handing it to a thread
UNPACK_ASIDE_BYTES = 16 * 1024  # of the packed bodies of an answer: unpacking is faster, and they become larger


@dataclass(frozen=True, slots=True)
class Compression:
    """Bodies of at least `from_bytes` are compressed."""

    name: CompressType = "zlib"
    level: int = COMPRESS_LEVEL
    from_bytes: int = COMPRESS_FROM_BYTES

    def compress(self, body: bytes) -> tuple[bytes, int]:
        """What travels, and its sys flag: the smaller of both, because what is compressed already would only grow."""
        if len(body) >= self.from_bytes:
            packed = compress_body(body, self.name, self.level)
            if len(packed) < len(body):
                return packed, FLAGS[self.name]
        return body, 0

    def is_long_work(self, body: bytes) -> bool:
        """Whether the event loop should not do it."""
        return len(body) >= PACK_ASIDE_BYTES and len(body) >= self.from_bytes


DEFAULT = Compression()


async def in_thread(work: Callable[[], T]) -> T:
    """Do it in one of the loop's threads, while the loop goes on."""
    try:
        future = asyncio.get_running_loop().run_in_executor(None, work)
    except RuntimeError:  # the interpreter ends and has no threads any more, but what is open is still closed in order
        return work()
    return await future
