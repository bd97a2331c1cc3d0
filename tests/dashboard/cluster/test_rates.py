"""A topic's rate and that of its groups are one mean of one window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.cluster.group_values import GroupPlace, GroupSummary
from dashboard.cluster.topic_requests import _metrics
from dashboard.cluster.values import QueueExtent, Reading, TopicMetrics, mean_rate
from dashboard.groups.trend import watched
from dashboard.live.tail import _Watched
from dashboard.status.board import WatchedGroup

SUMMARY = GroupSummary("g", lag=0, members=1)
LOOKS = [(0.0, 0), (5.0, 50), (20.0, 50), (21.0, 400), (90.0, 410)]  # when, and how many were stored until then


def test_the_same_looks_give_a_topic_and_its_group_the_same_rate() -> None:
    topic: Reading[TopicMetrics] | None = None
    group: WatchedGroup | None = None
    rates = []
    for at, end in LOOKS:
        topic = Reading(_metrics([QueueExtent("a", 0, 0, end, 1)], at, topic), at)
        place = GroupPlace("t", "a", consumer_offset=end, lag=0, lag_ms=0)
        group = watched(replace(SUMMARY, places=(place,)), group, at)
        assert topic.value is not None and topic.value.extents[0].in_rate == topic.value.in_rate
        assert group.in_rate == group.out_rate == topic.value.in_rate
        rates.append(topic.value.in_rate)
    assert rates[:2] == [None, 10.0] and rates[2] is not None and 0 < rates[2] < 10.0


def test_a_quiet_first_look_soon_counts_for_little() -> None:
    """After a start a page that is open looks each second: what that first second had is no minute's rate."""
    topic: Reading[TopicMetrics] | None = None
    group: WatchedGroup | None = None
    tail = _Watched()
    for second, end in enumerate((0, *range(0, 11_000, 1000))):
        at = float(second)
        topic = Reading(_metrics([QueueExtent("a", 0, 0, end, 1)], at, topic), at)
        place = GroupPlace("t", "a", consumer_offset=end, lag=0, lag_ms=0)
        group = watched(replace(SUMMARY, places=(place,)), group, at)
        tail.rate(at, end, None)
    assert topic is not None and topic.value is not None and topic.value.in_rate is not None
    assert 900 < topic.value.in_rate < 1000
    assert group is not None and group.in_rate == group.out_rate == topic.value.in_rate == tail.mean


def test_a_rate_that_has_ended_ends_and_a_counter_that_went_back_has_none() -> None:
    assert mean_rate(0, 600.0, 100.0) == 0.0
    assert mean_rate(0, 60.0, 100.0) == pytest.approx(100.0 / 2.718281828)
    assert (mean_rate(-1, 5.0, 100.0), mean_rate(None, 5.0, 100.0), mean_rate(1, 0.0, 1.0)) == (None, None, None)


@pytest.mark.parametrize(("every_s", "look_s"), [(2, 1.0), (8, 1.0), (20, 5.0)])
def test_a_slow_rate_is_found_though_most_looks_see_nothing(every_s: int, look_s: float) -> None:
    """A message every two seconds after a quiet hour, as delayed messages come: it was shown as 0 for ever."""
    rate: float | None = 0.0
    for look in range(1, int(600 / look_s)):
        before, now = (look - 1) * look_s, look * look_s
        rate = mean_rate(int(now / every_s) - int(before / every_s), look_s, rate)
    assert rate == pytest.approx(1 / every_s, rel=0.2)


def test_two_looks_at_once_at_a_topic_tell_no_rate() -> None:
    topic: Reading[TopicMetrics] | None = None
    rates = []
    for at, end in ((0.0, 0), (0.002, 1), (1.002, 3), (1.003, 3)):
        topic = Reading(_metrics([QueueExtent("a", 0, 0, end, 1)], at, topic), at)
        assert topic.value is not None
        rates.append(topic.value.in_rate)
    assert rates[:3] == [None, None, 2.0] and rates[3] == pytest.approx(2 / 1.001, rel=0.001)


def test_a_broker_that_comes_back_brings_no_history_into_the_rate() -> None:
    one, other = QueueExtent("a", 0, 0, 100, 1), QueueExtent("b", 0, 0, 10_000_000, 1)
    topic = Reading(_metrics([one, other], 0.0, None), 0.0)
    for at, queues in ((5.0, [one]), (10.0, [one, other]), (15.0, [one, other])):
        topic = Reading(_metrics(queues, at, topic), at)
        assert topic.value is not None and topic.value.in_rate == 0.0
