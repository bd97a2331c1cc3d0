"""Delivery of what is in memory: in order of time, also while a minute is brought from its file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.appliance.broker.timer.test_service import Broker, Clock, broker, clock

__all__ = ["broker", "clock"]  # fixtures


async def test_nothing_overtakes_what_is_still_in_the_file_of_its_minute(
    broker: Broker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
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
