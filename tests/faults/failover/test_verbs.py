"""`gantry admin ha` with three brokers in sync and etcd: what it shows, and what it changes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.appliance.cli.running_gantry import Ran
from tests.faults.failover.groups import running
from tests.faults.failover.recorded import begun, gantry
from tests.faults.kit.replicas import TOPIC, figures, is_master, runtime_info
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.servers.etcd import etcd
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def answer(capsys: pytest.CaptureFixture[str], peer: LocalCluster, verb: str, *more: str) -> Any:
    ran = gantry(capsys, peer, verb, "--json", *more)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def settled(capsys: pytest.CaptureFixture[str], peer: LocalCluster) -> Any:
    """The first status in which all slaves have told the same end of their logs, and each may take over."""
    seen: list[Any] = []

    def look() -> bool:
        seen[:] = [answer(capsys, peer, "status")]
        slaves = seen[0]["members"][1:]
        return (
            all(each["has_told"] and not each["refusal"] for each in slaves)
            and len({each["log_end"] for each in slaves}) == 1
        )

    wait_until(look)
    return seen[0]


def switched(capsys: pytest.CaptureFixture[str], master: LocalCluster, to: LocalCluster) -> Any:
    """What `ha switchover` says, given again while the target is late for a moment, and so not able."""
    seen: list[Ran] = []

    def is_done() -> bool:
        seen.append(gantry(capsys, master, "switchover", "--json", "--to", to.broker_address))
        return seen[-1].code == 0

    wait_until(is_done)
    return json.loads(seen[-1].out)


def both(text: str, *lines: str) -> bool:
    return all(line in text for line in lines)


def test_an_administrator_looks_pauses_resumes_and_switches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        master = scene.brokers[0]
        told = settled(capsys, master)
        # Which slave joined first is not known, and the lower id goes before.
        order = [each["address"] for each in told["members"][1:]]
        first, second = (slave for address in order for slave in scene.brokers if slave.broker_address == address)
        assert told["next_master"] == first.broker_address
        assert gantry(capsys, master, "join").code == 0  # all have: it says so, and changes nothing
        members = answer(capsys, master, "members")["members"]
        assert {each["address"] for each in members} == {*order, master.broker_address}
        # A slave that is late for a moment is not able then, so what is explained may take a second look.
        wait_until(
            lambda: both(
                gantry(capsys, master, "explain").out,
                f"{first.broker_address} would take over by itself in about 4 s",
                f"{second.broker_address}: could take over, after the better one",
            )
        )
        answer(capsys, master, "pause", "--why", "a new disk", "--who", "ops")
        assert "ops has paused failover since" in gantry(capsys, master, "status").out
        refused = gantry(capsys, master, "switchover")
        assert refused.code != 0 and "ha resume" in refused.err
        answer(capsys, master, "resume")
        none = gantry(capsys, master, "switchover", "--cancel")
        assert none.code == 1 and "no switchover" in none.err
        moved = switched(capsys, master, second)
        assert (moved["master"], moved["epoch"]) == (second.broker_address, 2)
        wait_until(lambda: is_master(second))
        wait_until(lambda: answer(capsys, master, "status")["state"] == "open")
        status = answer(capsys, master, "status")
        assert (status["master"], status["changes"][0]["reason"]) == (second.broker_address, "switchover")


def test_a_switchover_that_can_not_happen_yet_is_cancelled_and_a_later_one_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A member in sync stands still, so the master holds messages back and waits. Then the master is stopped, and so is
    the command that asked: neither gives up by itself before the switchover is cancelled."""
    stays_in_sync = {"slaveTimeout": "600000"}
    with (
        etcd(tmp_path / "etcd") as members,
        running(tmp_path, capsys, members, lease_s=60, more=stays_in_sync) as scene,
    ):
        master, target, still = scene.brokers
        settled(capsys, master)
        with Recorder("before", TOPIC, lambda: master.broker_address) as before:
            before.more()
            os.kill(still.broker.pid, signal.SIGSTOP)
            end = log_end(master)
            wait_until(lambda: log_end(master) > end)
            words = ("ha", "switchover", master.broker_name, "--to", target.broker_address)
            with begun(master, *words) as asking:
                wait_until(lambda: runtime_info(master).get("messagesHeld") == "true")
                for each in (master.broker, asking):
                    os.kill(each.pid, signal.SIGSTOP)
                ran = gantry(capsys, master, "switchover", "--cancel")
                assert ran.code == 0, ran.err
                assert f"is cancelled: {master.broker_address} goes on as the master" in ran.out
                for each in (asking, master.broker, still.broker):
                    os.kill(each.pid, signal.SIGCONT)
                told, _ = asking.communicate()
            assert asking.returncode == 1
            assert f"{master.broker_address} goes on as the master: " in told and "has cancelled it" in told
            before.more()
        status = settled(capsys, master)
        assert (status["master"], status["epoch"], status["switch"]) == (master.broker_address, 1, None)
        assert [each["reason"] for each in answer(capsys, master, "history")["history"]] == ["init"]
        assert switched(capsys, master, target)["epoch"] == 2
        with Recorder("after", TOPIC, lambda: target.broker_address) as after:
            after.more()
        history = answer(capsys, target, "history")["history"]
        assert [each["reason"] for each in history] == ["init", "switchover"]
        scene.check(before, after, owner=target)


def log_end(broker: LocalCluster) -> int:
    return int(figures(broker)["commitLogMaxOffset"])
