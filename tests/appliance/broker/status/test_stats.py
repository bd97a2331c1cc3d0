"""BrokerStatsManager: counters, windows, the daily record."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from appliance.broker.status.stats import (
    BROKER_PUT_NUMS,
    GROUP_GET_NUMS,
    ITEMS_A_SLICE,
    SNDBCK_PUT_NUMS,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    BrokerStatsManager,
    window_of,
)

START_S = 1_795_228_000.0


@pytest.fixture
def stats() -> BrokerStatsManager:
    return BrokerStatsManager("DefaultCluster", clock=lambda: START_S)


def test_an_item_exists_from_its_first_increment(stats: BrokerStatsManager) -> None:
    assert stats.get(TOPIC_PUT_NUMS, "T") is None
    stats.inc_topic_put("T", 3, 600)
    nums, sizes = stats.get(TOPIC_PUT_NUMS, "T"), stats.get(TOPIC_PUT_SIZE, "T")
    assert nums is not None and (nums.value, nums.times) == (3, 1)
    assert sizes is not None and (sizes.value, sizes.times) == (600, 1)


def test_windows_are_empty_until_the_timer_came_by(stats: BrokerStatsManager) -> None:
    stats.sample(START_S)
    stats.inc_topic_put("T", 6, 100)
    item = stats.get(TOPIC_PUT_NUMS, "T")
    assert item is not None
    assert window_of(item.minute).sum == 0
    stats.sample(START_S + 10)
    assert window_of(item.minute).sum == 6
    assert window_of(item.hour).sum == 0


def test_a_young_item_is_dated_back_one_period(stats: BrokerStatsManager) -> None:
    for _ in range(4):
        stats.inc_group_get("G", "T", 2, 50)
    stats.sample(START_S)
    window = window_of(stats.get(GROUP_GET_NUMS, "T@G").minute)  # type: ignore[union-attr]
    assert (window.sum, window.per_second, window.value_per_call) == (8, 0.8, 2.0)
    assert stats.consume_per_second("G", "T") == 0.8
    assert stats.consume_per_second("G", "other") == 0.0


def test_the_minute_window_forgets_what_is_older_than_a_minute(stats: BrokerStatsManager) -> None:
    stats.inc_topic_put("T", 100, 1)
    for tick in range(7):
        stats.sample(START_S + tick * 10)
    item = stats.get(TOPIC_PUT_NUMS, "T")
    assert item is not None
    assert window_of(item.minute).sum == 0
    assert len(item.minute) == 7 * 3, "three numbers a snapshot"


def test_the_hour_window_is_sampled_every_ten_minutes_and_the_day_window_every_hour(stats: BrokerStatsManager) -> None:
    stats.inc_topic_put("T", 1, 1)
    for tick in range(361):
        stats.sample(START_S + tick * 10)
    item = stats.get(TOPIC_PUT_NUMS, "T")
    assert item is not None
    assert list(item.hour[::3]) == [int((START_S + n * 600) * 1000) for n in range(7)]
    assert list(item.day[::3]) == [int((START_S + n * 3600) * 1000) for n in (-1, 0, 1)]


def test_thousands_of_items_are_sampled_in_slices_while_topics_come_and_go(stats: BrokerStatsManager) -> None:
    for number in range(4 * ITEMS_A_SLICE):
        stats.inc_topic_put(f"T{number}", 1, 100)
        stats.inc_topic_put(f"Gone{number}", 1, 100)
    items = [
        item
        for name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE)
        for number in range(4 * ITEMS_A_SLICE)
        if (item := stats.get(name, f"T{number}")) is not None
    ]
    assert len(items) == 8 * ITEMS_A_SLICE
    sampled = [0]
    for turn, _ in enumerate(stats.sampling(START_S)):
        sampled.append(sum(bool(item.minute) for item in items))
        stats.topic_deleted(f"Gone{turn}")
        stats.inc_topic_put(f"New{turn}", 1, 100)
    assert sampled[-1] == len(items)
    assert max(after - before for before, after in pairwise(sampled)) <= ITEMS_A_SLICE


def test_calls_of_the_broker_counters_are_not_counted(stats: BrokerStatsManager) -> None:
    stats.inc_topic_put("T", 5, 500)
    stats.sample(START_S)
    window = window_of(stats.get(BROKER_PUT_NUMS, "DefaultCluster").minute)  # type: ignore[union-attr]
    assert (window.sum, window.value_per_call) == (5, 0.0)


def test_delayed_messages_count_where_they_wait_and_for_whoever_delivers_them(stats: BrokerStatsManager) -> None:
    stats.inc_delayed_put("SCHEDULE_TOPIC_XXXX", 3, 100)
    stats.inc_waiting_retry("SCHEDULE_TOPIC_XXXX", 3, 200)
    stats.inc_delayed_put("rmq_sys_wheel_timer", 0, 7)
    stats.inc_scheduled(2, "T", 90)

    def counted(name: str, key: str) -> tuple[int, int] | None:
        item = stats.get(name, key)
        return None if item is None else (item.value, item.times)

    assert counted("TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX") == (2, 2)
    assert counted("TOPIC_PUT_SIZE", "SCHEDULE_TOPIC_XXXX") == (300, 2)
    assert counted("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@2") == (2, 2)
    assert counted("QUEUE_PUT_SIZE", "SCHEDULE_TOPIC_XXXX@2") == (300, 2)
    assert counted("QUEUE_PUT_NUMS", "rmq_sys_wheel_timer@-1") is None
    assert counted("GROUP_GET_NUMS", "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER") == (1, 1)
    assert counted("GROUP_GET_SIZE", "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER") == (90, 1)
    assert counted("QUEUE_GET_NUMS", "SCHEDULE_TOPIC_XXXX@2@SCHEDULE_CONSUMER") == (1, 1)
    assert counted("QUEUE_GET_SIZE", "SCHEDULE_TOPIC_XXXX@2@SCHEDULE_CONSUMER") == (90, 1)
    assert counted("TOPIC_PUT_NUMS", "T") == (1, 1)
    assert counted("BROKER_PUT_NUMS", "DefaultCluster") == (3, 0)  # not what was sent back
    assert counted("BROKER_GET_NUMS", "DefaultCluster") == (0, 0)


def test_a_deleted_topic_and_a_deleted_group_are_forgotten(stats: BrokerStatsManager) -> None:
    stats.inc_topic_put("T", 1, 1)
    stats.inc_topic_put("T2", 1, 1)
    stats.inc_group_get("G", "T", 1, 1)
    stats.inc_group_get("G", "T2", 1, 1)
    stats.inc_send_back("G", "T2")
    stats.topic_deleted("T")
    assert stats.get(TOPIC_PUT_NUMS, "T") is None
    assert stats.get(GROUP_GET_NUMS, "T@G") is None
    assert stats.get(GROUP_GET_NUMS, "T2@G") is not None
    stats.group_deleted("G")
    assert stats.get(GROUP_GET_NUMS, "T2@G") is None
    assert stats.get(SNDBCK_PUT_NUMS, "T2@G") is None
    stats.inc_group_get("G", "T2", 4, 1)
    assert stats.get(GROUP_GET_NUMS, "T2@G").value == 4  # type: ignore[union-attr]


def test_at_midnight_the_totals_move_to_the_morning() -> None:
    late = time.mktime((2026, 11, 21, 23, 59, 55, 0, 0, -1))
    stats = BrokerStatsManager("C", totals=lambda: (10, 4), clock=lambda: late)
    stats.sample(late)
    assert stats.daily.put_today_morning == 0
    stats.sample(late + 10)
    assert (stats.daily.put_today_morning, stats.daily.get_today_morning) == (10, 4)
    assert stats.daily.put_yesterday_morning == 0
    assert stats.totals() == (10, 4)
