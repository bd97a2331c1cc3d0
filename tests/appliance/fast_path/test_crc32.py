"""The CRC of the compiled module is zlib's: for every length and place in memory, by all its ways."""

from __future__ import annotations

import random
import zlib
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.appliance.fast_path.compiling import slow_ways_here
from tests.bounded import bounded

BYTES = random.Random(1).randbytes(1 << 20)
WAYS = ("crc32", "crc32_by_tables")


@pytest.mark.parametrize("way", WAYS)
def test_each_length_at_each_place(compiled: ModuleType, way: str) -> None:
    crc32 = getattr(compiled, way)
    view = memoryview(BYTES)
    for start in range(17):
        for count in range(301):
            part = view[start : start + count]
            assert crc32(part) == zlib.crc32(part), (start, count)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [4095, 65_536, 65_537, 1 << 20])
def test_long_ones(compiled: ModuleType, way: str, count: int) -> None:
    assert getattr(compiled, way)(BYTES[-count:]) == zlib.crc32(BYTES[-count:])


@pytest.mark.parametrize("way", WAYS)
@bounded(300)
@given(parts=st.lists(st.binary(max_size=200), max_size=5), value=st.integers(0, 0xFFFFFFFF))
def test_a_crc_goes_on_where_another_ended(compiled: ModuleType, way: str, parts: list[bytes], value: int) -> None:
    expected = zlib.crc32(b"".join(parts), value)
    for part in parts:
        value = getattr(compiled, way)(part, value)
    assert value == expected


def test_all_that_this_processor_has_instructions_for_is_computed_by_them(compiled: ModuleType) -> None:
    assert compiled.slow_ways() == slow_ways_here()


def test_what_is_no_row_of_bytes_is_refused(compiled: ModuleType) -> None:
    for wrong in ("text", 7, None):
        with pytest.raises(TypeError):
            compiled.crc32(wrong)
    with pytest.raises(BufferError):
        compiled.crc32(memoryview(BYTES)[::2])
    for value in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            compiled.crc32(b"", value)
