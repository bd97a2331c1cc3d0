"""The commands of docs/operations/failover-runbook.md, where etcd has lost what it had, or sites are lost.

pytest tests/faults/failover/test_runbook.py -s    (what the commands print)
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.frames import send_fields
from appliance.bench.peer import CLUSTER_NAME
from appliance.broker.replication.in_sync_file import InSyncFile
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import CLUSTER, Register
from gantrymq.errors import GantryError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.cli.running_gantry import Ran, run_gantry
from tests.faults.failover.groups import running
from tests.faults.failover.recorded import gantry, holders, on_record, term_of, told_ends
from tests.faults.kit.replicas import TOPIC, figures, is_master, only_master, runtime_info, settled
from tests.faults.replication.history import Answer
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.servers.etcd import EtcdMember, etcd, give_room, with_quota
from tests.waiting import WITHIN_S, wait_until


@pytest.mark.slow
def test_an_etcd_that_is_lost_for_good_begins_anew_with_the_masters_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        (member,), master = members, scene.brokers[0]
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            member.kill()
            shutil.rmtree(tmp_path / "etcd" / member.name)
            member.start(members)
            wait_until(lambda: "has no record" in gantry(capsys, master, "status").out)
            assert only_master(scene.brokers) is master
            wait_until(lambda: gantry(capsys, master, "init").code == 0)
            recorder.more()
        wait_until(lambda: len(holders(member, master)) == 3)
        scene.check(recorder, owner=master)


@pytest.mark.slow
def test_an_etcd_of_an_old_backup_is_brought_up_to_date_by_adopt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # With such a lease nobody takes over meanwhile, however slow the machine is.
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members, lease_s=30) as scene:
        (member,), first = members, scene.brokers[0]
        data, backup = tmp_path / "etcd" / member.name, tmp_path / "backup"
        member.kill()
        shutil.copytree(data, backup)
        member.start(members)
        wait_until(lambda: member.answers(""))
        switch = ("admin", "-n", first.namesrv_address, "switchover", first.broker_name, "--yes")
        wait_until(lambda: run_gantry(capsys, *switch).code == 0)
        master = only_master(scene.brokers)
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            member.kill()
            shutil.rmtree(data)
            shutil.copytree(backup, data)
            member.start(members)
            wait_until(lambda: "brings the record up to date" in gantry(capsys, first, "explain").out)
            assert only_master(scene.brokers) is master and figures(master)["epoch"] == "2"
            wait_until(lambda: gantry(capsys, first, "adopt", "--yes").code == 0)
            recorder.more()
        found = term_of(member, first)
        assert found is not None and (found.epoch, found.owner) == (2, master.broker_address)
        scene.check(recorder, owner=master)


@pytest.mark.slow
@pytest.mark.parametrize("token", ["etcd-cluster", "another"], ids=["the same cluster", "another cluster"])
def test_an_etcd_of_a_recent_snapshot_is_adopted_if_it_is_another_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    # With such a lease nobody takes over meanwhile, however slow the machine is.
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members, lease_s=15) as scene:
        (member,), master = members, scene.brokers[0]
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            member.begin_anew(token)
            if token == "another":
                wait_until(lambda: "was restored from a backup" in figures(master)["masterProof"])
                assert only_master(scene.brokers) is master
                tell(capsys, master, "ha", "explain")
                wait_until(lambda: gantry(capsys, master, "adopt", "--yes").code == 0)
            recorder.more()
        assert only_master(scene.brokers) is master and figures(master)["epoch"] == "1"
        scene.check(recorder, owner=master)


@pytest.mark.slow
def test_an_etcd_that_is_full_is_told_and_with_room_the_same_master_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # With such a lease there is room long before another one takes over, however slow the machine is.
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members, lease_s=60) as scene:
        (member,), master = members, scene.brokers[0]
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            with_quota(member, members, 128 << 10)
            while member.control("put", "filler", "x" * 20_000).returncode == 0:
                pass
            tell(capsys, master, "ha", "status")
            assert "beware: etcd's database is full" in gantry(capsys, master, "explain").out
            wait_until(lambda: proof_left_s(master) < 45)
            give_room(member)
            wait_until(lambda: proof_left_s(master) > 45)
            assert "beware" not in tell(capsys, master, "ha", "status").out
            recorder.more()
        assert only_master(scene.brokers) is master and figures(master)["epoch"] == "1"
        scene.check(recorder, owner=master)


def proof_left_s(master: LocalCluster) -> float:
    """How long it may still acknowledge without a renewal."""
    return float(figures(master)["masterProof"].removesuffix(" s"))


def send_alone(master: LocalCluster) -> int | None:
    """The answer's code to one message; None without one: a master without etcd's proof may close the connection."""
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("Alone", TOPIC, 0, ""), b"alone")
    try:
        with rpc.connect(master.broker_address) as connection:
            return rpc.call(connection, request).code
    except GantryError:
        return None


@pytest.mark.slow
def test_what_remains_of_two_lost_sites_goes_on_and_takes_both_in_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each site has a broker and a member of etcd; the master's is among the lost ones."""
    # With such a lease what remains stays the master while etcd gets its members, however slow the machine is.
    with etcd(tmp_path / "etcd", members=3) as members, running(tmp_path, capsys, members, lease_s=15) as scene:
        left, *lost = members
        first, second, third = scene.brokers
        with Recorder("before", TOPIC, lambda: first.broker_address) as before:
            before.more()
            for process in (first, third):
                process.kill_broker()
            for member in lost:
                member.kill()
        tell(capsys, second, "ha", "status")
        left.kill()
        left.start(members, "--force-new-cluster")
        wait_until(lambda: is_master(second) and gantry(capsys, second, "explain").code == 0)
        tell(capsys, second, "ha", "explain")
        wait_until(lambda: send_alone(second) == ResponseCode.SERVICE_NOT_AVAILABLE)
        second.stop_broker()
        second.change({"minInSyncReplicas": "1"})
        second.start_broker()
        wait_until(lambda: send_alone(second) == ResponseCode.SLAVE_NOT_AVAILABLE)  # stored, as the only copy
        with Recorder("after", TOPIC, lambda: second.broker_address) as after:
            for number, member in enumerate(lost, 2):
                shutil.rmtree(tmp_path / "etcd" / member.name)
                left.add(member)
                member.start(members[:number], "--initial-cluster-state", "existing")
                wait_until(lambda member=member: member.answers(""))  # type: ignore[misc]
            for broker in (first, third):
                broker.start_broker()
            wait_until(lambda: runtime_info(second).get("slavesInSyncSet", "").count(",") == 1)
            after.more()
            left.kill()  # the new ones are a majority
            after.more()
            wait_until(
                lambda: sorted(on_record(lost[0], second)) == sorted(each.broker_address for each in scene.brokers)
            )
        tell(capsys, second, "ha", "status")
        second.stop_broker()
        second.change({"minInSyncReplicas": "2"})
        second.start_broker()
        master = settled(scene.brokers)
        with Recorder("at last", TOPIC, lambda: master.broker_address) as last:
            last.more()
        tell(capsys, master, "ha", "history")
        scene.check(before, after, last, owner=master)


@pytest.mark.slow
@pytest.mark.parametrize("is_through_etcd", [False, True], ids=["promote --force", "switchover --unclean"])
def test_a_slave_outside_the_set_goes_on_by_force_and_what_it_lacks_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_through_etcd: bool
) -> None:
    """The master and the slave in sync with it are lost, and come back when the third has gone on."""
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        (member,), (first, second, third) = members, scene.brokers
        with Recorder("before", TOPIC, lambda: first.broker_address) as before:
            before.more()
        third.kill_broker()
        with Recorder("without it", TOPIC, lambda: first.broker_address) as without:
            wait_until(lambda: third.broker_address not in on_record(member, first))
            without.more()
        end = int(figures(first)["commitLogMaxOffset"])
        wait_until(lambda: confirmed_on_disk(first) == confirmed_on_disk(second) == end)
        wait_until(lambda: told_ends(member, first).get(second.broker_address) == end)
        first.kill_broker()
        second.kill_broker()
        third.change({"minInSyncReplicas": "1"})
        third.start_broker()
        wait_until(lambda: runtime_info(third).get("slaveState") == "connecting")
        tell(capsys, third, "promote", "--dry-run")
        assert tell(capsys, third, "promote", "--accept-unknown", "--yes").code == 1
        if is_through_etcd:
            switch = ("ha", "switchover", "--unclean", "--to", third.broker_address, "--yes")
            none = (*switch, "--accept-loss", "0")
            lacks = end - int(figures(third)["commitLogMaxOffset"])
            told = f"{second.broker_address} has reported {lacks:,} bytes more of the log"
            wait_until(lambda: told in gantry(capsys, third, *none[1:]).err)  # it has reported itself, too
            tell(capsys, third, *none, "--dry-run")
            assert told in tell(capsys, third, *none, "--accept-unknown").err
            becomes_master(capsys, third, *switch, "--accept-loss", str(lacks), "--accept-unknown")
        else:
            becomes_master(capsys, third, "promote", "--force", "--yes")
        wait_until(lambda: send_alone(third) == ResponseCode.SLAVE_NOT_AVAILABLE)
        for lost in (first, second):
            lost.start_broker()
            wait_until(lambda lost=lost: runtime_info(lost).get("slaveState") == "would lose confirmed messages")  # type: ignore[misc]
        settle = ("settle", "--keep", third.broker_address)
        tell(capsys, third, *settle, "--dry-run")
        wait_until(lambda: tell(capsys, third, *settle, "--yes").code == 0)
        third.stop_broker()
        third.change({"minInSyncReplicas": "2"})
        third.start_broker()
        master = settled(scene.brokers)
        with Recorder("after", TOPIC, lambda: master.broker_address) as after:
            after.more()
        tell(capsys, master, "ha", "history")
        scene.check(before, after, owner=master)
        for lost in (first, second):
            (tail,) = lost.store.parent.glob("store.cut-*")
            kept = b"".join(path.read_bytes() for path in (tail / "commitlog").iterdir())
            assert all(send.body in kept for send in without.sends if send.answer is Answer.ACKNOWLEDGED)


def confirmed_on_disk(broker: LocalCluster) -> int:
    file = InSyncFile(broker.store)
    file.load()
    return file.record.confirmed


def tell(capsys: pytest.CaptureFixture[str], broker: LocalCluster, *words: str) -> Ran:
    ran = run_gantry(capsys, "admin", "-n", broker.namesrv_address, *words, broker.broker_name)
    with capsys.disabled():
        print(f"\n$ gantry admin {' '.join(words)}\n{ran.out}{ran.err}")
    return ran


def becomes_master(capsys: pytest.CaptureFixture[str], broker: LocalCluster, *words: str) -> None:
    """By that command, given again while a starved member answers it too late."""
    wait_until(lambda: tell(capsys, broker, *words).code == 0 or is_master(broker))
    wait_until(lambda: is_master(broker))  # it has the epoch, and opens


@pytest.mark.slow
@pytest.mark.parametrize("is_of_group", [False, True], ids=["another group", "a copy of this group"])
def test_an_etcd_of_another_cluster_at_the_same_address_is_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_of_group: bool
) -> None:
    """It has a later epoch on record, and answers as the own one did; then that one is back."""
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        (member,), master = members, scene.brokers[0]
        group = figures(master)["memberGroup"] if is_of_group else str(uuid.uuid4())
        with etcd(tmp_path / "other") as (other,):
            asyncio.run(begin_elsewhere(other, master, group))
        other.url, other.peer_url = member.url, member.peer_url
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            member.kill()
            other.start([other])
            try:
                why = "was restored from a backup" if is_of_group else f"is of group {group}"
                wait_until(lambda: why in runtime_info(master).get("masterProof", ""))
                wait_until(lambda: send_alone(master) == ResponseCode.SERVICE_NOT_AVAILABLE)
                tell(capsys, master, "ha", "explain")
                assert only_master(scene.brokers) is master
                assert {figures(each)["epochHighest"] for each in scene.brokers} == {"1"}
                master.kill_broker()
                master.launch_broker()
                wait_until(lambda: why in runtime_info(master).get("masterProof", ""))
                wait_until(lambda: send_alone(master) == ResponseCode.SERVICE_NOT_AVAILABLE)
                assert only_master(scene.brokers) is master
                assert {figures(each)["epochHighest"] for each in scene.brokers} == {"1"}
            finally:
                other.kill()
            member.start(members)
            recorder.more()
        assert figures(master)["epoch"] == "1"
        scene.check(recorder, owner=master)


async def begin_elsewhere(other: EtcdMember, broker: LocalCluster, group: str) -> None:
    """As brokers of the same names have it after some failovers; a copy says that it was begun in another etcd."""
    client = EtcdClient(endpoints_of(other.url), deadline_s=WITHIN_S)
    register = Register(client, CLUSTER_NAME, broker.broker_name)
    await register.init(9, "elsewhere", "192.0.2.1:10911", group)
    if group == figures(broker)["memberGroup"]:
        await client.change([], {f"{register.prefix}{CLUSTER}": b"1"})
