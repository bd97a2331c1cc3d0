"""A real consumer for a test of pages, and waiting for what it brings about."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dashboard.cluster.errors import GroupNotFound
from gantrymq import ConsumeResult
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.message.model import MessageExt
from tests.harness import ServingCluster


async def waited_for(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(15):
        while True:
            with contextlib.suppress(GroupNotFound):  # until its first heartbeat
                if await condition():
                    return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def consuming(
    cluster: ServingCluster, group: str, topic: str, expression: str = "*", **options: object
) -> AsyncIterator[list[MessageExt]]:
    """A member of the group; what it was handed."""
    seen: list[MessageExt] = []

    async def handle(messages: list[MessageExt]) -> ConsumeResult:
        seen.extend(messages)
        return ConsumeResult.SUCCESS

    consumer = PushConsumer(cluster.namesrv_address, group=group, listener=handle, **options)  # type: ignore[arg-type]
    consumer.subscribe(topic, expression)
    async with consumer:
        yield seen
