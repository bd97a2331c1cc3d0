"""appliance/broker/filters/bloom.py: the sizes and bits that a real broker made."""

from __future__ import annotations

import pytest

from appliance.broker.filters.bloom import BloomFilter, mask_of, murmur3_low64


def test_sizes_and_bits_are_those_of_a_real_broker() -> None:
    bloom = BloomFilter(20, 32)
    assert (bloom.hash_count, bloom.bit_count) == (3, 112)
    assert bloom.positions("CG_SQL", "TopicTest") == (22, 91, 50)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [  # the low halves of MurmurHash3_x64_128's published results, as Guava's asLong gives them
        (b"", 0),
        (b"The quick brown fox jumps over the lazy dog", 0xE34BBC7BBC071B6C),
    ],
)
def test_the_hash_is_murmur3(text: bytes, hashed: int) -> None:
    assert murmur3_low64(text) == hashed


def test_a_mask_is_the_bit_map_little_end_first() -> None:
    bits = mask_of((0, 9, 9, 111)).to_bytes(14, "little")
    assert (bits[0], bits[1], bits[13]) == (1, 2, 128)


def test_bits_of_another_filter_are_known() -> None:
    bloom = BloomFilter(20, 32)
    assert bloom.is_valid(112, (1, 2, 3))
    assert not bloom.is_valid(120, (1, 2, 3))
    assert not bloom.is_valid(112, (1, 2))
    assert not bloom.is_valid(112, (1, 2, 112))
