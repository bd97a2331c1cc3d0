"""kill -9 at random moments: of a process that writes a store, of one that repairs it, and of a whole broker.

pytest tests/faults --rounds 200
"""

from __future__ import annotations

import asyncio
import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from appliance.bench import rpc
from tests.faults.kit import traffic
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.senders import Senders
from tests.faults.kit.traffic import Acknowledged, crash_config
from tests.faults.kit.writer import heard
from tests.harness import LocalCluster
from tests.store.conftest import opened
from tests.store.golden import queue_units

PROJECT = Path(__file__).parents[2]
FIRST_LINE_S = 60.0
ENDS = {traffic.COMMITTED: "committed", traffic.ROLLED_BACK: "rolled back"}


def write_until_killed(folder: Path, seed: int, flush_disk_type: str, chance: random.Random) -> list[Acknowledged]:
    """Run a writer and kill it: mostly while it sends, sometimes while it starts and repairs."""
    command = [sys.executable, "-m", "tests.faults.kit.writer", str(folder), str(seed), flush_disk_type]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        if chance.random() < 0.8:
            assert select.select([process.stdout], [], [], FIRST_LINE_S)[0], "the writer acknowledged nothing"
        else:
            time.sleep(chance.random() / 2)  # the dice say when it dies: while it starts, or a little later
        time.sleep(chance.random() / 8)  # the dice again
    finally:
        process.kill()
        output, _ = process.communicate()
    return heard(output)


@pytest.mark.timeout(3600)
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    totals: Counter[str] = Counter()
    lost_ends = 0
    for first in range(0, rounds, traffic.ROUNDS_PER_FOLDER):
        folder = tmp_path / str(first)
        ledger = Ledger(chance)
        for number in range(first, min(first + traffic.ROUNDS_PER_FOLDER, rounds)):
            mode = chance.choice(["SYNC_FLUSH", "ASYNC_FLUSH"])
            latest = write_until_killed(folder, number, mode, chance)
            store = opened(crash_config(folder))
            ledger.check(store, latest)
            ends = Counter(ENDS.get(each.queue_offset, "stored") for each in latest)
            lost_ends += ledger.ends_lost
            print(f"round {number}: {mode}, {dict(ends)} acknowledged, {ledger.still_open} transactions open")
            totals += ends
            if chance.random() < 0.5:
                store.close()
            else:
                store.abandon()
        store = opened(crash_config(folder))
        ledger.check_all(store)
        store.close()
        check_files(folder, ledger.acknowledged)
    print(f"{rounds} rounds, acknowledged: {dict(totals)}; of them lost: 0; commits whose end was lost: {lost_ends}")
    assert totals["stored"] > rounds


def check_files(folder: Path, acknowledged: list[Acknowledged]) -> None:
    """The queue files say the same, read without the store's own code."""
    units = {
        (topic.name, int(queue.name)): queue_units(folder, topic.name, int(queue.name))
        for topic in (folder / "consumequeue").iterdir()
        for queue in topic.iterdir()
    }
    for each in acknowledged:
        if each.queue_offset >= 0:
            assert units[each.topic, each.queue_id][each.queue_offset][0] == each.physical_offset, each
    for queue, found in units.items():
        assert sorted(found) == list(range(len(found))), f"{queue} has gaps"


@pytest.mark.timeout(3600)
def test_a_killed_broker_loses_nothing_it_acknowledged(tmp_path: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    ledger = Ledger(chance)
    properties = {
        "mappedFileSizeCommitLog": str(1 << 17),
        "mappedFileSizeConsumeQueue": "4000",
        "maxHashSlotNum": "500",
        "maxIndexNum": "2000",
        "flushIntervalConsumeQueue": "20",
    }
    for number in range(max(2, rounds // 8)):
        properties["flushDiskType"] = chance.choice(["SYNC_FLUSH", "ASYNC_FLUSH"])
        with LocalCluster(tmp_path, broker_properties=properties) as cluster:
            for topic in range(traffic.TOPICS):
                rpc.create_topic(cluster.broker_address, f"T{topic}", traffic.QUEUES)
            senders = Senders(cluster, f"s{number}", chance)
            asyncio.run(senders.run(chance.random() / 2))
        print(f"round {number}: {properties['flushDiskType']}, {len(senders.acknowledged)} acknowledged")
        store = opened(crash_config(tmp_path / "store"))
        ledger.check(store, senders.acknowledged)
        if chance.random() < 0.5:
            store.close()
        else:
            store.abandon()
    assert ledger.acknowledged
