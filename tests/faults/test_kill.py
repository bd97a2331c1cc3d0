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
from gantrymq import Message, MessageQueue, Producer, SendStatus
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.topics import SCHEDULE_TOPIC
from store import MessageStore
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.traffic import (
    COMMITTED,
    QUEUES,
    ROLLED_BACK,
    SENDERS,
    TOPICS,
    Acknowledged,
    crash_config,
)
from tests.faults.kit.writer import heard
from tests.harness import LocalCluster
from tests.store.conftest import crash
from tests.store.golden import queue_units

PROJECT = Path(__file__).parents[2]
ROUNDS_PER_FOLDER = 25
FIRST_LINE_S = 60.0
LAST_LEVEL = 18
ENDS = {COMMITTED: "committed", ROLLED_BACK: "rolled back"}


def write_until_killed(folder: Path, seed: int, flush_disk_type: str, chance: random.Random) -> list[Acknowledged]:
    """Run a writer and kill it: mostly while it sends, sometimes while it starts and repairs."""
    command = [sys.executable, "-m", "tests.faults.kit.writer", str(folder), str(seed), flush_disk_type]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        if chance.random() < 0.8:
            assert select.select([process.stdout], [], [], FIRST_LINE_S)[0], "the writer acknowledged nothing"
        else:
            time.sleep(chance.random() / 2)
        time.sleep(chance.random() / 8)
    finally:
        process.kill()
        output, _ = process.communicate()
    return heard(output)


@pytest.mark.timeout(3600)
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    totals: Counter[str] = Counter()
    lost_ends = 0
    for first in range(0, rounds, ROUNDS_PER_FOLDER):
        folder = tmp_path / str(first)
        ledger = Ledger(chance)
        for number in range(first, min(first + ROUNDS_PER_FOLDER, rounds)):
            mode = chance.choice(["SYNC_FLUSH", "ASYNC_FLUSH"])
            latest = write_until_killed(folder, number, mode, chance)
            store = MessageStore(crash_config(folder))
            store.load()
            store.start()
            ledger.check(store, latest)
            ends = Counter(ENDS.get(each.queue_offset, "stored") for each in latest)
            lost_ends += ledger.ends_lost
            print(f"round {number}: {mode}, {dict(ends)} acknowledged, {ledger.still_open} transactions open")
            totals += ends
            if chance.random() < 0.5:
                store.close()
            else:
                crash(store)
        store = MessageStore(crash_config(folder))
        store.load()
        store.start()
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


class Senders:
    """Clients of a broker that is about to be killed; failures at the end are what they are for."""

    def __init__(self, cluster: LocalCluster, name: str, chance: random.Random) -> None:
        self._cluster = cluster
        self._name = name
        self._chance = chance
        self.acknowledged: list[Acknowledged] = []

    async def run(self, seconds: float) -> None:
        """Send, kill the broker after some time, note what was answered until then."""
        async with Producer(self._cluster.namesrv_address, retries=0, timeout_s=2) as producer:
            senders = [asyncio.create_task(self._send(producer, f"{self._name}-{each}")) for each in range(SENDERS)]
            await asyncio.wait(senders, timeout=0.3, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self._cluster.kill_broker)
            await asyncio.gather(*senders)

    async def _send(self, producer: Producer, sender: str) -> None:
        number = 0
        chance = self._chance
        while True:
            count = chance.randrange(2, 8) if chance.random() < 0.2 else 1
            keys = [f"{sender}.{number + each}" for each in range(count)]
            number += count
            topic = f"T{chance.randrange(TOPICS)}"
            queue = MessageQueue(topic, self._cluster.broker_name, chance.randrange(QUEUES))
            level = LAST_LEVEL if count == 1 and chance.random() < 0.1 else 0  # two hours: stays where it is
            sent = [Message(topic, chance.randbytes(200), keys=key, delay_level=level) for key in keys]
            try:
                if count > 1:
                    result = await producer.send_batch(sent, queue=queue)
                else:
                    result = await producer.send(sent[0], queue=queue)
            except GantryError:
                return
            assert result.status is SendStatus.SEND_OK
            offsets = [decode_offset_message_id(each)[2] for each in result.offset_msg_id.split(",")]
            place = (SCHEDULE_TOPIC, LAST_LEVEL - 1) if level else (topic, queue.queue_id)
            self.acknowledged += [
                Acknowledged(*place, result.queue_offset + each, offset, key)
                for each, (offset, key) in enumerate(zip(offsets, keys, strict=True))
            ]


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
            for topic in range(TOPICS):
                rpc.create_topic(cluster.broker_address, f"T{topic}", QUEUES)
            senders = Senders(cluster, f"s{number}", chance)
            asyncio.run(senders.run(chance.random() / 2))
        print(f"round {number}: {properties['flushDiskType']}, {len(senders.acknowledged)} acknowledged")
        store = MessageStore(crash_config(tmp_path / "store"))
        store.load()
        store.start()
        ledger.check(store, senders.acknowledged)
        if chance.random() < 0.5:
            store.close()
        else:
            crash(store)
    assert ledger.acknowledged
