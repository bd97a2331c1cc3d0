"""A master whose disk is full, with slaves whose disks are not: an operator hands its role over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from appliance.bench.gantry_peer import CHECKOUT
from tests.conftest import missing
from tests.faults.failover.group import Group, group
from tests.faults.kit.nodes import Node
from tests.faults.kit.replicas import TOPIC, make_topic, runtime_info
from tests.faults.replication.history import Answer, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import acknowledged, sending
from tests.waiting import WITHIN_S, wait_until

GANTRY = (sys.executable, "-P", "-m", "appliance", "admin")


def new_masters(scene: Group, master: Node) -> list[Node]:
    return [each for each in scene.masters() if each is not master]


def is_followed(scene: Group, master: Node) -> bool:
    """Whether another one is the master. Until then `gantry admin ha switchover` asks for it: it refuses while the
    member that it chooses has just died, and on a busy machine a slave may take over by itself before."""
    if new_masters(scene, master):
        return True
    command = [*GANTRY, "-n", master.namesrv_address, "ha", "switchover", master.broker_name, "--yes"]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True, check=False, timeout=WITHIN_S
    )
    print(done.stdout, done.stderr)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("is_alone", [False, True], ids=["with both slaves", "with one slave left"])
def test_a_master_whose_disk_is_full_hands_over_to_a_slave_with_room(tmp_path: Path, *, is_alone: bool) -> None:
    with group(tmp_path) as scene:
        master = scene.settled()
        if not scene.disks:
            missing("a loop mount", "a disk of its own is filled")
        make_topic(master, TOPIC)
        with sending(scene.brokers, TOPIC) as recorders:
            before = recorders[scene.brokers.index(master)]
            before.more()
            scene.disks[master.node].leave(0)
            wait_until(lambda: "full" in runtime_info(master).get("storeTrouble", ""))
            is_killed = is_alone and scene.masters() == [master]  # else it has handed over, with both
            if is_killed:  # it leaves the in-sync set, which has to be put on record
                dead = next(each for each in scene.brokers if each is not master)
                dead.kill_broker()
            wait_until(lambda: is_followed(scene, master))
            others = [recorders[scene.brokers.index(each)] for each in scene.brokers if each is not master]
            enough = acknowledged(others) + 30
            wait_until(lambda: acknowledged(others) >= enough)
            if is_killed:
                dead.start_broker()
            scene.heal()
            master = scene.settled()
        logs = [read_log(each.broker_address, each.store) for each in scene.brokers]
        sends = [send for recorder in recorders for send in recorder.sends]
    assert sum(send.answer is Answer.ACKNOWLEDGED for send in sends) >= 60
    assert check(sends, logs, master.broker_address, []) == []
