"""Record blocks: every shape of a record is read, and the first bytes that are no record end the scan."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.appliance.reports.stores import Record, unpack_golden, write_log

pytest.importorskip("numpy")

from appliance.reports.commit_log_files import CommitLogFiles
from gantrymq.contrib.arrow.record_blocks import LogFile, RecordScan, ScanEnd
from gantrymq.message.record import decode_record

SHAPES = [
    Record(born_ip=born, store_ip=store, is_v2=is_v2, topic="t" * (200 if is_v2 else 20), body=b"x" * size)
    for is_v2 in (False, True)
    for born, store in (
        ("10.0.0.0", "10.0.0.1"), ("2001:db8::1", "10.0.0.1"), ("10.0.0.9", "::"), ("2001:db8::1", "fe80::2"),
    )
    for size in (0, 1, 300)
]  # fmt: skip


def log_file(folder: Path) -> LogFile:
    return CommitLogFiles([folder]).files()[0]


@pytest.mark.parametrize("block_bytes", [100, 333, 4096, 1 << 20])
def test_every_host_width_and_magic_is_read_whatever_the_block_size(tmp_path: Path, block_bytes: int) -> None:
    *offsets, end = write_log(tmp_path, SHAPES)
    scan = RecordScan(log_file(tmp_path), 0, block_bytes=block_bytes)
    blocks = list(scan)
    assert [offset for block in blocks for offset in block.physical_offset.tolist()] == offsets
    assert [size for block in blocks for size in block.body_bytes.tolist()] == [len(record.body) for record in SHAPES]
    assert [size for block in blocks for size in block.topic_bytes.tolist()] == [len(record.topic) for record in SHAPES]
    assert {stored for block in blocks for stored in block.store_timestamp.tolist()} == {SHAPES[0].stored_at}
    assert {times for block in blocks for times in block.reconsume_times.tolist()} == {3}
    assert (scan.position, scan.ended) == (end, ScanEnd.INVALID)


@pytest.mark.parametrize("name", ["clean_broker", "crash_abort", "rolled_preblank", "ipv6_delay"])
def test_a_store_of_apache_rocketmq_reads_like_the_record_codec_reads_it(tmp_path: Path, name: str) -> None:
    folder = unpack_golden(name, tmp_path) / "commitlog"
    for file in CommitLogFiles([folder]).begun_files():
        data = file.path.read_bytes()
        for block in RecordScan(file, file.start):
            for index, offset in enumerate(block.physical_offset.tolist()):
                expected = decode_record(data, offset - file.start)
                assert block.size_bytes[index] == expected.store_size
                assert block.queue_id[index] == expected.queue_id
                assert block.queue_offset[index] == expected.queue_offset
                assert block.sys_flag[index] == expected.sys_flag
                assert block.store_timestamp[index] == expected.store_timestamp
                assert block.body_bytes[index] == len(expected.body)
                assert block.body_crc[index] == expected.body_crc


@pytest.mark.parametrize(
    ("at", "damage"),
    [
        (0, struct.pack(">i", 0)),
        (0, struct.pack(">i", -5)),
        (0, struct.pack(">i", 1 << 30)),
        (0, struct.pack(">i", 93)),
        (4, b"\0\0\0\0"),
        (28, struct.pack(">q", 12345)),
        (36, struct.pack(">i", 0x30)),
        (84, struct.pack(">i", -1)),
        (84, struct.pack(">i", 1 << 29)),
        (88 + 5, b"\xff"),
        (88 + 5, b"\x00"),
        (88 + 5 + 1 + 6, struct.pack(">h", -2)),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value.hex(),
)
def test_a_damaged_record_ends_the_scan_and_nothing_behind_it_is_read(tmp_path: Path, at: int, damage: bytes) -> None:
    offsets = write_log(tmp_path, [Record()] * 10)
    with (tmp_path / f"{0:020}").open("r+b") as file:
        file.seek(offsets[4] + at)
        file.write(damage)
    scan = RecordScan(log_file(tmp_path), 0)
    assert sum(len(block) for block in scan) == 4
    assert (scan.position, scan.ended) == (offsets[4], ScanEnd.INVALID)


def test_a_record_larger_than_a_block_is_read_whole(tmp_path: Path) -> None:
    *offsets, _ = write_log(tmp_path, [Record(), Record(body=b"x" * 20_000), Record()])
    blocks = list(RecordScan(log_file(tmp_path), 0, block_bytes=512))
    assert [offset for block in blocks for offset in block.physical_offset.tolist()] == offsets


def test_a_file_shorter_than_its_records_say_ends_the_scan(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record()] * 10)
    file = log_file(tmp_path)
    with file.path.open("r+b") as opened:
        opened.truncate(offsets[7] + 20)
    scan = RecordScan(file, 0)
    assert sum(len(block) for block in scan) == 7
    assert scan.ended is ScanEnd.INVALID
