"""The supervisor has a dead master on record: that very process only, and only one with automatic failover."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from appliance.failover.view import TermState
from appliance.process.process_identity import identity, start_ticks
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import Register
from appliance.register.term import IN_SYNC
from appliance.supervisor.witness import broker_died
from tests.servers.etcd import EtcdMember

pytestmark = pytest.mark.usefixtures("patient_clients")
NAMES = count()
ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"


class Broker:
    """What stands for one: a process, its settings, and its record."""

    def __init__(self, url: str, folder: Path, *, automatic: bool = True) -> None:
        name = f"broker-{next(NAMES)}"
        self.properties = folder / "broker.properties"
        lines = {
            "brokerName": name,
            "brokerClusterName": "cluster",
            "brokerRole": "SYNC_MASTER",
            "slavesEnable": "true",
            "etcdEndpoints": url,
            "allAckInSyncStateSet": "true",
            "readConfirmedOnly": "true",
            "automaticFailover": str(automatic).lower(),
            "storePathRootDir": str(folder / "store"),
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        self.process = subprocess.Popen(["sleep", "600"])
        self.ticks = start_ticks(self.process.pid)
        self.register = Register(EtcdClient(endpoints_of(url)), "cluster", name)

    async def begin(self) -> None:
        await self.register.init(1, "id", ONE)
        self.register.session = f"{identity(self.process.pid, self.ticks)}/session"
        await self.register.publish(1, "id", ONE, [TWO], IN_SYNC)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def state(self) -> TermState:
        term = (await self.register.view()).term
        assert term is not None
        return term.state


@pytest.fixture
def broker(member: EtcdMember, tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(member.url, tmp_path)
    yield broker
    broker.kill()


async def test_the_role_of_a_dead_master_is_free(broker: Broker) -> None:
    await broker.begin()
    broker.kill()
    await broker_died(broker.properties, broker.process.pid, broker.ticks)
    assert await broker.state() is TermState.RELEASED


async def test_another_process_of_the_same_pid_is_not_meant(broker: Broker) -> None:
    await broker.begin()
    assert broker.ticks is not None
    await broker_died(broker.properties, broker.process.pid, broker.ticks - 1)
    await broker_died(broker.properties, broker.process.pid, None)
    assert await broker.state() is TermState.OPEN


async def test_a_broker_without_automatic_failover_keeps_its_role(member: EtcdMember, tmp_path: Path) -> None:
    broker = Broker(member.url, tmp_path, automatic=False)
    await broker.begin()
    broker.kill()
    await broker_died(broker.properties, broker.process.pid, broker.ticks)
    assert await broker.state() is TermState.OPEN


async def test_settings_that_can_not_be_read_cost_a_lease_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await broker_died(tmp_path / "none", 1, 1)
    assert "settings can't be read" in caplog.text
