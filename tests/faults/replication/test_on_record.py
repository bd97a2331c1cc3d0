"""Promotions where etcd has epochs and in-sync sets on record: the cases that lost messages before, and random rounds.

pytest tests/faults/replication/test_on_record.py -s --rounds 30
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.failover.recorded import gantry, holders, on_record
from tests.faults.kit.replicas import SYNC, TOPIC, replicated, take_over
from tests.faults.replication.history import Answer
from tests.faults.replication.recorder import Recorder, assert_as_told
from tests.harness import LocalCluster
from tests.servers.etcd import EtcdMember, etcd
from tests.waiting import wait_until

ROUNDS = 2
ROUND_S = 1.0


@pytest.fixture
def member(tmp_path: Path) -> Iterator[EtcdMember]:
    with etcd(tmp_path / "etcd") as (member,):
        yield member


@pytest.fixture
def three(tmp_path: Path, member: EtcdMember, capsys: pytest.CaptureFixture[str]) -> Iterator[list[LocalCluster]]:
    """A master and two slaves, all in sync and on record."""
    with replicated(tmp_path, SYNC | {"etcdEndpoints": member.url}) as members:
        wait_until(lambda: gantry(capsys, members[0], "init", "--accept-unknown").code == 0)
        wait_until(lambda: on_record(member, members[0]) == sorted(each.broker_address for each in members))
        wait_until(lambda: len(holders(member, members[0])) == len(members))
        yield members


@pytest.mark.slow
def test_rounds_of_killed_and_stopped_masters_lose_nothing(
    three: list[LocalCluster], member: EtcdMember, seed: int, request: pytest.FixtureRequest
) -> None:
    """The master is struck amid messages, maybe a slave or etcd with it; the slave on record takes over; all return."""
    chance, everybody = random.Random(seed), sorted(each.broker_address for each in three)
    serving: list[LocalCluster] = [three[0]]
    with Recorder("p", TOPIC, lambda: serving[0].broker_address if serving else "") as recorder:
        for _ in range(request.config.getoption("--rounds", default=None) or ROUNDS):
            master = serving[0]
            slaves = [each for each in three if each is not master]
            recorder.more(50)
            time.sleep(chance.random() * ROUND_S)  # the dice say when it is struck
            wait_until(lambda: on_record(member, three[0]) == everybody)  # so whoever is left may take over
            struck = [master, *chance.sample(slaves, chance.choice((0, 1)))]
            if chance.random() < 0.3:
                member.signal(signal.SIGSTOP)
            blows = [chance.choice((signal.SIGKILL, signal.SIGSTOP)) for _ in struck]
            for peer, blow in zip(struck, blows, strict=True):
                strike(peer, blow)
            time.sleep(chance.random() * ROUND_S)  # and for how long etcd is frozen
            member.signal(signal.SIGCONT)
            if blows[0] is signal.SIGSTOP:
                strike(master, signal.SIGKILL)  # it is the operator who ends a master that hangs
            serving.clear()
            left = [each for each in slaves if each not in struck]
            serving.append(take_over(left))
            for peer, blow in zip(struck, blows, strict=True):
                if peer is not master and blow is signal.SIGSTOP:
                    os.kill(peer.broker.pid, signal.SIGCONT)
                else:
                    peer.start_broker()
            wait_until(lambda: on_record(member, three[0]) == everybody)
        recorder.more(50)
        serving_now = serving[0]
        serving.clear()
    assert recorder.count(Answer.ACKNOWLEDGED) > 100
    assert_as_told([recorder], three, serving_now)


def strike(peer: LocalCluster, blow: signal.Signals) -> None:
    if blow is signal.SIGKILL:
        peer.kill_broker()
    else:
        os.kill(peer.broker.pid, signal.SIGSTOP)
