"""A consumer that writes down what it was given, and whose offsets must not go back when the master changes."""

from __future__ import annotations

import asyncio

from gantrymq import ConsumeFrom, MessageExt, PushConsumer
from tests.faults.replication.history import Delivery, QueueKey
from tests.waiting import Beside

GROUP, ORDERED_GROUP = "Readers", "OrderedReaders"


class Reader(Beside):
    """Consumes on a thread of its own while its block runs. ordered: as an ordered consumer."""

    def __init__(self, topic: str, name_servers: str, *, ordered: bool = False) -> None:
        self._topic, self._name_servers, self._ordered = topic, name_servers, ordered
        super().__init__(lambda: asyncio.run(self._run()), "reader")
        self.delivered: list[Delivery] = []

    async def _run(self) -> None:
        async def listener(messages: list[MessageExt]) -> None:
            for message in messages:
                queue = QueueKey(message.topic, message.queue_id)
                self.delivered.append(Delivery(queue, message.queue_offset, message.body))

        consumer = PushConsumer(
            self._name_servers,
            group=ORDERED_GROUP if self._ordered else GROUP,
            listener=listener,
            ordered=self._ordered,
            consume_from=ConsumeFrom.FIRST_OFFSET,
        )
        consumer.subscribe(self._topic)
        async with consumer:
            await asyncio.to_thread(self.ends.wait)
