"""Records as bytes, both ways, whole and damaged."""

from __future__ import annotations

import dataclasses

import pytest

from gantrymq.errors import RecordError
from gantrymq.message import record, sysflag
from tests.gantrymq.message.example import MESSAGE
from tests.store.golden import GOLDEN_STORES, commit_log_records, unpack


def test_the_size_is_91_bytes_plus_the_parts() -> None:
    assert len(record.encode_record(MESSAGE)) == 91 + len("hello") + len("Orders") + len("TAGS.TagA.KEYS.k1 k2")


@pytest.mark.parametrize(
    ("born", "stored", "fixed", "flag"),
    [
        ("::1", "10.0.0.2", 103, sysflag.BORN_HOST_V6),
        ("10.0.0.1", "fe80::2", 103, sysflag.STORE_HOST_V6),
        ("::1", "fe80::2", 115, sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6),
        ("::ffff:10.0.0.1", "10.0.0.2", 91, 0),
    ],
)
def test_each_host_has_its_own_width(born: str, stored: str, fixed: int, flag: int) -> None:
    message = dataclasses.replace(MESSAGE, born_host=(born, 1), store_host=(stored, 2), topic="T", properties={})
    encoded = record.encode_record(message)
    decoded = record.decode_record(encoded)
    assert len(encoded) == fixed + len("hello") + len("T")
    assert decoded.sys_flag == flag
    assert decoded.store_timestamp == MESSAGE.store_timestamp
    assert decoded.store_host == (stored, 2)


def test_a_changed_body_is_noticed_where_the_checksum_is_read() -> None:
    encoded = bytearray(record.encode_record(MESSAGE))
    encoded[88] ^= 1
    with pytest.raises(RecordError, match="CRC"):
        record.decode_record(encoded)
    assert record.decode_record(encoded, check_crc=False).body == b"iello"
    assert record.decode_record(encoded, read_body=False).body == b""


@pytest.mark.parametrize("cut", [0, 4, 47, 87, 90, 100, -1])
def test_a_torn_record_is_an_error_with_its_position(cut: int) -> None:
    encoded = record.encode_record(MESSAGE)
    with pytest.raises(RecordError) as error:
        record.decode_record(b"xy" + encoded[:cut], 2)
    assert error.value.position == 2


@pytest.mark.parametrize(("at", "value"), [(0, 0x7F), (4, 0), (84, 0x80), (84, 0x7F), (93, 0xFF), (100, 0x80)])
def test_absurd_lengths_and_foreign_magic_are_errors(at: int, value: int) -> None:
    encoded = bytearray(record.encode_record(MESSAGE))
    encoded[at] = value
    with pytest.raises(RecordError):
        record.decode_record(encoded)


def test_concatenated_records_come_back_in_order() -> None:
    messages = [dataclasses.replace(MESSAGE, queue_offset=number) for number in range(3)]
    decoded = record.decode_records(memoryview(b"".join(map(record.encode_record, messages))))
    assert [message.queue_offset for message in decoded] == [0, 1, 2]


@pytest.mark.parametrize("store", GOLDEN_STORES)
def test_apaches_records_are_written_back_byte_for_byte(store: str, tmp_path) -> None:
    folder = unpack(store, tmp_path).root
    records = list(commit_log_records(folder))
    assert records
    for offset, raw in records:
        fields = record.split_record(raw)
        body = raw[fields.body_position : fields.body_position + fields.body_bytes]
        assert fields.physical_offset == offset
        assert record.encode_fields(fields, body) == raw
        message = record.decode_record(raw)
        if len(fields.properties.split(b"\x02")) == len(message.properties):  # a batch may say a name twice
            assert record.encode_record(message) == raw
