"""When an alert of a rule opens and when it is over: hysteresis, what is unknown, what is gone, restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from appliance.settings.alert_names import RuleKind
from dashboard.alerts.alert import ADOPTED_S, Alert, Rule
from dashboard.alerts.kinds import GONE_S, KINDS
from dashboard.alerts.rule_alerts import OPEN_MAX, RuleAlerts
from dashboard.status.board import Snapshot, WatchedGroup
from dashboard.status.check import Check, Level

BEHIND = Rule(1, "behind", "group-behind", "", threshold=300, clear=240, for_s=10, clear_s=60, level=1)
FULL = Rule(2, "full", "disk-full-in", "", threshold=6, clear=8, for_s=0, clear_s=0, level=2)


def told(book: RuleAlerts, rule: Rule, readings: dict[str, float | None], *seconds: float) -> list[str]:
    """Note the same readings at each second; the subjects that ring then."""
    for at in seconds:
        book.note([rule], {rule.kind: readings}, at)
    return sorted(subject for _, subject in book.open)


def test_it_rings_after_it_lasted_and_says_since_when() -> None:
    book = RuleAlerts()
    assert told(book, BEHIND, {"g": 300.0}, 0, 9) == []
    assert told(book, BEHIND, {"g": 301.0}, 10) == ["g"]
    [alarm] = book.open.values()
    assert (alarm.begun_at, alarm.title) == (0, "behind: g")
    assert alarm.text.startswith("5\u202fmin; the alert opens at or above 5")
    told(book, BEHIND, {"g": 720.0}, 11)
    assert alarm.text.startswith("5\u202fmin;") and alarm.present.startswith("12\u202fmin; the alert opens at or above")
    told(book, BEHIND, {"g": 60.0}, 12)
    assert alarm.present.startswith("1\u202fmin;"), "also once it is no longer beyond the threshold"


def test_an_alert_is_as_bad_as_the_check_of_the_same_thing_and_another_one_once_it_is_worse() -> None:
    rule, book = replace(FULL, kind="etcd-full", threshold=5, clear=0), RuleAlerts()
    levels = []
    for second, level in enumerate([Level.WARN, Level.WARN, Level.BAD, Level.BAD]):
        book.note([rule], {rule.kind: {"a": 10.0}}, second, levels={rule.kind: {"a": level}})
        book.take_rules([rule])
        levels.append(book.open[rule.pk, "a"].level)
    assert levels == [Level.WARN, Level.WARN, Level.BAD, Level.BAD]
    assert [(alert.level, alert.ended_at) for alert in book.ended] == [(Level.WARN, 2)], "who acknowledged that is told"
    mild = replace(rule, level=1)
    book.take_rules([mild])
    assert book.open[rule.pk, "a"].level == Level.WARN, "a rule may ask for less"


def test_an_alert_is_no_worse_because_its_rule_was_before_a_restart() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 0, 10)
    again = RuleAlerts()
    again.adopt([replace(book.open[BEHIND.pk, "g"])], 20)
    strict = replace(BEHIND, level=2)
    again.note([strict], {strict.kind: {"g": 400.0}}, 21, levels={strict.kind: {}})
    assert list(again.open) == [(BEHIND.pk, "g")] and again.ended == []


def test_a_moment_below_the_threshold_begins_the_wait_anew() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 0, 8)
    told(book, BEHIND, {"g": 299.0}, 9)
    assert told(book, BEHIND, {"g": 400.0}, 10, 19) == []
    assert told(book, BEHIND, {"g": 400.0}, 20) == ["g"]


def test_a_value_that_swings_around_the_threshold_rings_once() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 0, 10)
    for second in range(11, 1000):
        told(book, BEHIND, {"g": 290.0 if second % 2 else 310.0}, second)
    assert len(book.open) == 1 and book.ended == []


def test_it_is_over_when_it_was_clear_for_long_enough() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 0, 10)
    assert told(book, BEHIND, {"g": 239.0}, 20, 79) == ["g"]
    assert told(book, BEHIND, {"g": 239.0}, 80) == []
    assert [alarm.ended_at for alarm in book.ended] == [80]


def test_an_open_alert_says_that_its_value_is_not_known_now() -> None:
    """A forecast of a disk was shown for an hour after it was known last."""
    book = RuleAlerts()
    told(book, FULL, {"a": 5.0}, 0)
    told(book, FULL, {"a": 3.85}, 10)
    [alarm] = book.open.values()
    told(book, FULL, {"a": None}, 11, 10 + GONE_S - 1)
    assert alarm.present.startswith("3\u202fh 51\u202fmin;"), "one look without it says nothing"
    told(book, FULL, {"a": None}, 10 + GONE_S)
    assert alarm.present.startswith("not known now; last known: 3\u202fh 51\u202fmin;")
    told(book, FULL, {"a": 2.0}, 11 + GONE_S)
    assert alarm.present.startswith("2\u202fh;") and list(book.open.values()) == [alarm]


def test_one_that_gets_worse_as_it_is_known_again_ends_with_what_was_known() -> None:
    book = RuleAlerts()
    told(book, FULL, {"a": 3.0}, 0)
    told(book, FULL, {"a": None}, GONE_S)
    [alarm] = book.open.values()
    assert alarm.present.startswith("not known now")
    alarm.level -= 1
    book.note([FULL], {FULL.kind: {"a": 1.0}}, GONE_S + 1, levels={FULL.kind: {"a": Level(FULL.level)}})
    assert book.ended == [alarm] and alarm.present.startswith("3\u202fh;")


def test_a_subject_without_a_reading_is_not_known_and_one_the_rule_leaves_out_is() -> None:
    book = RuleAlerts()
    silent = replace(BEHIND, kind="broker-silent", threshold=15, clear=0, for_s=0)
    told(book, silent, {"a": 20.0}, 0)
    [alarm] = book.open.values()
    told(book, silent, {}, GONE_S - 1)
    assert not alarm.is_unknown
    told(book, silent, {}, GONE_S)
    assert alarm.is_unknown
    told(book, silent, {"a": 20.0}, 100)
    assert not alarm.is_unknown
    told(book, replace(silent, pattern="b"), {"a": 20.0}, 100 + GONE_S)
    assert list(book.open.values()) == [alarm] and not alarm.is_unknown


def test_what_is_not_known_neither_rings_nor_ends() -> None:
    book = RuleAlerts()
    assert told(book, BEHIND, {"g": None}, 0, 100) == []
    told(book, BEHIND, {"g": 400.0}, 200, 210)
    assert told(book, BEHIND, {"g": None}, 300, 9999) == ["g"]


def test_a_subject_that_is_gone_is_over_after_a_while_but_a_dead_broker_is_not() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 0, 10)
    assert told(book, BEHIND, {}, 69) == ["g"]
    assert told(book, BEHIND, {}, 71) == []
    silent = replace(BEHIND, kind="broker-silent", threshold=15, clear=0, for_s=0, clear_s=5)
    told(book, silent, {"broker-a": 20.0}, 100)
    assert told(book, silent, {}, 3000) == ["broker-a"]
    assert told(book, silent, {"broker-a": 0.0}, 3001, 3006) == []


@pytest.mark.parametrize("is_adopted", [False, True])
@pytest.mark.parametrize(
    "kind",
    [RuleKind.GROUP_BEHIND, RuleKind.GROUP_LAG, RuleKind.GROUP_ALONE, RuleKind.GROUP_RISING, RuleKind.GROUP_LEASE],
)
def test_what_is_open_of_a_group_is_over_once_it_broadcasts(kind: RuleKind, is_adopted: bool) -> None:
    """No broker knows its places any more, so no value would ever say that it is over."""
    sharing = WatchedGroup(
        "g", 8_000, 900_000, 0, 1000.0, alone_since=0.0, rising_since=0.0, oldest_lease_ms=900_000
    )  # fmt: skip
    casting = WatchedGroup("g", None, None, 1, 1001.0, is_broadcasting=True)
    rule, book = replace(BEHIND, kind=kind, for_s=0), RuleAlerts()

    def note(group: WatchedGroup, at: float) -> list[tuple[int, str]]:
        snapshot = Snapshot(at, "n", None, (), (), None, groups=(group,))
        book.note([rule], {kind: KINDS[kind].read(snapshot)}, at)
        return list(book.open)

    if is_adopted:
        book.adopt([Alert(rule, "g", rule.level, "", "", 1.0, 1.0, row=7)], 1000.0)
    else:
        note(sharing, 1000.0)
    gone_at = 1000.0 + GONE_S + (ADOPTED_S if is_adopted else 0)
    assert note(casting, gone_at - 1) == [(rule.pk, "g")]
    assert note(casting, gone_at) == [] and len(book.ended) == 1


def test_a_rule_may_ring_below_its_threshold() -> None:
    book = RuleAlerts()
    assert told(book, FULL, {"broker-a": float("inf")}, 0) == []
    assert told(book, FULL, {"broker-a": 5.5}, 1) == ["broker-a"]
    assert told(book, FULL, {"broker-a": 7.0}, 2) == ["broker-a"]
    assert told(book, FULL, {"broker-a": 8.0}, 3) == []
    told(book, replace(FULL, clear_s=60), {"broker-a": 5.5}, 4)
    told(book, replace(FULL, clear_s=60), {"broker-a": float("inf")}, 5)
    assert [alert.present.partition(";")[0] for alert in book.open.values()] == ["not filling up"]


def test_a_rule_is_about_the_subjects_of_its_pattern() -> None:
    rule = replace(FULL, kind="group-lag", pattern="orders-*", threshold=1, clear=0)
    assert told(RuleAlerts(), rule, {"orders-a": 5.0, "mail": 5.0}, 0) == ["orders-a"]


def test_a_rule_that_is_off_or_gone_ends_its_alarms() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 0, 10)
    book.note([], {}, 11)
    assert not book.open and len(book.ended) == 1


def test_after_a_restart_an_alarm_goes_on_as_the_same_one() -> None:
    book = RuleAlerts()
    book.adopt([Alert(BEHIND, "g", BEHIND.level, "", "", 1.0, 1.0, row=7, is_told=True)], 1000.0)
    assert told(book, BEHIND, {}, 1010, 1059) == ["g"], "it is scanned again within a minute"
    assert told(book, BEHIND, {"g": 400.0}, 1060, 1061) == ["g"]
    assert [(alarm.row, alarm.is_told) for alarm in book.open.values()] == [(7, True)]


def test_what_opened_it_is_kept_when_it_was_noted_again_before_the_database_told() -> None:
    book = RuleAlerts()
    told(book, BEHIND, {"g": 400.0}, 1000, 1010)
    book.adopt([Alert(BEHIND, "g", BEHIND.level, "", "5 min", 1.0, 1.0, row=7, is_told=True)], 1011.0)
    told(book, BEHIND, {"g": 720.0}, 1012)
    [alarm] = book.open.values()
    assert (alarm.text, alarm.present.partition(";")[0]) == ("5 min", "12\u202fmin")


def test_a_rule_rings_for_so_many_at_most() -> None:
    rule = replace(FULL, kind="group-lag", threshold=1, clear=0)
    assert len(told(RuleAlerts(), rule, {f"g{number}": 5.0 for number in range(OPEN_MAX + 50)}, 0)) == OPEN_MAX


def test_of_brokers_on_one_disk_the_first_has_the_alert() -> None:
    book, beyond = RuleAlerts(), {"a": 5.0, "b": 5.0, "c": 5.0}
    causes = {"a": ("host", "10 GB"), "b": ("host", "10 GB"), "c": ("host", "20 GB")}

    def note(readings: dict[str, float | None], at: float) -> list[str]:
        book.note([FULL], {FULL.kind: readings}, at, {FULL.kind: causes})
        return sorted(subject for _, subject in book.open)

    assert note(beyond, 0) == ["a", "c"]
    check = Check(Level.BAD, "The disk is full", "", "", rules=(FULL.kind,), about=("a", "b"))
    assert [alert.subject for alert in book.saying(check)] == ["a"], "which speaks for both"
    assert [alert.text.rpartition("; ")[2] for alert in book.saying(check)] == ["on the same disk: b"]
    assert note(beyond | {"a": 9.0}, 1) == ["b", "c"], "when it is over at the first, and not at the other"


def test_a_rule_about_one_broker_does_not_wait_for_the_others_on_its_disk() -> None:
    book, only_b = RuleAlerts(), replace(FULL, pattern="b")
    book.note([only_b], {FULL.kind: {"a": 5.0, "b": 5.0}}, 0, {FULL.kind: dict.fromkeys("ab", ("host", "10 GB"))})
    assert [(alert.subject, ";" in alert.text.partition("; ")[2]) for alert in book.open.values()] == [("b", False)]
