"""One of two brokers is frozen (SIGSTOP): producers go on at the other one."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from appliance.settings.roles import BrokerConfig
from gantrymq import AdminClient, Message, Producer, SyncProducer
from gantrymq.client.produce.retry import TRY_S
from gantrymq.remoting.admin_bodies import TopicConfig
from store.base.config import MessageStoreConfig
from tests.conftest import time_limit
from tests.harness import SMALL_STORE, LocalCluster

SENDS = 60
TRY_OF_ONE_BROKER_S = 10.0  # of a call of 30 s


@pytest.fixture
async def frozen(tmp_path: Path) -> AsyncIterator[str]:
    """The name server's address: it knows topic T at a frozen broker and at another."""
    with LocalCluster(tmp_path / "frozen") as cluster:
        config = BrokerConfig(listen_port=0, broker_name="awake", namesrv_addresses=cluster.namesrv_address)
        async with (
            BrokerController(config, MessageStoreConfig(root=tmp_path / "awake", **SMALL_STORE)) as awake,
            AdminClient(cluster.namesrv_address) as admin,
        ):
            await awake.outer_api.register_all()
            for address in (cluster.broker_address, awake.address):
                await admin.topics.create_at(address, TopicConfig("T", 4, 4))
            os.kill(cluster.broker.pid, signal.SIGSTOP)
            try:
                yield cluster.namesrv_address
            finally:
                os.kill(cluster.broker.pid, signal.SIGCONT)


async def test_messages_one_after_the_other_wait_for_few_tries(frozen: str) -> None:
    async with Producer(frozen) as producer:
        slow = 0
        for _ in range(SENDS):
            started = time.monotonic()
            result = await producer.send(Message("T", b"x"))
            assert result.queue.broker_name == "awake"
            slow += time.monotonic() - started >= TRY_S
        assert slow <= SENDS / 10, "half of them met the frozen broker"


async def test_so_do_messages_that_are_on_their_way_together(frozen: str) -> None:
    async with Producer(frozen) as producer:
        started = time.monotonic()
        results = await asyncio.gather(*(producer.send(Message("T", b"x")) for _ in range(SENDS)))
        results += await producer.send_many([Message("T", b"x") for _ in range(SENDS)])
        assert {result.queue.broker_name for result in results} == {"awake"}
        assert time.monotonic() - started < time_limit(TRY_OF_ONE_BROKER_S * 2)


async def test_so_do_threads(frozen: str) -> None:
    def send_all() -> int:
        slow = 0
        with SyncProducer(frozen) as producer:
            for _ in range(SENDS):
                started = time.monotonic()
                assert producer.send(Message("T", b"x")).queue.broker_name == "awake"
                slow += time.monotonic() - started >= TRY_S
        return slow

    assert await asyncio.to_thread(send_all) <= SENDS / 10
