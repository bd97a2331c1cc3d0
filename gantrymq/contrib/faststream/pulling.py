"""Messages that a subscriber without handlers is asked for: `get_one`, and iterating it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from faststream.message import AckStatus

from gantrymq.client.consume.pull_consumer import PullConsumer
from gantrymq.contrib.faststream.message import Acknowledged
from gantrymq.errors import ConfigError
from gantrymq.message.model import MessageExt


class Pulling:
    """One subscriber's pull consumer.

    Asking for the next message says that the one before is finished, unless it was `nack`ed: then it comes again, with
    those behind it. At the end the last one is finished if it was acknowledged, and comes again otherwise.
    """

    def __init__(self, consumer: PullConsumer, *, is_batch: bool) -> None:
        self._consumer = consumer
        self._is_batch = is_batch
        self._turn: Iterator[MessageExt] = iter(())
        self._last: Acknowledged[Any] | None = None

    async def start(self, topic: str, expression: str, sql: str | None) -> None:
        """Join the group."""
        await self._consumer.start()
        self._consumer.subscribe(topic, expression, sql=sql)

    async def close(self) -> None:
        """Leave the group."""
        last, self._last = self._last, None
        if last is not None and last.committed in {AckStatus.ACKED, AckStatus.REJECTED}:
            await self._consumer.commit()
        await self._consumer.close()

    def gave(self, message: Acknowledged[Any]) -> None:
        """This is what became of the message that was asked for last."""
        self._last = message

    async def next(self, timeout_s: float) -> MessageExt | list[MessageExt] | None:
        """The next message, or with is_batch messages of one queue; None when none comes in time."""
        await self._settle()
        if self._is_batch:
            return await self._consumer.poll(timeout_s) or None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while (message := next(self._turn, None)) is None:
            batch = await self._consumer.poll_one_by_one(max(deadline - loop.time(), 0.0))
            if batch is None:
                return None
            self._turn = batch.one_by_one()
        return message

    async def _settle(self) -> None:
        last, self._last = self._last, None
        if last is None or last.committed is not AckStatus.NACKED:
            return
        first = last.raw_message[0] if self._is_batch else last.raw_message
        with contextlib.suppress(ConfigError):  # the queue is another member's by now, which gets it
            await self._consumer.seek(first.queue, first.queue_offset)
