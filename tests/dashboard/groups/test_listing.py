"""The list of groups: order, values, sparklines; and that thousands cost little."""

from __future__ import annotations

from dashboard.cluster import units
from dashboard.groups.listing import SORTS, GroupRow, metrics_of, rows_of, sorted_rows, spark_points
from dashboard.status.board import Stored, WatchedGroup

NOW = 1000.0


def group(name: str, lag: int | None, lag_ms: int | None = None, **facts: object) -> WatchedGroup:
    return WatchedGroup(name, lag, lag_ms, 1, NOW, **facts)  # type: ignore[arg-type]


def names(rows: list[GroupRow]) -> list[str]:
    return [row.name for row in rows]


def test_what_is_not_known_is_at_the_end_whichever_way() -> None:
    rows = rows_of([group("b", 5), group("new", None), group("a", 5), group("far", 9)], None)
    assert names(sorted_rows(rows, "lag", down=True)) == ["far", "a", "b", "new"]
    assert names(sorted_rows(rows, "lag", down=False)) == ["a", "b", "far", "new"]
    assert names(sorted_rows(rows, "name", down=True)) == ["new", "far", "b", "a"]
    for sort in SORTS:
        assert len(sorted_rows(rows, sort, down=False)) == 4, sort


def test_states_that_need_a_person_are_first() -> None:
    rows = rows_of(
        [group("fine", 0), group("held", 9, is_suspended=True), WatchedGroup("new", None, None, None, 0)], None
    )
    assert names(sorted_rows(rows, "state", down=False)) == ["held", "fine", "new"]


def test_dead_letters_are_unknown_until_they_are_counted() -> None:
    groups = [group("a", 0), group("b", 0)]
    assert [row.dead_letters for row in rows_of(groups, None)] == [None, None]
    assert [row.dead_letters for row in rows_of(groups, Stored(9, 2, NOW, (), (("b", 7),)))] == [0, 7]


def test_a_value_that_lacks_a_broker_says_so_and_one_never_seen_is_none() -> None:
    rows = rows_of([group("half", 5, 1500, is_partial=True, why="without broker-b"),
                    WatchedGroup("new", None, None, None, 0.0)], None)  # fmt: skip
    values = metrics_of(rows, NOW).values
    assert values["row.half.lag"].text == units.AT_LEAST + "5" and values["row.half.lag"].why == "without broker-b"
    assert values["row.half.behind"].text.startswith(units.AT_LEAST)
    assert (values["row.new.lag"].text, values["row.new.lag"].why) == (units.UNKNOWN, "not checked yet")


def test_a_sparkline_begins_at_zero_and_ends_now() -> None:
    assert spark_points(((1.0, 5),)) == ""
    assert spark_points(((0.0, 0), (5.0, 5), (10.0, 10))) == "2.0,20.0 42.0,11.0 82.0,2.0"
    assert spark_points(((0.0, 0), (10.0, 0))) == "2.0,20.0 82.0,20.0"
    [row] = rows_of([group("g", 10, history=((NOW - 10.0, 40), (NOW, 10)))], None)
    assert row.spark_text == f"Lag shrinking: from 40 to 10 in 10{units.THIN}s"
