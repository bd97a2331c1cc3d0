"""What broke promotion by hand, in a group that takes over by itself: networks in which messages were lost once."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gantrymq.errors import ResponseError
from tests.faults.failover.group import LEASE_S, REGISTER, Group, group
from tests.faults.failover.nemesis import isolate_master
from tests.faults.failover.recorded import on_record
from tests.faults.kit.nodes import NAMES, Node
from tests.faults.kit.replicas import TOPIC, ask_slave_alone, figures, is_master, make_topic, refused, runtime_info
from tests.faults.replication.history import Answer
from tests.faults.replication.recorder import Recorder, acknowledged, assert_as_told, sending
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Group]:
    with group(tmp_path) as made:
        make_topic(made.settled(), TOPIC)
        yield made


@contextlib.contextmanager
def checked(scene: Group) -> Iterator[list[Recorder]]:
    """A sender to each member; at the end all is healed, one master serves, and the logs are as senders were told."""
    with sending(scene.brokers, TOPIC) as recorders:
        more(recorders)
        yield recorders
        scene.heal()
        scene.settled()
        more(recorders)
    master = scene.settled()
    assert_as_told(recorders, scene.brokers, master)


def more(recorders: Sequence[Recorder]) -> None:
    enough = acknowledged(recorders) + 30
    wait_until(lambda: acknowledged(recorders) >= enough)


def members(scene: Group) -> tuple[Node, Node, Node]:
    """The master first."""
    master = scene.settled()
    one, other = (each for each in scene.brokers if each is not master)
    return master, one, other


def epoch(node: Node) -> int:
    return int(figures(node)["epochHighest"])


def test_a_slave_that_was_cut_off_neither_takes_over_nor_is_promoted(scene: Group) -> None:
    master, stale, better = members(scene)
    with checked(scene) as recorders:
        stale.cut(master.node, better.node, NAMES, *REGISTER)
        both = sorted([master.broker_address, better.broker_address])
        wait_until(lambda: on_record(scene.etcd[0], master) == both)
        more(recorders)
        scene.kill(better)
        scene.kill(master)
        scene.net.heal()
        wait_until(lambda: runtime_info(stale).get("slaveState") == "connecting")
        refused(stale)
        with pytest.raises(ResponseError, match=r"not in sync|on record"):
            ask_slave_alone(stale, accept_unknown=True)
        time.sleep(2 * LEASE_S)  # longer than a member waits that may take over
        assert not is_master(stale)


def test_of_two_slaves_apart_one_begins_the_epoch_and_the_other_is_not_promoted(scene: Group) -> None:
    master, *slaves = members(scene)
    with checked(scene):
        slaves[0].cut(slaves[1].node)
        scene.kill(master)
        winners: list[Node] = []
        wait_until(lambda: winners.extend(filter(is_master, slaves)) or bool(winners))
        other = slaves[1] if winners[0] is slaves[0] else slaves[0]
        wait_until(lambda: epoch(other) > 1)  # by etcd: it does not reach the new master
        refused(other)
        with pytest.raises(ResponseError):
            ask_slave_alone(other, accept_unknown=True)
        time.sleep(2 * LEASE_S)  # both serve, if they would


def test_a_master_that_only_clients_reach_stops_before_its_successor_begins(scene: Group) -> None:
    master, *slaves = members(scene)
    with checked(scene) as recorders:
        recorder = recorders[scene.brokers.index(master)]
        isolate_master(scene, master, random.Random(0))
        wait_until(lambda: any(map(is_master, slaves)))
        # On a slow machine another one may have taken over just before.
        wait_until(lambda: not is_master(master) or "does not prove" in runtime_info(master).get("masterProof", ""))
        more(recorders)  # answers that were under way have come
        told = recorder.count(Answer.ACKNOWLEDGED)
        time.sleep(2 * LEASE_S)  # both serve, if they would
        assert recorder.count(Answer.ACKNOWLEDGED) == told
    assert epoch(master) > 1
