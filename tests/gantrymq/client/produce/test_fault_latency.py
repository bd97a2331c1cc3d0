"""Which brokers are left alone, and for how long: as Java's MQFaultStrategy decides it."""

from __future__ import annotations

import pytest

from gantrymq.client.produce.fault_latency import LOOK_S, SILENT_S, SILENT_S_MAX, FaultLatency, Silences
from gantrymq.message.model import MessageQueue
from tests.waiting import Clock


@pytest.mark.parametrize(
    ("took_s", "pause_s"),
    [(0.0, 0), (0.549, 0), (0.55, 30), (1.0, 60), (1.999, 60), (2.0, 120), (3.0, 180), (14.9, 180), (15.0, 600)],
)
def test_a_slow_broker_is_left_alone_for_a_time_that_grows(took_s: float, pause_s: float) -> None:
    clock = Clock(1000.0)
    faults = FaultLatency(clock)
    faults.note("a", took_s)
    assert faults.is_available("a") is (pause_s == 0)
    clock.now += max(pause_s - 0.001, 0)
    assert faults.is_available("a") is (pause_s == 0)
    clock.now += 0.001
    assert faults.is_available("a")


def test_a_failed_try_counts_as_one_of_half_a_minute_and_the_next_good_one_ends_it() -> None:
    clock = Clock(1000.0)
    faults = FaultLatency(clock)
    faults.note("a", 0.001, has_failed=True)
    clock.now += 599.9
    assert not faults.is_available("a")
    assert faults.is_available("never tried")
    faults.note("a", 0.001)
    assert faults.is_available("a")


def test_when_none_is_good_the_better_half_is_used_in_turn() -> None:
    faults = FaultLatency(Clock(1000.0))
    for name, took_s in (("a", 9.0), ("b", 0.6), ("c", 2.0), ("d", 0.7)):
        faults.note(name, took_s)
    assert [faults.least_bad("abcd") for _ in range(4)] == ["b", "d", "b", "d"]
    assert faults.least_bad(["a"]) == "a"


QUEUES = [MessageQueue("t", name, queue_id) for name in ("a", "b") for queue_id in (0, 1)]


def brokers(silences: Silences, *avoid: str) -> set[str]:
    return {queue.broker_name for queue in silences.usable(QUEUES, avoid)}


def test_a_silent_broker_is_left_alone_until_one_message_had_an_answer_there() -> None:
    clock = Clock(1000.0)
    silences = Silences(clock)
    silences.failed("a")
    silences.failed("a")  # on its way at the same time
    assert brokers(silences) == {"b"}
    assert brokers(silences, "b") == {"a", "b"}, "better there than nowhere"
    clock.now += SILENT_S
    assert brokers(silences) == {"a", "b"}
    silences.chosen("a")
    assert brokers(silences) == {"b"}, "the others wait for what becomes of that one"
    silences.failed("a")
    clock.now += 2 * SILENT_S - 0.001
    assert brokers(silences) == {"b"}
    clock.now += 0.001
    silences.chosen("a")
    clock.now += LOOK_S
    assert brokers(silences) == {"a", "b"}, "given up by its caller, that message told nothing"
    silences.chosen("a")
    silences.answered("a")
    assert brokers(silences) == {"a", "b"}
    assert not silences.known


def test_where_all_brokers_are_silent_all_are_used() -> None:
    clock = Clock(1000.0)
    silences = Silences(clock)
    silences.failed("a")
    silences.failed("b")
    assert brokers(silences) == {"a", "b"}


def test_a_broker_that_stays_silent_is_looked_at_once_a_minute() -> None:
    clock = Clock(1000.0)
    silences = Silences(clock)
    for _ in range(12):
        silences.failed("a")
        clock.now += SILENT_S_MAX
        silences.chosen("a")
    silences.failed("a")
    clock.now += SILENT_S_MAX - 0.001
    assert brokers(silences) == {"b"}
