"""Promotions that lost messages once, in real networks: with and without all acknowledgements and etcd."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gantrymq.errors import ResponseError
from tests.faults.kit.nodes import ETCD, NAMES, Node, nodes
from tests.faults.kit.replicas import (
    ASYNC,
    SYNC,
    TOPIC,
    ask_slave_alone,
    figures,
    refused,
    runtime_info,
    settled,
    take_over,
)
from tests.faults.replication.history import Answer, Log, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder, assert_as_told
from tests.waiting import wait_until

AWAY_S = 15.0
LEVELS = {"sync": SYNC, "async": ASYNC}
pytestmark = [
    pytest.mark.parametrize("with_etcd", [True, False]),
    pytest.mark.parametrize("level", list(LEVELS)),
]


@pytest.fixture
def three(tmp_path: Path, level: str, with_etcd: bool) -> Iterator[list[Node]]:
    with nodes(tmp_path, LEVELS[level], with_etcd=with_etcd) as made:
        yield made


def logs_of(three: Sequence[Node]) -> list[Log]:
    return [read_log(each.broker_address, each.store) for each in three]


def is_at(slave: Node, state: str) -> bool:
    return runtime_info(slave).get("slaveState") == state


@pytest.mark.slow
def test_a_slave_that_was_cut_off_is_not_promoted(three: list[Node], level: str, with_etcd: bool) -> None:
    master, stale, better = three
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more()
        stale.cut(master.node, better.node, NAMES)
        time.sleep(AWAY_S)  # as it was found
        recorder.more(200)
    master.kill_broker()
    better.kill_broker()
    three[0].net.heal()
    wait_until(lambda: is_at(stale, "connecting"))
    is_on_record = with_etcd and level == "sync"
    for accepted in (False, True) if is_on_record else (False,):
        refused(stale, "not in sync: etcd has" if is_on_record else "", accept_unknown=accepted)
    with pytest.raises(ResponseError):
        ask_slave_alone(stale, accept_unknown=False)
    assert figures(stale)["epochHighest"] == "1"
    counts = better if level == "sync" else master
    better.start_broker()
    if level == "async":  # what it acknowledged alone is at the master
        master.start_broker()
    else:
        wait_until(lambda: runtime_info(better).get("brokerRole") == "SLAVE")
        take_over([better], accept_unknown=True)  # it was restarted
        assert figures(better)["epoch"] == "2"
    wait_until(lambda: is_at(stale, "copying"))
    wait_until(lambda: figures(stale)["commitLogMaxOffset"] == figures(counts)["commitLogMaxOffset"])
    assert recorder.count(Answer.ACKNOWLEDGED) > 200
    assert check(recorder.sends, logs_of(three), counts.broker_address) == []


@pytest.mark.slow
def test_of_two_promotions_apart_the_second_takes_nothing_away(three: list[Node], level: str, with_etcd: bool) -> None:
    master, first, second = three
    serving = [master]
    with Recorder("p", TOPIC, lambda: serving[0].broker_address if serving else "") as recorder:
        recorder.more()
        second.cut(master.node, first.node, NAMES, ETCD)
        wait_until(lambda: runtime_info(master).get("slavesInSyncSet") == first.broker_address)
        recorder.more()
        serving.clear()
        wait_until(lambda: figures(first)["commitLogMaxOffset"] == figures(master)["commitLogMaxOffset"])
        master.kill_broker()
        take_over([first], accept_unknown=True)
        assert figures(first)["epoch"] == "2"
        serving.append(first)
        if level == "async":
            recorder.more(100)
        serving.clear()
    first.kill_broker()
    three[0].net.heal()
    wait_until(lambda: is_at(second, "connecting"))
    refused(second)
    if with_etcd:
        refused(second, "etcd has epoch 2 of", accept_unknown=True)
        first.start_broker()
        wait_until(lambda: is_at(second, "copying"))
        assert check(recorder.sends, logs_of(three), first.broker_address) == []
        return
    take_over([second], accept_unknown=True)
    assert figures(second)["epoch"] == "3"
    before = read_log("first", first.store)
    first.start_broker()
    wait_until(lambda: is_at(first, "would lose confirmed messages"))
    assert read_log("first", first.store).data == before.data, "nothing is cut without a person"
    assert check(recorder.sends, logs_of(three), first.broker_address) == []


@pytest.mark.slow
def test_a_master_that_only_clients_reach_acknowledges_nothing_that_is_lost(
    three: list[Node], level: str, with_etcd: bool
) -> None:
    master, slave, other = three
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more(100)
        master.cut(slave.node, other.node, ETCD)
        wait_until(lambda: is_at(slave, "connecting") and is_at(other, "connecting"))
        time.sleep(3)  # the master goes on, as it may
        refused(slave, "is the master of epoch 1", accept_unknown=True)
        is_proven = level == "sync" and with_etcd
        if not is_proven:
            with pytest.raises(ResponseError):
                ask_slave_alone(slave, accept_unknown=False)
        if level == "sync":
            ask_best(slave, other, accept_unknown=not is_proven)
            wait_until(lambda: any(runtime_info(each).get("epoch") == "2" for each in (slave, other)))
        time.sleep(3)  # both serve, if they would
        three[0].net.heal()
        counts = settled(three, lambda info: True)
    assert_as_told([recorder], three, counts)
    assert (counts is master) == (level == "async")


def ask_best(slave: Node, other: Node, *, accept_unknown: bool) -> None:
    """Either may have more of what was never acknowledged."""
    ends = {each.node: int(figures(each)["commitLogMaxOffset"]) for each in (slave, other)}
    best = slave if ends[slave.node] >= ends[other.node] else other
    ask_slave_alone(best, accept_unknown=accept_unknown)
