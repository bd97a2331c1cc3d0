"""Promotions that would lose what producers were told is stored: the slave was cut off, or others can't be asked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.kit.replicas import ASYNC, FILES, SYNC, TOPIC, figures, refused, replicated, runtime_info, take_over
from tests.faults.replication.history import check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

CUT_OFF = 200  # messages that are acknowledged while the slave is cut off


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[LocalCluster]]:
    """A master and two slaves, both in sync."""
    with replicated(tmp_path, SYNC, FILES) as members:
        wait_until(lambda: is_told_of_both(members))
        yield members


def is_told_of_both(members: list[LocalCluster]) -> bool:
    """Whether each slave has heard that both are in sync: a starved one leaves the set for a moment."""
    _master, *slaves = members
    both = sorted(slave.broker_address for slave in slaves)
    return all(sorted(runtime_info(slave).get("inSyncSetTold", "").split(",")) == both for slave in slaves)


@pytest.mark.slow
def test_a_slave_that_stood_still_is_as_old_as_what_it_was_told(tmp_path: Path) -> None:
    """It read what lay in its sockets when it went on, so it has just heard of a master that is long gone."""
    with replicated(tmp_path, ASYNC, slaves=1) as (master, slave):
        wait_until(lambda: runtime_info(slave).get("inSyncSetTold") == slave.broker_address)
        with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
            os.kill(slave.broker.pid, signal.SIGSTOP)
            wait_until(lambda: runtime_info(master).get("slavesInSyncSet") == "none")
            recorder.more(CUT_OFF)
        master.kill_broker()
        os.kill(slave.broker.pid, signal.SIGCONT)
        wait_until(lambda: runtime_info(slave).get("slaveState") == "connecting")
        refused(slave, "and the master ended")


@pytest.mark.slow
def test_a_slave_in_sync_is_promoted_without_a_word_about_it(three: list[LocalCluster]) -> None:
    """However long the person took: the name server saw the master end when the slave heard of it last."""
    master, one, two = three
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        recorder.more(CUT_OFF)
        wait_until(lambda: is_told_of_both(three))
        master.kill_broker()
    time.sleep(5)  # more than any leave time
    best = take_over([max(one, two, key=lambda slave: int(figures(slave)["commitLogMaxOffset"]))])
    logs = [read_log(peer.broker_address, peer.store) for peer in three]
    assert check(recorder.sends, logs, best.broker_address) == []
