"""kill -9 of whole brokers amid transactions, plain messages, batches and delayed ones; then the broker asks.

pytest tests/faults/test_kill_transactions.py --rounds 200

A message's key says what becomes of its transaction, so that any process can answer for any other: committed or rolled
back at once, or left open and ended when the broker asks, which may be rounds later.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench import rpc
from gantrymq import Message, MessageExt, MessageQueue, TransactionProducer, TransactionState
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from store import MessageStore
from tests.faults.kit import traffic
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.senders import PATIENCE_S, Senders
from tests.faults.kit.traffic import Acknowledged, crash_config
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S

SENDERS = 4
GROUP = "PG"
COMMIT, ROLLBACK, UNKNOWN = TransactionState
PROPERTIES = {
    "mappedFileSizeCommitLog": str(1 << 17),
    "mappedFileSizeConsumeQueue": "4000",
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
    "flushIntervalConsumeQueue": "20",
    "flushConsumerOffsetInterval": "50",
    "transactionCheckInterval": "100",
    "transactionTimeOut": "50",
    "transactionCheckMax": "1000000",
}


class Fates:
    """The listener: a key's number modulo 4 is its fate."""

    def __init__(self) -> None:
        self.asked = 0

    async def execute(self, message: Message, argument: Any, /) -> TransactionState:
        return (COMMIT, ROLLBACK, UNKNOWN, UNKNOWN)[fate(str(message.keys))]

    async def check(self, message: MessageExt, /) -> TransactionState:
        self.asked += 1
        return COMMIT if is_wanted(message.keys[0]) else ROLLBACK


def fate(key: str) -> int:
    return int(key.rpartition(".")[2]) % 4


def is_wanted(key: str) -> bool:
    """Whether consumers shall see the message."""
    return fate(key) in (0, 2)


class TransactionSenders:
    """Clients of a broker that is about to be killed, and what it acknowledged to them."""

    def __init__(self, cluster: LocalCluster, name: str, chance: random.Random) -> None:
        self._cluster = cluster
        self._name = name
        self._chance = chance
        self.fates = Fates()
        self.prepared: set[str] = set()
        self.ends: list[Acknowledged] = []

    async def run(self) -> None:
        """Send until the broker is gone."""
        async with TransactionProducer(
            self._cluster.namesrv_address,
            listener=self.fates,
            group=GROUP,
            topics=[f"T{topic}" for topic in range(traffic.TOPICS)],
            retries=0,
            delivery_timeout_s=PATIENCE_S,
        ) as producer:
            await asyncio.gather(*[self._send(producer, f"tx-{self._name}-{each}") for each in range(SENDERS)])

    async def _send(self, producer: TransactionProducer, sender: str) -> None:
        number = 0
        while True:
            key = f"{sender}.{number}"
            number += 1
            topic, queue_id = f"T{self._chance.randrange(traffic.TOPICS)}", self._chance.randrange(traffic.QUEUES)
            queue = MessageQueue(topic, self._cluster.broker_name, queue_id)
            try:
                result = await producer.send_in_transaction(
                    Message(topic, self._chance.randbytes(200), keys=key), queue=queue
                )
            except GantryError:
                return
            self.prepared.add(key)
            if result.is_confirmed:
                end = traffic.COMMITTED if result.state is COMMIT else traffic.ROLLED_BACK
                place = decode_offset_message_id(result.send.offset_msg_id)[2]
                self.ends.append(Acknowledged(topic, queue_id, end, place, key))


@pytest.mark.timeout(3600)
def test_a_killed_broker_keeps_every_promise_about_transactions(tmp_path: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    rounds = rounds if rounds > 100 else max(2, rounds // 4)
    for first in range(0, rounds, traffic.ROUNDS_PER_FOLDER):
        kill_and_settle(
            tmp_path / str(first), range(first, min(first + traffic.ROUNDS_PER_FOLDER, rounds)), chance, counts
        )
    print(f"{rounds} rounds, {dict(counts)}; none lost, none twice, none that was rolled back")
    assert counts["prepared"] > rounds


def kill_and_settle(folder: Path, rounds: range, chance: random.Random, counts: Counter[str]) -> None:
    """Kill a broker again and again on one folder; then let it ask until every transaction has ended."""
    ledger = Ledger(chance)
    prepared: set[str] = set()
    for number in rounds:
        properties = PROPERTIES | {"flushDiskType": chance.choice(["SYNC_FLUSH", "ASYNC_FLUSH"])}
        with LocalCluster(folder, broker_properties=properties) as cluster:
            make_topics(cluster)
            others = Senders(cluster, f"s{number}", chance)
            transactional = TransactionSenders(cluster, str(number), chance)
            asyncio.run(send_and_kill(others, transactional, chance.random()))
        prepared |= transactional.prepared
        with opened(folder, chance) as store:
            ledger.check(store, others.acknowledged + transactional.ends)
        check_fates(ledger, prepared)
        counts["stored"] += len(others.acknowledged)
        counts["prepared"] += len(transactional.prepared)
        counts["committed"] += sum(each.queue_offset == traffic.COMMITTED for each in transactional.ends)
        counts["rolled back"] += sum(each.queue_offset == traffic.ROLLED_BACK for each in transactional.ends)
        counts["asked"] += transactional.fates.asked
        print(f"round {number}: {properties['flushDiskType']}, in all {dict(counts)}")
    with LocalCluster(folder, broker_properties=PROPERTIES) as cluster:
        counts["asked at the end"] += asyncio.run(settle(cluster))
    with opened(folder, chance) as store:
        ledger.check(store, [])
    lost = [key for key in prepared if is_wanted(key) and ledger.seen(key) is None]
    assert not lost, f"{len(lost)} transactions were neither ended nor asked about: {lost[:5]}"
    check_fates(ledger, prepared)
    counts["seen"] += sum(map(is_wanted, prepared))


async def send_and_kill(others: Senders, transactional: TransactionSenders, seconds: float) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(transactional.run())
        group.create_task(others.run(seconds))


async def settle(cluster: LocalCluster) -> int:
    """Answer until no transaction is open; return how many questions came."""
    fates = Fates()
    topics = [f"T{topic}" for topic in range(traffic.TOPICS)]
    async with (
        TransactionProducer(cluster.namesrv_address, listener=fates, group=GROUP, topics=topics),
        AdminClient(cluster.namesrv_address) as admin,
        asyncio.timeout(WITHIN_S),
    ):
        while (await admin.brokers.runtime_info(cluster.broker_address))["transactionPending"] != "0":
            await asyncio.sleep(0.1)
    return fates.asked


def make_topics(cluster: LocalCluster) -> None:
    for topic in range(traffic.TOPICS):
        rpc.create_topic(cluster.broker_address, f"T{topic}", traffic.QUEUES)


@contextlib.contextmanager
def opened(folder: Path, chance: random.Random) -> Iterator[MessageStore]:
    """The store, without its broker; left closed, or as a crash leaves it."""
    store = MessageStore(crash_config(folder / "store"))
    store.load()
    store.start()
    try:
        yield store
    finally:
        if chance.random() < 0.5:
            store.close()
        else:
            store.abandon()


def check_fates(ledger: Ledger, prepared: set[str]) -> None:
    """Nothing is seen that was to be rolled back. That nothing is there twice, the ledger has seen."""
    wrong = [key for key in prepared if not is_wanted(key) and ledger.seen(key) is not None]
    assert not wrong, f"rolled back, and there: {wrong}"
