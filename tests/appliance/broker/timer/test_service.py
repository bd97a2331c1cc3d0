"""Messages with a time of their own arrive then: once, in order of time, whatever happens to the broker meanwhile."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.broker.timer import service as timer_service
from appliance.broker.timer.rolling import Rolling
from appliance.process.tasks import running
from store.base.results import PutMessageResult, PutMessageStatus
from store.base.running_state import RunningFlags
from tests.appliance.broker.timer.timer_broker import DAY_S, HOUR_S, TIMER, Broker
from tests.conftest import time_limit
from tests.waiting import Clock, standstill, until


@contextlib.asynccontextmanager
async def alive(broker: Broker) -> AsyncIterator[None]:
    broker.store.arrival_listener = lambda topic, *rest: broker.timer.message_arrived() if topic == TIMER else None
    async with running(broker.store, broker.timer):
        yield


async def test_nothing_comes_early_and_all_comes_at_its_time(broker: Broker, clock: Clock) -> None:
    broker.send_in(1.5, "m")
    assert 1.4 < await broker.settle() <= 1.5
    clock.advance(1.499)
    await broker.settle()
    assert broker.arrived() == []
    clock.advance(0.001)
    await broker.settle()
    assert broker.bodies() == ["m"]


async def test_a_message_arrives_as_it_was_sent_with_its_times_noted(broker: Broker, clock: Clock) -> None:
    sent_ms = int(clock.now * 1000)
    broker.send_in(1, "m")
    await broker.settle()
    clock.advance(1.25)
    await broker.settle()
    (message,) = broker.arrived()
    assert message.properties == {
        "KEYS": "k",
        "TAGS": "t",
        "UNIQ_KEY": "m",
        "TIMER_DELAY_MS": "1000",
        "TIMER_OUT_MS": str(sent_ms + 1000),
        "TIMER_ENQUEUE_MS": str(sent_ms),
        "TIMER_DEQUEUE_MS": str(sent_ms + 1250),
    }
    assert (message.topic, message.queue_id, message.flag, message.reconsume_times) == ("orders", 2, 7, 1)
    assert (message.born_timestamp, message.born_host) == (1234, ("10.1.2.3", 5))
    assert broker.store.query_message("orders", "k", 8, 0, 1 << 62).buffers, "its keys are indexed when it is delivered"


async def test_messages_come_in_order_of_time_whatever_the_order_of_sending(broker: Broker, clock: Clock) -> None:
    delays = [seconds / 10 for seconds in range(1, 3 * HOUR_S * 10, 500)]
    random.Random(1).shuffle(delays)
    for delay in delays:
        broker.send_in(delay, str(delay))
    await broker.settle()
    assert broker.timer.pending == len(delays)
    for _ in range(40):
        clock.advance(300)
        await broker.settle()
    assert broker.bodies() == [str(delay) for delay in sorted(delays)]
    assert broker.timer.pending == 0


async def test_the_figures_say_what_waits(broker: Broker, clock: Clock) -> None:
    assert (broker.timer.pending, broker.timer.next_due_ms, broker.timer.behind_ms) == (0, None, 0)
    broker.send_in(10, "near")
    broker.send_in(DAY_S, "far")
    await broker.settle()
    assert broker.timer.pending == 2
    assert broker.timer.next_due_ms == int(clock.now * 1000) + 10_000
    clock.advance(12)
    assert broker.timer.behind_ms == 2000
    await broker.settle()
    assert (broker.timer.pending, broker.timer.behind_ms) == (1, 0)
    assert (broker.timer.next_due_ms or 0) <= int(clock.now * 1000) + DAY_S * 1000


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
async def test_what_waits_survives_a_restart(broker: Broker, clock: Clock, killed: bool, recorded: bool) -> None:
    delays = [1, 30, 90, HOUR_S - 1, HOUR_S + 1, 2 * HOUR_S, 50 * HOUR_S]
    for delay in delays:
        broker.send_in(delay, str(delay))
    await broker.settle()
    if recorded:
        await broker.record()
    clock.advance(31)
    await broker.settle()
    (broker.kill if killed else broker.stop)()
    broker.start()
    for _ in range(52):
        clock.advance(HOUR_S)
        await broker.settle()
    bodies = broker.bodies()
    assert list(dict.fromkeys(bodies)) == [str(delay) for delay in delays]
    if not killed:
        assert len(bodies) == len(delays), "after a clean stop nothing comes twice"


async def test_after_a_kill_only_what_came_since_the_record_comes_again(broker: Broker, clock: Clock) -> None:
    for number in range(10):
        broker.send_in(number + 1, str(number))
    await broker.settle()
    clock.advance(5)
    await broker.settle()
    await broker.record()
    clock.advance(2)
    await broker.settle()
    broker.kill()
    broker.start()
    clock.advance(10)
    await broker.settle()
    assert broker.bodies() == [str(number) for number in (0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9)]


async def test_a_kill_while_the_queue_is_read_again_has_nothing_delivered_again(broker: Broker, clock: Clock) -> None:
    """A promoted slave reads all of the queue, and keeps its record meanwhile."""
    sent = [str(number) for number in range(600)]  # more than one look reads
    for name in sent:
        broker.send_in(1, name)
    await broker.settle()
    clock.advance(2)
    await broker.settle()
    broker.timer.put_progress(len(sent), int(clock() * 1000))
    broker.kill()
    broker.start()
    assert broker.timer.read_queue() and 0 < broker.timer.indexed < len(sent)
    assert broker.timer.reached[0] == len(sent), "its slaves are told the same"
    await broker.record()
    broker.kill()
    broker.start()
    await broker.settle()
    assert broker.bodies() == sent


async def test_slaves_are_told_nothing_new_while_nothing_is_delivered(broker: Broker, clock: Clock) -> None:
    """They write each second what has changed."""
    clock.advance(60)
    assert broker.timer.reached == (0, 0)
    broker.send_in(1, "one")
    broker.send_in(DAY_S, "other")
    await broker.settle()
    clock.advance(2)
    await broker.settle()
    told = broker.timer.reached
    assert told == (2, int(clock() * 1000)), "before it is on record"
    await broker.record()
    for _ in range(3):
        assert broker.timer.reached == told
        clock.advance(60)
        await broker.settle()


@pytest.mark.slow
async def test_restarts_at_every_moment_lose_nothing(tmp_path: Path, clock: Clock) -> None:
    chance = random.Random(7)
    broker = Broker(tmp_path / "store", clock)
    sent: set[str] = set()
    for round_number in range(60):
        for number in range(chance.randrange(20)):
            name = f"{round_number}-{number}"
            broker.send_in(chance.choice([0.05, 1, 20, 70, 600, 4000, 20_000]) * (0.5 + chance.random()), name)
            sent.add(name)
        clock.advance(chance.choice([0, 0.1, 1, 30, 61, 700, 3600]))
        if chance.random() < 0.8:
            await broker.settle()
        if chance.random() < 0.6:
            await broker.record(sync=chance.random() < 0.5)
        if chance.random() < 0.5:
            (broker.kill if chance.random() < 0.7 else broker.stop)()
            broker.start()
    for _ in range(12):
        clock.advance(HOUR_S)
        await broker.settle()
        await broker.record()
    assert set(broker.bodies()) == sent
    for message in broker.arrived():
        assert message.store_timestamp >= int(message.properties["TIMER_OUT_MS"])
    assert broker.timer.pending == 0
    clock.advance(180)
    await broker.settle()
    await broker.record()
    assert not [path for path in (tmp_path / "store" / "timer").iterdir() if not path.name.startswith("progress")]
    broker.stop()


async def test_an_interrupted_split_of_an_hour_is_done_again(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        broker.send_in(2 * HOUR_S + number * 10, str(number))
    await broker.settle()
    clock.advance(2 * HOUR_S - 100)

    async def no_disk(indexed: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(broker.timer, "_save", no_disk)
    with pytest.raises(ExceptionGroup):
        await broker.settle()
    assert any(path.suffix == ".hour" for path in (broker.root / "timer").iterdir())
    broker.kill()
    broker.start()
    await broker.settle()
    assert broker.timer.pending == 200
    for _ in range(40):
        clock.advance(60)
        await broker.settle()
    assert broker.bodies() == [str(number) for number in range(200)]


async def test_a_full_memory_leaves_overdue_minutes_in_their_files(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timer_service, "MEMORY_MESSAGES_MAX", 10)
    for number in range(100):
        broker.send_in(100 + number * 30, str(number))
    while broker.timer.read_queue():
        pass
    clock.advance(HOUR_S)
    async with running(broker.store):
        await broker.timer.bring_minutes(int(clock.now * 1000))
    assert 10 <= broker.timer.due.count <= 12
    await broker.settle()
    assert broker.bodies() == [str(number) for number in range(100)]


async def test_what_can_not_be_stored_now_is_tried_again(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.send_in(1, "m")
    await broker.settle()
    clock.advance(1)
    with monkeypatch.context() as patch:
        patch.setattr(
            broker.store, "put_message", lambda *_, **__: PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
        )
        assert broker.timer.deliver_slice() == timer_service.RETRY_S
    await broker.settle()
    assert broker.bodies() == ["m"]


async def test_by_the_wall_clock_a_message_is_at_most_100_ms_late(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "store", time.time)  # type: ignore[arg-type]
    async with alive(broker), standstill() as longest:
        for number in range(200):
            broker.send_in(0.2 + number / 200, str(number))
        await until(lambda: broker.timer.delivered == 200)
    late = sorted(message.store_timestamp - int(message.properties["TIMER_OUT_MS"]) for message in broker.arrived())
    broker.store.close()
    assert len(late) == 200
    assert late[0] >= 0, "nothing comes early"
    allowed_ms = 1000 * (time_limit(0.1) + longest.seconds)
    assert late[len(late) // 2] <= allowed_ms, "on a busy machine some may be later, not half of them"


async def test_a_file_of_the_log_goes_only_when_what_waits_in_it_was_stored_anew(tmp_path: Path, clock: Clock) -> None:
    broker = Broker(tmp_path / "store", clock, commit_log_file_bytes=64 * 1024, timer_delay_max_s=30 * DAY_S)
    rolling = Rolling(broker.store, broker.timer)
    broker.send_in(20 * DAY_S, "far")
    broker.send_in(5 * DAY_S, "nearer")
    broker.send_in(30, "soon")
    await broker.settle()
    for number in range(200):
        broker.send(f"fill-{number}" + "x" * 2000, {}, topic="other")
    async with running(broker.store):
        assert not await rolling.may_delete(64 * 1024), "one is due within the minute: the file stays so long"
        clock.advance(60)
        await broker.settle()
        assert await rolling.may_delete(64 * 1024)
        assert rolling.rolled == 2
        assert await rolling.may_delete(64 * 1024)
        assert rolling.rolled == 2, "no message is stored anew twice for one file"
    broker.kill()
    clock.advance(4 * DAY_S)
    for path in sorted((tmp_path / "store" / "commitlog").iterdir())[:1]:
        path.unlink()
    broker.start()
    for _ in range(18):
        clock.advance(DAY_S)
        await broker.settle()
    assert broker.bodies() == ["soon", "nearer", "far"]
    assert [message.properties.get("TIMER_ROLL_TIMES") for message in broker.arrived()] == [None, "1", "1"]
    broker.store.close()


async def test_a_disk_that_is_nearly_full_keeps_no_message_that_waits_where_it_is(tmp_path: Path, clock: Clock) -> None:
    """Else nothing would free space: the oldest file can't go before that message was stored again, or delivered."""
    broker = Broker(tmp_path / "store", clock, commit_log_file_bytes=64 * 1024)
    rolling = Rolling(broker.store, broker.timer)
    broker.send_in(DAY_S, "far")
    broker.send_in(30, "soon")
    await broker.settle()
    for number in range(50):
        broker.send(f"fill-{number}" + "x" * 2000, {}, topic="other")
    broker.store.parts.state.set_flag(RunningFlags.DISK_FULL, True)
    clock.advance(60)
    await broker.settle()
    assert broker.bodies() == ["soon"]
    async with running(broker.store):
        assert await rolling.may_delete(64 * 1024)
    assert rolling.rolled == 1
    broker.store.parts.state.set_flag(RunningFlags.SYNC_ERROR, True)
    assert not broker.store.parts.state.refuses_for_space_alone
    broker.store.close()


async def test_a_store_without_such_messages_gets_no_folder_and_asks_nothing(broker: Broker) -> None:
    assert await Rolling(broker.store, broker.timer).may_delete(1 << 40)
    broker.stop()
    assert not (broker.root / "timer").exists()


async def test_the_logs_retention_deletes_files_but_no_message_that_waits(tmp_path: Path, clock: Clock) -> None:
    """Every file is old enough to go, by the cleaner's own rules; round after round while messages wait."""
    hours = ";".join(f"{hour:02d}" for hour in range(24))
    broker = Broker(tmp_path / "store", clock, commit_log_file_bytes=64 * 1024, delete_when=hours)
    rolling = Rolling(broker.store, broker.timer)
    broker.store.cleaner.ask_before_delete = rolling.may_delete
    names = [f"waits-{number}" for number in range(50)]
    for number, name in enumerate(names):
        broker.send_in(DAY_S + number * 600, name)
    await broker.settle()
    deleted = rounds = 0
    while deleted < 8:
        rounds += 1
        assert rounds <= 20, "a slow disk may take a round or two, not all"
        for number in range(100):
            broker.send(f"fill-{number}" + "x" * 2000, {}, topic="other")
        async with running(broker.store):
            await broker.store.until_flushed()
            deleted += await broker.store.cleaner.clean(clock.now, 0.1)
        await broker.settle()
        assert broker.timer.pending == len(names)
    assert broker.store.min_physical_offset >= 8 * 64 * 1024
    assert rolling.rolled >= len(names)
    broker.kill()
    broker.start()
    for _ in range(60):
        clock.advance(HOUR_S)
        await broker.settle()
    assert broker.bodies() == names
    broker.store.close()
