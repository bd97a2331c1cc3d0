"""A consumer that writes down what it was given, and whose offsets must not go back when the master changes."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

from gantrymq import ConsumeFrom, MessageExt, PushConsumer
from tests.faults.replication.history import Delivery, QueueKey

GROUP = "Readers"


class Reader:
    """Consumes on a thread of its own while its block runs."""

    def __init__(self, topic: str, name_servers: str) -> None:
        self._topic, self._name_servers = topic, name_servers
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="reader")
        self.delivered: list[Delivery] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        async def listener(messages: list[MessageExt]) -> None:
            for message in messages:
                queue = QueueKey(message.topic, message.queue_id)
                self.delivered.append(Delivery(queue, message.queue_offset, message.body))

        consumer = PushConsumer(
            self._name_servers, group=GROUP, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
        )
        consumer.subscribe(self._topic)
        async with consumer:
            await asyncio.to_thread(self._stop.wait)
