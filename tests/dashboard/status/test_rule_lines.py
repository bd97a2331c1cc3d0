"""Alerts that only rules opened are lines of the Overview like those of checks."""

from __future__ import annotations

from dataclasses import replace

from appliance.settings.alert_names import RuleKind
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot, WatchedGroup
from dashboard.status.check import Check, Level
from dashboard.status.verdict import OF_RULES_MAX, Verdict, judge

NOW = 10_000.0
FACTS = BrokerFacts("broker-a", "a", NOW, in_rate=1.0, disk_ratio=0.5)
CALM = Snapshot(NOW, "n", None, (BrokerState("broker-a", "a", FACTS),), (), None)
BEHIND = WatchedGroup("orders-mail", 17105, 24 * 60_000, 2, NOW)


def alert(level: Level, subject: str, *, is_acknowledged: bool = False, kind: RuleKind = RuleKind.GROUP_LAG) -> Check:
    named = f"1: {subject}"
    return Check(
        level, f"Lag: {subject}", "much", name=named, link="/alerts", rules=(kind,), about=(subject,),
        is_acknowledged=is_acknowledged,
    )  # fmt: skip


def judged(
    *alerts: Check, groups: tuple[WatchedGroup, ...] = (), acknowledged: frozenset[str] = frozenset()
) -> Verdict:
    return judge(replace(CALM, alerts_of_rules=alerts, groups=groups, acknowledged=acknowledged))


def test_an_alert_of_a_rule_is_no_all_good_and_has_its_own_level() -> None:
    for level in (Level.WARN, Level.BAD):
        verdict = judged(alert(level, "billing"))
        assert (verdict.level, verdict.sentence, verdict.link) == (level, "Lag: billing", "/alerts")


def test_the_worst_is_the_sentence_whichever_found_it_and_all_are_counted() -> None:
    mild = judged(alert(Level.WARN, "billing"), groups=(BEHIND,))
    assert mild.sentence == "orders-mail is behind, and 1 more"
    bad = judged(alert(Level.WARN, "a"), alert(Level.BAD, "billing"), groups=(BEHIND,))
    assert (bad.level, bad.sentence) == (Level.BAD, "Lag: billing, and 2 more")
    assert [problem.title for problem in bad.problems] == ["Lag: billing", "orders-mail is behind", "Lag: a"]


def test_what_a_check_names_is_no_second_line() -> None:
    verdict = judged(alert(Level.WARN, "orders-mail"), groups=(BEHIND,))
    assert verdict.sentence == "orders-mail is behind" and len(verdict.problems) == 1
    other = judged(alert(Level.WARN, "orders-mail", kind=RuleKind.GROUP_LEASE), groups=(BEHIND,))
    assert len(other.problems) == 2, "a check of a group does not speak of leases"


def test_what_is_acknowledged_is_told_after_what_is_not() -> None:
    known = alert(Level.BAD, "billing", is_acknowledged=True)
    assert judged(known).sentence == "Lag: billing"
    verdict = judged(known, groups=(BEHIND,))
    assert (verdict.level, verdict.sentence) == (Level.WARN, "orders-mail is behind, and 1 more")
    both = judged(alert(Level.WARN, "a"), groups=(BEHIND,), acknowledged=frozenset({"group orders-mail"}))
    assert both.sentence == "Lag: a, and 1 more" and both.problems[1].is_acknowledged


def test_of_very_many_alerts_some_are_lines_and_all_are_counted() -> None:
    verdict = judged(*(alert(Level.WARN, f"g{number}") for number in range(OF_RULES_MAX + 30)))
    assert len(verdict.problems) == OF_RULES_MAX
    assert verdict.sentence == f"Lag: g0, and {OF_RULES_MAX + 29} more"
