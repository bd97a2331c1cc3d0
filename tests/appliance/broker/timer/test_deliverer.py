"""Delivery of what is in memory: in order of time, also while a minute is brought from its file."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from appliance.broker.timer import deliverer
from appliance.broker.timer.deliverer import RETRY_S
from store.base.results import HOPELESS, PutMessageResult, PutMessageStatus
from tests.appliance.broker.timer.timer_broker import Broker
from tests.waiting import Clock


async def test_nothing_overtakes_what_is_still_in_the_file_of_its_minute(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "SLICE_SECONDS_MAX", 60.0)  # a busy machine may not end the slice
    broker.send_in(600, "first")
    await broker.settle()
    broker.send_in(601, "second")  # of the same minute, and not read from the queue yet
    clock.advance(700)
    take_minute = broker.timer.backlog.take_minute
    seen: list[float] = []

    async def disturbed(minute: int, take: Callable[[bytes], None], on_begin: Callable[[], None]) -> None:
        def begin() -> None:
            on_begin()
            while broker.timer.read_queue():
                pass
            if broker.timer.due.count:
                seen.append(broker.timer.deliver_slice())

        await take_minute(minute, take, begin)

    monkeypatch.setattr(broker.timer.backlog, "take_minute", disturbed)
    await broker.settle()
    assert seen, "the second was in memory before the first"
    assert all(wait_s > 0 for wait_s in seen)
    assert broker.bodies() == ["first", "second"]


async def test_a_store_that_takes_nothing_is_told_of_once_each_time(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    busy = PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
    for count in (1, 2):
        broker.send_in(1, "m")
        await broker.settle()
        clock.advance(1)
        with monkeypatch.context() as patch:
            patch.setattr(broker.store, "put_message", lambda *_, **__: busy)
            for _ in range(5):
                assert broker.timer.deliver_slice() == RETRY_S
        await broker.settle()
        told = [record for record in caplog.records if record.__dict__.get("event") == "timer_message_refused"]
        assert len(told) == count
    assert broker.bodies() == ["m", "m"]


@pytest.mark.parametrize("status", [status for status in PutMessageStatus if status in HOPELESS])
async def test_what_the_store_will_never_take_is_skipped(
    broker: Broker,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: PutMessageStatus,
) -> None:
    monkeypatch.setattr(deliverer, "SLICE_SECONDS_MAX", 60.0)  # a busy machine may not end the slice
    broker.send_in(1, "m")
    await broker.settle()
    clock.advance(1)
    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "put_message", lambda *_, **__: PutMessageResult(status))
        assert broker.timer.deliver_slice() == math.inf
    assert [record.__dict__["why"] for record in caplog.records if record.levelname == "ERROR"] == [status.name]
    assert (broker.timer.due.count, broker.bodies()) == (0, [])


async def test_a_slice_ends_when_its_time_is_over(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        broker.send_in(1, "m")
    await broker.settle()
    clock.advance(1)
    monkeypatch.setattr(deliverer, "SLICE_SECONDS_MAX", -1.0)
    for left in (4, 3, 2, 1, 0):
        assert broker.timer.deliver_slice() == 0
        assert broker.timer.due.count == left
