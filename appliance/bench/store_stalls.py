"""The longest turns of the event loop while the store is under load, and what they were spent on.

Three clocks: wall, CPU of the loop's thread, and the time that the thread could run but another process had its core.
Only the last is the machine's fault; a wait that is neither CPU nor that is the store's: a lock, a page, the
interpreter taken by another thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

from appliance.bench.disk_marks import STORE_MARKS
from gantrymq.message import ids
from store import MessageStore, MessageStoreConfig, PutMessageStatus, StoreMessage

HOST = ids.encode_host("127.0.0.1", 10911)
PUTS_A_TURN = 16
LONG_S = 0.005
KEPT = 5


class Turn(NamedTuple):
    """One turn of the loop, seconds."""

    own_s: float  # without the time that other processes had the core
    cpu_s: float
    wall_s: float
    position: int  # of the log


class Stalls(NamedTuple):
    rate_bytes: float  # a second
    turns: int
    long_turns: int  # of more than LONG_S, own time
    long_cpu_turns: int  # of more than LONG_S, CPU time
    dirty_bytes_max: int  # most that the log had not synced
    longest: list[Turn]
    longest_cpu: list[Turn]


def measure_stalls(folder: Path, total_bytes: int, rate_bytes: int, *, flush: bool = True) -> Stalls:
    """Write `total_bytes` at that rate. Without `flush`, all of it stays dirty as far as the store is concerned."""
    config = MessageStoreConfig(root=folder, flush_interval_ms=500 if flush else 3_600_000, **STORE_MARKS)
    store = MessageStore(config)
    store.load()
    store.start()
    gc.collect()
    gc.freeze()
    try:
        return asyncio.run(_load(store, total_bytes, rate_bytes))
    finally:
        gc.unfreeze()
        store.close()


async def _load(store: MessageStore, total_bytes: int, rate_bytes: int) -> Stalls:
    running = asyncio.create_task(store.run())
    await asyncio.sleep(0)
    body = os.urandom(1024)
    clock, cpu = time.perf_counter, time.thread_time
    delays = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    turns: list[Turn] = []
    number = count = dirty_max = 0
    started = clock()
    try:
        while (position := store.max_physical_offset) < total_bytes:
            wall, used, delayed = clock(), cpu(), _delay_s(delays)
            for _ in range(PUTS_A_TURN):
                number += 1
                properties = b"UNIQ_KEY\x017F000001000051AF00000000%08X\x02TAGS\x01TagA" % number
                put = StoreMessage("BenchStalls", number & 7, body, properties, 0, 0, 1, HOST, HOST)
                if store.put_message(put).status is not PutMessageStatus.PUT_OK:
                    raise OSError("the store refuses: is the disk full?")
            await asyncio.sleep(0)
            now = clock()
            elapsed = now - wall
            if elapsed > LONG_S / 4:
                turns.append(Turn(elapsed - (_delay_s(delays) - delayed), cpu() - used, elapsed, position))
            count += 1
            dirty_max = max(dirty_max, position - store.flushed_offset)
            if (ahead_s := position / rate_bytes - (now - started)) > 0:
                await asyncio.sleep(min(ahead_s, 0.01))
        rate = store.max_physical_offset / (clock() - started)
    finally:
        os.close(delays)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    return Stalls(
        rate,
        count,
        sum(turn.own_s > LONG_S for turn in turns),
        sum(turn.cpu_s > LONG_S for turn in turns),
        dirty_max,
        sorted(turns, reverse=True)[:KEPT],
        sorted(turns, key=lambda turn: turn.cpu_s, reverse=True)[:KEPT],
    )


def _delay_s(schedstat: int) -> float:
    """How long this thread has waited for a core so far."""
    return int(os.pread(schedstat, 100, 0).split()[1]) / 1e9
