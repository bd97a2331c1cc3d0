"""What a message costs the store, stage by stage, in CPU time of this process.

The best of several rounds, user and system time together, in microseconds: wall time says more about the neighbours.
"fresh pages" includes what the kernel does to make room in the page cache, "warm pages" does not. Only group commit,
which waits for the disk, is measured by the clock.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from appliance.bench.disk_watermarks import STORE_MARKS
from gantrymq.message import ids, properties
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import MessageStore, MessageStoreConfig, StoreBatch, StoreMessage, TagFilter
from store.batch import build_batch
from store.log.mapped_file import MappedFile
from store.log.scan import scan_file
from tests.waiting import aside

HOST = ids.encode_host("127.0.0.1", 10911)
BODY_BYTES = 1024
ROUNDS = 5
TOPIC = "BenchStore"
BATCH_TOPIC = "BenchStoreBatch"
GROUP = 64


class Stage(NamedTuple):
    """One line of the table. Names that start with two spaces are part of the line above them."""

    name: str
    us: float
    note: str = ""


class StoreStages:
    """Measures one store that it makes in `folder`. `count` messages a round."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count
        self._body = os.urandom(BODY_BYTES)
        self._stages: list[Stage] = []
        self._store = MessageStore(MessageStoreConfig(root=folder, **STORE_MARKS))

    def run(self) -> list[Stage]:
        store = self._store
        store.load()
        store.start()
        try:
            asyncio.run(self._all())
        finally:
            store.parts.log.position = max(
                store.parts.log.position, max(queue.max_physical_offset for queue in store.parts.queues)
            )
            store.close()
        return self._stages

    async def _all(self) -> None:
        async with aside(self._store.run()):
            self._append()
            self._batches()
            await asyncio.sleep(1.5)  # units get to their files
            self._dispatch()
            self._reads()
            self._index()
            await self._group_commit()

    def _cost(self, name: str, work: Callable[[], object], count: int, *, messages: int = 1, note: str = "") -> float:
        best = float("inf")
        for _ in range(ROUNDS):
            started = time.process_time()
            for _ in range(count):
                work()
            best = min(best, time.process_time() - started)
        us = best / count / messages * 1e6
        self._stages.append(Stage(name, us, note))
        return us

    def _message(self, keys: str = "") -> StoreMessage:
        text = f"UNIQ_KEY\x01{ids.create_unique_id()}\x02TAGS\x01TagA\x02CLUSTER\x01DefaultCluster"
        if keys:
            text = f"KEYS\x01{keys}\x02{text}"
        return StoreMessage(TOPIC, 0, self._body, text.encode(), 0, 0, 1, HOST, HOST)

    def _append(self) -> None:
        store, count = self._store, self._count
        messages = iter([self._message() for _ in range(count * ROUNDS)])
        self._cost("append 1 KB, one key, fresh pages", lambda: store.put_message(next(messages)), count, note="goal 8")
        log, message = store.parts.log, self._message()
        start, slot = log.position, store.parts.queues.slots[TOPIC]

        def again() -> None:
            log.position = start
            store.put_message(message)

        def index_only() -> None:
            store.parts.index.pending.append((slot.prefix_hash, message.properties, start, 1))
            if len(store.parts.index.pending) >= 256:
                store.parts.dispatcher.put_pending()

        self._cost("append 1 KB, one key, warm pages", again, count)
        self._cost("  index", index_only, count)
        self._cost("  CRC of the body", lambda: zlib.crc32(self._body), count)
        self._cost("  tags code", lambda: store.parts.tags_codes.code(slot, message.properties, 1), count)
        size = log.position - start
        record = bytes(log.queue.files[-1].view[start - log.base : start - log.base + size])
        target, at = memoryview(log.queue.files[-1].map), start - log.base

        def copy() -> None:
            target[at : at + size] = record

        self._cost("  copy into the log", copy, count)
        target.release()
        message = self._message("order-4711")
        self._cost("append 1 KB, two keys, warm pages", again, count)

    def _batches(self) -> None:
        store, count = self._store, max(self._count // 32, 1)

        def made() -> StoreBatch:
            parts = [
                Message(BATCH_TOPIC, self._body, "TagA", properties={"UNIQ_KEY": ids.create_unique_id()})
                for _ in range(32)
            ]
            return StoreBatch(BATCH_TOPIC, 0, encode_batch(parts), b"CLUSTER\x01DefaultCluster", 0, 0, 1, HOST, HOST)

        batches = iter([made() for _ in range(count * ROUNDS)])
        self._cost(
            "append in batches of 32, fresh pages", lambda: store.put_batch(next(batches)), count, messages=32,
            note="goal 2.5",
        )  # fmt: skip
        log, batch = store.parts.log, made()
        start, slot = log.position, store.parts.queues.slots[BATCH_TOPIC]

        def again() -> None:
            log.position = start
            store.put_batch(batch)

        self._cost("append in batches of 32, warm pages", again, count, messages=32)
        self._cost(
            "  records and units",
            lambda: build_batch(store.parts.tags_codes, slot, batch, 0, start, 1),
            count,
            messages=32,
        )

    def _dispatch(self) -> None:
        """What recovery does with each record: read it, check it, feed queue and index."""
        store = self._store
        file = store.parts.log.queue.files[0]
        end = min(store.parts.log.position, file.end)
        messages = 0

        def counting(_found: object, _position: int) -> None:
            nonlocal messages
            messages += 1

        scan_file(file, 0, check_crc=False, on_record=counting)
        per = max(messages, 1)

        def scan(check_crc: bool) -> int:
            return scan_file(file, 0, check_crc=check_crc, on_record=None)

        self._cost("dispatch: read records", lambda: scan(False), 1, messages=per, note=f"of {end >> 20} MiB")
        self._cost("dispatch: read records, CRC of each body", lambda: scan(True), 1, messages=per)
        self._dispatch_anew(file, per)

    def _dispatch_anew(self, file: MappedFile, messages: int) -> None:
        """Feed queues and index of a store that has none, as a start after a crash does."""
        empty = MessageStore(MessageStoreConfig(root=self._folder / "anew", **STORE_MARKS))
        empty.load()
        started = time.process_time()
        scan_file(file, 0, check_crc=True, on_record=empty.parts.dispatcher.redispatch)
        empty.parts.dispatcher.put_pending()
        us = (time.process_time() - started) / messages * 1e6
        self._stages.append(Stage("dispatch: read records, CRC, queues and index", us))
        empty.close()

    def _reads(self) -> None:
        store, count = self._store, self._count
        end = store.max_offset(BATCH_TOPIC, 0)
        wanted = TagFilter(frozenset({properties.string_hash_code("TagA")}))
        chance = random.Random(1)
        at = 0

        def in_order() -> None:
            nonlocal at
            result = store.get_message("g", BATCH_TOPIC, 0, at, 32)
            at = result.next_begin_offset if result.next_begin_offset < end - 32 else 0

        recent = max(end - 32, 0)
        get, count = store.get_message, count // 8
        self._cost("read 32 recent, a request", lambda: get("g", BATCH_TOPIC, 0, recent, 32), count, note="goal 12")
        self._cost("read 32 recent with a tag", lambda: get("g", BATCH_TOPIC, 0, recent, 32, wanted), count)
        self._cost("read 32 in order from the files, a request", in_order, count)
        self._cost("read 1 at random", lambda: get("g", BATCH_TOPIC, 0, chance.randrange(end), 1), count)

    def _index(self) -> None:
        store, count = self._store, self._count // 8
        store.put_message(self._message("needle"))
        found = store.query_message(TOPIC, "needle", 32, 0, 1 << 62)
        assert len(found.buffers) == 1
        self._cost("query by key, one found", lambda: store.query_message(TOPIC, "needle", 32, 0, 1 << 62), count)
        self._cost("query by key, none found", lambda: store.query_message(TOPIC, "hay", 32, 0, 1 << 62), count)

    async def _group_commit(self) -> None:
        """Wall time: 64 messages wait together for the disk."""
        store, loop = self._store, asyncio.get_running_loop()
        waits: list[float] = []
        syncs: list[float] = []
        for _ in range(20):
            done = loop.create_future()
            started = time.perf_counter()
            for _ in range(GROUP):
                result = store.put_message(self._message())
            store.when_flushed(result.physical_offset + result.size_bytes, done.set_result)
            if not await done:
                raise TimeoutError("the disk did not take a group of messages in time")
            waits.append(time.perf_counter() - started)
            file = store.parts.log.queue.files[-1]
            started = time.perf_counter()
            for _ in range(GROUP):
                store.put_message(self._message())
            file.sync()
            syncs.append(time.perf_counter() - started)
        middle = len(waits) // 2
        self._stages.append(
            Stage(f"group commit of {GROUP}, wall, a group", sorted(waits)[middle] * 1e6, "the disk's speed")
        )
        self._stages.append(Stage("  append and fdatasync alone", sorted(syncs)[middle] * 1e6))
