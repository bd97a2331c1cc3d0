"""Planned switch-overs in which a member stands still or dies at a chosen place, and the master's hold runs out.

strace stops or kills the process as it opens the file that it needs next, so nothing depends on timing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gantrymq import SyncAdminClient
from gantrymq.errors import GantryError
from tests.faults.kit.replicas import ASYNC, SYNC, TOPIC, replicated, runtime_info, settled
from tests.faults.kit.strace import injected
from tests.faults.replication.history import Answer, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

HOLD_S = 3.0
LEVELS = {"sync": SYNC, "async": ASYNC}

# The file that a broker opens next, in its store: before its epoch is on record, behind that, and at the master.
BEFORE_EPOCH, AFTER_EPOCH = Path("config/epochs.json.tmp"), Path("abort")
AFTER_HAND_OVER = Path("config/epochs.json.bak.tmp")
STOP, KILL = signal.SIGSTOP, signal.SIGKILL


@pytest.fixture
def level() -> str:
    return "sync"


@pytest.fixture
def three(tmp_path: Path, level: str) -> Iterator[list[LocalCluster]]:
    """A master and two slaves, both in sync: without the one that takes over the master may still acknowledge."""
    with replicated(tmp_path, LEVELS[level]) as members:
        wait_until(lambda: runtime_info(members[0]).get("slavesInSyncSet", "").count(",") == 1)
        yield members


@pytest.fixture(autouse=True)
def short_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantrymq.client.admin.succession.HOLD_S", HOLD_S)
    monkeypatch.setattr("gantrymq.client.admin.succession.SWITCH_S", 2 * HOLD_S)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "place", "blow"),
    [
        ("sync", BEFORE_EPOCH, STOP),
        ("sync", BEFORE_EPOCH, KILL),
        ("sync", AFTER_EPOCH, STOP),
        ("sync", AFTER_EPOCH, KILL),
        ("async", AFTER_EPOCH, STOP),
        ("async", AFTER_EPOCH, KILL),
    ],
)
def test_the_new_master_is_struck_and_comes_back_when_the_hold_is_long_over(
    three: list[LocalCluster], tmp_path: Path, place: Path, blow: signal.Signals
) -> None:
    old, new, _third = three
    with switching(three, new, place, blow, tmp_path / "strace") as let_go:
        let_the_hold_run_out()
        let_go()
        if blow is STOP:
            os.kill(new.broker.pid, signal.SIGCONT)
        else:
            new.kill_broker()
            new.start_broker()
    assert settled(three) is (new if (place, blow) != (BEFORE_EPOCH, KILL) else old)


@pytest.mark.slow
def test_the_old_master_dies_and_is_back_while_the_new_one_stands_still(
    three: list[LocalCluster], tmp_path: Path
) -> None:
    """It finds nobody who knows of a later epoch: its own record has to be enough."""
    old, new, _third = three
    with switching(three, new, AFTER_EPOCH, STOP, tmp_path / "strace") as let_go:
        old.kill_broker()
        old.start_broker()
        let_the_hold_run_out()
        let_go()
        os.kill(new.broker.pid, signal.SIGCONT)
    assert settled(three) is new


@pytest.mark.slow
@pytest.mark.parametrize("place", [BEFORE_EPOCH, AFTER_HAND_OVER], ids=["before_record", "after_record"])
def test_the_old_master_dies_as_it_hands_over(three: list[LocalCluster], tmp_path: Path, place: Path) -> None:
    """The slave has no answer, and gives the change up: back again, the old master asks it, and goes on."""
    old = three[0]
    with switching(three, old, place, KILL, tmp_path / "strace") as let_go:
        let_go()
        old.kill_broker()
        old.start_broker()
    assert settled(three) is old


@contextlib.contextmanager
def switching(
    three: list[LocalCluster], peer: LocalCluster, place: Path, blow: signal.Signals, log: Path
) -> Iterator[Callable[[], None]]:
    """Switch over from the first to the second, amid messages; the member is stopped or killed as it opens that file.

    The block runs from then on, and calls what it gets to end strace. Behind it the logs are whole and the same.
    """
    old, new, _third = three
    serving = [old]
    with Recorder("p", TOPIC, lambda: serving[0].broker_address) as recorder:
        recorder.more()
        with ThreadPoolExecutor(1) as thread, contextlib.ExitStack() as strace:
            strace.enter_context(injected(peer.broker.pid, "openat", f"signal={blow.name}", log, peer.store / place))
            # A starved member is late for the hold of the first try: then nothing is struck by it.
            asked = thread.submit(wait_until, lambda: bool(switch_over(old, new)) and blow.name in log.read_text())
            wait_until(lambda: blow.name in log.read_text())
            yield strace.close
            asked.result()
        serving[:] = [settled(three)]
        recorder.more()
    assert_whole(three, recorder, serving[0])


def switch_over(old: LocalCluster, new: LocalCluster) -> str:
    with SyncAdminClient(old.namesrv_address, timeout_s=3) as admin:
        try:
            admin.succession.switch_over(*admin.succession.switch(old.broker_name, new.broker_address))
        except GantryError as exc:
            return str(exc)
        return "done"


def let_the_hold_run_out() -> None:
    time.sleep(HOLD_S + 1)  # what is shown is that time changes nothing


def assert_whole(three: list[LocalCluster], recorder: Recorder, counts: LocalCluster) -> None:
    wait_until(lambda: len({runtime_info(each).get("commitLogMaxOffset") for each in three}) == 1)
    logs = [read_log(each.broker_address, each.store) for each in three]
    assert recorder.count(Answer.ACKNOWLEDGED) >= 60
    assert check(recorder.sends, logs, counts.broker_address) == []
    assert logs[0].data == logs[1].data == logs[2].data
