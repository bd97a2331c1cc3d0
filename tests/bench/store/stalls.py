"""The longest turns of the event loop while the store is under load, and what they were spent on.

A turn's wall time has four parts:

- run delay: the thread could run, but the kernel gave its core to others (schedstat);
- stolen: the thread ran, as far as the kernel knows, but its CPU clock stood still: the hypervisor had the core;
- waiting: the thread gave up its core by itself: for a lock, a page, the interpreter in another thread's hands;
- CPU: of the thread. Page faults and the interrupts that met it are in there, and also what a hypervisor does unseen.

The first two are the machine's, the others are called own. Whether the CPU that a long turn took was the store's can't
be told from the turn. So there is a control: the same store, with its files in memory, while another process writes
the disk at the same rate. Long turns there have nothing to do with the log's pages and their way to the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import threading
import time
from pathlib import Path
from typing import NamedTuple

from appliance.bench.disk_watermarks import STORE_MARKS
from appliance.process.malloc import keep_freed_memory
from gantrymq.message import ids
from store import MessageStore, MessageStoreConfig, PutMessageStatus, StoreMessage
from tests.bench.store import machine_load

HOST = ids.encode_host("127.0.0.1", 10911)
PUTS_A_TURN = 16
LONG_S = 0.005
KEPT = 5
FLUSH_INTERVAL_S = 0.5


class Turn(NamedTuple):
    """One turn of the loop, seconds."""

    own_s: float  # CPU and waiting
    cpu_s: float
    wall_s: float
    delay_s: float
    stolen_s: float
    faults: int  # pages that were mapped or made writable
    position: int  # of the log


class Stalls(NamedTuple):
    rate_bytes: float  # a second
    turns: int
    long_turns: int  # of more than LONG_S, own time
    long_cpu_turns: int  # of more than LONG_S, CPU time
    long_wall_turns: int  # of more than LONG_S, whatever the machine did
    dirty_bytes_max: int  # most that the log had not synced
    longest: list[Turn]  # own time
    longest_wall: list[Turn]
    taken: machine_load.Taken


class Clocks:
    """What the kernel knows of the calling thread. `turn` costs some microseconds, `start` and a short turn fewer."""

    def __init__(self) -> None:
        self._schedstat = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._usage = self._use()
        self._delay_s = self._wall_s = self._cpu_s = 0.0

    def start(self) -> None:
        self._usage = self._use()
        self._delay_s = self._run_delay()
        self._cpu_s = time.thread_time()
        self._wall_s = time.perf_counter()

    def turn(self, position: int) -> Turn | None:
        """Return what the turn since `start` was spent on; None when it was much shorter than a long one."""
        wall_s = time.perf_counter() - self._wall_s
        if wall_s < LONG_S / 4:
            return None
        cpu_s = time.thread_time() - self._cpu_s
        delay_s = self._run_delay() - self._delay_s
        faults, given_up = (now - before for now, before in zip(self._use(), self._usage, strict=True))
        rest_s = max(wall_s - cpu_s - delay_s, 0.0)
        stolen_s = 0.0 if given_up else rest_s
        own_s = max(wall_s - delay_s - stolen_s, min(cpu_s, wall_s))  # the clocks are read one after the other
        return Turn(own_s, cpu_s, wall_s, delay_s, stolen_s, faults, position)

    def close(self) -> None:
        os.close(self._schedstat)

    def _run_delay(self) -> float:
        return int(os.pread(self._schedstat, 100, 0).split()[1]) / 1e9

    def _use(self) -> tuple[int, int]:
        """Page faults, and how often the thread gave up its core."""
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        return usage.ru_minflt + usage.ru_majflt, usage.ru_nvcsw


def measure_stalls(folder: Path, total_bytes: int, rate_bytes: int, *, flush: bool = True) -> Stalls:
    """Write `total_bytes` at that rate. Without `flush`, all of it stays dirty as far as the store is concerned."""
    interval_ms = int(FLUSH_INTERVAL_S * 1000) if flush else 3_600_000
    store = MessageStore(MessageStoreConfig(root=folder, flush_interval_ms=interval_ms, **STORE_MARKS))
    store.load()
    store.start()
    keep_freed_memory()  # as a broker's process does
    gc.collect()
    gc.freeze()
    try:
        return asyncio.run(_load(store, total_bytes, rate_bytes))
    finally:
        gc.unfreeze()
        store.close()


async def _load(store: MessageStore, total_bytes: int, rate_bytes: int) -> Stalls:
    """The first message makes the files and is not part of it: in memory that takes longer than on a disk."""
    running = asyncio.create_task(store.run())
    await asyncio.sleep(0)
    body = os.urandom(1024)
    number = 0

    def put(count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            properties = b"UNIQ_KEY\x017F000001000051AF00000000%08X\x02TAGS\x01TagA" % number
            message = StoreMessage("BenchStalls", number & 7, body, properties, 0, 0, 1, HOST, HOST)
            if store.put_message(message).status is not PutMessageStatus.PUT_OK:
                raise OSError("the store refuses: is the disk full?")

    put(1)
    clocks, before = Clocks(), machine_load.taken()
    turns: list[Turn] = []
    count = dirty_max = 0
    started = time.perf_counter()
    try:
        while (position := store.max_physical_offset) < total_bytes:
            clocks.start()
            put(PUTS_A_TURN)
            await asyncio.sleep(0)
            if (turn := clocks.turn(position)) is not None:
                turns.append(turn)
            count += 1
            dirty_max = max(dirty_max, position - store.flushed_offset)
            if (ahead_s := position / rate_bytes - (time.perf_counter() - started)) > 0:
                await asyncio.sleep(min(ahead_s, 0.01))
        rate = store.max_physical_offset / (time.perf_counter() - started)
    finally:
        clocks.close()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    return Stalls(
        rate,
        count,
        sum(turn.own_s > LONG_S for turn in turns),
        sum(turn.cpu_s > LONG_S for turn in turns),
        sum(turn.wall_s > LONG_S for turn in turns),
        dirty_max,
        sorted(turns, reverse=True)[:KEPT],
        sorted(turns, key=lambda turn: turn.wall_s, reverse=True)[:KEPT],
        machine_load.taken().since(before),
    )
