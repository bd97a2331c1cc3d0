"""Delayed messages arrive when their time has come, once, in order, and as they were sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.delivery.schedule import LEVEL_SHARE, ScheduleMessageService
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.tasks import running
from appliance.settings.roles import BrokerConfig
from gantrymq.message.ids import encode_host
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import encode_properties
from gantrymq.message.record import decode_record, decode_records
from store.base.config import MessageStoreConfig
from store.base.results import PutMessageResult, PutMessageStatus, StoreMessage
from store.message_store import MessageStore
from tests.conftest import time_limit
from tests.harness import SMALL_STORE
from tests.store.conftest import opened
from tests.waiting import WITHIN_S, Clock, standstill, until

GOLDEN = Path(__file__).parents[1] / "golden_config" / "delayOffset.json"
HOST = encode_host("127.0.0.1", 10911)
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[MessageStore]:
    with store_at(tmp_path / "store", clock) as store:
        yield store


@contextlib.contextmanager
def store_at(root: Path, clock: Callable[[], float]) -> Iterator[MessageStore]:
    store = opened(MessageStoreConfig(root=root, **SMALL_STORE), clock=clock)
    yield store
    store.close()


def service(
    store: MessageStore, folder: Path, clock: Callable[[], float], levels: str = "1s 5s 10s", **hooks: Any
) -> ScheduleMessageService:
    topics = TopicConfigManager(folder / "topics.json", BrokerConfig())
    config = MessageStoreConfig(root=folder / "store", delay_levels=levels, **SMALL_STORE)
    schedule = ScheduleMessageService(
        store, topics, config, folder / "delayOffset.json", flush_interval_s=0.05, clock=clock, **hooks
    )
    schedule.load()
    return schedule


@pytest.fixture
def schedule(store: MessageStore, tmp_path: Path, clock: Clock) -> ScheduleMessageService:
    return service(store, tmp_path, clock)


def send(store: MessageStore, body: bytes, level: int = 1, topic: str = "orders", queue_id: int = 2) -> int:
    properties = encode_properties({"KEYS": "k", "UNIQ_KEY": body.decode(), "WAIT": "true", "DELAY": str(level)})
    result = store.put_message(
        StoreMessage(topic, queue_id, body, properties.encode(), 7, 0, 1234, encode_host("10.1.2.3", 5), HOST, 1)
    )
    assert result.status == PutMessageStatus.PUT_OK
    return result.physical_offset


def arrived(store: MessageStore, topic: str = "orders", queue_id: int = 2) -> list[MessageExt]:
    messages: list[MessageExt] = []
    while True:
        found = store.get_message("g", topic, queue_id, len(messages), 32, None)
        if not found.buffers:
            return messages
        messages += decode_records(b"".join(found.buffers))


def settle(schedule: ScheduleMessageService) -> float:
    """Deliver all that is due; returns seconds until the next."""
    while (wait_s := schedule.deliver_slice()) == 0:
        pass
    return wait_s


def test_levels_are_the_configured_delays(schedule: ScheduleMessageService) -> None:
    assert schedule.max_level == 3
    assert [schedule.delay_ms(level) for level in (1, 2, 3)] == [1000, 5000, 10_000]


def test_a_broker_without_levels_waits_for_nothing(store: MessageStore, tmp_path: Path, clock: Clock) -> None:
    assert service(store, tmp_path, clock, levels="").deliver_slice() == float("inf")


def test_a_message_arrives_as_it_was_sent_and_is_not_delayed_again(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock
) -> None:
    send(store, b"m")
    clock.advance(1)
    assert settle(schedule) == float("inf")
    (message,) = arrived(store)
    assert message.properties == {
        "KEYS": "k",
        "UNIQ_KEY": "m",
        "WAIT": "true",
        "DELAY": "1",
        "REAL_TOPIC": "orders",
        "REAL_QID": "2",
    }
    assert (message.topic, message.queue_id, message.flag, message.reconsume_times) == ("orders", 2, 7, 1)
    assert (message.born_timestamp, message.born_host) == (1234, ("10.1.2.3", 5))
    assert store.max_offset(SCHEDULE, 0) == 1


def test_order_within_a_level_is_kept_and_every_message_arrives_once(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock
) -> None:
    bodies = [str(number).encode() for number in range(500)]
    for body in bodies:
        send(store, body)
    clock.advance(1)
    settle(schedule)
    settle(schedule)
    assert [message.body for message in arrived(store)] == bodies


def test_each_level_waits_for_its_own_time(store: MessageStore, schedule: ScheduleMessageService, clock: Clock) -> None:
    for level, body in ((3, b"late"), (1, b"early"), (2, b"middle")):
        send(store, body, level)
    for seconds, expected in ((1, [b"early"]), (4, [b"early", b"middle"]), (5, [b"early", b"middle", b"late"])):
        clock.advance(seconds)
        settle(schedule)
        assert [message.body for message in arrived(store)] == expected


def test_a_due_time_beyond_the_levels_delay_is_due_now(store: MessageStore, tmp_path: Path, clock: Clock) -> None:
    """The clock was set back, or the level was shortened since the message came."""
    send(store, b"m", level=18)
    assert store.max_offset(SCHEDULE, 17) == 1
    schedule = service(store, tmp_path, clock, levels=" ".join(["1s"] * 18))
    settle(schedule)
    assert [message.body for message in arrived(store)] == [b"m"]


def test_a_restart_continues_where_the_progress_was_saved(
    store: MessageStore, schedule: ScheduleMessageService, tmp_path: Path, clock: Clock
) -> None:
    send(store, b"one")
    clock.advance(1)
    settle(schedule)
    schedule.persist()
    send(store, b"two")
    clock.advance(1)
    restarted = service(store, tmp_path, clock)
    assert restarted.offsets == {1: 1}
    settle(restarted)
    assert [message.body for message in arrived(store)] == [b"one", b"two"]


def test_a_crash_repeats_messages_rather_than_losing_them(
    store: MessageStore, schedule: ScheduleMessageService, tmp_path: Path, clock: Clock
) -> None:
    send(store, b"one")
    clock.advance(1)
    settle(schedule)
    settle(service(store, tmp_path, clock))
    assert [message.body for message in arrived(store)] == [b"one", b"one"]


@pytest.mark.parametrize("is_emptied", [False, True])
def test_an_offset_beyond_the_queue_is_corrected(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock, is_emptied: bool
) -> None:
    if not is_emptied:
        send(store, b"one")
    schedule.offsets[1] = 99
    settle(schedule)
    assert schedule.offsets[1] == (not is_emptied)
    send(store, b"two")
    clock.advance(1)
    settle(schedule)
    assert [message.body for message in arrived(store)] == [b"two"]


@pytest.mark.parametrize("properties", [{}, {"REAL_TOPIC": "orders"}, {"REAL_TOPIC": "orders", "REAL_QID": "x"}])
def test_a_message_that_says_not_where_to_go_is_skipped(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock, properties: dict[str, str]
) -> None:
    text = encode_properties(properties).encode()
    store.put_message(StoreMessage(SCHEDULE, 0, b"lost", text, 0, 0, 0, HOST, HOST))
    send(store, b"found")
    clock.advance(1)
    settle(schedule)
    assert [message.body for message in arrived(store)] == [b"found"]


def test_a_refused_delivery_is_tried_again_in_order_and_reported_once(
    store: MessageStore,
    schedule: ScheduleMessageService,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("appliance.broker.delivery.schedule.SLICE_SECONDS_MAX", 60.0)  # no slice ends by itself
    for body in (b"one", b"two"):
        send(store, body)
    clock.advance(1)
    with monkeypatch.context() as patch:
        refusal = PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        patch.setattr(store, "put_message", lambda message, *, delay: refusal)
        waits = [schedule.deliver_slice() for _ in range(5)]
    assert all(0 < wait_s <= 0.1 for wait_s in waits)
    assert [record.message for record in caplog.records].count("delayed message not stored") == 1
    settle(schedule)
    assert [message.body for message in arrived(store)] == [b"one", b"two"]


def test_half_messages_are_never_delivered(store: MessageStore, schedule: ScheduleMessageService, clock: Clock) -> None:
    text = encode_properties({"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"}).encode()
    store.put_message(StoreMessage(SCHEDULE, 0, b"half", text, 0, 0, 0, HOST, HOST))
    clock.advance(1)
    settle(schedule)
    assert arrived(store, "RMQ_SYS_TRANS_HALF_TOPIC", 0) == []


def test_a_golden_file_is_read_and_written_as_json(store: MessageStore, tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "delayOffset.json"
    path.write_bytes(GOLDEN.read_bytes())
    schedule = service(store, tmp_path, clock)
    assert schedule.offsets == {1: 1, 3: 1}
    schedule.offsets[2] = 7
    schedule.persist()
    assert json.loads(path.read_bytes()) == {"offsetTable": {"1": 1, "2": 7, "3": 1}}
    assert service(store, tmp_path, clock).offsets == {1: 1, 2: 7, 3: 1}


@contextlib.asynccontextmanager
async def delivering(store: MessageStore, schedule: ScheduleMessageService) -> AsyncIterator[None]:
    store.arrival_listener = lambda topic, queue_id, *_: (
        schedule.message_arrived(queue_id) if topic == SCHEDULE else None
    )
    async with running(store, schedule):
        yield


async def test_delivery_is_on_time_and_progress_is_saved(tmp_path: Path) -> None:
    """By the wall clock."""
    delivered: list[tuple[int, str, int, float]] = []

    def note(queue_id: int, topic: str, size: int) -> None:
        delivered.append((queue_id, topic, size, time.time()))

    with store_at(tmp_path / "store", time.time) as store:
        schedule = service(store, tmp_path, time.time, on_delivered=note)
        async with delivering(store, schedule), standstill() as longest:
            await asyncio.sleep(0.3)  # by now the service has nothing to do: the message has to wake it
            sent = time.time()
            send(store, b"m")
            await until((tmp_path / "delayOffset.json").exists)
        ((queue_id, topic, size, at),) = delivered
        assert (queue_id, topic) == (0, "orders")
        record = store.message_bytes(store.max_physical_offset - size)  # the last one stored
        assert record is not None and decode_record(record).body == b"m"
    assert 0.99 <= at - sent < time_limit(1.5) + longest.seconds
    assert json.loads((tmp_path / "delayOffset.json").read_bytes()) == {"offsetTable": {"1": 1}}


async def test_a_backlog_does_not_hold_up_the_loop(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock
) -> None:
    for number in range(3000):
        send(store, str(number).encode(), level=number % 3 + 1)
    clock.advance(10)
    most = 0
    async with delivering(store, schedule):
        async with asyncio.timeout(WITHIN_S):
            while (before := sum(schedule.offsets.values())) < 3000:
                await asyncio.sleep(0)
                most = max(most, sum(schedule.offsets.values()) - before)
    assert 0 < most <= 3 * LEVEL_SHARE, "others have their turn after each slice"


class Ticking:
    """A clock of slices that goes on at each look, so that a slice has time for one level only."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.002
        return self.now


def test_a_level_with_much_to_deliver_keeps_no_other_waiting(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5 * LEVEL_SHARE):
        send(store, b"%d" % number, level=1)
    for level in (2, 3):
        send(store, b"level %d" % level, level=level)
    clock.advance(60)
    monkeypatch.setattr("appliance.broker.delivery.schedule.time", Ticking())
    for _ in range(3):
        assert schedule.deliver_slice() == 0
    assert schedule.offsets == {1: LEVEL_SHARE, 2: 1, 3: 1}, "each level had a turn"


def test_each_slice_begins_with_another_level(
    store: MessageStore, schedule: ScheduleMessageService, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.delivery.schedule.SLICE_SECONDS_MAX", 60.0)
    for level in (1, 2, 3):
        for _ in range(3 * LEVEL_SHARE):
            send(store, b"%d" % level, level=level)
    clock.advance(60)
    while schedule.deliver_slice() == 0:
        pass
    bodies = [message.body for message in arrived(store)]
    assert bodies[::LEVEL_SHARE] == [b"1", b"2", b"3", b"2", b"3", b"1", b"3", b"1", b"2"]
