"""A slave of Apache's make copies our broker's log, serves what it copied, and catches up after it was away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.bench.apache_peer import ApachePeer
from appliance.bench.peer import Peer
from gantrymq import AdminClient, Message, SyncProducer
from tests.harness import LocalCluster
from tests.peers.fixtures import make_apache_peer

TOPIC = "Copied"
COUNT = 300
CATCH_UP_S = 60.0  # a slave reports every 5 s, asks for topics every 10 s, and tries a lost master again after 5 s


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Peer]:
    with LocalCluster(tmp_path / "master", broker_properties={"slavesEnable": "true"}) as cluster:
        yield cluster


@pytest.fixture
def slave(master: Peer, tmp_path: Path) -> Iterator[ApachePeer]:
    """Not started yet."""
    peer = make_apache_peer(tmp_path / "slave", broker_properties={"haSendHeartbeatInterval": "500"})
    peer.join_as_slave(master)
    yield peer
    peer.stop()


def test_a_slave_of_apaches_make_copies_serves_and_catches_up(master: Peer, slave: ApachePeer) -> None:
    send(master, 0, COUNT)
    slave.start_broker()
    wait_for(lambda: behind(master) == "0", "the slave has everything")
    assert log_of(slave) == log_of(master)
    wait_for(lambda: sorted(bodies(slave)) == sorted(expected(0, COUNT)), "the slave shows it to consumers")

    slave.stop_broker()
    wait_for(lambda: behind(master) == "none", "the slave is gone")
    send(master, COUNT, 2 * COUNT)
    slave.start_broker()
    wait_for(lambda: behind(master) == "0", "the slave has caught up")
    assert log_of(slave) == log_of(master)
    wait_for(lambda: len(bodies(slave)) == 2 * COUNT, "the slave shows the rest, too")


def send(master: Peer, first: int, end: int) -> None:
    with SyncProducer(master.namesrv_address) as producer:
        for number in range(first, end):
            producer.send(Message(TOPIC, b"%d" % number, keys=f"key-{number}"))


def expected(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def behind(master: Peer) -> str:
    async def ask() -> str:
        async with AdminClient(master.namesrv_address) as admin:
            return (await admin.brokers.runtime_info(master.broker_address))["slaveBehindBytes"]

    return asyncio.run(ask())


def bodies(slave: Peer) -> list[bytes]:
    """What the slave hands out of the topic's queues."""

    async def ask() -> list[bytes]:
        found: list[bytes] = []
        async with AdminClient(slave.namesrv_address) as admin:
            for queue_id in range(4):
                offset, end = 0, await admin.offsets.max_at(slave.broker_address, TOPIC, queue_id)
                while offset < end:
                    messages, offset, _, _ = await admin.messages.pull_at(slave.broker_address, TOPIC, queue_id, offset)
                    assert messages
                    found += [message.body for message in messages]
        return found

    return asyncio.run(ask())


def log_of(peer: Peer) -> bytes:
    """The first file of the log, as far as it was written."""
    return (peer.store / "commitlog" / "00000000000000000000").read_bytes().rstrip(b"\0")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + CATCH_UP_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {CATCH_UP_S:g} s: {what}"
        time.sleep(0.3)
