"""What waiting messages cost, measured by hand: python -m tests.bench.bench_timer [messages]

Prints CPU time of storing and remembering each message, private memory and idle CPU while all of them wait for a time
within six days, and how long the files take at a start.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from appliance.broker.timer.service import TimerService
from appliance.process.tasks import running
from gantrymq.message.ids import encode_host
from store.base.config import MessageStoreConfig
from store.base.results import StoreMessage
from store.message_store import MessageStore
from tests.any_disk import ANY_DISK

HOST = encode_host("127.0.0.1", 10911)
TIMER_TOPIC = "rmq_sys_wheel_timer"
SETTLE_S, IDLE_S = 15.0, 20.0


def private_mb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))


async def measure(root: Path, messages: int) -> None:
    store = MessageStore(MessageStoreConfig(root=root, index_enable=False, **ANY_DISK))
    store.load()
    store.start()
    timer = TimerService(store, root / "timer")
    timer.load()
    store.arrival_listener = lambda topic, *_: timer.message_arrived() if topic == TIMER_TOPIC else None
    before_mb = private_mb()
    async with running(store, timer):
        begin = time.process_time()
        for number in range(messages):
            wish = b"TIMER_DELAY_MS\x01%d" % random.randrange(120_000, 6 * 86_400_000)
            store.put_message(StoreMessage("orders", 0, b"x" * 100, wish, 0, 0, 1, HOST, HOST))
            if number % 50 == 0:
                await asyncio.sleep(0)
        while timer.indexed < messages:
            await asyncio.sleep(0.05)
        each_us = (time.process_time() - begin) / messages * 1e6
        await asyncio.sleep(SETTLE_S)  # what the sends left to do is not measured
        begin = time.process_time()
        await asyncio.sleep(IDLE_S)  # the time that is measured
        idle = (time.process_time() - begin) / IDLE_S
        print(
            f"{timer.pending} wait: {each_us:.1f} us CPU each, {private_mb() - before_mb} MB more, idle {idle:.2%} CPU"
        )
    begin = time.perf_counter()
    TimerService(store, root / "timer").load()
    print(f"files at a start: {(time.perf_counter() - begin) * 1000:.0f} ms")
    store.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
