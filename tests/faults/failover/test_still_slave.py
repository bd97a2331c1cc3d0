"""A slave in sync that stands still while nothing is sent: nobody waits for it for long."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.faults.failover.groups import running
from tests.faults.failover.one_group import commit
from tests.faults.kit.replicas import TOPIC, make_topic, runtime_info
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.servers.etcd import etcd
from tests.waiting import wait_until

NEVER_CUT_OFF = {"haHousekeepingInterval": "3600000"}  # its connection stays, as that of a stopped process does


@pytest.mark.slow
def test_a_slave_that_stands_still_while_nothing_is_sent_leaves_the_set_and_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        etcd(tmp_path / "etcd") as members,
        running(tmp_path, capsys, members, may_take_over=False, more=NEVER_CUT_OFF) as scene,
    ):
        master, still, other = scene.brokers
        make_topic(master, TOPIC)
        wait_until(lambda: in_sync(master) == {still.broker_address, other.broker_address})
        os.kill(still.broker.pid, signal.SIGSTOP)
        wait_until(lambda: in_sync(master) == {other.broker_address})
        commit(master, 7)  # which needs an answer of each that is required
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            os.kill(still.broker.pid, signal.SIGCONT)
            wait_until(lambda: in_sync(master) == {still.broker_address, other.broker_address})
            recorder.more()
        scene.check(recorder, owner=master)


def in_sync(master: LocalCluster) -> set[str]:
    return set(filter(None, runtime_info(master).get("slavesInSyncSet", "").split(",")))
