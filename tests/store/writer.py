"""A process that fills a store and says on stdout which messages it was told are stored; to be killed at any moment.

    python -m tests.store.writer FOLDER SEED sync|async

Each acknowledged message is a line `topic queue queue_offset physical_offset key`. A line is written only after the put
(with `sync`: the flush) was confirmed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import MessageStore, PutMessageResult, PutMessageStatus, StoreBatch
from tests.store.conftest import HOST, message, small_config


def acknowledge(topic: str, queue_id: int, put: PutMessageResult, keys: list[str]) -> None:
    lines = [
        f"{topic} {queue_id} {put.queue_offset + number} {offset} {key}\n"
        for number, (offset, key) in enumerate(zip(put.offsets or (put.physical_offset,), keys, strict=True))
    ]
    os.write(1, "".join(lines).encode())


def put_one(store: MessageStore, chance: random.Random, number: int) -> tuple[str, int, PutMessageResult, list[str]]:
    topic, queue_id = f"T{chance.randrange(3)}", chance.randrange(2)
    body = chance.randbytes(chance.randrange(1500))
    if chance.random() < 0.2:
        keys = [f"b{number}x{each}" for each in range(chance.randrange(1, 8))]
        batch = encode_batch([Message(topic, body, keys=key) for key in keys])
        return topic, queue_id, store.put_batch(StoreBatch(topic, queue_id, batch, b"", 0, 0, 1, HOST, HOST)), keys
    key = f"k{number}"
    if chance.random() < 0.1:
        put = store.put_message(message(body, topic=topic, queue_id=queue_id, keys=key, properties="DELAY\x011"))
        return "SCHEDULE_TOPIC_XXXX", 0, put, [key]
    if chance.random() < 0.1:
        store.put_message(message(body, topic=topic, keys=key, sys_flag=4))  # prepared: in no queue
    return topic, queue_id, store.put_message(message(body, topic=topic, queue_id=queue_id, keys=key)), [key]


async def write(folder: Path, seed: int, sync: bool) -> None:
    chance = random.Random(seed)
    settings = {"flush_disk_type": "SYNC_FLUSH" if sync else "ASYNC_FLUSH", "consume_queue_flush_interval_ms": 20}
    store = MessageStore(small_config(folder, commit_log_file_bytes=1 << 18, index_entries=4000, **settings))
    store.load()
    store.start()
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(store.run())
    number = seed * 10_000_000
    while not running.done():
        for _ in range(chance.randrange(1, 40)):
            number += 1
            topic, queue_id, put, keys = put_one(store, chance, number)
            assert put.status is PutMessageStatus.PUT_OK, put
            if sync:
                flushed = loop.create_future()
                store.when_flushed(put.physical_offset + put.size_bytes, flushed.set_result)
                assert await flushed
            acknowledge(topic, queue_id, put, keys)
        await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "sync"))
