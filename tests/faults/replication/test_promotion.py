"""The master is killed under load, its slave promoted, the old one started again: over and over, with roles that swap.

pytest tests/faults/replication --rounds 100
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import SyncAdminClient
from gantrymq.errors import GantryError
from tests.faults.kit.endless_load import EndlessLoad
from tests.faults.kit.replicas import FILES, TOPIC, is_master, is_same, log_of, promote, replicated, runtime_info
from tests.harness import LocalCluster
from tests.waiting import wait_until

ROUNDS = 1  # usual; each kills once and moves the master twice as it comes
BODY = re.compile(rb"<\d+:[0-9a-f]+>")
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


def check_holds(peer: LocalCluster, acknowledged: list[bytes]) -> None:
    found = set(BODY.findall(log_of(peer)))
    lost = [body[:12] for body in acknowledged if body not in found]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged messages: {lost[:5]}"


@pytest.mark.slow
def test_no_message_that_the_slave_acknowledged_is_lost(
    pair: list[LocalCluster], request: pytest.FixtureRequest
) -> None:
    rounds = request.config.getoption("--rounds", default=None) or ROUNDS
    master, slave = pair
    with EndlessLoad(master.namesrv_address, TOPIC, body_bytes=1000) as load:
        for _ in range(rounds):
            load.more()
            master.kill_broker()
            acknowledged = list(load.acknowledged)
            changed = promote(slave)
            epoch = str(changed.epoch)
            wait_until(lambda new=slave, epoch=epoch: runtime_info(new).get("epoch") == epoch)  # type: ignore[misc]
            check_holds(slave, acknowledged)
            master.start_broker()
            wait_until(lambda old=master: runtime_info(old).get("slaveState") == "copying")  # type: ignore[misc]
            load.more()
            master, slave = slave, master
        os.kill(master.broker.pid, signal.SIGSTOP)
        promote(slave)
        os.kill(master.broker.pid, signal.SIGCONT)  # it wakes as a master
        wait_until(lambda: runtime_info(master).get("slaveState") == "copying")
        load.more()
        switch_over(master)
        load.more()
    wait_until(lambda: is_same(master, slave))
    assert log_of(slave) == log_of(master)
    check_holds(slave, load.acknowledged)
    with EndlessLoad(master.namesrv_address, TOPIC, body_bytes=1000) as last:
        last.more()
        master.kill_broker()
        shutil.rmtree(master.store)  # its disk is lost
        promote(slave)
    check_holds(slave, load.acknowledged + last.acknowledged)
