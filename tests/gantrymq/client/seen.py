"""What tests of consumers share: a listener that keeps what it got, and waiting for what must come."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence

from gantrymq import ConsumeFrom, ConsumeResult, Interceptor, MessageExt, PopConsumer, PullConsumer, PushConsumer
from tests.harness import ServingCluster
from tests.waiting import WITHIN_S

numbers = itertools.count()


async def until(condition: Callable[[], bool], *, within_s: float = WITHIN_S) -> None:
    """Wait until the condition holds; TimeoutError when it does not."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)


class Seen:
    """A listener that keeps what it got."""

    def __init__(self) -> None:
        self.messages: list[MessageExt] = []

    async def __call__(self, messages: list[MessageExt]) -> None:
        self.messages += messages

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]


async def polled(consumer: PullConsumer | PopConsumer, count: int) -> list[MessageExt]:
    found: list[MessageExt] = []
    deadline = time.monotonic() + WITHIN_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
        found += await consumer.poll(1.0)
    return found


def consumer_of_all(
    cluster: ServingCluster,
    topic: str,
    listener: Callable[[list[MessageExt]], ConsumeResult],
    interceptors: Sequence[Interceptor],
) -> PushConsumer:
    """A member of group G that begins with the topic's first message."""
    consumer = PushConsumer(
        cluster.namesrv_address, group="G", listener=listener, interceptors=interceptors,
        consume_from=ConsumeFrom.FIRST_OFFSET,
    )  # fmt: skip
    consumer.subscribe(topic)
    return consumer
