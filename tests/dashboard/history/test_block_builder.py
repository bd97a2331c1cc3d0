"""The history's book: what a minute and an hour keep, gaps, restarts, clocks."""

from __future__ import annotations

import math
from array import array

from dashboard.history.block_builder import HOUR, MINUTE, SECOND, HistoryBook, Key

NOON = 1_700_000_000 // 86_400 * 86_400 + 12 * HOUR


def values(book: HistoryBook, step: int, series: str) -> dict[int, float]:
    """What is to be written of a series, by time."""
    found = {}
    for key, block in book.due(10_000):
        if (key.step_s, key.series) == (step, series):
            for index, value in enumerate(array("f", block)):
                if not math.isnan(value):
                    found[key.start + index * step] = value
    return found


def test_a_minute_keeps_the_mean_of_a_rate_and_the_most_of_a_lag() -> None:
    book = HistoryBook()
    for second, (rate, lag) in enumerate([(10.0, 1.0), (20.0, 7.0), (60.0, 2.0)]):
        book.add({"in": rate, "group-lag:g": lag}, NOON + second)
    book.add({}, NOON + MINUTE)
    assert values(book, MINUTE, "in") == {NOON: 30.0}
    assert values(book, MINUTE, "group-lag:g") == {NOON: 7.0}
    assert values(book, SECOND, "in") == {NOON: 10.0, NOON + 1: 20.0, NOON + 2: 60.0}
    assert values(book, SECOND, "group-lag:g") == {}


def test_what_was_not_known_is_a_gap_and_no_zero() -> None:
    book = HistoryBook()
    book.add({"in": 5.0}, NOON)
    book.add({}, NOON + MINUTE)
    book.add({"in": 7.0}, NOON + 2 * MINUTE)
    book.add({}, NOON + 3 * MINUTE)
    assert values(book, MINUTE, "in") == {NOON: 5.0, NOON + 2 * MINUTE: 7.0}


def test_an_hour_is_made_of_its_minutes_also_of_those_before_a_restart() -> None:
    first = HistoryBook()
    first.add({"in": 10.0}, NOON)
    first.flush()
    assert values(first, HOUR, "in") == {NOON: 10.0}
    second = HistoryBook()
    second.adopt(first.due(100))
    second.add({"in": 30.0}, NOON + 5 * MINUTE)
    second.flush()
    assert values(second, MINUTE, "in") == {NOON: 10.0, NOON + 5 * MINUTE: 30.0}
    assert values(second, HOUR, "in") == {NOON: 20.0}


def test_a_clock_that_was_set_back_changes_nothing_that_is_past() -> None:
    book = HistoryBook()
    book.add({"in": 10.0}, NOON + MINUTE)
    book.add({"in": 99.0}, NOON)
    book.add({}, NOON + 2 * MINUTE)
    assert values(book, MINUTE, "in") == {NOON + MINUTE: 10.0}


def test_what_is_written_and_over_leaves_the_memory() -> None:
    book = HistoryBook()
    book.add({"in": 1.0}, NOON)
    book.add({"in": 2.0}, NOON + 2 * HOUR)
    due = book.due(100)
    book.written(due)
    assert book.due(100) == []
    assert {(key.step_s, key.start) for key in book.held} == {(SECOND, NOON + 2 * HOUR)}


def test_what_changed_while_it_was_written_stays_to_be_written() -> None:
    book = HistoryBook()
    book.add({"in": 1.0}, NOON)
    book.add({"in": 2.0}, NOON + MINUTE)
    due = book.due(100)
    book.add({"in": 3.0}, NOON + 2 * MINUTE)
    book.written(due)
    assert Key("in", MINUTE, NOON) in {key for key, _ in book.due(100)}


def test_a_block_of_another_length_is_left_alone() -> None:
    book = HistoryBook()
    book.adopt([(Key("in", MINUTE, NOON), b"1234")])
    book.add({"in": 1.0}, NOON)
    book.flush()
    assert values(book, MINUTE, "in") == {NOON: 1.0}
