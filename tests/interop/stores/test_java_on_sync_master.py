"""A Java producer at a SYNC_MASTER of ours: what it is told without a slave, with one, while that stands still, and
once it is haSlaveFallbehindMax behind."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from tests.harness import LocalCluster
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.stores.copied_log import TOPIC

FILES = {"mappedFileSizeCommitLog": str(1 << 20), "haHousekeepingInterval": "3600000"}  # a slave that is silent stays
FALL_BEHIND_MAX = 256 << 10
SYNC = FILES | {
    "slavesEnable": "true",
    "brokerRole": "SYNC_MASTER",
    "slaveTimeout": "300",
    "haSlaveFallbehindMax": str(FALL_BEHIND_MAX),
}
PADDING = random.Random(1).randbytes(FALL_BEHIND_MAX)
COUNT, RATE = 1_000_000, 100  # far more than it comes to


@pytest.fixture
def master(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "master", broker_properties=SYNC) as cluster:
        yield cluster


def test_a_java_producer_is_told_what_its_message_waits_for(
    master: LocalCluster, slave: LocalCluster, java: JavaClient
) -> None:
    def told(producer: ClientProgram, status: str) -> int:
        return sum(status in fields[1] for fields in producer.lines("RETRY"))

    with java.produce(master.namesrv_address, TOPIC, COUNT, RATE) as producer:
        producer.wait_for(lambda: told(producer, "SLAVE_NOT_AVAILABLE") > 1, "no slave is there")
        assert not producer.sent()
        slave.start_broker()
        producer.wait_for(lambda: len(producer.sent()) > 5, "the slave has the messages")
        before = told(producer, "SLAVE_NOT_AVAILABLE")
        os.kill(slave.broker.pid, signal.SIGSTOP)
        try:
            producer.wait_for(lambda: told(producer, "FLUSH_SLAVE_TIMEOUT") > 1, "the slave stands still")
            assert told(producer, "SLAVE_NOT_AVAILABLE") == before, "it is not far behind yet"
            with SyncProducer(master.namesrv_address) as others:  # bytes that don't shrink, and no wait for the slave
                others.send(Message(TOPIC, PADDING, properties={"WAIT": "false"}))
            producer.wait_for(lambda: told(producer, "SLAVE_NOT_AVAILABLE") > before, "it lacks haSlaveFallbehindMax")
        finally:
            os.kill(slave.broker.pid, signal.SIGCONT)
        sent = len(producer.sent())
        producer.wait_for(lambda: len(producer.sent()) > sent, "the slave goes on")
        producer.kill()
