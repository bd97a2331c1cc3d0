"""Records beside a slave's log, and its settings, damaged while it rests: it says what it can't read, or goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.bench.peer import PeerError
from tests.faults.kit.replicas import FILES, TOPIC, Replica, figures, is_same, log_of, runtime_info
from tests.faults.replication.history import Answer
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

Damage = Callable[[Path], object]


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def garbage(path: Path) -> None:
    path.write_bytes(b"\x80\xff{]" * 20)


class Tended(Replica):
    """Its settings may be damaged before it starts."""

    damage: Damage | None = None

    def broker_command(self, properties: Path) -> list[str | Path]:
        if self.damage is not None:
            type(self).damage(properties)
        return super().broker_command(properties)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, Tended]]:
    home = tmp_path_factory.mktemp("damaged")
    with LocalCluster(home / "master", broker_properties=FILES | {"slavesEnable": "true"}) as master:
        slave = Tended(home / "slave", master, 1, FILES)
        slave.start_broker()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "copying")
        with Recorder("before", TOPIC, lambda: master.broker_address) as recorder:
            recorder.more()
        wait_until(lambda: is_same(master, slave))
        slave.stop_broker()
        yield master, slave
        slave.stop()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [emptied, half, garbage])
@pytest.mark.parametrize("name", ["epochs.json", "inSync.json", "copy.json"])
def test_a_damaged_record_is_named_or_made_good_and_never_costs_a_message(
    pair: tuple[LocalCluster, Tended], tmp_path: Path, name: str, damage: Damage
) -> None:
    master, slave = pair
    kept = tmp_path / "config"
    shutil.copytree(slave.store / "config", kept)
    path = slave.store / "config" / name
    if not path.exists():
        pytest.fail(f"no slave has {name} any more: {sorted(each.name for each in kept.iterdir())}")
    damage(path)
    before = log_of(slave)
    try:
        _follows_or_says_why(master, slave, before, name)
    finally:
        slave.stop_broker()
        shutil.rmtree(slave.store / "config")
        shutil.copytree(kept, slave.store / "config")


def _follows_or_says_why(master: LocalCluster, slave: LocalCluster, before: bytes, name: str) -> None:
    with Recorder("p", TOPIC, lambda: master.broker_address) as recorder:
        try:
            slave.start_broker()
        except PeerError as exc:
            assert name in str(exc) or "can't be" in str(exc), exc
            assert log_of(slave) == before
            return
        wait_until(lambda: runtime_info(slave).get("slaveState") not in ("connecting", "comparing logs", None))
        recorder.more(10)
    if figures(slave)["slaveState"] == "copying":
        wait_until(lambda: is_same(master, slave))
        assert log_of(slave) == log_of(master)
        held = {each.body for each in read_log("master", master.store).stored}
        assert all(send.body in held for send in recorder.sends if send.answer is Answer.ACKNOWLEDGED)
    else:
        wait_until(lambda: figures(slave)["slaveStateWhy"] != "none")
        assert log_of(slave) == before


def a_number_that_is_none(path: Path) -> None:
    path.write_text(path.read_text() + "haHousekeepingInterval=many\n")


def a_role_cut_short(path: Path) -> None:
    path.write_text(path.read_text() + "brokerRole=SLA\n")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [zeros, garbage, a_number_that_is_none, a_role_cut_short])
def test_damaged_settings_are_named_and_nothing_is_begun(pair: tuple[LocalCluster, Tended], damage: Damage) -> None:
    _master, slave = pair
    before = log_of(slave)
    Tended.damage = staticmethod(damage)
    try:
        with pytest.raises(PeerError) as refused:
            slave.start_broker()
    finally:
        Tended.damage = None
        slave.stop_broker()
    named = ("broker.properties", "haHousekeepingInterval", "brokerRole")
    assert any(each in str(refused.value) for each in named), refused.value
    assert log_of(slave) == before
