"""keep_freed_memory: what was freed is used again without the kernel. In a process of its own: it holds for good."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import sys

import pytest

from appliance.process import malloc as heap

PROGRAM = """
import resource
from appliance.process.malloc import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt

def work():
    parts = [b"x" * 131_000 for _ in range(16)]  # 2 MiB, as the units of a second are

assert keep_freed_memory()
work(); work()
before = faults()
for _ in range(10):
    work()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives the heap's end back so eagerly")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64, "2 MiB ten times over: 5000 page faults when each round gets it from the kernel"


GIVEN_BACK = """
import asyncio
from appliance.process import malloc as heap

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

async def main():
    heap.LOOK_PERIOD_S = 0.05
    assert heap.keep_freed_memory()
    task = asyncio.create_task(heap.MemoryTrimmer().run())
    blocks = [b"x" * 131_000 for _ in range(3000)]
    last = b"y" * 131_000  # the end of the heap stays in use
    before = resident()
    blocks.clear()
    for _ in range(400):
        await asyncio.sleep(0.05)
        if resident() < before - 300:
            break
    print(before - resident())

asyncio.run(main())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of glibc")
def test_much_that_stays_free_is_given_back_although_the_heaps_end_is_in_use() -> None:
    done = subprocess.run([sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 300, "of 375 MiB"


async def test_what_is_free_between_two_bursts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "LOOK_PERIOD_S", 0.001)
    free = iter([heap.RETURNED_FROM_BYTES + 1, 0] * 20 + [heap.RETURNED_FROM_BYTES + 1] * 2)
    looks = 0
    trimmed_at: list[int] = []

    def look() -> int:
        nonlocal looks
        looks += 1
        return next(free, 0)

    service = heap.MemoryTrimmer(free_bytes=look, trim=lambda: trimmed_at.append(looks))
    task = asyncio.create_task(service.run())
    async with asyncio.timeout(30):
        while looks < 60:
            await asyncio.sleep(0.001)
    task.cancel()
    assert trimmed_at == [42]


async def test_what_was_returned_is_not_resident_until_it_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "LOOK_PERIOD_S", 0.001)
    much = heap.RETURNED_FROM_BYTES + 1
    kept: list[int] = []

    def look() -> int:
        kept.append(service.kept_bytes)
        return free.pop(0) if free else 0

    free = [10, much, much, much + 5, much - 30, much]
    service = heap.MemoryTrimmer(free_bytes=look, trim=lambda: None)
    task = asyncio.create_task(service.run())
    async with asyncio.timeout(30):
        while len(kept) < 7:
            await asyncio.sleep(0.001)
    task.cancel()
    assert kept[:7] == [0, 10, much, 0, 5, 0, 30], "as of the look before"
