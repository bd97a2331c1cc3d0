"""Files of what is due later, and what a crash may leave of them; what is due soon, in memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from appliance.broker.timer.due_table import DueTable
from appliance.broker.timer.entries import ENTRY_BYTES, PLACE, Entry, pack_entry, unpack_entries
from appliance.broker.timer.progress import Progress, ProgressFile
from appliance.broker.timer.slots import HOUR, MINUTE, PART, Slot, SlotFolder, by_minute, hour_slot

SLOT = Slot(MINUTE, 30_000_000)


def entries(count: int, first: int = 0) -> list[Entry]:
    return [Entry(1_800_000_000_000 + number, number, number * 200, 150) for number in range(first, first + count)]


def packed(some: list[Entry]) -> bytes:
    return b"".join(pack_entry(*entry) for entry in some)


def filled(folder: Path, count: int) -> SlotFolder:
    slots = SlotFolder(folder)
    slots.append({SLOT: bytearray(packed(entries(count)))})
    return slots


def test_entries_come_back_as_they_were_written(tmp_path: Path) -> None:
    slots = filled(tmp_path, 10_000)
    found, position = [], 0
    while data := slots.read(SLOT, position):
        position += len(data)
        found += list(unpack_entries(data))
    assert found == entries(10_000)
    assert SlotFolder(tmp_path).load(10_000) == {SLOT: 10_000}


def test_entries_that_the_queue_will_say_again_are_cut(tmp_path: Path) -> None:
    filled(tmp_path, 10)
    assert SlotFolder(tmp_path).load(7) == {SLOT: 7}
    assert (tmp_path / SLOT.name).stat().st_size == 7 * ENTRY_BYTES
    assert SlotFolder(tmp_path).load(0) == {}
    assert not (tmp_path / SLOT.name).exists()


@pytest.mark.parametrize("damage", [b"\0" * 100, b"\xff" * 64, packed(entries(1, 7))[:20], b"\0" * 4096])
def test_what_a_crash_left_at_the_end_is_no_entry(tmp_path: Path, damage: bytes) -> None:
    filled(tmp_path, 7)
    with (tmp_path / SLOT.name).open("ab") as file:
        file.write(damage)
    slots = SlotFolder(tmp_path)
    assert slots.load(1000) == {SLOT: 7}
    slots.append({SLOT: bytearray(packed(entries(2, 7)))})
    assert list(unpack_entries(slots.read(SLOT, 0))) == entries(9)


def test_strangers_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    for name in ("progress.json", "notes.txt", "-5.minute", "x.hour"):
        (tmp_path / name).write_text("mine")
    assert SlotFolder(tmp_path).load(10) == {SLOT: 1}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_hour_is_split_by_minute_in_order() -> None:
    hour = [Entry(minute * 60_000 + 5, minute, 0, 1) for minute in (1, 2, 1, 59, 2)]
    parts = by_minute(packed(hour) + b"half an entry")
    assert {
        minute: [entry.queue_offset for entry in unpack_entries(bytes(part))] for minute, part in parts.items()
    } == {1: [1, 1], 2: [2, 2], 59: [59]}
    assert hour_slot(119) == Slot(HOUR, 60)
    assert Slot(PART, 7).name == "0000000007.part"


def test_the_due_table_gives_back_in_order_of_time() -> None:
    chance, table = random.Random(3), DueTable()
    added = [(chance.randrange(50), number) for number in range(500)]
    for due_ms, number in added:
        table.add(due_ms, PLACE.pack(number, 0, 1))
    taken = []
    while table.first_ms is not None:
        for place in table.peek(3):
            taken.append((table.first_ms, place.queue_offset))
            table.drop(1)
    assert taken == sorted(added)
    assert table.count == 0


def test_the_due_table_says_if_something_lies_below_a_place() -> None:
    table = DueTable()
    for number in range(5000):
        table.add(number % 3, PLACE.pack(number, 1000 + number, 1))
    assert not any(table.scan_below(1000))
    assert any(table.scan_below(1001))


def test_progress_comes_back_and_says_what_was_delivered(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "progress.json")
    assert file.load() == Progress(0, 0, 0)
    file.write(Progress(5, 9, 1000))
    again = ProgressFile(tmp_path / "progress.json").load()
    assert again == Progress(5, 9, 1000)
    assert again.has_delivered(999, 8)
    assert not again.has_delivered(1000, 8)
    assert not again.has_delivered(999, 9)
