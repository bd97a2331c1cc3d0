"""Fills a broker's store with messages of a few days, as the reports' benchmark reads them."""

from __future__ import annotations

import itertools
from pathlib import Path

from appliance.bench.disk_watermarks import STORE_MARKS
from gantrymq.message import ids
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import MessageStore, MessageStoreConfig, PutMessageStatus, StoreBatch

HOSTS = [ids.encode_host(f"10.0.0.{number}", 10911) for number in range(1, 8)]
TOPICS, QUEUES = 20, 8
BODY_BYTES = (128, 1024)  # half of the batches each
BATCH = 50
DAYS = 3
BEGIN_MS = 1_790_000_000_000 // 86_400_000 * 86_400_000
END_MS = BEGIN_MS + DAYS * 86_400_000


class _Clock:
    """Seconds since 1970, moved by the filling."""

    now = BEGIN_MS / 1000

    def __call__(self) -> float:
        return self.now


def fill(root: Path, count: int, sizes: tuple[int, ...] = BODY_BYTES) -> int:
    """Put `count` messages, rounded up to whole batches, into a new store. Returns how many bytes its log has.

    sizes: of the bodies, in turn.
    """
    clock = _Clock()
    # No report looks at the key index, and filling it would take as long as all the rest.
    store = MessageStore(MessageStoreConfig(root=root, index_enable=False, **STORE_MARKS), clock=clock)
    store.load()
    store.start()
    batches = -(-count // BATCH)
    topics = itertools.cycle([(f"topic-{number:02}", size) for number in range(TOPICS) for size in sizes])
    bodies = {
        (topic, size): encode_batch([Message(topic, bytes(size), tags="bench", keys=f"k{n}") for n in range(BATCH)])
        for topic, size in itertools.islice(topics, TOPICS * len(sizes))
    }
    try:
        for number in range(batches):
            topic, size = next(topics)
            now_ms = BEGIN_MS + (END_MS - BEGIN_MS) * number // batches
            clock.now = now_ms / 1000
            host, queue = HOSTS[number % len(HOSTS)], number // TOPICS % QUEUES
            put = store.put_batch(
                StoreBatch(topic, queue, bodies[topic, size], b"", 0, 0, now_ms - number % 100, host, HOSTS[0])
            )
            if put.status is not PutMessageStatus.PUT_OK:
                raise OSError(f"the store for the benchmark refused a batch: {put.status.name}")
            if number % 2000 == 0:
                store.flush()
        return store.max_physical_offset
    finally:
        store.close()
