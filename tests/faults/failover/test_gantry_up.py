"""`gantry up --replicas 3`: three brokers of one name, and etcd of this machine decides which of them is the master."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path

import psutil
import pytest

from appliance.__main__ import main
from appliance.process.local_etcd import local_etcd
from gantrymq import ConsumeFrom, Message, SyncAdminClient, SyncProducer, SyncPullConsumer
from gantrymq.client.admin.members import Member
from gantrymq.errors import GantryError
from tests.appliance.cli.running_gantry import run_gantry
from tests.appliance_process import RunningAppliance
from tests.conftest import require_tool
from tests.servers.etcd import REASON
from tests.waiting import Beside, wait_until

TOPIC, NAME = "kept", "broker-a"
SENT_EACH = 100
KILLS = 3
IN_FLIGHT = 2  # answers that were on their way


class Sender(Beside):
    """Sends one message after the other while its block runs, whatever the brokers do. acknowledged: bodies."""

    def __init__(self, gantry: RunningAppliance, prefix: str) -> None:
        self.acknowledged = list[bytes]()
        self._namesrv, self._prefix = gantry.namesrv, prefix
        super().__init__(self._send, "sender")

    def more(self) -> None:
        """Wait until further messages are acknowledged."""
        wanted = len(self.acknowledged) + SENT_EACH
        wait_until(lambda: len(self.acknowledged) >= wanted)

    def _send(self) -> None:
        number = 0
        with SyncProducer(self._namesrv, group="sender") as producer:
            while not self.ends.is_set():
                number += 1
                body = f"{self._prefix} {number}".encode()
                try:
                    producer.send(Message(TOPIC, body))
                except GantryError:
                    continue  # it may be stored; only what was acknowledged has to be
                self.acknowledged.append(body)


def read_all(gantry: RunningAppliance, wanted: set[bytes]) -> None:
    """Consume from the beginning until each of these was there."""
    missing = set(wanted)
    with SyncPullConsumer(gantry.namesrv, group="reader", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
        consumer.subscribe(TOPIC)

        def has_all() -> bool:
            missing.difference_update(message.body for message in consumer.poll(timeout_s=1.0))
            return not missing

        wait_until(has_all)


def members_of(gantry: RunningAppliance) -> list[Member]:
    """None while who is asked does not answer in time."""
    with SyncAdminClient(gantry.namesrv) as admin, contextlib.suppress(GantryError):
        return admin.succession.view(NAME)
    return []


def process_of(gantry: RunningAppliance, member: Member) -> psutil.Process:
    (found,) = (
        process
        for process in gantry.workers("broker")
        if any(f":{member.address.rpartition(':')[2]}" == f":{each.laddr.port}" for each in process.net_connections())
    )
    return found


def master_of(gantry: RunningAppliance) -> Member:
    masters: list[Member] = []

    def is_one() -> bool:
        masters[:] = [member for member in members_of(gantry) if member.is_master]
        return len(masters) == 1

    wait_until(is_one)
    return masters[0]


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_a_kill_a_take_over_and_a_new_start(tmp_path: Path) -> None:
    require_tool("etcd", REASON)
    data = tmp_path / "data"
    with RunningAppliance(data, "--replicas", "3") as gantry, Sender(gantry, "first") as sender:
        sender.more()
        first = master_of(gantry)
        process_of(gantry, first).send_signal(signal.SIGKILL)
        sender.more()
        stopped = master_of(gantry)
        was_epoch = stopped.log_epoch  # the supervisor saw it die: a slave took over, unless it was back before
        process_of(gantry, stopped).send_signal(signal.SIGSTOP)  # it is killed later than a slave may take over
        sender.more()
        wait_until(lambda: master_of(gantry).log_epoch > was_epoch)
        assert master_of(gantry).address != stopped.address
        wait_until(
            lambda: any(
                each.address == stopped.address and each.state == "copying" and each.log_epoch > was_epoch
                for each in members_of(gantry)
            )
        )
        sender.more()
    was, ports = local_etcd(data / "etcd"), ("--broker-port", gantry.broker.rpartition(":")[2])
    with RunningAppliance(data, "--replicas", "3", *ports) as gantry, Sender(gantry, "second") as again:
        again.more()
        assert local_etcd(data / "etcd") == was
        wait_until(lambda: len(members_of(gantry)) == 3)
        read_all(gantry, {*sender.acknowledged, *again.acknowledged})


@pytest.mark.slow
def test_a_killed_master_has_a_successor_as_soon_as_the_supervisor_has_seen_it_die(tmp_path: Path) -> None:
    """pytest tests/faults/failover/test_gantry_up.py -s -k killed: how long no message was accepted."""
    require_tool("etcd", REASON)
    with RunningAppliance(tmp_path / "data", "--replicas", "3") as gantry, Sender(gantry, "first") as sender:
        for _ in range(KILLS):
            sender.more()
            master = process_of(gantry, master_of(gantry))
            sender.more()
            master.send_signal(signal.SIGKILL)
            killed_at, acknowledged = time.monotonic(), len(sender.acknowledged) + IN_FLIGHT
            while len(sender.acknowledged) < acknowledged:
                time.sleep(0.005)  # a figure is measured
            print(f"killed: {time.monotonic() - killed_at:.2f} s until messages are accepted")
        with SyncAdminClient(gantry.namesrv) as admin:
            changes = admin.succession.failover(NAME).changes
        assert all(each.reason == "the master before has released the term" for each in changes if each.epoch > 1)
        read_all(gantry, set(sender.acknowledged))


def decided_by_hand(gantry: RunningAppliance, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/operations/backup.md has it, with the member of the longest log."""
    wait_until(lambda: [each.is_master for each in members_of(gantry)] == [False] * 3)
    to = max(members_of(gantry), key=lambda each: each.end).address
    switch = ("admin", "-n", gantry.namesrv, "ha", "switchover", NAME, "--unclean", "--to", to)
    accepted = ("--accept-loss", "0", "--accept-unknown", "--yes")
    wait_until(lambda: run_gantry(capsys, *switch, *accepted).code == 0)


@pytest.mark.slow
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["same boot", "another machine"])
def test_a_backup_of_all_members_while_messages_come_in_goes_on_after_its_restore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_elsewhere: bool
) -> None:
    """In this boot of the machine no slave has more than the master; elsewhere each log may have lost its end."""
    require_tool("etcd", REASON)
    data, backups, to = tmp_path / "data", tmp_path / "backups", tmp_path / "to"
    with RunningAppliance(data, "--replicas", "3") as gantry, Sender(gantry, "first") as sender:
        wait_until(lambda: [each.state for each in members_of(gantry)].count("copying") == 2)
        sender.more()
        acknowledged = set(sender.acknowledged)
        assert main(["backup", str(backups), "--data", str(data)]) == 0
    assert main(["restore", str(backups), "--data", str(to)]) == 0
    if is_elsewhere:
        files = list(to.glob("brokers/*/store/config/member.json"))
        assert len(files) == 3
        for file in files:
            file.write_text(json.dumps(json.loads(file.read_bytes()) | {"machine": "another"}))
    ports = ("--broker-port", gantry.broker.rpartition(":")[2])
    with RunningAppliance(to, "--replicas", "3", *ports) as gantry, Sender(gantry, "second") as again:
        if is_elsewhere:
            decided_by_hand(gantry, capsys)
        again.more()
        read_all(gantry, {*acknowledged, *again.acknowledged})


@pytest.mark.slow
def test_a_frozen_master_is_replaced_by_hand_and_becomes_a_slave_when_it_wakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The drill of docs/operations/replication.md, line by line."""
    patient = {"GANTRY_WORKER_HANG_S": "0"}
    with RunningAppliance(tmp_path / "data", "--slaves", "1", environment=patient) as gantry:
        with Sender(gantry, "before") as before:
            before.more()
        first = master_of(gantry)
        wait_until(lambda: len(ends := [each.end for each in members_of(gantry) if each.answers]) == len(set(ends)) + 1)
        process_of(gantry, first).send_signal(signal.SIGSTOP)
        promote = ("admin", "-n", gantry.namesrv, "promote", NAME)
        assert run_gantry(capsys, *promote, "--yes").code != 0  # it may go on later
        accepted = (*promote, "--accept-unknown", "--yes")
        wait_until(
            lambda: (
                run_gantry(capsys, *accepted).code == 0
                or any(each.is_master and each.address != first.address for each in members_of(gantry))
            )
        )
        with Sender(gantry, "after") as after:
            after.more()
        process_of(gantry, first).send_signal(signal.SIGCONT)
        wait_until(
            lambda: any(each.address == first.address and each.state == "copying" for each in members_of(gantry))
        )
        assert master_of(gantry).address != first.address
        read_all(gantry, {*before.acknowledged, *after.acknowledged})
