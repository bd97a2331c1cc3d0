"""A transaction's message with a time of its own: it waits as half message, then, from its commit on, for its time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from gantrymq.remoting.codes import ResponseCode
from tests.appliance.broker.transaction.parties import COMMIT, GROUP, HALF, ROLLBACK, bodies, stored, transactions_at
from tests.waiting import until

TIMER = "rmq_sys_wheel_timer"


async def test_its_time_counts_from_the_commit(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay", queue_id=2, TIMER_DELAY_MS="300")
        assert len(stored(broker, HALF)) == 1
        await asyncio.sleep(0.4)  # longer than its delay: nothing may come before the commit
        assert bodies(broker, 2) == []
        committed_ms = int(time.time() * 1000)
        assert (await producer.end(half, COMMIT)).code == 0
        await until(lambda: bool(bodies(broker, 2)))
        (message,) = stored(broker, "orders", 2)
        assert message.body == b"pay"
        assert message.store_timestamp >= committed_ms + 300


async def test_a_rollback_forgets_it(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay", TIMER_DELAY_MS="50")
        assert (await producer.end(half, ROLLBACK)).code == 0
        await asyncio.sleep(0.2)  # longer than its delay: nothing may come
        assert bodies(broker) == []
        assert stored(broker, TIMER) == []


@pytest.mark.parametrize("delay", ["99999999", "soon"])
async def test_one_that_would_be_refused_at_its_commit_is_refused_at_once(tmp_path: Path, delay: str) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        answer = await producer.send(b"pay", sys_flag=4, TRAN_MSG="true", PGROUP=GROUP, TIMER_DELAY_SEC=delay)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert stored(broker, HALF) == []
