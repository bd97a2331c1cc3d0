"""A master with automatic failover that stands still or loses etcd: it stops in time, and nothing acknowledged is lost.

pytest tests/faults/failover/test_deadline.py -s --still 20
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.replication.pair import PULL
from tests.faults.failover.commits import GROUP, Commit, Committer, lost_commits
from tests.faults.failover.groups import LEASE_S, Scene, running
from tests.faults.kit.replicas import TOPIC, figures, is_master, make_topic, only_master, runtime_info
from tests.faults.replication.history import Answer
from tests.faults.replication.recorder import Recorder
from tests.servers.etcd import etcd
from tests.waiting import wait_until

STILL_S = 6.0  # twice the lease


@pytest.fixture
def one_etcd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        yield scene


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
        slave = only_master(slaves)
        assert figures(slave)["epoch"] == "2"
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
    assert figures(master)["epoch"] == "1"
    scene.check(recorder, owner=master)


@pytest.mark.slow
def test_with_all_of_etcd_gone_the_master_stops_and_goes_on_in_its_epoch(one_etcd: Scene) -> None:
    (member,), master = one_etcd.members, one_etcd.brokers[0]
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more()
        member.signal(signal.SIGSTOP)
        wait_until(lambda: "etcd does not prove" in runtime_info(master).get("masterProof", ""))
        refused = recorder.count(Answer.REFUSED)
        wait_until(lambda: recorder.count(Answer.REFUSED) > refused)  # what was acknowledged before has come
        acknowledged = recorder.count(Answer.ACKNOWLEDGED)
        told = figures(master)
        assert "etcd does not prove" in told["masterProof"] and told["epoch"] == "1"
        time.sleep(STILL_S / 6)  # a while without etcd, in which nothing may be acknowledged
        assert recorder.count(Answer.ACKNOWLEDGED) == acknowledged
        assert pulled(master.broker_address, 0).code == ResponseCode.SUCCESS  # what was confirmed may be read
        (end,) = rpc.max_offsets(master.broker_address, TOPIC, 1)
        assert pulled(master.broker_address, end).code == ResponseCode.SERVICE_NOT_AVAILABLE  # none waits for more
        member.signal(signal.SIGCONT)
        recorder.more()
    assert figures(master)["epoch"] == "1"
    one_etcd.check(recorder, owner=master)


@pytest.mark.slow
def test_a_master_that_its_slaves_do_not_hear_refuses_commits_so_none_that_is_a_second_old_is_lost(
    one_etcd: Scene,
) -> None:
    """Pulls go on."""
    master, *slaves = one_etcd.brokers
    serving = [master.broker_address]
    make_topic(master, TOPIC)
    with Committer(TOPIC, lambda: serving[0]) as committer:
        wait_until(lambda: len(committer.seen) > 20)
        for each in slaves:
            os.kill(each.broker.pid, signal.SIGSTOP)
        wait_until(lambda: committer.has_failed)
        known = offset_at(master.broker_address)
        ask(master.broker_address, RequestCode.PULL_MESSAGE, PULL | {"consumerGroup": GROUP} | COMMITS_FAR_AHEAD)
        assert offset_at(master.broker_address) == known
        os.kill(master.broker.pid, signal.SIGKILL)
        for each in slaves:
            os.kill(each.broker.pid, signal.SIGCONT)
        serving[0] = only_master(slaves).broker_address
        wait_until(lambda: isinstance(last := committer.seen[-1], Commit) and last.member == serving[0])
    assert lost_commits(committer.seen) == []


COMMITS_FAR_AHEAD = {"sysFlag": "5", "commitOffset": "1000000", "queueOffset": "0"}  # and it does not wait


def ask(address: str, code: int, fields: dict[str, str]) -> RemotingCommand:
    with rpc.connect(address) as connection:
        return rpc.call(connection, RemotingCommand.request(code, fields))


def pulled(address: str, offset: int) -> RemotingCommand:
    """The answer to a pull that may wait."""
    waits = {"sysFlag": "6", "suspendTimeoutMillis": "600000", "queueOffset": str(offset)}
    return ask(address, RequestCode.PULL_MESSAGE, PULL | {"topic": TOPIC} | waits)


def offset_at(address: str) -> int:
    fields = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": "0"}
    answer = ask(address, RequestCode.QUERY_CONSUMER_OFFSET, fields)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return int(answer.ext_fields["offset"])


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGSTOP, signal.SIGKILL])
def test_one_of_three_members_of_etcd_may_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blow: signal.Signals
) -> None:
    """Whichever it is, the one that the master asks or etcd's leader: the lease is above an election of etcd."""
    lease_s = 4 * LEASE_S  # a starved machine's elections take longer
    with etcd(tmp_path / "etcd", members=3) as members, running(tmp_path, capsys, members, lease_s=lease_s) as scene:
        master = scene.brokers[0]
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            for struck in members[: 1 if blow is signal.SIGKILL else 3]:
                recorder.more()
                struck.signal(blow)
                wait_until(lambda: "etcd does not prove" not in figures(master)["masterProof"])
                time.sleep(lease_s)  # what was proven before the blow is over then
                recorder.more()
                if blow is signal.SIGSTOP:
                    struck.signal(signal.SIGCONT)
                    wait_until(lambda: "etcd does not prove" not in figures(master)["masterProof"])
        assert figures(master)["epoch"] == "1"
        scene.check(recorder, owner=master)
