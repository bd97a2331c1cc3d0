"""A process to be killed: opens a store, repairs what the last kill left, and sends until it is no more.

    python -m tests.faults.kit.writer FOLDER SEED SYNC_FLUSH|ASYNC_FLUSH

Each acknowledged message is a line on stdout, written after the acknowledgement.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from tests.faults.kit.traffic import Acknowledged, Traffic, crash_config
from tests.store.conftest import opened


def say(stored: list[Acknowledged]) -> None:
    os.write(1, "".join(" ".join(map(str, each)) + "\n" for each in stored).encode())


def heard(output: bytes) -> list[Acknowledged]:
    """The whole lines of a killed process's output."""
    rows = [line.split() for line in output.decode().split("\n")[:-1]]
    return [
        Acknowledged(topic, int(queue), int(index), int(at), key, int(end))
        for topic, queue, index, at, key, end in rows
    ]


async def write(folder: Path, seed: int, flush_disk_type: str) -> None:
    store = opened(crash_config(folder, flush_disk_type=flush_disk_type))
    async with asyncio.TaskGroup() as group:
        group.create_task(store.run())
        group.create_task(Traffic(store, random.Random(seed), f"s{seed}", say).run())


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
