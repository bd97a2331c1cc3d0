"""The bloom filter of consumer filters: which groups' SQL conditions a message met, in a few bytes beside its unit.

Imposed by RocketMQ (BloomFilter, BitsArray), since the bits stand in files that both read: a group's bits in a topic
come from murmur3 (x64, 128 bits, seed 0) of `group#topic`, of which the low 64 bits count.
"""

from __future__ import annotations

import math

ERROR_PERCENT, GROUPS_EXPECTED = 20, 32
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


class BloomFilter:
    """Sized for `expected` groups a topic and `error_percent` % of messages that are looked at for nothing.

    The defaults are RocketMQ's: a filter of another size makes all bits void that are stored.

    bit_count: a multiple of 8. hash_count: bits a group has.
    """

    def __init__(self, error_percent: int = ERROR_PERCENT, expected: int = GROUPS_EXPECTED) -> None:
        rate = error_percent / 100
        self.hash_count = math.ceil(math.log(rate) / math.log(0.5))
        bits = math.ceil(expected * (math.log(1 / rate) / math.log(2)) * (math.log(math.e) / math.log(2)))
        self.bit_count = 8 * math.ceil(bits / 8)

    def positions(self, group: str, topic: str) -> tuple[int, ...]:
        """Return the bits of a group in a topic; two may be the same."""
        hashed = murmur3_low64(f"{group}#{topic}".encode())
        step = hashed >> 32
        found = []
        for number in range(1, self.hash_count + 1):
            combined = (hashed + number * step) & 0xFFFFFFFF  # as Java's int: of a negative one all bits are flipped
            found.append((combined ^ 0xFFFFFFFF if combined >> 31 else combined) % self.bit_count)
        return tuple(found)

    def is_valid(self, bit_count: int, positions: tuple[int, ...]) -> bool:
        """Say if bits that were written down are of a filter like this."""
        return (
            bit_count == self.bit_count
            and len(positions) == self.hash_count
            and all(0 <= position < bit_count for position in positions)
        )


def mask_of(positions: tuple[int, ...]) -> int:
    """Return the bits as a number; as little-endian bytes it is RocketMQ's bit map."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def murmur3_low64(data: bytes) -> int:
    """Return the low 64 bits of MurmurHash3_x64_128 with seed 0 (Guava's `asLong`, unsigned)."""
    h1 = h2 = 0
    blocks_end = len(data) & ~15
    for at in range(0, blocks_end, 16):
        h1 ^= _mixed(int.from_bytes(data[at : at + 8], "little"), _C1, 31, _C2)
        h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _mixed(int.from_bytes(data[at + 8 : at + 16], "little"), _C2, 33, _C1)
        h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    tail = data[blocks_end:]
    h2 ^= _mixed(int.from_bytes(tail[8:], "little"), _C2, 33, _C1)
    h1 ^= _mixed(int.from_bytes(tail[:8], "little"), _C1, 31, _C2)
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return (_finished(h1) + _finished(h2)) & _MASK


def _mixed(block: int, first: int, shift: int, second: int) -> int:
    return _rotated(block * first & _MASK, shift) * second & _MASK


def _rotated(value: int, shift: int) -> int:
    return (value << shift | value >> (64 - shift)) & _MASK


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
