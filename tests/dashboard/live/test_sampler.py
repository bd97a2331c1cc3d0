"""The sampler: rates from counters, ages, gaps, and what stays in the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from dashboard.alerts.kinds import KINDS
from dashboard.cluster import units
from dashboard.cluster.broker_requests import BrokerCalls
from dashboard.cluster.errors import BrokerUnreachable
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef, mean_rate
from dashboard.live.history import Minute, keep_minute
from dashboard.live.sampler import Sampler, masters_of, read_facts
from dashboard.models.management import MetricSample
from dashboard.status.board import Board, BrokerFacts, BrokerState, DiskMarks, Lane, Snapshot
from dashboard.status.metrics import overview_metrics
from dashboard.status.processes import ProcessFacts
from dashboard.status.services import Services
from dashboard.status.verdict import Level, judge
from dashboard.templatetags.gantry import bar
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import SlaveDifference
from tests.waiting import until

BROKER = BrokerRef("broker-a", "127.0.0.1:1", "C")
ROOMY = DiskMarks(0.95, 0.97, 0.99)


def info(put: int, get: int, boot: int = 1000) -> dict[str, str]:
    return {"putMessageTimesTotal": str(put), "msgGetTotalTodayNow": str(get), "bootTimestamp": str(boot)}


def snapshot(*brokers: BrokerState, at: float = 100.0) -> Snapshot:
    return Snapshot(at, "127.0.0.1:9876", None, brokers, (), None)


def facts(**changes: object) -> BrokerFacts:
    return replace(BrokerFacts("broker-a", "127.0.0.1:1", 100.0, in_rate=5.0, out_rate=4.0), **changes)  # type: ignore[arg-type]


def test_rates_are_differences_of_counters_and_means_as_those_of_topics() -> None:
    first = read_facts(BROKER, info(100, 50), 10.0, None)
    assert (first.in_rate, first.out_rate, first.in_now) == (None, None, None)
    second = read_facts(BROKER, info(150, 50), 12.0, first)
    assert (second.in_rate, second.out_rate) == (second.in_now, second.out_now) == (25.0, 0.0)
    third = read_facts(BROKER, info(150, 60), 13.0, second)
    assert (third.in_rate, third.in_now) == (mean_rate(0, 1.0, 25.0, 2.0), 0.0)
    assert (third.out_rate, third.out_now) == (mean_rate(10, 1.0, 0.0, 2.0), 10.0)


def test_a_quiet_first_second_soon_counts_for_little() -> None:
    told = read_facts(BROKER, info(0, 0), 0.0, None)
    for second in range(1, 12):
        told = read_facts(BROKER, info(1000 * (second - 1), 0), float(second), told)
    assert told.in_rate is not None
    assert 900 < told.in_rate < 1000


def test_a_clock_that_is_set_an_hour_ahead_spoils_no_rate_for_long() -> None:
    told, moment = read_facts(BROKER, info(0, 0), 0.0, None), 0.0
    for step, seconds in enumerate([1.0, 1.0, 3600.0, 1.0], start=1):
        moment += seconds
        told = read_facts(BROKER, info(1000 * step, 0), moment, told)
    assert told.in_rate == pytest.approx(1000)


def test_a_restart_gives_no_rate_and_a_long_pause_none_of_now() -> None:
    first = read_facts(BROKER, info(100, 50), 10.0, None)
    assert read_facts(BROKER, info(3, 1, boot=2000), 11.0, first).in_rate is None
    assert read_facts(BROKER, info(3, 1), 11.0, first).in_rate is None
    late = read_facts(BROKER, info(278, 50), 99.0, first)
    assert (late.in_rate, late.in_now) == (2.0, None)


def test_what_a_broker_does_not_say_is_unknown() -> None:
    silent = read_facts(BROKER, {"commitLogDiskRatio": "-1.0", "sendThreadPoolQueueSize": "much"}, 1.0, None)
    assert (silent.disk_ratio, silent.put_total, silent.lanes[0].size) == (None, None, None)


def test_a_brokers_own_marks_are_taken_and_rocketmqs_where_it_does_not_say() -> None:
    assert read_facts(BROKER, {}, 10.0, None).disk_marks == DiskMarks(0.75, 0.85, 0.90)
    told = {"diskCleanMarkRatio": "0.95", "diskForceMarkRatio": "0.99", "diskRefuseMarkRatio": "nan"}
    assert read_facts(BROKER, told, 10.0, None).disk_marks == DiskMarks(0.95, 0.99, 0.90)


def test_the_fuller_of_the_logs_and_the_queues_disks_counts() -> None:
    for log, queues, ratio in (("0.3", "0.93", 0.93), ("0.93", "0.3", 0.93), ("0.3", "-1.0", 0.3)):
        read = read_facts(BROKER, {"commitLogDiskRatio": log, "consumeQueueDiskRatio": queues}, 10.0, None)
        assert read.disk_ratio == ratio


def test_the_sentence_names_the_mark_that_was_passed() -> None:
    marks = DiskMarks(0.6, 0.855, 0.99)
    for ratio, words in ((0.61, "Above 60"), (0.86, "Above 85.5"), (1.0, "rejected above 99")):
        [problem] = judge(snapshot(BrokerState("broker-a", "a", facts(disk_ratio=ratio, disk_marks=marks)))).problems
        assert words in problem.action


def test_whose_bytes_fill_the_disk_is_said() -> None:
    gib = {"diskStoreBytes": 3, "diskOthersBytes": 60, "diskFreeBytes": 7, "diskReservedBytes": 2}
    told = {key: str(number << 30) for key, number in (gib | {"commitLogMaxOffset": 1}).items()}
    told |= {"diskFilledByOthers": "true", "commitLogMinOffset": "0", "commitLogDirCapacity": "Total : 70.0 GiB."}
    for ratio, title in (("0.86", "nearly full of other"), ("0.91", "is full of other")):
        read = read_facts(BROKER, {**told, "commitLogDiskRatio": ratio}, 100.0, None)
        [problem] = judge(snapshot(BrokerState("broker-a", "a", read))).problems
        assert title in problem.title and problem.level is Level.BAD
        assert problem.evidence.replace(units.THIN, " ").endswith(
            "used. Messages 1.0 GiB, preallocated 2.0 GiB, other files 60.0 GiB, free 7.0 GiB, reserved 2.0 GiB: "
            "together 72.0 GiB."
        )
        assert "messages that have not expired stay" in problem.action
    own = read_facts(BROKER, {**told, "diskFilledByOthers": "false", "commitLogDiskRatio": "0.86"}, 100.0, None)
    assert "deleted early" in judge(snapshot(BrokerState("broker-a", "a", own))).problems[0].action


def test_trouble_with_the_disk_is_shown_in_the_brokers_words() -> None:
    read = read_facts(BROKER, {"storeTrouble": "the disk is slow: a sync has lasted 2.0 s"}, 100.0, None)
    [problem] = judge(snapshot(BrokerState("broker-a", "a", read))).problems
    assert (problem.level, problem.evidence) == (Level.BAD, "the disk is slow: a sync has lasted 2.0 s")


def test_a_broker_that_was_silent_once_is_named_before_it_is_an_alarm() -> None:
    for heard_at, levels in ((99.0, []), (98.2, [Level.WARN]), (96.0, [Level.BAD])):
        state = BrokerState("broker-a", "a", facts(at=heard_at), "no answer", failing_since=98.0)
        assert [problem.level for problem in judge(snapshot(state)).problems] == levels, heard_at


def test_a_suspended_process_is_a_problem_by_itself() -> None:
    process = ProcessFacts("broker-a", "broker", 77, "running", 0, 1.0, "a", 0.0, 1, 100.0, is_suspended=True)
    state = BrokerState("broker-a", "a", facts())
    [problem] = judge(replace(snapshot(state), processes=(process,))).problems
    assert "stopped by a signal" in problem.title and "kill -CONT 77" in problem.action


def test_the_bar_has_its_ticks_at_the_marks_and_goes_by_them() -> None:
    metrics = overview_metrics(snapshot(BrokerState("broker-a", "a", facts(disk_ratio=0.86))))
    drawn = bar(metrics, "Disk used", "broker.broker-a.disk", marks=DiskMarks(0.9, 0.855, 0.99))
    assert (drawn["marks"], drawn["marks_text"], drawn["level"]) == (["85.5", "90", "99"], "0.855,0.9,0.99", "warn")
    assert bar(metrics, "Disk used", "broker.broker-a.disk", marks="")["level"] == "plain"


def test_when_the_disk_will_be_full_is_said_or_known_not_to_be_known() -> None:
    def shown(up_s: float = 600.0, **said: str) -> tuple[str, str]:
        told = {"bootTimestamp": "1000"} | said
        state = BrokerState("broker-a", "127.0.0.1:1", read_facts(BROKER, told, 1.0 + up_s, None))
        metric = overview_metrics(snapshot(state)).values["broker.broker-a.disk.full"]
        return metric.text.replace(units.THIN, " "), metric.why or ""

    assert shown(diskGrowthBytesPerSecond="5.0", diskSecondsToFull="259200.0")[0] == "full in 3 d"
    assert shown(diskGrowthBytesPerSecond="-5.0") == (units.UNKNOWN, "the disk is not filling up")
    assert shown() == (units.UNKNOWN, "not known yet")  # nor does Apache's broker ever say


def test_what_a_minute_brought_is_no_forecast_neither_on_the_card_nor_for_an_alarm() -> None:
    filling = {"bootTimestamp": "1000", "diskGrowthBytesPerSecond": "5e6", "diskSecondsToFull": "6180"}
    for up_s, card, hours in ((121.0, units.UNKNOWN, None), (600.0, "full in 1 h 43 min", 6180 / 3600)):
        state = BrokerState("broker-a", "127.0.0.1:1", read_facts(BROKER, filling, 1.0 + up_s, None))
        seen = snapshot(state, at=1.0 + up_s)
        assert overview_metrics(seen).values["broker.broker-a.disk.full"].text.replace(units.THIN, " ") == card
        assert KINDS["disk-full-in"].read(seen) == {"broker-a": hours}
        assert bool(judge(seen).problems) is (hours is not None)


async def test_the_rate_of_a_real_broker_is_seen(gateway: Gateway, transactional_db: None) -> None:
    await gateway.topics.create("sampled", queues=1)
    sampler = Sampler(gateway, keep=Board())
    seen = []

    async def is_rising() -> bool:
        await gateway.messages.send(Message("sampled", b"x"))
        seen.append((await sampler.sample()).known_sum("in_rate"))
        return bool(seen[-1][0])

    await until(is_rising)
    in_rate, at, why = seen[-1]
    assert in_rate is not None and in_rate > 0 and at is not None and why is None


class DyingBrokers(BrokerCalls):
    """The calls of a real gateway; its broker can be made silent."""

    is_silent = False

    async def runtime_info(self, broker: BrokerRef, *, timeout_s: float = 2.0) -> dict[str, str]:
        if self.is_silent:
            raise BrokerUnreachable("no answer in time")
        return await super().runtime_info(broker, timeout_s=timeout_s)


async def test_a_silent_brokers_values_grow_old_and_are_never_zero(gateway: Gateway, transactional_db: None) -> None:
    gateway.brokers = brokers = DyingBrokers(gateway.calls)
    board = Board()
    sampler = Sampler(gateway, keep=board)
    await sampler.sample()
    before = await sampler.sample()
    brokers.is_silent = True
    after = await sampler.sample()
    [state] = after.brokers
    assert state.facts is not None and before.brokers[0].facts is not None
    assert state.facts.at == before.brokers[0].facts.at
    late = replace(after, at=after.at + 10)
    assert overview_metrics(late).values["cluster.in"].state(late.at) == "stale"
    assert judge(late).level is Level.BAD and "does not answer" in judge(late).sentence
    assert board.put(late).in_rate is None, "a gap in the chart, not a zero"


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    known = BrokerState("broker-a", "a", facts())
    unknown = BrokerState("broker-b", "b", None, "no answer in time", 90.0)
    value, at, why = snapshot(known, unknown).known_sum("in_rate")
    assert (value, at, why) == (None, None, "broker-b: no answer in time")
    assert overview_metrics(snapshot(known, unknown)).values["cluster.in"].text == "—"


def test_zero_is_zero() -> None:
    metrics = overview_metrics(snapshot(BrokerState("broker-a", "a", facts(in_rate=0.0))))
    assert metrics.values["cluster.in"].text == "0"


async def test_a_minute_is_kept_as_one_row_and_old_rows_go(gateway: Gateway, transactional_db: None) -> None:
    base = await Sampler(gateway, keep=Board()).sample()
    hour = 1_795_248_000.0
    old = MetricSample(at="2026-01-01T00:00:00Z")
    await old.asave()
    board, minute = Board(), Minute()
    for second in range(0, 130, 2):
        state = BrokerState("broker-a", "a", facts(at=hour + second, in_now=float(second), disk_ratio=0.5))
        shot = replace(base, at=hour + second, brokers=(state,))
        finished = minute.add(shot, board.put(shot))
        if finished is not None:
            await keep_minute(finished)
    rows = [row async for row in MetricSample.objects.all()]
    assert len(rows) == 2, "the two whole minutes; the row of January is past its time"
    assert rows[0].in_rate == pytest.approx(29.0) and rows[0].in_rate_max == 58.0
    assert rows[0].disk_ratio == 0.5 and rows[1].at - rows[0].at == timedelta(minutes=1)
    assert rows[0].slaves is None, "no broker told of slaves"


def test_a_minute_keeps_how_far_the_slaves_were_at_worst() -> None:
    minute, hour = Minute(), 1_795_248_000.0
    board = Board()
    for second, (behind, in_sync, messages) in enumerate(((10, True, 1), (900, False, 9), (0, True, -1))):
        slave = SlaveDifference("10.1.0.7:1", behind, behind / 10, in_sync, 300 * second, messages)
        services = Services(role="ASYNC_MASTER", slaves=(slave,))
        state = BrokerState("broker-a", "a", facts(at=hour + second, services=services))
        shot = snapshot(state, at=hour + second)
        minute.add(shot, board.put(shot))
    shot = snapshot(at=hour + 60)
    row = minute.add(shot, board.put(shot))
    assert row is not None and (row.slaves, row.slaves_in_sync, row.slave_bytes_rate) == (1, 0, 300.0)
    assert (row.slave_behind_bytes, row.slave_behind_messages, row.slave_behind_s) == (900, 9, 90.0)


def test_slaves_have_no_part_in_the_sum_of_what_is_stored() -> None:
    assert masters_of([BrokerState("a", "x:1", None), BrokerState("a:1", "x:2", None, broker_id=1)]) == {"a"}


async def test_it_runs_until_cancelled_and_counts_what_is_stored(gateway: Gateway, transactional_db: None) -> None:
    await gateway.topics.create("counted", queues=1)
    await gateway.messages.send(Message("counted", b"x"))
    board = Board()
    running = asyncio.create_task(Sampler(gateway, keep=board).run())
    async with asyncio.timeout(60):
        while board.snapshot is None or board.snapshot.stored is None or len(board.points) < 3:
            await asyncio.sleep(0.1)
    assert board.snapshot.stored.messages >= 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({}, Level.GOOD, "All good, 5 msg/s in"),
        ({"disk_ratio": 0.75}, Level.GOOD, "All good"),
        ({"disk_ratio": 0.76}, Level.WARN, "filling"),
        ({"disk_ratio": 0.86}, Level.BAD, "nearly full"),
        ({"disk_ratio": 0.91}, Level.BAD, "is full"),
        ({"disk_ratio": 0.91, "disk_marks": ROOMY}, Level.GOOD, "All good"),
        ({"disk_ratio": 0.96, "disk_marks": ROOMY}, Level.WARN, "filling"),
        ({"disk_ratio": 0.98, "disk_marks": ROOMY}, Level.BAD, "nearly full"),
        ({"disk_ratio": 1.0, "disk_marks": ROOMY}, Level.BAD, "is full"),
        ({"lanes": (Lane("send", 0, 10000, 250.0),)}, Level.WARN, "send lane is slow"),
        ({"lanes": (Lane("pull", 9000, 10000, 0.0),)}, Level.WARN, "pull lane is full"),
        ({"lanes": (Lane("pull", None, None, None),)}, Level.GOOD, "All good"),
    ],
)
def test_the_sentence_is_made_from_checks(change: dict[str, object], level: Level, words: str) -> None:
    verdict = judge(snapshot(BrokerState("broker-a", "a", facts(**change))))
    assert verdict.level is level
    assert words in verdict.sentence


def test_nothing_registered_and_nothing_looked_at_are_not_good() -> None:
    assert judge(None).level is Level.WARN
    assert judge(snapshot()).sentence == "No broker is registered"
