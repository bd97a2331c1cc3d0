"""A slave of ours that followed an Apache master becomes the master: all that was acknowledged has to be in its log.

What producers were told is compared with both logs, which are read byte by byte. The slave starts on a copy that was
made while the master ran.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.bench.apache_peer import ApachePeer
from gantrymq import SyncAdminClient
from gantrymq.client.admin.succession import Changed
from gantrymq.errors import ConfigError, GantryError
from tests.faults.kit.replicas import FILES, TOPIC, figures, log_of, runtime_info
from tests.faults.replication.history import Answer, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.interop.stores.copied_log import wait_for
from tests.peers.fixtures import make_apache_peer

FULL_FILES = 2
MESSAGE_BYTES = 8000


@pytest.fixture
def role() -> str:
    return "ASYNC_MASTER"


@pytest.fixture
def master(tmp_path: Path, role: str) -> Iterator[ApachePeer]:
    with make_apache_peer(tmp_path / "master", broker_properties=FILES | {"brokerRole": role}) as peer:
        yield peer


def copy_of_running(master: ApachePeer, slave: LocalCluster) -> None:
    """As docs/migration.md has people do it: log and tables, and the sign of a store that was not closed."""
    for folder in ("commitlog", "config"):
        shutil.copytree(master.store / folder, slave.store / folder)
    (slave.store / "abort").touch()


def set_role(master: ApachePeer, role: str) -> None:
    with SyncAdminClient(master.namesrv_address, timeout_s=60) as admin:
        admin.brokers.update_config(master.broker_address, {"brokerRole": role})


def promote(slave: LocalCluster, **accepted: bool) -> Changed:
    with SyncAdminClient(slave.namesrv_address, timeout_s=30) as admin:
        promotion = admin.succession.promotion(slave.broker_name, slave.broker_address, from_apache=True)
        return admin.succession.promote(promotion, **accepted)


def fence(master: ApachePeer, slave: LocalCluster) -> None:
    set_role(master, "SLAVE")
    wait_for(lambda: int(runtime_info(slave).get("slaveApacheEnd", "-1")) > 0, "the slave knows where the log ends")
    info = figures(slave)
    assert info["slaveApacheEnd"] == info["commitLogMaxOffset"]


@pytest.mark.slow
@pytest.mark.parametrize("role", ["SYNC_MASTER"])
def test_a_fenced_master_hands_over_with_every_acknowledged_message(
    master: ApachePeer, slave: LocalCluster, role: str
) -> None:
    serving = master.broker_address
    with Recorder("p", TOPIC, lambda: serving, body_bytes=MESSAGE_BYTES) as recorder:
        wait_for(lambda: len(list((master.store / "commitlog").iterdir())) > FULL_FILES, "several files")
        copy_of_running(master, slave)
        slave.start_broker()
        wait_for(lambda: runtime_info(slave).get("slaveState") == "copying", "the slave follows")
        recorder.more()
        fence(master, slave)
        refused = recorder.count(Answer.REFUSED)
        wait_for(lambda: recorder.count(Answer.REFUSED) > refused, "the fenced master takes nothing")
        with pytest.raises(ConfigError, match="answers, and is the master"):
            promote(slave)
        master.stop_broker()
        changed = promote(slave)
        assert (changed.epoch, changed.address) == (1, slave.broker_address)
        assert figures(slave)["brokerRole"] == role, "as the master was before the fence"
        serving, unknown = slave.broker_address, recorder.count(Answer.UNKNOWN)
        wait_for(lambda: recorder.count(Answer.UNKNOWN) > unknown, "it stores, and has no slave yet")
    before, after = log_of(master), log_of(slave)
    assert after.startswith(before) and len(after) > len(before)
    assert check(recorder.sends, [read_log(slave.broker_address, slave.store)], slave.broker_address) == []


def stopped(master: ApachePeer, slave: LocalCluster) -> None:
    master.stop_broker()


def killed(master: ApachePeer, slave: LocalCluster) -> None:
    master.kill_broker()


def fenced_for_a_moment(master: ApachePeer, slave: LocalCluster) -> None:
    fence(master, slave)
    set_role(master, "ASYNC_MASTER")
    wait_for(lambda: figures(slave)["slaveApacheEnd"] == "-1", "the slave knows that it is no end")
    master.stop_broker()


@pytest.mark.slow
@pytest.mark.parametrize("end", [stopped, killed, fenced_for_a_moment])
def test_a_master_that_was_not_fenced_to_the_end_leaves_it_to_a_person(
    master: ApachePeer, slave: LocalCluster, end: Callable[[ApachePeer, LocalCluster], None]
) -> None:
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more()
        slave.start_broker()
        wait_for(lambda: runtime_info(slave).get("slaveState") == "copying", "the slave follows")
        recorder.more()
        end(master, slave)
    with pytest.raises(ConfigError, match="has not seen where the log of its Apache master ends"):
        promote(slave)
    assert figures(slave)["epochHighest"] == "0"
    assert promote(slave, accept_unknown=True).epoch == 1


@pytest.mark.slow
def test_a_slave_that_began_empty_lacks_what_is_older(master: ApachePeer, slave: LocalCluster) -> None:
    with Recorder("p", TOPIC, lambda: master.broker_address, body_bytes=MESSAGE_BYTES):
        wait_for(lambda: len(list((master.store / "commitlog").iterdir())) > FULL_FILES, "several files")
        slave.start_broker()
        wait_for(lambda: runtime_info(slave).get("slaveState") == "copying", "the slave follows")
        fence(master, slave)
    master.stop_broker()
    with pytest.raises(GantryError, match="bytes of older messages"):
        promote(slave, accept_unknown=True)
