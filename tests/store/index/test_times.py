"""Queries between two times, and index files that go with their messages."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from store import MessageStore
from store.index import file as index_file
from store.index.file import IndexFile
from tests.store.conftest import Clock, OpenStore, message, small_config

Result = TypeVar("Result")
STEP_S = 0.7
COUNT = 1000  # two and a half index files


@pytest.fixture
def store(tmp_path: Path, open_store: OpenStore, clock: Clock) -> MessageStore:
    filled = open_store(small_config(tmp_path))
    for number in range(COUNT):
        clock.now += STEP_S
        filled.put_message(message(bytes(100), keys=f"k{number} all"))
    filled.parts.dispatcher.put_pending()
    assert len(filled.parts.index.files) > 3
    return filled


def time_of(store: MessageStore, number: int) -> int:
    return store.store_timestamp("T", 0, number)


def found(store: MessageStore, key: str, begin_ms: int, end_ms: int) -> list[int]:
    """Queue offsets of the messages with the key."""
    buffers = store.query_message("T", key, 64, begin_ms, end_ms).buffers
    return [int.from_bytes(raw[20:28], "big") for raw in buffers]


def drained(steps: Generator[None, None, Result]) -> tuple[int, Result]:
    """How many steps there were before the end, and what came of them."""
    for count in itertools.count():
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
    raise AssertionError("there is an end")


@pytest.mark.parametrize("number", [0, 1, 198, 199, 200, 201, 399, 400, 998, 999])
def test_a_message_is_found_at_its_time_and_not_a_second_away(store: MessageStore, number: int) -> None:
    """The index knows whole seconds: less than one may be told too early, none is missed."""
    at, key = time_of(store, number), f"k{number}"
    assert found(store, key, at, at) == [number]
    assert found(store, key, 0, 1 << 62) == [number]
    assert found(store, key, at - 5000, at) == found(store, key, at, at + 5000) == [number]
    assert found(store, key, at + 1000, 1 << 62) == []
    assert found(store, key, 0, at - 1000) == []


def test_messages_of_a_stretch_of_time_are_found_in_all_files(store: MessageStore) -> None:
    for first, last in ((0, 40), (180, 220), (380, 430), (970, 999)):
        begin, end = time_of(store, first), time_of(store, last)
        places = found(store, "all", begin, end)
        assert places == sorted(places)
        assert set(places) >= set(range(first, last + 1))
        assert all(begin - 1000 < time_of(store, each) < end + 1000 for each in places)


def test_index_files_go_with_their_last_message_and_the_newest_never(store: MessageStore) -> None:
    files = list(store.parts.index.files)
    first, second = files[0], files[1]
    assert store.parts.index.take_expired(first.end_offset) == []
    assert store.parts.index.take_expired(first.end_offset + 1) == [first]
    assert store.parts.index.take_expired(second.begin_offset + 1) == []
    assert store.parts.index.take_expired(1 << 60) == files[1:-1]
    assert store.parts.index.files == files[-1:]
    first.close()
    for file in files[1:-1]:
        file.close()


def test_a_message_with_two_keys_has_both_when_a_file_ends_between_them(store: MessageStore) -> None:
    for file in store.parts.index.files[:-1]:
        number = next(n for n in range(COUNT) if store.consume_queue_units("T", 0, n, 1)[0][0] == file.end_offset)
        at = time_of(store, number)
        assert found(store, f"k{number}", at, at) == [number]
        assert number in found(store, "all", at, at)


@pytest.mark.parametrize("limit", [1, 5, 30])
def test_a_query_returns_the_newest_and_no_more_than_asked_for_from_all_files_together(
    store: MessageStore, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever number of entries the newest file has of them; files behind the last that counts are not read."""
    looked_at: list[IndexFile] = []
    search = IndexFile.search

    def noted(file: IndexFile, *facts: Any) -> Iterator[None]:
        looked_at.append(file)
        return search(file, *facts)

    monkeypatch.setattr(IndexFile, "search", noted)
    for last in (COUNT - 1, 203, 402):  # near files' ends and beginnings
        looked_at.clear()
        search_all = store.parts.index.search(store.parts.queues.slots["T"], "all", limit, 0, time_of(store, last))
        _, offsets = drained(search_all)
        units = store.consume_queue_units("T", 0, 0, COUNT) or []
        places = {unit.physical_offset: number for number, unit in enumerate(units)}
        for start in range(len(units), COUNT, 100):
            more = store.consume_queue_units("T", 0, start, 100)
            places |= {unit.physical_offset: start + number for number, unit in enumerate(more)}
        assert len(offsets) == limit
        numbers = [places[offset] for offset in offsets]
        assert numbers == sorted(numbers, reverse=True)
        assert last <= numbers[0] <= last + 1  # the index knows whole seconds
        oldest = looked_at[-1]
        assert oldest.begin_offset <= offsets[-1] <= oldest.end_offset


def test_a_key_of_many_messages_is_searched_in_steps(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are passed over for the first one: others have a turn meanwhile."""
    monkeypatch.setattr(index_file, "ENTRIES_A_STEP", 10)
    first = time_of(store, 0)
    steps, result = drained(store.query_steps("T", "all", 64, first, first))
    assert steps > 10
    assert result.buffers[0][20:28] == bytes(8)
    assert drained(store.query_steps("T", "k0", 64, first, first))[0] == 0


def test_index_files_that_go_during_a_search_are_left_out(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "ENTRIES_A_STEP", 10)
    files = store.parts.index.files
    newest_of_first = files[0].entries // 2 - 2  # two keys a message
    until = time_of(store, newest_of_first)
    steps = store.query_steps("T", "all", 1000, 0, until)
    next(steps)
    for gone in store.parts.index.take_expired(files[-1].end_offset):
        gone.delete()
    assert len(drained(steps)[1].buffers) <= 10, "of the first step"
