"""A broker is killed three times amid consumption: what comes again is counted, and nothing is missing.

`-s` prints the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gantrymq import AdminClient, ConsumeFrom, Message, MessageExt, Producer, PullConsumer, PushConsumer
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.gantrymq.client.seen import until
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S

TOPIC, GROUP, QUEUES, MEMBERS, KILLS = "jobs", "workers", 8, 2, 3
WORK_S = 0.02  # of a listener
BEFORE_A_KILL = 150  # messages
AGAIN_MAX = 0.02  # of all; without what a consumer tells a broker that is back, a tenth to a quarter
Position = tuple[int, int]  # queue id and offset: a message that was stored twice is two


class Work:
    """What the members were given."""

    def __init__(self) -> None:
        self.given: Counter[Position] = Counter()

    async def do(self, messages: list[MessageExt]) -> None:
        await asyncio.sleep(WORK_S)  # what a listener takes
        self.given.update((message.queue_id, message.queue_offset) for message in messages)

    @property
    def again(self) -> int:
        return self.given.total() - len(self.given)

    async def poll(self, consumer: PullConsumer) -> None:
        while True:
            for message in await consumer.poll():
                await self.do([message])


@contextlib.asynccontextmanager
async def pushed(name_servers: str, member: int, work: Work, *, ordered: bool = False) -> AsyncIterator[None]:
    consumer = PushConsumer(
        name_servers,
        group=GROUP,
        listener=work.do,
        ordered=ordered,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        instance_name=f"member-{member}",
    )
    consumer.subscribe(TOPIC)
    async with consumer:
        yield


@contextlib.asynccontextmanager
async def in_order(name_servers: str, member: int, work: Work) -> AsyncIterator[None]:
    async with pushed(name_servers, member, work, ordered=True):
        yield


@contextlib.asynccontextmanager
async def polled(name_servers: str, member: int, work: Work) -> AsyncIterator[None]:
    consumer = PullConsumer(
        name_servers, group=GROUP, consume_from=ConsumeFrom.FIRST_OFFSET, instance_name=f"member-{member}"
    )
    consumer.subscribe(TOPIC)
    async with consumer:
        polling = asyncio.create_task(work.poll(consumer))
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)


class Load:
    """Messages one after the other, and where they were stored."""

    def __init__(self, producer: Producer) -> None:
        self.stored: set[Position] = set()
        self._producer = producer

    async def run(self) -> None:
        while True:
            result = await self._producer.send(Message(TOPIC, b"x"), timeout_s=WITHIN_S)
            self.stored.add((result.queue.queue_id, result.queue_offset))
            await asyncio.sleep(WORK_S / 4)  # the pace of the load


@pytest.mark.parametrize("kind", [pushed, in_order, polled])
async def test_few_messages_come_again_when_a_broker_is_killed(
    tmp_path: Path, kind: Callable[[str, int, Work], contextlib.AbstractAsyncContextManager[None]]
) -> None:
    work = Work()
    with LocalCluster(tmp_path) as cluster:
        servers = cluster.namesrv_address
        async with AdminClient(servers) as admin, Producer(servers) as producer, contextlib.AsyncExitStack() as group:
            await admin.topics.create_at(cluster.broker_address, TopicConfig(TOPIC, QUEUES, QUEUES))
            for member in range(MEMBERS):
                await group.enter_async_context(kind(servers, member, work))
            load = Load(producer)
            loading = asyncio.create_task(load.run())
            await _given(work, BEFORE_A_KILL)
            at_first = work.again  # while the members share the queues
            for _ in range(KILLS):
                cluster.kill_broker()
                await asyncio.to_thread(cluster.start_broker)
                await _given(work, BEFORE_A_KILL)
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            await until(lambda: load.stored <= work.given.keys(), within_s=2 * WITHIN_S)
    again = work.again - at_first
    print(f"\n{MEMBERS} {kind.__name__}: {again} of {len(work.given)} messages came again after {KILLS} kills")
    assert again <= AGAIN_MAX * len(work.given)


async def _given(work: Work, more: int) -> None:
    """Wait until so many more messages were given to the members."""
    wanted = len(work.given) + more
    await until(lambda: len(work.given) >= wanted, within_s=2 * WITHIN_S)
