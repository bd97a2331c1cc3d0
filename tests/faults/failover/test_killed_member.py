"""A member that was killed is back as the master: what the others have had of its tables is not lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.failover.groups import running
from tests.faults.failover.one_group import commit, offset_at, store
from tests.faults.kit.replicas import TOPIC, is_master, make_topic
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
        assert is_master(master) and told == [19]
        commit(master, 20)
        wait_until(lambda: all(offset_at(slave) == 20 for slave in slaves))
