"""A master with automatic failover that stands still or loses etcd: it stops in time, and nothing acknowledged is lost.

pytest tests/faults/failover/test_deadline.py -s --still 20
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.failover.recorded import gantry, holders
from tests.faults.kit.replicas import SYNC, TOPIC, Replica, runtime_info
from tests.faults.replication.history import Answer, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.servers.etcd import EtcdMember, etcd, urls_of
from tests.waiting import wait_until

LEASE_S = 3
STILL_S = 6.0  # twice the lease
AUTOMATIC = SYNC | {
    "automaticFailover": "true",
    "readConfirmedOnly": "true",
}


class Scene:
    """Three brokers in sync, and etcd's members."""

    def __init__(self, brokers: list[LocalCluster], members: list[EtcdMember]) -> None:
        self.brokers, self.members = brokers, members

    def check(self, *recorders: Recorder, owner: LocalCluster) -> None:
        """All logs alike, and as every sender was told."""
        wait_until(lambda: len({runtime_info(each).get("commitLogMaxOffset") for each in self.brokers}) == 1)
        logs = [read_log(each.broker_address, each.store) for each in self.brokers]
        sends = [send for recorder in recorders for send in recorder.sends]
        assert check(sends, logs, owner.broker_address) == []


@contextlib.contextmanager
def running(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    members: list[EtcdMember],
    *,
    lease_s: int = LEASE_S,
    may_take_over: bool = True,
) -> Iterator[Scene]:
    known = AUTOMATIC | {"etcdEndpoints": urls_of(members), "failoverLeaseSeconds": str(lease_s)}
    of_slaves = known | {"automaticFailover": str(may_take_over).lower()}
    with LocalCluster(folder / "master", broker_properties=known) as master:
        slaves = [Replica(folder / f"slave{number}", master, number, of_slaves) for number in (1, 2)]
        for slave in slaves:
            slave.start_broker()
        ran = gantry(capsys, master, "init", "--accept-unknown")
        assert ran.code == 0, ran.err
        wait_until(lambda: len(holders(members[0], master)) == 3)
        yield Scene([master, *slaves], members)
        for slave in slaves:
            slave.stop()


@pytest.fixture
def one_etcd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        yield scene


def is_master(broker: LocalCluster) -> bool:
    return runtime_info(broker).get("brokerRole", "SLAVE") != "SLAVE"


@pytest.mark.slow
def test_a_master_that_stood_still_acknowledges_nothing_when_it_wakes(
    one_etcd: Scene, request: pytest.FixtureRequest
) -> None:
    """A slave takes over by itself meanwhile."""
    master, *slaves = one_etcd.brokers
    serving = [master]
    with (
        Recorder("stays", TOPIC, lambda: master.broker_address) as stays,
        Recorder("follows", TOPIC, lambda: serving[0].broker_address) as follows,
    ):
        follows.more()
        os.kill(master.broker.pid, signal.SIGSTOP)
        stopped_at = time.monotonic()
        acknowledged = stays.count(Answer.ACKNOWLEDGED)
        wait_until(lambda: any(map(is_master, slaves)))
        (slave,) = filter(is_master, slaves)
        assert runtime_info(slave)["epoch"] == "2"
        serving[0] = slave
        follows.more()
        still_s = float(request.config.getoption("--still", default=None) or STILL_S)
        time.sleep(max(stopped_at + still_s - time.monotonic(), 0))  # for so long it is to stand still
        os.kill(master.broker.pid, signal.SIGCONT)
        wait_until(lambda: runtime_info(master).get("slaveState") == "copying")
        assert stays.count(Answer.ACKNOWLEDGED) <= acknowledged + 1  # one may have been on its way to its reader
        follows.more()
        serving[0] = master  # which is a slave, and refuses
    one_etcd.check(stays, follows, owner=slave)


@pytest.mark.slow
def test_a_master_that_wakes_past_its_deadline_goes_on_once_etcd_has_its_beat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no slave may take over."""
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members, may_take_over=False) as scene:
        _wakes_past_its_deadline(scene)


def _wakes_past_its_deadline(scene: Scene) -> None:
    master = scene.brokers[0]
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more()
        os.kill(master.broker.pid, signal.SIGSTOP)
        time.sleep(STILL_S)  # for so long it is to stand still
        os.kill(master.broker.pid, signal.SIGCONT)
        recorder.more()
    assert runtime_info(master)["epoch"] == "1"
    scene.check(recorder, owner=master)


@pytest.mark.slow
def test_with_all_of_etcd_gone_the_master_stops_and_goes_on_in_its_epoch(one_etcd: Scene) -> None:
    (member,), master = one_etcd.members, one_etcd.brokers[0]
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more()
        member.signal(signal.SIGSTOP)
        refused = recorder.count(Answer.REFUSED)
        wait_until(lambda: recorder.count(Answer.REFUSED) > refused)
        acknowledged = recorder.count(Answer.ACKNOWLEDGED)
        told = runtime_info(master)
        assert "etcd does not prove" in told["masterProof"] and told["epoch"] == "1"
        time.sleep(STILL_S / 6)  # a while without etcd, in which nothing may be acknowledged
        assert recorder.count(Answer.ACKNOWLEDGED) == acknowledged
        member.signal(signal.SIGCONT)
        recorder.more()
    assert runtime_info(master)["epoch"] == "1"
    one_etcd.check(recorder, owner=master)


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGSTOP, signal.SIGKILL])
def test_one_of_three_members_of_etcd_may_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blow: signal.Signals
) -> None:
    """Whichever it is, the one that the master asks or etcd's leader: the lease is above an election of etcd."""
    lease_s = 4 * LEASE_S  # a starved machine's elections take longer
    with (
        etcd(tmp_path / "etcd", members=3) as members,
        running(tmp_path, capsys, members, lease_s=lease_s) as scene,
    ):
        master = scene.brokers[0]
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            for struck in members[: 1 if blow is signal.SIGKILL else 3]:
                recorder.more()
                struck.signal(blow)
                wait_until(lambda: "etcd does not prove" not in runtime_info(master)["masterProof"])
                time.sleep(lease_s)  # what was proven before the blow is over then
                recorder.more()
                if blow is signal.SIGSTOP:
                    struck.signal(signal.SIGCONT)
                    wait_until(lambda: "etcd does not prove" not in runtime_info(master)["masterProof"])
        assert runtime_info(master)["epoch"] == "1"
        scene.check(recorder, owner=master)
