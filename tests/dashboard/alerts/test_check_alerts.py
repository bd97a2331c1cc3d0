"""When a check opens an alert, and when its row is written."""

from __future__ import annotations

import pytest

from dashboard.alerts.alert import ADOPTED_S, Alert
from dashboard.alerts.check_alerts import OPEN_MAX, QUIET_S, SEEN_EACH_S, SHORTEST_S, CheckAlerts
from dashboard.status.check import Check, Level


def problem(evidence: str = "e", level: Level = Level.WARN, name: str = "disk") -> Check:
    return Check(level, f"{name} {evidence}", evidence, "action", name)


def test_what_lasts_is_written_once_it_lasts_and_again_when_it_is_gone() -> None:
    book = CheckAlerts()
    for second in range(int(SHORTEST_S)):
        book.note([problem()], 100.0 + second)
        assert book.due(100.0 + second) == []
    book.note([problem()], 100.0 + SHORTEST_S)
    [alert] = book.due(100.0 + SHORTEST_S)
    book.written(alert, 7, 100.0 + SHORTEST_S)
    assert book.due(100.0 + SHORTEST_S) == []
    gone_at = 100.0 + SHORTEST_S + QUIET_S
    book.note([], gone_at)
    [ended] = book.due(gone_at)
    assert (ended.begun_at, ended.ended_at, ended.row) == (100.0, 100.0 + SHORTEST_S, 7)
    book.written(ended, 7, gone_at)
    assert book.due(gone_at + 1000.0) == []


def test_what_comes_and_goes_at_once_is_none() -> None:
    book = CheckAlerts()
    book.note([problem(), problem(level=Level.GOOD, name="fine")], 1.0)
    book.note([], 1.0 + QUIET_S)
    assert book.due(100.0) == []


def test_what_comes_back_soon_is_the_same_one() -> None:
    book = CheckAlerts()
    for at in (0.0, 5.0, 14.0):  # never gone for as long as it would have to be
        book.note([problem()], at)
        book.note([], at + 1.0)
    [alert] = book.due(14.0)
    assert (alert.begun_at, alert.seen_at, alert.ended_at) == (0.0, 14.0, None)


def test_its_worst_moment_is_kept_and_how_it_began() -> None:
    book = CheckAlerts()
    book.note([problem("75 %")], 0.0)
    book.note([problem("80 %")], SHORTEST_S)
    [alert] = book.due(SHORTEST_S)
    book.written(alert, 1, SHORTEST_S)
    book.note([problem("91 %", Level.BAD)], 6.0)
    assert book.due(6.0) == [alert]  # worse is written at once
    book.note([problem("76 %")], 7.0)
    assert (alert.text, alert.present, alert.worst, alert.level) == ("75 %", "76 %", "91 %", Level.BAD)
    assert alert.title == "disk 91 %"


@pytest.mark.parametrize("is_still_there", [True, False])
def test_a_process_goes_on_with_what_the_last_one_left_open(is_still_there: bool) -> None:
    old = Alert(None, "disk", Level.BAD, "t", "first", 10.0, 50.0, worst="w", row=3, written_at=50.0)
    book = CheckAlerts()
    book.adopt([old], 500.0)
    book.note([], 500.0 + ADOPTED_S)  # not everything is looked at again yet
    assert all(alert.ended_at is None for alert in book.due(500.0 + ADOPTED_S))
    after = 500.0 + ADOPTED_S + QUIET_S
    book.note([problem(level=Level.BAD)] if is_still_there else [], after)
    [alert] = book.due(after + SEEN_EACH_S)
    assert (alert.row, alert.begun_at) == (3, 10.0)
    assert alert.ended_at == (None if is_still_there else 50.0)


def test_a_flood_of_problems_is_bounded_and_the_worst_are_kept() -> None:
    book = CheckAlerts()
    many = [problem(name=f"warn-{number}") for number in range(2 * OPEN_MAX)]
    for at in (0.0, SHORTEST_S):
        book.note([*many, problem(level=Level.BAD, name="bad")], at)
    due = book.due(SHORTEST_S)
    assert len(due) == OPEN_MAX and "bad" in {alert.subject for alert in due}
