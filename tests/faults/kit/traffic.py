"""Many senders at once into one store: single, batch, delayed, transactional messages, each with a key of its own.

A sender waits for what it was promised (with SYNC_FLUSH: the disk) before it says that a message is acknowledged, and
before it sends the next. Keys read `sender.number`, so that order can be checked within a sender and a queue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from appliance.broker.transaction import half as halves
from appliance.broker.transaction.ended import EndedHalves
from appliance.broker.transaction.service import TransactionService
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.topics import SCHEDULE_TOPIC, TRANS_HALF_TOPIC
from store import MessageStore, MessageStoreConfig, PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage
from tests.store.conftest import HOST, message, small_config

SENDERS = 6
TOPICS = 3
QUEUES = 2
ROUNDS_PER_FOLDER = 25
GROUP = "PG"  # of the transactions
COMMITTED, ROLLED_BACK = -2, -3  # instead of a queue offset: an end was acknowledged, not a message


class Acknowledged(NamedTuple):
    """A message somebody was told is stored. `queue_offset` is -1 for one that stands in no queue.

    With COMMITTED or ROLLED_BACK instead, the end of a transaction: of the message that belongs into this queue, and
    whose half stands at `physical_offset`. What notes the end reaches up to `end_offset`, far behind its half.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    key: str
    end_offset: int = 0


Acknowledge = Callable[[list[Acknowledged]], None]


def crash_config(root: Path, **settings: Any) -> MessageStoreConfig:
    """Files so small that each round rolls logs, queues and index."""
    return small_config(
        root,
        **{
            "commit_log_file_bytes": 1 << 17,
            "consume_queue_file_bytes": 4000,
            "index_slots": 500,
            "index_entries": 2000,
            "flush_interval_ms": 10,
            "consume_queue_flush_interval_ms": 20,
            **settings,
        },
    )


class Traffic:
    """Sends until cancelled, or until a put is refused."""

    def __init__(self, store: MessageStore, chance: random.Random, name: str, acknowledge: Acknowledge) -> None:
        self._store = store
        self._transactions = TransactionService(store, EndedHalves.load(store, -1, -1), HOST)
        self._chance = chance
        self._name = name
        self._acknowledge = acknowledge

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(SENDERS):
                group.create_task(self._send(f"{self._name}-{number}"))

    async def _send(self, sender: str) -> None:
        number = 0
        while True:
            count = self._chance.randrange(2, 8) if self._chance.random() < 0.2 else 1
            keys = [f"{sender}.{number + each}" for each in range(count)]
            number += count
            stored, put = self.put(keys)
            assert put.status is PutMessageStatus.PUT_OK, put
            if self._store.config.is_sync_flush:
                assert await self._flushed(put.physical_offset + put.size_bytes)
            self._acknowledge(stored)
            if stored[0].topic == TRANS_HALF_TOPIC:
                await self._end(stored[0])
            await asyncio.sleep(0.002 if self._chance.random() < 0.1 else 0)  # others have their turns

    async def _end(self, prepared: Acknowledged) -> None:
        """Commit, roll back, or leave it open."""
        outcome = self._chance.random()
        if outcome > 0.8:
            return
        half = self._transactions.find(GROUP, prepared.queue_offset, prepared.physical_offset)
        is_committed = outcome < 0.5
        end_offset = self._transactions.commit(half) if is_committed else self._transactions.roll_back(half)
        topic, queue_id = half.real_place()
        if self._store.config.is_sync_flush:
            assert await self._flushed(end_offset)
        end = COMMITTED if is_committed else ROLLED_BACK
        self._acknowledge([Acknowledged(topic, queue_id, end, *prepared[3:5], end_offset)])

    async def _flushed(self, end_offset: int) -> bool:
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._store.when_flushed(end_offset, lambda done: None if answered.done() else answered.set_result(done))
        return await answered

    def put(self, keys: list[str]) -> tuple[list[Acknowledged], PutMessageResult]:
        """Put one message, or several as a batch; return what may be acknowledged."""
        chance, store = self._chance, self._store
        topic, queue_id = f"T{chance.randrange(TOPICS)}", chance.randrange(QUEUES)
        body = chance.randbytes(chance.randrange(600))
        if len(keys) > 1:
            batch = encode_batch([Message(topic, body, keys=key) for key in keys])
            put = store.put_batch(StoreBatch(topic, queue_id, batch, b"", 0, 0, 1, HOST, HOST))
            return [
                Acknowledged(topic, queue_id, put.queue_offset + each, offset, key)
                for each, (key, offset) in enumerate(zip(keys, put.offsets, strict=False))
            ], put
        kind, (key,) = chance.random(), keys
        if kind < 0.1:  # waits in the schedule topic
            put = store.put_message(message(body, topic=topic, queue_id=queue_id, keys=key, properties="DELAY\x012"))
            return [Acknowledged(SCHEDULE_TOPIC, 1, put.queue_offset, put.physical_offset, key)], put
        if kind < 0.25:  # half of a transaction, as the broker stores it
            marks = {"KEYS": key, "UNIQ_KEY": f"unique-{key}", "TRAN_MSG": "true", "PGROUP": GROUP}
            properties = halves.prepared_properties(marks, "C", topic, queue_id)
            put = store.put_message(StoreMessage(TRANS_HALF_TOPIC, 0, body, properties, 0, 0, 1, HOST, HOST))
            return [Acknowledged(TRANS_HALF_TOPIC, 0, put.queue_offset, put.physical_offset, key)], put
        if kind < 0.3:  # marked as prepared, as the store's own interface allows: in the log, in no queue
            put = store.put_message(message(body, topic=topic, queue_id=queue_id, keys=key, sys_flag=4))
            return [Acknowledged(topic, queue_id, -1, put.physical_offset, key)], put
        put = store.put_message(message(body, topic=topic, queue_id=queue_id, keys=key))
        return [Acknowledged(topic, queue_id, put.queue_offset, put.physical_offset, key)], put
