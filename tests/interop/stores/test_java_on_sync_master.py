"""A Java producer at a SYNC_MASTER of ours: what it is told without a slave, with one, and while that stands still."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import LocalCluster
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.stores.copied_log import TOPIC

pytestmark = pytest.mark.interop

FILES = {"mappedFileSizeCommitLog": str(1 << 20), "haHousekeepingInterval": "3600000"}  # a slave that is silent stays
SYNC = FILES | {"slavesEnable": "true", "brokerRole": "SYNC_MASTER", "slaveTimeout": "300"}
COUNT, RATE = 1_000_000, 100  # far more than it comes to


@pytest.fixture
def master(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "master", broker_properties=SYNC) as cluster:
        yield cluster


@pytest.fixture
def slave(master: LocalCluster, tmp_path: Path) -> Iterator[LocalCluster]:
    """Not started yet."""
    peer = LocalCluster(tmp_path / "slave", broker_properties=FILES)
    peer.join_as_slave(master)
    yield peer
    peer.stop()


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
        os.kill(slave.broker.pid, signal.SIGSTOP)
        try:
            producer.wait_for(lambda: told(producer, "FLUSH_SLAVE_TIMEOUT") > 1, "the slave stands still")
        finally:
            os.kill(slave.broker.pid, signal.SIGCONT)
        before = len(producer.sent())
        producer.wait_for(lambda: len(producer.sent()) > before, "the slave goes on")
        producer.kill()
