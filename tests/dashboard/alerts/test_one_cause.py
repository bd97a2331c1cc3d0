"""One cause is one alert: what a check and a rule both find is the rule's, with what people noted before."""

from __future__ import annotations

from dataclasses import replace

from asgiref.sync import sync_to_async

from dashboard.alerts import handling
from dashboard.alerts.rules import changes
from dashboard.alerts.watch import AlertWatch
from dashboard.models.alerts import AlertDelivery, AlertRow, AlertRule
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot, Stored, WatchedGroup, board
from dashboard.status.verdict import judge
from tests.dashboard.alerts.menu import waiting_in_menu

NOW = 1_700_000_000.0
FACTS = BrokerFacts("broker-a", "a", NOW, in_rate=1.0, disk_ratio=0.5)
FINE = Snapshot(NOW, "n", None, (BrokerState("broker-a", "a", FACTS),), (), None)
BEHIND = replace(FINE, groups=(WatchedGroup("orders-mail", 17105, 24 * 60_000, 2, NOW),))
DEAD = replace(FINE, stored=Stored(9, 1, NOW, dead_letters=(("orders", 5), ("mails", 2))))


async def look(watch: AlertWatch, snapshot: Snapshot, *seconds: int) -> None:
    for second in seconds:
        at = NOW + second
        brokers = (replace(snapshot.brokers[0], facts=replace(FACTS, at=at)),)
        board.put(replace(snapshot, at=at, brokers=brokers, open_of_rules=board.open_of_rules))
        await watch.look()
    board.snapshot = replace(board.snapshot or snapshot, open_of_rules=board.open_of_rules)


async def rows() -> list[tuple[str, str, bool]]:
    """Subject, kind of the rule ("" for a check's), and whether it is open."""
    found = AlertRow.objects.select_related("rule").order_by("pk")
    return [(row.subject, row.rule.kind if row.rule else "", row.ended_at is None) async for row in found]


async def test_a_rule_goes_on_with_the_alert_that_a_check_opened(transactional_db: None) -> None:
    watch = AlertWatch(board)
    await look(watch, BEHIND, 0, 1, 2, 3, 4)
    assert await rows() == [("group orders-mail", "", True)] and waiting_in_menu() == 1
    await sync_to_async(handling.acknowledge)(await AlertRow.objects.aget(), "ada")
    await look(watch, BEHIND, *range(5, 40))
    assert await rows() == [("orders-mail", "group-behind", True)] and waiting_in_menu() == 0
    row = await AlertRow.objects.aget()
    assert (row.acknowledged_by, row.begun_at.timestamp()) == ("ada", NOW)
    assert (None, "group orders-mail") in board.acknowledged, "so the Overview says it, too"
    assert await AlertDelivery.objects.acount() == 0
    await look(watch, FINE, *range(40, 200, 5))
    assert await rows() == [("orders-mail", "group-behind", False)]


async def test_dead_letters_are_told_once_for_each_group(transactional_db: None) -> None:
    watch = AlertWatch(board)
    await look(watch, DEAD, *range(30))
    assert sorted(await rows()) == [("mails", "dead-letters", True), ("orders", "dead-letters", True)]
    assert waiting_in_menu() == 2


async def test_the_check_tells_it_while_no_rule_tells_all_of_it(transactional_db: None) -> None:
    watch = AlertWatch(board)
    await look(watch, FINE, 0)
    await AlertRule.objects.filter(kind="dead-letters").aupdate(pattern="ord*")
    changes.note()
    await look(watch, DEAD, *range(1, 10))
    assert sorted(await rows()) == [("dead letters", "", True), ("orders", "dead-letters", True)]
    await AlertRule.objects.filter(kind="dead-letters").aupdate(pattern="")
    changes.note()
    await look(watch, DEAD, 10)
    assert ("dead letters", "", False) in await rows() and waiting_in_menu() == 2
    await AlertRule.objects.filter(kind="dead-letters").aupdate(is_on=False)
    changes.note()
    await look(watch, DEAD, *range(11, 20))
    assert [row for row in await rows() if row[2]] == [("dead letters", "", True)] and waiting_in_menu() == 1


async def test_alerts_of_several_rules_about_one_group_are_one_line_of_the_overview(transactional_db: None) -> None:
    watch = AlertWatch(board)
    [group] = BEHIND.groups
    await look(watch, replace(BEHIND, groups=(replace(group, members=0, alone_since=NOW),)), *range(70))
    kinds = {kind for subject, kind, is_open in await rows() if subject == "orders-mail" and is_open}
    assert kinds == {"group-behind", "group-alone"}, "each rule has channels of its own"
    verdict = judge(replace(board.snapshot or BEHIND, at=NOW + 70))
    assert [problem.title for problem in verdict.problems] == [verdict.sentence]
    assert verdict.sentence == "orders-mail has no members"


async def test_an_alert_that_only_a_rule_opened_is_a_line_of_the_overview(transactional_db: None) -> None:
    watch = AlertWatch(board)
    group = WatchedGroup("orders-mail", 90, 900, 2, NOW, rising_since=NOW - 700)
    await look(watch, replace(FINE, groups=(group,)), *range(3))
    [line] = judge(replace(board.snapshot or FINE, alerts_of_rules=board.alerts_of_rules)).problems
    assert (line.title, line.is_acknowledged) == ("A group's lag is growing: orders-mail", False)
    await sync_to_async(handling.acknowledge)(await AlertRow.objects.aget(), "ada")
    await look(watch, replace(FINE, groups=(group,)), 3)
    assert board.alerts_of_rules[0].is_acknowledged
