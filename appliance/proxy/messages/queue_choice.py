"""Which queue a message of a group goes to: RocketMQ's choice, so that other proxies agree (Guava: consistentHash)."""

from __future__ import annotations

from gantrymq.message.properties import string_hash_code

_MASK = (1 << 64) - 1


def bucket_of(message_group: str, buckets: int) -> int:
    """0 to buckets - 1. When buckets are added, as few groups as possible change theirs."""
    return jump_hash(string_hash_code(message_group), buckets)


def jump_hash(key: int, buckets: int) -> int:
    """The bucket of a 64-bit number."""
    state = key & _MASK
    candidate = 0
    while True:
        state = (2862933555777941757 * state + 1) & _MASK
        number = ((state >> 33) + 1) / 2**31
        following = int((candidate + 1) / number)
        if not 0 <= following < buckets:
            return candidate
        candidate = following
