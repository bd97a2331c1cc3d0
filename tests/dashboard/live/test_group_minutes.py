"""A minute of groups and brokers: the worst of the looks; the furthest behind where there are too many."""

from __future__ import annotations

from dataclasses import replace

from appliance.reports.samples.kinds import BrokerSample, GroupSample
from dashboard.cluster.group_values import GroupPlace
from dashboard.live.broker_minutes import BrokerMinutes
from dashboard.live.group_minutes import GROUPS_A_MINUTE, GroupMinutes
from dashboard.status.board import Snapshot, WatchedGroup
from tests.dashboard.status.masters import MASTER, seen, state


def snapshot(at: float, *groups: WatchedGroup) -> Snapshot:
    return replace(seen(), at=at, groups=groups)


def test_a_minute_of_a_group_is_made_of_its_looks_each_taken_once() -> None:
    minutes = GroupMinutes()
    place = GroupPlace("orders", "broker-a", 80, 20, 900)
    first = WatchedGroup("g", 30, 1500, 2, 121.0, places=(place,), in_rate=4.0, out_rate=None, last_consumed_ms=7)
    second = WatchedGroup("g", 20, None, 1, 126.0, places=(place,), in_rate=8.0, out_rate=2.0, last_consumed_ms=9)
    partial = WatchedGroup("h", 20, 5, 1, 126.0, is_partial=True)
    for at, look in ((121.2, first), (122.2, first), (126.5, second)):
        assert minutes.add(snapshot(at, look, partial)) == []
    assert minutes.add(snapshot(180.5, second)) == [
        GroupSample(
            at_ms=120_000, group="g", lag=30, behind_seconds=1.5, members=1, consumer_offset=80, end_offset=100,
            in_rate=6.0, out_rate=2.0, last_consumed_ms=9, looks=2,
        )
    ]  # fmt: skip
    assert minutes.add(snapshot(240.5)) == [], "there was no look at it in that minute"


def test_too_many_groups_leave_the_furthest_behind_and_the_first_minute_of_an_hour_has_all() -> None:
    minutes = GroupMinutes()
    count = GROUPS_A_MINUTE + 5
    for begin, kept in ((3_600, count), (3_660, GROUPS_A_MINUTE)):
        groups = [WatchedGroup(f"g{number:04}", 1, number, 1, begin + 1.0) for number in range(count)]
        minutes.add(snapshot(begin + 1.5, *groups))
        rows = minutes.add(snapshot(begin + 60.0))
        assert len(rows) == kept
        assert max(row.behind_seconds or 0 for row in rows) == (count - 1) / 1000


def test_a_minute_of_a_broker_is_made_of_the_seconds_in_which_it_answered() -> None:
    minutes = BrokerMinutes()
    broker = state(MASTER)
    assert broker.facts is not None
    fuller = replace(
        broker, facts=replace(broker.facts, in_rate=7.0, out_rate=None, disk_ratio=0.5, commit_log_bytes=9)
    )
    for at, each in ((120.0, broker), (121.0, fuller), (122.0, replace(broker, why="no answer"))):
        assert minutes.add(replace(seen(each), at=at)) == []
    assert minutes.add(replace(seen(), at=180.0)) == [
        BrokerSample(
            at_ms=120_000, broker=broker.name, in_rate=6.0, out_rate=3.0, disk_ratio=0.5, commit_log_bytes=9, seconds=2
        )
    ]
