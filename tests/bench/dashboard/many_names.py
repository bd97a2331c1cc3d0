"""A cluster with many topics and groups, made over the wire: messages in some topics, some groups behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from gantrymq import Message, Producer
from gantrymq.client.admin.client import AdminClient
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig

AT_ONCE = 16
FILLED_EACH = 10  # one topic of so many has messages
MESSAGES = 20
BEHIND_EACH = 3  # one group of so many has read less than there is
TIMEOUT_S = 60.0


def topic_name(number: int) -> str:
    return f"orders-{number:05}"


def group_name(number: int) -> str:
    return f"billing-{number:05}"


async def fill(namesrv: str, topics: int, groups: int) -> None:
    """Make them on every broker; groups have offsets of topics that have messages."""
    filled = [topic_name(number) for number in range(0, topics, FILLED_EACH)]
    async with AdminClient(namesrv, timeout_s=TIMEOUT_S) as admin:
        info = await admin.cluster.info()
        addresses = [data.broker_addrs[0] for data in info.broker_addr_table.values()]

        async def make_topic(number: int) -> None:
            config = TopicConfig(topic_name(number), read_queue_nums=4, write_queue_nums=4, perm=6)
            for address in addresses:
                await admin.topics.create_at(address, config)

        async def make_group(number: int) -> None:
            name, topic = group_name(number), filled[number % len(filled)]
            for address in addresses:
                await admin.groups.create_at(address, SubscriptionGroupConfig(group_name=name))
                for queue_id in range(4):
                    newest = await admin.offsets.max_at(address, topic, queue_id)
                    is_behind = number % BEHIND_EACH == 0
                    await admin.offsets.set_at(address, name, topic, queue_id, 0 if is_behind else newest)

        await _each(range(topics), make_topic)
        async with Producer(namesrv, group="bench") as producer:
            for topic in filled:
                await producer.send_many([Message(topic, b"x" * 200) for _ in range(MESSAGES)])
        await _each(range(groups), make_group)


async def _each(numbers: Iterable[int], make: Callable[[int], Awaitable[None]]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            await make(number)

    await asyncio.gather(*(one(number) for number in numbers))
