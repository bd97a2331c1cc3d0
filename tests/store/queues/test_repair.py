"""Damage in the middle of a consume queue, or in a record: noticed when read, made good from the log or reported."""

from __future__ import annotations

import functools
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.log_limit import LINES_MAX
from gantrymq.message import properties as names
from gantrymq.message import record
from store import GetMessageStatus, MessageStore, MessageStoreConfig, TagFilter
from store.base.errors import NotReadableNow
from store.queues import repair
from store.queues.scan import UNIT
from tests.store.conftest import OpenStore, message, opened, small_config

COUNT = 250
FILE_UNITS = 100  # small_config's
Damage = Callable[[tuple[int, int, int]], bytes]

DAMAGES: dict[str, Damage] = {
    "zeroed": lambda unit: bytes(20),
    "ones": lambda unit: b"\xff" * 20,
    "low bit of the offset": lambda unit: UNIT.pack(unit[0] ^ 1, *unit[1:]),
    "offset of the message before": lambda unit: UNIT.pack(unit[0] - unit[1], *unit[1:]),
    "high bit of the offset": lambda unit: UNIT.pack(unit[0] ^ (1 << 40), *unit[1:]),
    "sign of the offset": lambda unit: UNIT.pack(~unit[0], *unit[1:]),
    "offset zeroed": lambda unit: UNIT.pack(0, *unit[1:]),
    "size too large": lambda unit: UNIT.pack(unit[0], unit[1] + 16, unit[2]),
    "size too small": lambda unit: UNIT.pack(unit[0], unit[1] - 16, unit[2]),
    "size negative": lambda unit: UNIT.pack(unit[0], -unit[1], unit[2]),
    "size huge": lambda unit: UNIT.pack(unit[0], 1 << 30, unit[2]),
}
READS = ["at once", "one by one", "by tag", "beside another queue"]


def written(root: Path, *, two_queues: bool = False) -> MessageStoreConfig:
    """A copy of a store that was written once for all tests."""
    shutil.copytree(_written(two_queues), root, dirs_exist_ok=True)
    return small_config(root)


@functools.cache
def _written(two_queues: bool) -> Path:
    config = small_config(Path(tempfile.mkdtemp()))  # in the folder of this run
    store = opened(config)
    for number in range(COUNT):
        store.put_message(message(b"%06d" % number, tags="TagA"))
        if two_queues:
            store.put_message(message(b"other", queue_id=1))
    store.close()
    return config.root


def spoil_unit(
    config: MessageStoreConfig, index: int, damage: Damage, file_units: int = FILE_UNITS
) -> tuple[Path, bytes]:
    """Damage one unit; return its file and what that held before."""
    path = config.root / "consumequeue/T/0" / f"{index // file_units * file_units * 20:020d}"
    before = path.read_bytes()
    at = index % file_units * 20
    path.write_bytes(before[:at] + damage(UNIT.unpack_from(before, at)) + before[at + 20 :])
    return path, before


def numbers(store: MessageStore, how: str = "at once") -> list[int]:
    """Read the whole queue as a consumer would."""
    wanted = TagFilter(frozenset({names.string_hash_code("TagA")})) if how == "by tag" else None
    found: list[int] = []
    offset = 0
    while offset < store.max_offset("T", 0):
        result = store.get_message("g", "T", 0, offset, 1 if how == "one by one" else 32, wanted)
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
        data, position = b"".join(result.buffers), 0
        while position < len(data):
            found.append(int(record.decode_record(data, position).body))
            position += int.from_bytes(data[position : position + 4], "big")
    return found


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize(
    "index", [0, 99, 100, *(pytest.param(other, marks=pytest.mark.slow) for other in (1, 150, 199))]
)
def test_a_damaged_unit_is_made_good_and_no_message_is_missed(tmp_path: Path, name: str, index: int, how: str) -> None:
    config = written(tmp_path / "store", two_queues=how == READS[-1])
    path, before = spoil_unit(config, index, DAMAGES[name])
    store = opened(config)
    assert numbers(store, how) == list(range(COUNT))
    store.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("after_crash", [False, True])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_unit_at_the_place_where_a_start_looks_costs_no_other_unit(
    tmp_path: Path, name: str, *, after_crash: bool
) -> None:
    """A start halves its way to a long file's end: a damaged unit there looks like the end."""
    config = small_config(tmp_path, consume_queue_file_bytes=20 * 2000, commit_log_file_bytes=1 << 20)
    store = opened(config)
    for number in range(1000):
        store.put_message(message(b"%06d" % number, tags="TagA"))
    if after_crash:
        store.log_flusher.finish()
        store.queue_flusher.write_out()
        store.queue_flusher.sync(1, store.max_physical_offset)
        store.abandon()
    else:
        store.close()
    for index in (651, 855, 956):  # the first middle below the end, and some that it may look at next
        spoil_unit(config, index, DAMAGES[name], file_units=2000)
        again = opened(config)
        assert numbers(again, "by tag") == list(range(1000))
        again.close()


@pytest.mark.parametrize("field_at", [4, 28], ids=["magic", "own offset"])
def test_a_message_whose_record_is_damaged_is_reported_with_file_and_position_and_passed_over(
    tmp_path: Path, field_at: int, caplog: pytest.LogCaptureFixture
) -> None:
    config = written(tmp_path / "store")
    store = opened(config)
    (unit,) = store.consume_queue_units("T", 0, 120, 1)
    store.close()
    path = sorted((config.root / "commitlog").iterdir())[unit.physical_offset // config.commit_log_file_bytes]
    position = unit.physical_offset % config.commit_log_file_bytes
    data = bytearray(path.read_bytes())
    data[position + field_at] ^= 0x10
    path.write_bytes(data)
    store = opened(config)
    for _ in range(2):
        assert numbers(store, "one by one") == [number for number in range(COUNT) if number != 120]
    (report,) = [each for each in caplog.records if getattr(each, "event", "") == "message_lost"]
    assert report.levelno == logging.ERROR
    assert (report.__dict__["path"], report.__dict__["position"]) == (str(path), position)
    assert report.__dict__["queue_offset"] == 120
    store.close()


def test_where_the_log_has_to_be_walked_far_a_thread_does_it_and_readers_wait(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "SCAN_NOW_BYTES", 0)
    config = written(tmp_path / "store")
    spoil_unit(config, 150, DAMAGES["low bit of the offset"])
    store = open_store(config)
    may_scan = threading.Event()
    store.parts.scanner.submit(may_scan.wait)
    first = store.get_message("g", "T", 0, 150, 32)
    assert (first.status, first.next_begin_offset) == (GetMessageStatus.OFFSET_FOUND_NULL, 150)
    with pytest.raises(NotReadableNow):
        store.message_at("T", 0, 150)
    may_scan.set()
    store.parts.scanner.submit(int).result()
    while store.get_message("g", "T", 0, 150, 32).status is GetMessageStatus.OFFSET_FOUND_NULL:
        pass
    (read,) = record.decode_records(store.message_at("T", 0, 150) or b"")
    assert read.body == b"000150"
    assert numbers(store) == list(range(COUNT))


def test_a_file_with_much_damage_fills_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Some messages are named, then their number."""
    config = written(tmp_path / "store")
    store = opened(config)
    (first, *_others, last) = store.consume_queue_units("T", 0, 40, 50)
    store.close()
    path = sorted((config.root / "commitlog").iterdir())[0]
    with path.open("r+b") as file:
        file.seek(first.physical_offset)
        file.write(bytes(last.physical_offset - first.physical_offset))
    lost = 49
    store = opened(config)
    assert numbers(store, "one by one") == [number for number in range(COUNT) if not 40 <= number < 40 + lost]
    store.close()
    events = [getattr(record, "event", "") for record in caplog.records]
    assert events.count("message_lost") == LINES_MAX
    (rest,) = [record for record in caplog.records if getattr(record, "event", "") == "lines_left_out"]
    assert (rest.__dict__["of"], rest.__dict__["count"]) == ("message_lost", lost - LINES_MAX)
    assert rest.__dict__["all_since_start"] == lost
