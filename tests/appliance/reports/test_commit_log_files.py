"""The commit log's end: found from the bytes, never behind a valid chain, without reading the hole behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.appliance.reports.stores import Record, unpack_golden, write_log

pytest.importorskip("numpy")

from appliance.reports.commit_log_files import TAIL_BLOCK_BYTES, CommitLogFiles, RecordMark, read_range
from appliance.reports.errors import BrokenRecordChain, StoreUnreadable
from gantrymq.contrib.arrow import record_blocks


@pytest.mark.parametrize(
    ("name", "end"), [("clean_broker", 4530), ("crash_abort", 79092), ("rolled_preblank", 170402), ("ipv6_delay", 507)]
)
def test_the_end_of_an_apache_store_is_behind_its_last_record(tmp_path: Path, name: str, end: int) -> None:
    log = CommitLogFiles([unpack_golden(name, tmp_path) / "commitlog"])
    assert log.valid_end() == end
    assert log.valid_end(end) == end


def test_a_sparse_gigabyte_is_not_read_behind_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, end = write_log(tmp_path, [Record(body=b"x" * 1000)] * 3000, file_bytes=1 << 30)
    read = []

    def counting(descriptor: int, buffers: list[memoryview], position: int) -> int:
        read.append(position + sum(len(buffer) for buffer in buffers))
        return real(descriptor, buffers, position)

    real = os.preadv
    monkeypatch.setattr(record_blocks.os, "preadv", counting)
    log = CommitLogFiles([tmp_path])
    assert log.valid_end() == end
    assert sum(len(block) for file in log.files() for block in read_range(file, 0, end)) == 3000
    assert max(read) <= end + TAIL_BLOCK_BYTES


def test_a_full_file_ends_where_the_next_one_begins(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record(body=b"x" * 900)] * 10, file_bytes=4096)
    log = CommitLogFiles([tmp_path])
    assert [file.start for file in log.begun_files()] == [0, 4096, 8192]
    assert log.valid_end() == offsets[-1]
    rows = [len(block) for file in log.files() for block in read_range(file, file.start, min(file.end, offsets[-1]))]
    assert sum(rows) == 10


def test_a_file_prepared_ahead_does_not_count(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record()] * 3, file_bytes=4096)
    (tmp_path / f"{4096:020}").write_bytes(bytes(4096))
    assert CommitLogFiles([tmp_path]).valid_end() == offsets[-1]


def test_a_record_whose_body_is_still_being_copied_is_not_read_yet(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record(body=b"x" * 500)] * 5)
    with (tmp_path / f"{0:020}").open("r+b") as file:
        file.seek(offsets[4] + 300)
        file.write(bytes(50))
    assert CommitLogFiles([tmp_path]).valid_end() == offsets[4]


def test_damage_in_the_file_that_is_written_does_not_hide_what_comes_behind_it(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record(body=b"x" * 500)] * 8)
    for at in (offsets[2] + 300, offsets[4]):  # a body, which the log's readers need not, and a head
        with (tmp_path / f"{0:020}").open("r+b") as file:
            file.seek(at)
            file.write(bytes(50))
        assert CommitLogFiles([tmp_path]).valid_end() == offsets[-1]


def test_damage_in_the_middle_of_what_was_found_valid_is_an_error(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record(body=b"x" * 900)] * 10, file_bytes=4096)
    with (tmp_path / f"{0:020}").open("r+b") as file:
        file.seek(offsets[2])
        file.write(bytes(8))
    log = CommitLogFiles([tmp_path])
    with pytest.raises(BrokenRecordChain, match=f"physical offset {offsets[2]}"):
        list(read_range(log.files()[0], 0, 4096))


def test_a_missing_file_in_the_middle_is_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, [Record(body=b"x" * 900)] * 20, file_bytes=4096)
    (tmp_path / f"{4096:020}").unlink()
    with pytest.raises(StoreUnreadable, match="not 00000000000000004096"):
        CommitLogFiles([tmp_path]).files()


def test_a_missing_folder_is_an_error_and_an_empty_one_is_an_empty_log(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreadable, match="no such commit-log folder"):
        CommitLogFiles([tmp_path / "gone"]).files()
    assert CommitLogFiles([tmp_path]).valid_end() == 0


def test_a_folder_that_has_no_file_yet_may_be_missing_beside_others(tmp_path: Path) -> None:
    write_log(tmp_path, [Record()])
    log = CommitLogFiles([tmp_path, tmp_path / "to-come"])
    assert [file.start for file in log.files()] == [0]


def test_a_record_can_be_recognised_later(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record(body=b"", stored_at=5), Record(stored_at=6)])
    log = CommitLogFiles([tmp_path])
    assert log.mark_at(offsets[0]) == RecordMark(0, 5, 0)
    assert log.mark_at(offsets[1]) == RecordMark(offsets[1], 6, 0x3610A686)
    assert log.mark_at(offsets[1] + 1) is None
    assert log.mark_at(1 << 40) is None
