"""A master and a slave as processes: either is killed or stands still under load; the copy is the same at the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.kit.replicas import ASYNC, TOPIC, is_same, log_of, replicated, runtime_info
from tests.faults.replication.history import Answer
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[LocalCluster]]:
    with replicated(tmp_path, ASYNC, slaves=1) as members:
        yield members


def test_killed_and_frozen_sides_end_with_the_same_log(pair: list[LocalCluster]) -> None:
    master, slave = pair
    with Recorder("p", TOPIC, lambda: master.broker_address, body_bytes=3000) as load:
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
        wait_until(lambda: runtime_info(slave).get("slaveState") == "connecting")  # why, it says anew at each try
        os.kill(master.broker.pid, signal.SIGCONT)
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")

        master.kill_broker()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "connecting")
        master.start_broker()
        load.more()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")
    wait_until(lambda: is_same(master, slave))
    assert log_of(slave) == log_of(master)
    assert len(log_of(master)) > sum(len(send.body) for send in load.sends if send.answer is Answer.ACKNOWLEDGED) > 0
