"""The journal of leases: what a start makes of it, whole, torn or damaged."""

from __future__ import annotations

import asyncio
import os
import threading
import zlib
from pathlib import Path

import pytest

from appliance.broker.pop import journal as journals
from appliance.broker.pop.journal import Journal, Record
from appliance.broker.pop.lease_book import LeaseBook, still_true
from appliance.broker.pop.leases import Key
from gantrymq.errors import MessageRejected
from tests.waiting import until

KEY = Key("g", "orders", 0)


class Table:
    """The table of consumer offsets."""

    def __init__(self) -> None:
        self.offsets: dict[Key, int] = {}

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self.offsets[Key(group, topic, queue_id)] = offset

    def query(self, group: str, topic: str, queue_id: int) -> int:
        return self.offsets.get(Key(group, topic, queue_id), -1)


def book_with(folder: Path) -> tuple[LeaseBook, Journal, Table]:
    """A book with messages out, and its journal on disk."""
    table = Table()
    journal = Journal(folder / "pop.journal", lambda: book.records())
    book = LeaseBook(table, journal.append)
    journal.on_kept = book.kept
    journal.open()
    book.hand_out(KEY, [5, 6, 8], 9, 1000, 61_000)
    book.end(KEY, [6])
    book.move(KEY, 8, 90_000)
    return book, journal, table


def read_again(folder: Path) -> tuple[LeaseBook, Journal]:
    journal = Journal(folder / "pop.journal", list)
    book = LeaseBook(Table(), lambda record: None)
    for record in journal.read():
        if not journal.is_damaged:
            book.apply(record)
    return book, journal


def state(book: LeaseBook) -> list[Record]:
    return sorted(book.snapshot(key) for key in book.queues)


def test_the_records_make_the_same_book_again(tmp_path: Path) -> None:
    book, _journal, table = book_with(tmp_path)
    again, _ = read_again(tmp_path)
    assert state(again) == state(book)
    assert (again.next_due_ms(), again.count, table.query(*KEY)) == (61_000, 2, 5)


def test_a_closed_journal_is_short_and_says_the_same(tmp_path: Path) -> None:
    book, journal, _table = book_with(tmp_path)
    journal.close()
    again, _ = read_again(tmp_path)
    assert state(again) == state(book)
    assert len(journal.path.read_bytes().splitlines()) == 1


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_end_is_left_out(tmp_path: Path, cut: int) -> None:
    _book, journal, _table = book_with(tmp_path)
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[:-cut])
    again, found = read_again(tmp_path)
    lines = data[:-cut].count(b"\n")
    assert not found.is_damaged
    assert again.count == {3: 2, 2: 2, 1: 3}[lines]


DAMAGE = {
    "a byte is another": lambda line: line[:20] + bytes([line[20] ^ 1]) + line[21:],
    "the checksum is another": lambda line: b"00000000" + line[8:],
    "the line is empty": lambda line: b"",
    "the line is zeros": lambda line: bytes(len(line)),
    "half of it is missing": lambda line: line[: len(line) // 2],
    "it is no JSON": lambda line: b"%08x [" % zlib.crc32(b"["),
    "it is no list": lambda line: b"%08x {}" % zlib.crc32(b"{}"),
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("number", [0, 1])
def test_damage_before_the_end_makes_all_leases_doubtful(tmp_path: Path, what: str, number: int) -> None:
    _book, journal, _table = book_with(tmp_path)
    lines = journal.path.read_bytes().splitlines()
    lines[number] = DAMAGE[what](lines[number])
    journal.path.write_bytes(b"\n".join([*lines, b""]))
    again, found = read_again(tmp_path)
    assert found.is_damaged
    assert again.count == 0


async def test_a_long_journal_is_written_anew_while_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "REWRITE_BYTES_MIN", 1000)
    monkeypatch.setattr(journals, "SYNC_S", 0.001)
    book, journal, _table = book_with(tmp_path)
    running = asyncio.create_task(journal.run())
    try:
        offset = 9
        while journal.rewrites < 4:  # the first was the start
            book.hand_out(KEY, [offset], offset + 1, 2000, 95_000)
            book.end(KEY, [offset])
            offset += 1
            await asyncio.sleep(0)
        again, found = read_again(tmp_path)
        assert (state(again), found.is_damaged) == (state(book), False)
    finally:
        running.cancel()


async def test_a_rewrite_that_is_cancelled_ends_before_anything_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, journal, _table = book_with(tmp_path)
    has_begun, may_end = threading.Event(), threading.Event()

    def fsync(_descriptor: int) -> None:
        has_begun.set()
        may_end.wait()

    monkeypatch.setattr(os, "fsync", fsync)
    rewriting = asyncio.create_task(journal.rewrite())
    await until(has_begun.is_set)
    for _ in range(2):  # who hurries cancels again
        rewriting.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    is_ended = rewriting.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await rewriting
    journal.close()
    again, _found = read_again(tmp_path)
    assert (is_ended, state(again)) == (False, state(book))


async def test_what_comes_during_a_rewrite_is_whole_however_little_is_written_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, journal, _table = book_with(tmp_path)
    rewriting = asyncio.create_task(journal.rewrite())
    await asyncio.sleep(0)
    book.move(KEY, 8, 95_000)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    await rewriting
    again, found = read_again(tmp_path)
    assert (state(again), found.is_damaged) == (state(book), False)


async def test_a_rewrite_that_failed_loses_no_offset_of_an_emptied_queue(tmp_path: Path) -> None:
    book, journal, _table = book_with(tmp_path)
    book.end(KEY, [5, 8])
    in_the_way = tmp_path / "pop.journal.tmp"
    in_the_way.mkdir()
    await journal.rewrite()
    in_the_way.rmdir()
    await journal.rewrite()
    assert Journal(journal.path, list).read() == [["at", *KEY, 9]]


def test_a_reset_offset_makes_leases_void(tmp_path: Path) -> None:
    book, _journal, table = book_with(tmp_path)
    table.commit(*KEY, 2)
    assert book.find(KEY, 5, 1000) is None
    assert (book.count, table.query(*KEY)) == (0, 2)


def test_a_deleted_group_leaves_no_offset_behind(tmp_path: Path) -> None:
    book, _journal, table = book_with(tmp_path)
    table.offsets.clear()
    assert book.queue(KEY) is None
    assert (book.count, table.offsets) == (0, {})


def test_a_cut_log_takes_its_leases(tmp_path: Path) -> None:
    book, _journal, table = book_with(tmp_path)
    book.cut(lambda topic, queue_id: 6)
    assert (list(book.queues[KEY].leases), book.queues[KEY].read_offset, table.query(*KEY)) == ([5], 6, 5)


def test_a_group_that_has_nothing_out_is_not_beyond_a_cut_log(tmp_path: Path) -> None:
    book, _journal, table = book_with(tmp_path)
    book.end(KEY, [5, 8])
    book.cut(lambda topic, queue_id: 6)
    assert table.query(*KEY) == 6


def closed_and_read(journal: Journal, table: Table) -> tuple[LeaseBook, Table]:
    """A book made of a closed journal, over a table that the broker has on disk."""
    journal.close()
    stored = Table()
    stored.offsets = dict(table.offsets)
    book = LeaseBook(stored, lambda record: None)
    for record in journal.read():
        book.apply(record)
    return book, stored


def test_an_offset_that_was_reset_survives_a_clean_restart(tmp_path: Path) -> None:
    _book, journal, table = book_with(tmp_path)
    table.commit(*KEY, 2)
    again, stored = closed_and_read(journal, table)
    assert (again.count, stored.query(*KEY)) == (0, 2)


def test_a_group_that_was_deleted_has_no_offset_after_a_clean_restart(tmp_path: Path) -> None:
    _book, journal, table = book_with(tmp_path)
    table.offsets.clear()
    again, stored = closed_and_read(journal, table)
    assert (again.count, stored.offsets) == (0, {})


def test_nothing_is_leased_to_a_group_whose_offset_has_no_room() -> None:
    class FullTable(Table):
        def commit(self, *_: object) -> None:
            raise MessageRejected("too many offsets are kept")

    book = LeaseBook(FullTable(), lambda record: None)
    with pytest.raises(MessageRejected):
        book.hand_out(KEY, [0], 1, 1000, 61_000)
    assert (book.queues, book.count, book.next_due_ms()) == ({}, 0, None)


def test_what_was_recorded_of_a_group_before_it_left_counts_no_longer() -> None:
    mode, left = ["mode", "orders", "g", "PULL", 0], ["left", *KEY]
    again, of_another = ["out", *KEY, [4], 5, 1, 2, False, ""], ["at", "other", "orders", 0, 1]
    assert list(still_true([["at", *KEY, 2], mode, of_another, left, again])) == [mode, of_another, again]


@pytest.mark.parametrize(
    "what", ["it stands where records leave it", "it was set since", "it was set back to there", "it pops again"]
)
def test_a_group_is_left_to_the_file_only_as_it_was_seen(tmp_path: Path, what: str) -> None:
    book, journal, table = book_with(tmp_path)
    book.end(KEY, [5, 8])
    ((_key, seen),) = book.emptied()
    assert not book.has_moved(KEY, seen)
    if what != "it stands where records leave it":
        table.commit(*KEY, 20)
    if what == "it was set since":
        book.note_set(KEY)
        table.commit(*KEY, 30)
    elif what == "it was set back to there":  # no record is new, and the file may say 20
        table.commit(*KEY, seen)
        book.note_set(KEY)
        table.commit(*KEY, seen + 1)
    elif what == "it pops again":
        book.hand_out(KEY, [20], 21, 1000, 61_000)
    book.leave(KEY, seen)
    assert ["left", *KEY] not in journal.read()
