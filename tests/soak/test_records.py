"""What is made of the lines that members wrote: a loss, a wrong order and a repeat without a reason are seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.errors import ConnectError, GantryError, RequestTimeout, ResponseError
from tests.soak.records import Ledger, Progress, judge
from tests.soak.retries import may_be_stored

IN_ORDER = ["A t 0 one 1.0", "M key 0 t 0 0 one", "M key 1 t 0 1 one", "M key 2 t 0 2 one"]


def test_what_came_once_and_in_order_is_right() -> None:
    verdict = judge(IN_ORDER, {"key": 3}, (), is_ordered=True)
    assert (verdict.messages, verdict.lost, verdict.out_of_order, verdict.unexplained) == (3, [], [], [])


def test_a_missing_number_is_lost() -> None:
    assert judge(IN_ORDER, {"key": 4, "other": 1}, (), is_ordered=True).lost == [("key", 3), ("other", 0)]
    assert judge(IN_ORDER[:2] + IN_ORDER[3:], {"key": 3}, (), is_ordered=False).lost == [("key", 1)]


def test_a_number_that_comes_after_a_later_one_is_out_of_order_where_there_is_one() -> None:
    lines = [IN_ORDER[0], IN_ORDER[1], IN_ORDER[3], IN_ORDER[2]]
    assert judge(lines, {"key": 3}, (), is_ordered=True).out_of_order == [("key", 1)]
    assert judge(lines, {"key": 3}, (), is_ordered=False).out_of_order == []


def test_a_repeat_needs_a_reason() -> None:
    again, by_another, elsewhere = "M key 1 t 0 1 one", "M key 1 t 0 1 two", "M key 1 t 0 3 one"
    for is_ordered in (True, False):
        assert judge([*IN_ORDER, again], {}, (), is_ordered=is_ordered).unexplained == [again]
        assert judge([*IN_ORDER, "A t 1 one 1.9", again], {}, (), is_ordered=is_ordered).unexplained == [again]
        for assigned, line in (("A t 0 one 1.9", again), ("A t 0 two 1.9", by_another)):
            handed_over = judge([*IN_ORDER, assigned, line], {}, (), is_ordered=is_ordered)
            assert (handed_over.handed_over, handed_over.unexplained) == (1, [])
    assert judge([*IN_ORDER, elsewhere], {}, (), is_ordered=True).unexplained == [elsewhere]
    stored_twice = judge([*IN_ORDER, elsewhere], {}, {("key", 1)}, is_ordered=True)
    assert (stored_twice.stored_twice, stored_twice.unexplained) == (1, [])


def test_two_readers_may_overlap() -> None:
    """The member that gives a queue up finishes what it holds, while the new one reads from the offset written."""
    lines = [IN_ORDER[0], "A t 0 two 1.5", "M key 0 t 0 0 two", "M key 0 t 0 0 one"]
    assert judge(lines, {"key": 1}, (), is_ordered=True).handed_over == 1


def test_progress_grows_with_the_file_and_waits_for_gaps(tmp_path: Path) -> None:
    path = tmp_path / "group.txt"
    progress = Progress(path)
    assert not progress.has({"key": 1})
    ledger = Ledger(path)
    ledger.assigned("t", 0, 1.0)
    for number in (0, 2):
        ledger.consumed(f"key {number}", "t", 0, number)
    assert progress.has({"key": 1})
    assert not progress.has({"key": 3})
    ledger.consumed("key 1", "t", 0, 1)
    ledger.close()
    assert progress.has({"key": 3})


def with_note(failure: GantryError) -> GantryError:
    failure.add_note("the last of 2 tries")
    return failure


@pytest.mark.parametrize(
    ("failure", "is_open"),
    [
        (ConnectError("a:1", "lost"), True),
        (RequestTimeout("a:1", 310, 1.0), True),
        (ResponseError(2, "busy"), False),
        (with_note(ResponseError(2, "busy")), True),
    ],
)
def test_a_send_that_was_only_refused_explains_no_double(failure: GantryError, is_open: bool) -> None:
    assert may_be_stored(failure) is is_open
