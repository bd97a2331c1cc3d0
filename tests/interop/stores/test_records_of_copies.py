"""The records that say whose log a store has, damaged or taken from a backup: no store of a slave opens as a master's
by it, and nothing acknowledged is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.bench.peer import PeerError
from tests.faults.kit.replicas import FILES, TOPIC, Replica, figures, is_same, promote, runtime_info
from tests.faults.replication.history import check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

RECORDS = ("epochs.json", "copy.json", "inSync.json")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[LocalCluster, LocalCluster, Recorder]]:
    """A master that was sent messages, and its slave, which has all and is stopped."""
    with LocalCluster(tmp_path / "master", broker_properties=FILES | {"slavesEnable": "true"}) as master:
        slave = Replica(tmp_path / "slave", master, 1, FILES)
        slave.start_broker()
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
        wait_until(lambda: runtime_info(slave).get("inSyncSetTold") == slave.broker_address and is_same(master, slave))
        slave.stop_broker()
        yield master, slave, recorder
        slave.stop()


class AsMaster(LocalCluster):
    """The folder of a slave, with a master's settings."""

    def __init__(self, slave: LocalCluster) -> None:
        super().__init__(slave.home, broker_properties=FILES)
        self.join_as_slave(slave)
        self._extra_properties |= {"brokerRole": "ASYNC_MASTER", "brokerId": "0"}


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00 no JSON {")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def of_another_kind(path: Path) -> None:
    path.write_bytes(b"[1, 2, 3]")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [garbage, emptied, torn, of_another_kind])
def test_a_copy_whose_mark_is_damaged_does_not_open_as_a_master(
    pair: tuple[LocalCluster, LocalCluster, Recorder], damage: Callable[[Path], None]
) -> None:
    _, slave, _ = pair
    damage(slave.store / "config" / "copy.json")
    with pytest.raises(PeerError, match=r"copy\.json"):
        AsMaster(slave).start_broker()


@pytest.mark.slow
def test_a_promoted_slave_whose_records_are_of_before_loses_nothing_to_the_master_of_before(
    pair: tuple[LocalCluster, LocalCluster, Recorder],
) -> None:
    """Its log goes on behind that of the master of before, which has heard of no later epoch."""
    master, slave, recorder = pair
    old = {name: (slave.store / "config" / name).read_bytes() for name in RECORDS}
    slave.start_broker()
    wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")
    master.kill_broker()
    promote(slave)
    with Recorder("q", TOPIC, lambda: slave.broker_address) as later:
        later.more()
    slave.stop_broker()
    for name, text in old.items():
        (slave.store / "config" / name).write_bytes(text)
        (slave.store / "config" / f"{name}.bak").unlink(missing_ok=True)
    master.start_broker()
    slave.start_broker()
    wait_until(lambda: runtime_info(slave).get("slaveState") not in (None, "connecting", "comparing logs"))
    log = read_log(slave.broker_address, slave.store)
    assert check([*recorder.sends, *later.sends], [log], slave.broker_address) == []
    assert figures(slave)["slaveState"] == "ahead of the master"
