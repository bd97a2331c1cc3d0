"""A member that was killed is back as the master: what the others have had of its tables is not lost, and a promotion
that was killed ends with its broker as the master."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.failover.groups import running
from tests.faults.failover.one_group import commit, offset_at, store
from tests.faults.failover.recorded import begun, gantry, term_of
from tests.faults.kit.replicas import TOPIC, is_master, make_topic, settled
from tests.faults.replication.recorder import Recorder
from tests.servers.etcd import etcd
from tests.waiting import wait_until


@pytest.mark.slow
def test_a_master_that_comes_back_with_an_old_file_tells_the_offsets_that_its_slaves_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no slave may take over. A write of the file that takes long leaves it as old."""
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members, may_take_over=False) as scene:
        master, *slaves = scene.brokers
        make_topic(master, TOPIC)
        config, old = master.store / "config", tmp_path / "old"
        old.mkdir()
        store(master, 20)
        commit(master, 1)
        wait_until(lambda: (config / "consumerOffset.json").exists())
        for path in config.glob("consumerOffset.json*"):
            shutil.copy(path, old)
        commit(master, 19)
        wait_until(lambda: all(offset_at(slave) == 19 for slave in slaves))
        master.kill_broker()
        for path in config.glob("consumerOffset.json*"):
            path.unlink()
        shutil.copytree(old, config, dirs_exist_ok=True)
        master.start_broker()
        told: list[int] = []
        wait_until(lambda: (offset := offset_at(master)) is not None and not told.append(offset))  # type: ignore[func-returns-value]
        assert told == [19]
        wait_until(lambda: is_master(master))
        commit(master, 20)
        wait_until(lambda: all(offset_at(slave) == 20 for slave in slaves))


@pytest.mark.slow
@pytest.mark.parametrize("is_broker_killed", [False, True], ids=["the command", "the broker"])
def test_a_promotion_that_was_killed_ends_with_its_broker_as_the_master(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_broker_killed: bool
) -> None:
    """As soon as etcd has the epoch. Whether the first beat is there by then is not known: both end alike."""
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        (member,), (first, second, _) = members, scene.brokers
        with Recorder("before", TOPIC, lambda: first.broker_address) as before:
            before.more()
        assert gantry(capsys, first, "pause", "--why", "a rehearsal").code == 0
        first.kill_broker()
        words = ("promote", second.broker_name, "--to", second.broker_address, "--accept-unknown", "--yes")
        with begun(second, *words):
            wait_until(lambda: (term := term_of(member, second)) is not None and term.epoch == 2)
            if is_broker_killed:
                second.kill_broker()
        if is_broker_killed:
            assert gantry(capsys, second, "resume", "--force").code == 0
            second.start_broker()
        first.start_broker()
        assert settled(scene.brokers) is second
        with Recorder("after", TOPIC, lambda: second.broker_address) as after:
            after.more()
        scene.check(before, after, owner=second)
