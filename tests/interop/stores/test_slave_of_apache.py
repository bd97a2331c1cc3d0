"""A slave of ours copies the log of a broker of Apache's, over the ends of files and after either side was killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench.apache_peer import ApachePeer
from gantrymq import Message, SyncProducer
from tests.harness import LocalCluster
from tests.interop.stores.copied_log import TOPIC, bodies, log_end, send, topics_of, wait_for, wait_for_same_log
from tests.peers.fixtures import make_apache_peer

COUNT = 60
PADDING = random.Random(1).randbytes(9000)  # it would be compressed otherwise
FILES = {"mappedFileSizeCommitLog": str(1 << 20)}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[ApachePeer]:
    with make_apache_peer(tmp_path / "master", broker_properties=FILES) as peer:
        yield peer


def test_a_slave_of_ours_copies_serves_and_catches_up(master: ApachePeer, slave: LocalCluster) -> None:
    send(master, 0, COUNT, PADDING)
    slave.start_broker()
    wait_for_same_log(master, slave, "the slave has everything")

    slave.kill_broker()
    send(master, COUNT, 3 * COUNT, PADDING)
    with SyncProducer(master.namesrv_address) as producer:
        producer.send(Message("Later", b"delayed", delay_level=3))
    assert log_end(master) > 1 << 20, "more than one file"
    slave.start_broker()
    wait_for_same_log(master, slave, "the slave has caught up")

    wait_for(lambda: {TOPIC, "Later"} <= topics_of(slave).keys(), "the slave has the topics")
    master.kill_broker()
    wait_for(lambda: len(bodies(slave)) == 3 * COUNT, "without its master the slave shows all")
    master.start_broker()
    send(master, 3 * COUNT, 4 * COUNT)
    wait_for_same_log(master, slave, "the slave follows the restarted master")
