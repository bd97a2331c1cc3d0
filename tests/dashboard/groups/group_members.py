"""A real consumer for a test of pages, and waiting for what it brings about."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dashboard.cluster.errors import GroupNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupDetail
from gantrymq import ConsumeResult
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.message.model import MessageExt
from tests.waiting import until


async def group_that(gateway: Gateway, name: str, holds: Callable[[GroupDetail], object]) -> None:
    """Wait until that holds of the group."""

    async def asked() -> bool:
        return bool(holds(await gateway.groups.get(name)))

    await waited_for(asked)


async def waited_for(condition: Callable[[], Awaitable[bool]]) -> None:
    """A consumer that missed its first share of the queues gets one with the next round, 20 s later."""

    async def holds() -> bool:
        with contextlib.suppress(GroupNotFound):  # until its first heartbeat
            return await condition()
        return False

    await until(holds)


@asynccontextmanager
async def consuming(
    gateway: Gateway, group: str, topic: str, expression: str = "*", **options: object
) -> AsyncIterator[list[MessageExt]]:
    """A member of the group; what it was handed."""
    seen: list[MessageExt] = []

    async def handle(messages: list[MessageExt]) -> ConsumeResult:
        seen.extend(messages)
        return ConsumeResult.SUCCESS

    consumer = PushConsumer(gateway.namesrv, group=group, listener=handle, **options)  # type: ignore[arg-type]
    consumer.subscribe(topic, expression)
    async with consumer:
        yield seen
