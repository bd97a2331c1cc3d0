"""appliance/process/java_time.py: local times as RocketMQ prints them."""

from __future__ import annotations

import time

from appliance.process.java_time import java_time

NOON_MS = int(time.mktime((2026, 11, 21, 12, 0, 5, 0, 0, -1)) * 1000) + 7


def test_a_time_of_a_body_and_of_a_remark() -> None:
    assert java_time(NOON_MS) == "2026-11-21#12:00:05:007"
    assert java_time(NOON_MS, "%Y-%m-%d %H:%M:%S", ",") == "2026-11-21 12:00:05,007"


def test_no_time_is_the_last_millisecond_before_the_epoch_as_in_java() -> None:
    assert java_time(-1).endswith(":59:999")
