"""A master and a slave as processes: either is killed or stands still under load; the copy is the same at the end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from gantrymq.errors import GantryError
from tests.faults.kit.replicas import FILES, TOPIC, is_same, log_of, runtime_info
from tests.harness import LocalCluster
from tests.waiting import wait_until


@pytest.fixture
def master(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "master", broker_properties=FILES | {"slavesEnable": "true"}) as cluster:
        yield cluster


@pytest.fixture
def slave(master: LocalCluster, tmp_path: Path) -> Iterator[LocalCluster]:
    peer = LocalCluster(tmp_path / "slave", broker_properties=FILES)
    peer.join_as_slave(master)
    peer.start_broker()
    yield peer
    peer.stop()


class Load:
    """Sends without end while the block runs; what was acknowledged is counted."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged = 0

    def _run(self) -> None:
        with SyncProducer(self._cluster.namesrv_address) as producer:
            while not self._stop.is_set():
                try:
                    producer.send(Message(TOPIC, os.urandom(3000)))
                except GantryError:  # the master is away
                    self._stop.wait(0.1)
                    continue
                self.acknowledged += 1
                self._stop.wait(0.002)

    def more(self) -> None:
        """Wait until some more were acknowledged."""
        enough = self.acknowledged + 20
        wait_until(lambda: self.acknowledged >= enough)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._thread.join()


def test_killed_and_frozen_sides_end_with_the_same_log(master: LocalCluster, slave: LocalCluster) -> None:
    with Load(master) as load:
        load.more()
        slave.kill_broker()
        load.more()
        slave.start_broker()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")

        os.kill(slave.broker.pid, signal.SIGSTOP)
        load.more()  # a slave that stands still stops nobody
        wait_until(lambda: runtime_info(master).get("slavesConnected") == "0")
        os.kill(slave.broker.pid, signal.SIGCONT)
        wait_until(lambda: runtime_info(master).get("slavesConnected") == "1")

        os.kill(master.broker.pid, signal.SIGSTOP)
        wait_until(lambda: "silent" in runtime_info(slave).get("slaveStateWhy", ""))
        os.kill(master.broker.pid, signal.SIGCONT)
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")

        master.kill_broker()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "connecting")
        master.start_broker()
        load.more()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")
    wait_until(lambda: is_same(master, slave))
    assert log_of(slave) == log_of(master)
    assert len(log_of(master)) > 3000 * load.acknowledged > 0
