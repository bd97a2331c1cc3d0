"""Where a queue begins, and which of its files may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.base import file_bytes
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.queues.consume_queue import FILLER, FILLER_SIZE, UNIT, ConsumeQueue
from store.queues.descriptors import DescriptorCache
from tests.store.conftest import OpenStore, message, small_config


@pytest.fixture
def queue(tmp_path: Path, open_store: OpenStore) -> ConsumeQueue:
    """Three files, the last half full; another queue's messages lie between."""
    store = open_store(small_config(tmp_path))
    for _ in range(250):
        store.put_message(message(bytes(100)))
        store.put_message(message(bytes(50), queue_id=1))
    store.queue_flusher.finish()
    found = store.parts.queues.find("T", 0)
    assert found is not None
    return found


def place(queue: ConsumeQueue, index: int) -> int:
    unit = queue.unit_at(index)
    assert unit is not None
    return unit.physical_offset


def test_a_file_goes_when_its_last_message_is_gone_and_the_last_file_never(queue: ConsumeQueue) -> None:
    assert queue.bases == [0, 100, 200]
    for index, gone in ((0, 0), (98, 0), (99, 0), (100, 1), (199, 1), (200, 2), (249, 2)):
        assert queue.expired_files(place(queue, index)) == queue.bases[:gone]
    assert queue.expired_files(place(queue, 99) + 1) == [0]
    assert queue.expired_files(1 << 60) == [0, 100]


def test_a_queue_begins_with_the_first_message_that_the_log_still_has(queue: ConsumeQueue) -> None:
    for index in (0, 1, 42, 100, 249):
        queue.correct_min(place(queue, index))
        assert queue.min_index == index
        queue.correct_min(place(queue, index) + 1)
        assert queue.min_index == index + 1
    queue.correct_min(0)
    assert queue.min_index == 0


def test_a_topics_own_retention_is_not_taken_back(queue: ConsumeQueue) -> None:
    queue.raise_min(40)
    for physical_offset, expected in ((0, 40), (place(queue, 39), 40), (place(queue, 41), 41), (place(queue, 7), 40)):
        queue.correct_min(physical_offset)
        assert queue.min_index == expected
    queue.raise_min(1000)
    assert queue.min_index == queue.next_index == 250


@pytest.mark.parametrize("change", ["cut", "rewind", "forget_files"])
def test_units_that_were_looked_at_are_forgotten_when_files_change(queue: ConsumeQueue, change: str) -> None:
    """Others may stand in their places then."""
    queue.looked_at = (0, queue.read(0, 100)[:100])
    if change == "cut":
        queue.cut(200)
    elif change == "rewind":
        queue.rewind(place(queue, 200))
    else:
        queue.forget_files([0])
    assert queue.looked_at is None


def test_units_are_counted_as_the_files_have_them(queue: ConsumeQueue) -> None:
    assert queue.unit_count == 250
    queue.append(1 << 40, 100, 0)
    assert queue.unit_count == 250
    queue.forget_files([0])
    assert queue.unit_count == 150


@pytest.mark.parametrize("fillers", [range(60, 90), range(95, 130), range(40), range(150, 200), range(199, 200)])
@pytest.mark.parametrize("alive_from", [0, 35, 55, 59, 92, 94, 100, 131, 199])
def test_fillers_where_messages_were_lost_hide_no_living_ones(tmp_path: Path, fillers: range, alive_from: int) -> None:
    """The search for the first living message halves, and fillers have no place in the log."""
    queue = ConsumeQueue(tmp_path / "0", "T", 0, 100 * UNIT_BYTES, DescriptorCache())
    queue.folder.mkdir()
    for index in range(200):
        if index in fillers:
            queue.append(0, FILLER_SIZE, 0)
        else:
            queue.append(1000 + index * 10, 10, 0)
    expected = next((index for index in range(alive_from, 200) if index not in fillers), 200)
    queue.correct_min(1000 + alive_from * 10)
    assert queue.min_index == expected
    assert queue.first_at(1000 + alive_from * 10) == expected
    queue.write_out(0, *queue.pending())
    queue.written(200, 0)
    last_of_first = next((index for index in range(99, -1, -1) if index not in fillers), -1)
    assert queue.expired_files(1000 + alive_from * 10) == ([0] if last_of_first < alive_from else [])


LATE_UNITS = 300_000  # of a file, as in RocketMQ: 6 MB


def late_queue(folder: Path) -> ConsumeQueue:
    return ConsumeQueue(folder / "0", "T", 0, LATE_UNITS * UNIT_BYTES, DescriptorCache())


def begin_late(queue: ConsumeQueue) -> None:
    queue.skip_to(2 * LATE_UNITS - 2)
    queue.append(1000, 10, 7)


def write_out(queue: ConsumeQueue) -> None:
    fillers, units = queue.pending()
    queue.write_out(queue.written_index, fillers, units)
    queue.written(queue.written_index + fillers + len(units) // UNIT_BYTES, 0)


LATE_FILE = FILLER * (LATE_UNITS - 2) + UNIT.pack(1000, 10, 7) + bytes(UNIT_BYTES)


def test_a_queue_that_begins_late_has_its_fillers_in_the_file_alone(tmp_path: Path) -> None:
    """RocketMQ's pre-blank units. A copy begins thousands of queues at once."""
    queue = late_queue(tmp_path)
    begin_late(queue)
    assert len(queue.tail) == UNIT_BYTES
    assert queue.read(LATE_UNITS, 5) == FILLER * 5
    write_out(queue)
    assert queue.path_of(LATE_UNITS).read_bytes() == LATE_FILE
    assert queue.min_index == 2 * LATE_UNITS - 2
    assert (queue.first_index, queue.unit_count) == (LATE_UNITS, LATE_UNITS - 1)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("pieces", [0, 1, 20, 73, 74])
def test_fillers_that_were_written_in_part_are_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int, is_killed: bool
) -> None:
    queue = late_queue(tmp_path)
    begin_late(queue)
    write_all, left = file_bytes.write_all, iter(range(pieces))

    def until_full(fd: int, data: bytes, position: int) -> None:
        if next(left, None) is None:
            write_all(fd, data[: len(data) // 3], position)
            raise OSError(28, "No space left on device")
        write_all(fd, data, position)

    with monkeypatch.context() as patch:
        patch.setattr(file_bytes, "write_all", until_full)
        with pytest.raises(OSError, match="No space"):
            write_out(queue)
    if is_killed:
        queue = late_queue(tmp_path)
        queue.load()
        begin_late(queue)
        assert len(queue.tail) == UNIT_BYTES
    write_out(queue)
    assert queue.path_of(LATE_UNITS).read_bytes() == LATE_FILE


def test_messages_that_were_lost_leave_fillers_between_written_units_and_new_ones(tmp_path: Path) -> None:
    queue = ConsumeQueue(tmp_path / "0", "T", 0, 100 * UNIT_BYTES, DescriptorCache())
    for index in range(50):
        queue.append(1000 + index * 10, 10, 0)
    write_out(queue)
    queue.skip_to(250)
    queue.append(2000, 10, 0)
    assert len(queue.tail) == UNIT_BYTES
    assert [queue.unit_at(index).size_bytes for index in (49, 50, 249, 250)] == [10, FILLER_SIZE, FILLER_SIZE, 10]
    assert [queue.first_at(at) for at in (1480, 1490, 1500, 2001)] == [48, 49, 250, 251]
    queue.cut(200)
    queue.skip_to(220)
    queue.append(2000, 10, 0)
    write_out(queue)
    assert queue.bases == [0, 100, 200]
    again = ConsumeQueue(tmp_path / "0", "T", 0, 100 * UNIT_BYTES, DescriptorCache())
    again.load()
    assert (again.next_index, again.max_physical_offset) == (221, 2010)


def test_a_living_message_before_fillers_that_no_file_has_yet_is_found(tmp_path: Path) -> None:
    queue = ConsumeQueue(tmp_path / "0", "T", 0, 100 * UNIT_BYTES, DescriptorCache())
    for index in range(10):
        queue.append(1000 + index * 10, 10, 0)
    write_out(queue)
    queue.append(1100, 10, 0)
    queue.skip_to(12)
    queue.correct_min(1100)
    assert queue.min_index == 10
