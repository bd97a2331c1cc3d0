"""A minute of groups and brokers: the worst of the looks; the furthest behind where there are too many. A minute of
slaves: the worst of its seconds, by the slave's own name.
"""

from __future__ import annotations

from dataclasses import replace

from appliance.reports.samples.kinds import BrokerSample, GroupSample, SlaveSample
from dashboard.cluster.group_values import GroupPlace
from dashboard.live.group_minutes import GROUPS_A_MINUTE, GroupMinutes
from dashboard.live.minutes import BrokerMinutes, SlaveMinutes
from dashboard.status.board import Snapshot, WatchedGroup
from gantrymq.remoting.admin_bodies import SlaveDifference
from tests.dashboard.status.masters import CONNECTION, MASTER, STRANGER, seen, state, telling


def snapshot(at: float, *groups: WatchedGroup) -> Snapshot:
    return replace(seen(), at=at, groups=groups)


def look(at: float, done: int, end: int, *others: GroupPlace, since: float = 1.0) -> WatchedGroup:
    """A look at a group that has consumed up to `done` of a topic."""
    places = (GroupPlace("orders", "broker-a", done, end - done, 0), *others)
    return WatchedGroup("g", end - done, 0, 1, at, places=places, seen_since=since)


def counted(*looks: WatchedGroup) -> list[tuple[int, int | None, int | None, int]]:
    """The minute, what was stored and consumed, and in how many minutes, of each row."""
    minutes = GroupMinutes()
    rows = [row for each in looks for row in minutes.add(snapshot(each.at, each))]
    rows += minutes.add(snapshot(looks[-1].at + 60.0))
    return [(row.at_ms // 60_000, row.stored, row.consumed, row.counted_minutes) for row in rows]


def test_what_a_group_consumed_is_the_difference_of_its_offsets_however_the_looks_lie() -> None:
    """20 000 in the half of its first minute that was seen; then a steady pace, looked at unevenly."""
    first = [look(150.0, 0, 20_000), look(155.0, 9_000, 20_000), look(175.0, 20_000, 20_000)]
    assert counted(*first) == [(2, 0, 20_000, 1)]
    steady = [look(181.0 + at, 20_000 + 10 * at, 20_000 + 10 * at) for at in (0, 3, 20, 57, 62, 118)]
    assert counted(*first, *steady) == [(2, 0, 20_000, 1), (3, 570, 570, 1), (4, 610, 610, 1)]


def test_minutes_without_a_look_are_in_the_count_of_the_next_one() -> None:
    """Of thousands of groups each is looked at every few minutes."""
    assert counted(look(130.0, 0, 100), look(370.0, 80, 160), look(615.0, 120, 160)) == [
        (2, None, None, 1), (6, 60, 80, 4), (10, 0, 40, 4),
    ]  # fmt: skip


def test_a_moved_group_and_a_topic_that_is_new_to_it_count_nothing() -> None:
    mail = GroupPlace("mail", "broker-a", 1_000_000, 0, 0)
    read = GroupPlace("mail", "broker-a", 1_000_005, 0, 0)
    retried = GroupPlace("%RETRY%g", "broker-a", 3, 4, 0), GroupPlace("%RETRY%g", "broker-a", 5, 9, 0)
    assert counted(look(130.0, 0, 9), look(135.0, 2, 9, mail), look(140.0, 2, 9, read)) == [(2, 5, 7, 1)]
    assert counted(look(130.0, 7, 9), look(135.0, 2, 9), look(140.0, 3, 9)) == [(2, 0, 1, 1)], "moved back"
    assert counted(look(130.0, 0, 9), look(135.0, 8, 9, since=2.0), look(140.0, 9, 9, since=2.0)) == [(2, 0, 1, 1)]
    assert counted(look(130.0, 0, 9, retried[0]), look(135.0, 1, 9, retried[1])) == [(2, 0, 3, 1)], "not stored anew"


def test_a_minute_of_a_group_is_made_of_its_looks_each_taken_once() -> None:
    minutes = GroupMinutes()
    place = GroupPlace("orders", "broker-a", 80, 20, 900)
    first = WatchedGroup("g", 30, 1500, 2, 121.0, places=(replace(place, lag=15),), last_consumed_ms=7)
    second = WatchedGroup("g", 20, None, 1, 126.0, places=(place,), last_consumed_ms=9)
    partial = WatchedGroup("h", 20, 5, 1, 126.0, is_partial=True)
    for at, look in ((121.2, first), (122.2, first), (126.5, second)):
        assert minutes.add(snapshot(at, look, partial)) == []
    assert minutes.add(snapshot(180.5, second)) == [
        GroupSample(
            at_ms=120_000, group="g", lag=30, behind_seconds=1.5, members=1, consumer_offset=80, end_offset=100,
            stored=5, consumed=0, counted_minutes=1, last_consumed_ms=9, looks=2,
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
    fuller = replace(broker, facts=replace(broker.facts, in_now=7.0, out_now=None, disk_ratio=0.5, commit_log_bytes=9))
    for at, each in ((120.0, broker), (121.0, fuller), (122.0, replace(broker, why="no answer"))):
        assert minutes.add(replace(seen(each), at=at)) == []
    assert minutes.add(replace(seen(), at=180.0)) == [
        BrokerSample(
            at_ms=120_000, broker=broker.name, in_rate=6.0, out_rate=3.0, disk_ratio=0.5, commit_log_bytes=9, seconds=2
        )
    ]


def test_a_minute_has_a_row_for_each_slave_with_the_worst_of_its_seconds() -> None:
    minutes = SlaveMinutes()
    seconds = [
        telling(120.0, SlaveDifference(CONNECTION, 10, 0.5, True, 100, 1), SlaveDifference(STRANGER, 1, 0.0, True, 7)),
        telling(121.0, SlaveDifference(CONNECTION, 900, 2.5, False, 200, -1)),
        telling(122.0, SlaveDifference(CONNECTION, 5000, 9.0, False, 200, 50), why="no answer"),
        telling(179.9, SlaveDifference(CONNECTION, 0, 0.0, True, 0, 0)),
    ]
    assert [minutes.add(each) for each in seconds] == [[]] * 4
    finished = minutes.add(telling(181.0, SlaveDifference(CONNECTION, 1, 0.0, True, 1, 1)))
    common = {"at_ms": 120_000, "broker": "broker-a"}
    assert finished == [
        SlaveSample(
            **common, slave="10.0.0.7", behind_bytes=1, behind_messages=None, behind_seconds=0.0, in_sync=True,
            bytes_per_second=7.0, seconds=1,
        ),
        SlaveSample(
            **common, slave="broker-a:1", behind_bytes=900, behind_messages=1, behind_seconds=2.5, in_sync=False,
            bytes_per_second=100.0, seconds=3,
        ),
    ]  # fmt: skip


def test_a_clock_that_is_set_back_begins_no_minute_twice() -> None:
    minutes = SlaveMinutes()
    one = SlaveDifference(CONNECTION, 10, 0.5, True, 100, 1)
    for at in (120.0, 60.0, 119.0, 121.0):
        assert minutes.add(telling(at, one)) == []
    [row] = minutes.add(telling(180.0, one))
    assert (row.at_ms, row.seconds) == (120_000, 4)
