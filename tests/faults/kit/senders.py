"""Clients of a broker that is about to be killed."""

from __future__ import annotations

import asyncio
import random

from gantrymq import Message, MessageQueue, Producer, SendStatus
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.topics import SCHEDULE_TOPIC
from tests.faults.kit.traffic import QUEUES, SENDERS, TOPICS, Acknowledged
from tests.harness import LocalCluster
from tests.waiting import until

LAST_LEVEL = 18
PATIENCE_S = 30.0  # a broker that was killed is known at once, by its connection


class Senders:
    """Clients of a broker that is about to be killed; failures at the end are what they are for."""

    def __init__(self, cluster: LocalCluster, name: str, chance: random.Random) -> None:
        self._cluster = cluster
        self._name = name
        self._chance = chance
        self.acknowledged: list[Acknowledged] = []

    async def run(self, seconds: float) -> None:
        """Send, kill the broker after some time, note what was answered until then."""
        async with Producer(self._cluster.namesrv_address, retries=0, delivery_timeout_s=PATIENCE_S) as producer:
            senders = [asyncio.create_task(self._send(producer, f"{self._name}-{each}")) for each in range(SENDERS)]
            await until(lambda: bool(self.acknowledged) or any(sender.done() for sender in senders))
            await asyncio.sleep(seconds)  # the dice say when the broker dies
            await asyncio.to_thread(self._cluster.kill_broker)
            await asyncio.gather(*senders)

    async def _send(self, producer: Producer, sender: str) -> None:
        number = 0
        chance = self._chance
        while True:
            count = chance.randrange(2, 8) if chance.random() < 0.2 else 1
            keys = [f"{sender}.{number + each}" for each in range(count)]
            number += count
            topic = f"T{chance.randrange(TOPICS)}"
            queue = MessageQueue(topic, self._cluster.broker_name, chance.randrange(QUEUES))
            level = LAST_LEVEL if count == 1 and chance.random() < 0.1 else 0  # two hours: stays where it is
            sent = [Message(topic, chance.randbytes(200), keys=key, delay_level=level) for key in keys]
            try:
                if count > 1:
                    result = await producer.send_batch(sent, queue=queue)
                else:
                    result = await producer.send(sent[0], queue=queue)
            except GantryError:
                return
            if result.status is not SendStatus.SEND_OK:  # the disk is slow: nothing was promised
                continue
            offsets = [decode_offset_message_id(each)[2] for each in result.offset_msg_id.split(",")]
            place = (SCHEDULE_TOPIC, LAST_LEVEL - 1) if level else (topic, queue.queue_id)
            self.acknowledged += [
                Acknowledged(*place, result.queue_offset + each, offset, key)
                for each, (offset, key) in enumerate(zip(offsets, keys, strict=True))
            ]
