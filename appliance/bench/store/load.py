"""The load of java/StoreLoad.java for GantryMQ's store: the same arguments, the same JSON lines.

Run as a process of its own (`python -m appliance.bench.store.load stages FOLDER ...`), so that its CPU time includes
all threads, and so that it can be killed. Changes of the load must be made in both programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import orjson

from appliance.bench.disk_watermarks import STORE_MARKS
from gantrymq.message import ids
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import MessageStore, MessageStoreConfig, PutMessageResult, PutMessageStatus, StoreBatch, StoreMessage

TOPIC = "BenchLoad"
BATCH_TOPIC = "BenchLoadBatch"
HOST = ids.encode_host("127.0.0.1", 10911)
GROUPS = 20
READ = 32
LOOK_S = 0.2


class Cost:
    """Of a stage, over its rounds, seconds: the best wall time, and the mean CPU of the rounds after the first.

    A mean, because Java's clock of the process ticks in hundredths of a second; not the first, because Java compiles.
    """

    def __init__(self, units: int) -> None:
        self._units = units
        self._best_wall = float("inf")
        self._later_cpu: list[float] = []
        self._started = (0.0, 0.0)
        self._rounds = 0

    def start(self) -> None:
        self._started = time.perf_counter(), time.process_time()

    def take(self, times: int = 1) -> None:
        wall, cpu = time.perf_counter() - self._started[0], time.process_time() - self._started[1]
        self._best_wall = min(self._best_wall, wall / times)
        if self._rounds:
            self._later_cpu.append(cpu / times)
        self._rounds += 1

    def tell(self, stage: str) -> None:
        cpu = sum(self._later_cpu) / len(self._later_cpu)
        _tell({"stage": stage, "wall_us": self._best_wall * 1e6 / self._units, "cpu_us": cpu * 1e6 / self._units})


class StoreLoad:
    """folder: where the stores are made. The numbers are those of store_peer.Load."""

    def __init__(
        self, folder: Path, count: int, rounds: int, queues: int, batch: int, group: int, body_bytes: int
    ) -> None:
        self._folder = folder
        self._count = count
        self._rounds = rounds
        self._queues = queues
        self._batch = batch
        self._group = group
        self._body = random.Random(1).randbytes(body_bytes)
        self._made = 0

    async def stages(self) -> None:
        store = self._opened("plain", "ASYNC_FLUSH")
        async with _running(store):
            await self._appends(store)
            await self._batches(store)
            self._reads(store)
            self._queries(store)
        store.close()
        store = self._opened("synced", "SYNC_FLUSH")
        async with _running(store):
            await self._group_commit(store)
        store.close()

    async def fill(self) -> None:
        """Write COUNT messages in batches, say so, and wait to be killed."""
        store = self._opened("plain", "ASYNC_FLUSH")
        async with _running(store):
            for number in range(0, self._count, self._batch):
                _must_be_stored(store.put_batch(self._new_batch(number // self._batch % self._queues)))
                await asyncio.sleep(0)
            self._tell_stored(store)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read, 1)

    def reopen(self) -> None:
        cost = time.perf_counter(), time.process_time()
        store = self._opened("plain", "ASYNC_FLUSH")
        wall, cpu = time.perf_counter() - cost[0], time.process_time() - cost[1]
        _tell({"stage": "open", "wall_us": wall * 1e6, "cpu_us": cpu * 1e6})
        self._tell_stored(store)
        store.close()

    def _opened(self, name: str, flush_disk_type: str) -> MessageStore:
        config = MessageStoreConfig(root=self._folder / name, flush_disk_type=flush_disk_type, **STORE_MARKS)
        store = MessageStore(config)
        store.load()
        store.start()
        return store

    async def _appends(self, store: MessageStore) -> None:
        loads = [[self._new_message() for _ in range(self._count)] for _ in range(self._rounds)]
        await self._loaded(store, "append", self._count, [partial(store.put_message, m) for ms in loads for m in ms])

    async def _batches(self, store: MessageStore) -> None:
        each = max(self._count // self._batch, 1)
        loads = [self._new_batch(0) for _ in range(each * self._rounds)]
        await self._loaded(store, "batch", each * self._batch, [partial(store.put_batch, m) for m in loads])

    async def _loaded(
        self, store: MessageStore, stage: str, messages: int, puts: list[Callable[[], PutMessageResult]]
    ) -> None:
        """Once until the puts have returned and once until all of it is in queues and index.

        Here a put returns when its unit can be read; what is left for later is the rest of a bunch of index entries.
        """
        returned, dispatched = Cost(messages), Cost(messages)
        each = len(puts) // self._rounds
        for number in range(self._rounds):
            returned.start()
            dispatched.start()
            for put in puts[number * each : (number + 1) * each]:
                _must_be_stored(put())
            returned.take()
            store.parts.dispatcher.put_pending()
            dispatched.take()
            await asyncio.sleep(0.1)
        returned.tell(stage)
        dispatched.tell(f"{stage}, dispatched")

    def _reads(self, store: MessageStore) -> None:
        end = store.max_offset(BATCH_TOPIC, 0)

        def read(offset: int, wanted: int) -> int:
            found = store.get_message("g", BATCH_TOPIC, 0, offset, wanted).message_count
            if found != wanted:
                raise RuntimeError(f"{found} messages at {offset}, not {wanted}")
            return found

        requests = end // READ
        self._measured(
            "read 32 in order", requests * READ, lambda: sum(read(each * READ, READ) for each in range(requests))
        )
        each, chance = max(self._count // 8, 1), random.Random(1)
        self._measured("read 1 at random", each, lambda: sum(read(int(chance.random() * end), 1) for _ in range(each)))

    def _queries(self, store: MessageStore) -> None:
        each, chance = max(self._count // 8, 1), random.Random(2)

        def query() -> int:
            key = f"order-{chance.randrange(self._count * self._rounds)}"
            found = len(store.query_message(TOPIC, key, READ, 0, 1 << 62).buffers)
            if not found:  # more: the index knows 31 bits of a key
                raise RuntimeError(f"no message of {key}")
            return found

        self._measured("query by key", each, lambda: sum(query() for _ in range(each)))

    def _measured(self, stage: str, units: int, work: Callable[[], object]) -> None:
        cost = Cost(units)
        for _ in range(self._rounds):
            started, times = time.perf_counter(), 0
            cost.start()
            while not times or time.perf_counter() - started < LOOK_S:
                work()
                times += 1
            cost.take(times)
        cost.tell(stage)

    async def _group_commit(self, store: MessageStore) -> None:
        cost, loop = Cost(self._group * GROUPS), asyncio.get_running_loop()
        for _ in range(self._rounds):
            started, times = time.perf_counter(), 0
            cost.start()
            while not times or time.perf_counter() - started < LOOK_S:
                for _ in range(GROUPS):
                    waiting: list[asyncio.Future[bool]] = []
                    for _ in range(self._group):
                        waiting.append(loop.create_future())
                        put = store.put_message(self._new_message())
                        _must_be_stored(put)
                        store.when_flushed(put.physical_offset + put.size_bytes, waiting[-1].set_result)
                    if not all(await asyncio.gather(*waiting)):
                        raise TimeoutError("the disk did not take a group of messages in time")
                times += 1
            cost.take(times)
        cost.tell("group commit")

    def _tell_stored(self, store: MessageStore) -> None:
        _tell({"stored": sum(store.max_offset(BATCH_TOPIC, queue_id) for queue_id in range(self._queues))})

    def _new_message(self) -> StoreMessage:
        text = (
            f"KEYS\x01order-{self._made}\x02UNIQ_KEY\x01{uuid.uuid4().hex.upper()}"
            "\x02TAGS\x01TagA\x02CLUSTER\x01DefaultCluster"
        )
        queue_id = self._made % self._queues
        self._made += 1
        now_ms = int(time.time() * 1000)
        return StoreMessage(TOPIC, queue_id, self._body, text.encode(), 0, 0, now_ms, HOST, HOST)

    def _new_batch(self, queue_id: int) -> StoreBatch:
        parts = [
            Message(BATCH_TOPIC, self._body, "TagA", properties={"UNIQ_KEY": uuid.uuid4().hex.upper()})
            for _ in range(self._batch)
        ]
        body, now_ms = encode_batch(parts), int(time.time() * 1000)
        return StoreBatch(BATCH_TOPIC, queue_id, body, b"CLUSTER\x01DefaultCluster", 0, 0, now_ms, HOST, HOST)


@contextlib.asynccontextmanager
async def _running(store: MessageStore) -> AsyncIterator[None]:
    running = asyncio.create_task(store.run())
    await asyncio.sleep(0)
    yield
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def _must_be_stored(result: PutMessageResult) -> None:
    if result.status is not PutMessageStatus.PUT_OK:
        raise RuntimeError(f"not stored: {result.status}")


def _tell(line: dict[str, object]) -> None:
    print(orjson.dumps(line).decode(), flush=True)


def main(arguments: list[str]) -> None:
    """stages | fill | open, then FOLDER COUNT ROUNDS QUEUES BATCH GROUP BODY_BYTES."""
    what, folder, *numbers = arguments
    load = StoreLoad(Path(folder), *map(int, numbers))
    if what == "open":
        load.reopen()
    else:
        asyncio.run({"stages": load.stages, "fill": load.fill}[what]())


if __name__ == "__main__":
    main(sys.argv[1:])
