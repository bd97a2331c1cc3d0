"""What a message costs the store, stage by stage: `python -m tests.bench.bench_store [--folder DIR] [--count N]`.

CPU time of this process (user and system), the best of several rounds, in microseconds; wall time says more about the
neighbours. "fresh pages" includes what the kernel does to make room in the page cache, "warm pages" does not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from gantrymq.message import ids
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.properties import string_hash_code
from store import MessageStore, MessageStoreConfig, StoreBatch, StoreMessage

HOST = ids.encode_host("127.0.0.1", 10911)
BODY = os.urandom(1024)
ROUNDS = 5


def cost_us(work: Callable[[], object], count: int) -> float:
    """Return the best CPU time of one of `count` calls."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(count):
            work()
        best = min(best, time.process_time() - started)
    return best / count * 1e6


def report(stage: str, us: float, goal: str = "") -> None:
    print(f"{stage:<58}{us:9.2f} us   {goal}")


def single(keys: str = "") -> StoreMessage:
    properties = f"UNIQ_KEY\x01{ids.create_unique_id()}\x02TAGS\x01TagA\x02CLUSTER\x01DefaultCluster"
    if keys:
        properties = f"KEYS\x01{keys}\x02{properties}"
    return StoreMessage("Bench", 0, BODY, properties.encode(), 0, 0, 1, HOST, HOST)


def bench_put(store: MessageStore, count: int) -> None:
    messages = iter([single() for _ in range(count * ROUNDS)])
    report("put 1 KB, one key, fresh pages", cost_us(lambda: store.put_message(next(messages)), count), "goal 8, aim 6")
    log, message = store._log, single()
    start = log.position

    def again() -> None:
        log.position = start
        store.put_message(message)

    def index_only() -> None:
        pending = store._index.pending
        pending.append((slot, message.properties, start, 1))
        if len(pending) >= 256:
            store._put_pending()

    slot = store._queues.slots["Bench"]
    report("put 1 KB, one key, warm pages", cost_us(again, count))
    report("  of which: index", cost_us(index_only, count))
    report("  of which: CRC of the body", cost_us(lambda: zlib.crc32(BODY), count))
    report("  of which: tag", cost_us(lambda: store._tags_code(slot, message.properties, 1), count))
    store._index_enable = False
    report("put 1 KB, no index, warm pages", cost_us(again, count))
    store._index_enable = True
    message = single("order-4711")
    report("put 1 KB, two keys, warm pages", cost_us(again, count))


def bench_batch(store: MessageStore, count: int) -> None:
    def made() -> StoreBatch:
        parts = [Message("Bench", BODY, "TagA", properties={"UNIQ_KEY": ids.create_unique_id()}) for _ in range(32)]
        return StoreBatch("BenchBatch", 0, encode_batch(parts), b"CLUSTER\x01DefaultCluster", 0, 0, 1, HOST, HOST)

    batches = iter([made() for _ in range(count // 32 * ROUNDS)])
    fresh = cost_us(lambda: store.put_batch(next(batches)), count // 32)
    report("batch of 32 x 1 KB, a message, fresh pages", fresh / 32, "goal 2.5")
    log, batch = store._log, made()
    start = log.position

    def again() -> None:
        log.position = start
        store.put_batch(batch)

    slot = store._queues.slots["BenchBatch"]
    report("batch of 32 x 1 KB, a message, warm pages", cost_us(again, count // 32) / 32)
    built = cost_us(lambda: store._build_batch(slot, batch, 0, start, 1), count // 32) / 32
    report("  of which: making records and units", built)


def bench_get(store: MessageStore, count: int) -> None:
    end = store.max_offset("BenchBatch", 0) - 32
    wanted = frozenset({string_hash_code("TagA")})
    report(
        "get 32 recent, no filter", cost_us(lambda: store.get_message("g", "BenchBatch", 0, end, 32), count), "goal 12"
    )
    report(
        "get 32 recent, tag filter", cost_us(lambda: store.get_message("g", "BenchBatch", 0, end, 32, wanted), count)
    )
    report("get 32 from the files, no filter", cost_us(lambda: store.get_message("g", "BenchBatch", 0, 0, 32), count))
    key = single().properties.decode().split("\x01")[1].split("\x02")[0]
    report("query by key, none found", cost_us(lambda: store.query_message("Bench", key, 32, 0, 1 << 62), count // 10))


async def run(store: MessageStore, count: int) -> None:
    running = asyncio.create_task(store.run())
    await asyncio.sleep(0)
    bench_put(store, count)
    await asyncio.sleep(1.5)
    bench_batch(store, count)
    await asyncio.sleep(1.5)
    bench_get(store, count)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to put the store; a temporary folder by default")
    parser.add_argument("--count", type=int, default=20000, help="messages a round")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        store = MessageStore(MessageStoreConfig(root=Path(folder)))
        store.load()
        store.start()
        try:
            asyncio.run(run(store, arguments.count))
        finally:
            store._log.position = max(store._log.position, store._dispatched)
            store.close()


if __name__ == "__main__":
    main()
