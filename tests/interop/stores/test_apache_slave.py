"""A slave of Apache's make copies our broker's log, serves what it copied, and catches up after it was away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench.apache_peer import ApachePeer
from appliance.bench.peer import Peer
from tests.harness import LocalCluster
from tests.interop.stores.copied_log import (
    TOPIC,
    behind,
    bodies,
    expected,
    send,
    topics_of,
    wait_for,
    wait_for_same_log,
)
from tests.peers.fixtures import make_apache_peer

COUNT = 300
FILES = {"mappedFileSizeCommitLog": str(1 << 20)}  # log_of reads them whole


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Peer]:
    with LocalCluster(tmp_path / "master", broker_properties={"slavesEnable": "true", **FILES}) as cluster:
        yield cluster


@pytest.fixture
def slave(master: Peer, tmp_path: Path) -> Iterator[ApachePeer]:
    """Not started yet."""
    peer = make_apache_peer(tmp_path / "slave", broker_properties={"haSendHeartbeatInterval": "500", **FILES})
    peer.join_as_slave(master)
    yield peer
    peer.stop()


def test_a_slave_of_apaches_make_copies_serves_and_catches_up(master: Peer, slave: ApachePeer) -> None:
    send(master, 0, COUNT)
    slave.start_broker()
    wait_for_same_log(master, slave, "the slave has everything")
    wait_for(lambda: behind(master) == "0", "the slave has said so")
    wait_for(lambda: TOPIC in topics_of(slave), "the slave has asked for the topics, which it does each 10 s")
    wait_for(lambda: bodies(slave) == expected(0, COUNT), "the slave shows it to consumers")

    slave.stop_broker()
    wait_for(lambda: behind(master) == "none", "the slave is gone")
    send(master, COUNT, 2 * COUNT)
    slave.start_broker()
    wait_for_same_log(master, slave, "the slave has caught up")
    wait_for(lambda: behind(master) == "0", "the slave has said so")
    wait_for(lambda: len(bodies(slave)) == 2 * COUNT, "the slave shows the rest, too")
