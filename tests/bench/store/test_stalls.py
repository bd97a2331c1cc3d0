"""What a long turn of the loop was spent on: the parts that `python -m tests.bench.store` tells apart."""

from __future__ import annotations

import asyncio
import mmap
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.store import disk_load, machine_load
from tests.bench.store.stalls import LONG_S, Clocks, Turn


@pytest.fixture
def clocks() -> Iterator[Clocks]:
    clocks = Clocks()
    yield clocks
    clocks.close()


def long_turn(clocks: Clocks) -> Turn:
    turn = clocks.turn(7)
    assert turn is not None
    assert turn.position == 7
    assert turn.own_s <= turn.wall_s
    return turn


def test_counting_is_cpu(clocks: Clocks) -> None:
    clocks.start()
    before = time.thread_time()
    while time.thread_time() < before + 4 * LONG_S:
        pass
    turn = long_turn(clocks)
    assert turn.cpu_s >= 4 * LONG_S
    assert turn.own_s >= turn.cpu_s * 0.9


def test_waiting_is_own_and_no_cpu(clocks: Clocks) -> None:
    clocks.start()
    threading.Event().wait(20 * LONG_S)
    turn = long_turn(clocks)
    assert turn.own_s >= 20 * LONG_S - turn.delay_s - 0.001
    assert turn.cpu_s < 10 * LONG_S
    assert turn.stolen_s == 0


def test_a_core_that_others_have_is_run_delay(clocks: Clocks) -> None:
    """A second thread, on this thread's only core, that needs no interpreter: it copies memory."""
    cores = os.sched_getaffinity(0)
    stop = threading.Event()
    data = bytearray(8 << 20)

    def copy() -> None:
        os.sched_setaffinity(0, {min(cores)})
        with Path(os.devnull).open("wb", buffering=0) as nowhere, Path("/dev/zero").open("rb", buffering=0) as zeros:
            while not stop.is_set():
                zeros.readinto(data)  # in the kernel, without the interpreter
                nowhere.write(data)

    os.sched_setaffinity(0, {min(cores)})
    thread = threading.Thread(target=copy)
    thread.start()
    try:
        clocks.start()
        deadline = time.monotonic() + 60
        delayed = 0.0
        while delayed < 40 * LONG_S and time.monotonic() < deadline:
            sum(range(50_000))
            delayed = clocks._run_delay() - clocks._delay_s
        turn = long_turn(clocks)
    finally:
        stop.set()
        thread.join()
        os.sched_setaffinity(0, cores)
    assert turn.delay_s >= 40 * LONG_S, turn
    # Not nearly all of it: the clocks are read one after the other, and in between the core may be gone as well.
    assert turn.wall_s - turn.own_s >= 20 * LONG_S, turn


def test_pages_that_are_mapped_are_counted(clocks: Clocks) -> None:
    region = mmap.mmap(-1, 8192 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.madvise(mmap.MADV_NOHUGEPAGE)
    clocks.start()
    for at in range(0, len(region), mmap.PAGESIZE):
        region[at] = 1
    while time.perf_counter() < clocks._wall_s + LONG_S:
        pass
    assert long_turn(clocks).faults >= 8192


def test_a_short_turn_is_passed_over(clocks: Clocks) -> None:
    clocks._wall_s = time.perf_counter()
    assert clocks.turn(0) is None or time.perf_counter() - clocks._wall_s > LONG_S / 4


def test_what_the_machine_takes_never_shrinks() -> None:
    before = machine_load.taken()
    taken = machine_load.taken().since(before)
    assert taken.stolen_s >= 0 and taken.handed_back >= 0


def test_settling_waits_while_memory_is_handed_back_and_no_longer_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([5, 6, 7])
    seen = []

    def taken() -> machine_load.Taken:
        seen.append(next(counts, 7))
        return machine_load.Taken(0.0, seen[-1])

    monkeypatch.setattr(machine_load, "taken", taken)
    machine_load.settle(0.1, 60)
    assert seen[:3] == [5, 6, 7] and seen.count(7) >= 2
    endless = iter(range(1, 1_000_000))
    monkeypatch.setattr(machine_load, "taken", lambda: machine_load.Taken(0.0, next(endless)))
    machine_load.settle(0.1, 0.5)
    assert next(endless) > 2


async def test_the_disk_is_loaded_while_the_block_runs_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "load"
    with disk_load.running(path, 4 << 20, 50_000_000, 0.01):
        async with asyncio.timeout(60):
            while not (path.exists() and path.stat().st_size == 4 << 20 and any(path.read_bytes()[-4096:-1300])):
                await asyncio.sleep(0.01)
    assert not path.exists()
