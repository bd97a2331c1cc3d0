"""The master is killed under load, its slave promoted, the old one started again: over and over, with roles that swap.

pytest tests/faults/replication --rounds 100
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gantrymq import SyncAdminClient
from gantrymq.errors import GantryError
from tests.faults.kit.replicas import FILES, TOPIC, is_master, is_same, log_of, promote, replicated, runtime_info
from tests.faults.replication.history import Finding, Send, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

ROUNDS = 1  # usual; each kills once and moves the master twice as it comes
SYNC = FILES | {
    "slavesEnable": "true",
    "brokerRole": "SYNC_MASTER",
    "slaveTimeout": "2000",
    "flushDiskType": "SYNC_FLUSH",
}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[LocalCluster]]:
    with replicated(tmp_path, SYNC, FILES, slaves=1) as members:
        yield members


def switch_over(slave: LocalCluster) -> None:
    """Make it the master while the other serves; again when a starved machine took longer than messages are held."""

    def is_done() -> bool:
        if not is_master(slave):
            with (
                contextlib.suppress(GantryError),  # before the promotion: the master goes on
                SyncAdminClient(slave.namesrv_address, timeout_s=10) as admin,
            ):
                admin.succession.switch_over(*admin.succession.switch(slave.broker_name))
        return is_master(slave)

    wait_until(is_done)


def lost(peer: LocalCluster, sends: Sequence[Send]) -> list[Finding]:
    return check(list(sends), [read_log(peer.broker_address, peer.store)], peer.broker_address)


@pytest.mark.slow
def test_no_message_that_the_slave_acknowledged_is_lost(
    pair: list[LocalCluster], request: pytest.FixtureRequest
) -> None:
    rounds = request.config.getoption("--rounds", default=None) or ROUNDS
    master, slave = pair
    serving = master
    with Recorder("p", TOPIC, lambda: serving.broker_address, body_bytes=1000) as load:
        for _ in range(rounds):
            load.more()
            master.kill_broker()
            sends = list(load.sends)
            epoch = str(promote(slave).epoch)
            wait_until(lambda new=slave, epoch=epoch: runtime_info(new).get("epoch") == epoch)  # type: ignore[misc]
            assert lost(slave, sends) == []
            serving = slave
            master.start_broker()
            wait_until(lambda old=master: runtime_info(old).get("slaveState") == "copying")  # type: ignore[misc]
            load.more()
            master, slave = slave, master
        os.kill(master.broker.pid, signal.SIGSTOP)
        promote(slave)
        serving = slave
        os.kill(master.broker.pid, signal.SIGCONT)  # it wakes as a master
        wait_until(lambda: runtime_info(master).get("slaveState") == "copying")
        load.more()
        switch_over(master)
        serving = master
        load.more()
    wait_until(lambda: is_same(master, slave))
    assert log_of(slave) == log_of(master)
    assert lost(slave, load.sends) == []
    with Recorder("q", TOPIC, lambda: master.broker_address, body_bytes=1000) as last:
        last.more()
        master.kill_broker()
        shutil.rmtree(master.store)  # its disk is lost
        promote(slave)
    assert lost(slave, [*load.sends, *last.sends]) == []
