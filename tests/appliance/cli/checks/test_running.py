"""What the doctor says of a cluster in which something is wrong: addresses that clients get, slaves, an empty list."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.bench.processes import free_ports
from appliance.cli.checks import folder, machine, running
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.errors import ResponseError
from gantrymq.remoting.bodies import BrokerData, ClusterInfo
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import timeout
from tests.waiting import WITHIN_S


class Told:
    """An admin client whose name server says this."""

    def __init__(self, brokers: dict[str, dict[int, str]], etcd: FailoverStatus | None = None) -> None:
        self._etcd = etcd
        self._info = ClusterInfo({name: BrokerData("c", name, addresses) for name, addresses in brokers.items()})
        self.cluster = SimpleNamespace(info=self._answer)
        self.succession = SimpleNamespace(failover=self._failover)

    async def _answer(self) -> ClusterInfo:
        return self._info

    async def _failover(self, _name: str, *_: str) -> FailoverStatus:
        if self._etcd is None:
            raise ResponseError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "an Apache broker")
        return self._etcd

    async def __aenter__(self) -> Told:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class Slow(Told):
    """Each broker name answers once all have been asked."""

    def __init__(self, brokers: dict[str, dict[int, str]]) -> None:
        super().__init__(brokers)
        self._together = asyncio.Event()
        self._left = set(brokers)

    async def _failover(self, name: str, *_: str) -> FailoverStatus:
        self._left.discard(name)
        if not self._left:
            self._together.set()
        await self._together.wait()
        return FailoverStatus(name, etcd_trouble="nobody compacts it")


async def looked(
    monkeypatch: pytest.MonkeyPatch, config: ApplianceConfig, brokers: Any, etcd: FailoverStatus | None = None
) -> list[tuple[str, str]]:
    monkeypatch.setattr(running, "AdminClient", lambda *_, **__: Told(brokers, etcd))
    return [(one.mark, one.sentence) for one in await running.look(config)]


async def test_an_address_that_nothing_listens_at_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports()}"
    found = await looked(monkeypatch, ApplianceConfig(data=tmp_path), {"broker-a": {0: address}})
    ((mark, sentence),) = [each for each in found if address in each[1]]
    assert mark == "✗" and "can't be reached from here" in sentence and "--advertise" in sentence


@pytest.mark.parametrize(("bind", "wanted"), [("127.0.0.1", "✓"), ("0.0.0.0", "!")])
async def test_an_address_of_this_machine_alone_is_told_when_others_are_to_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bind: str, wanted: str
) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    address = "{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        config = ApplianceConfig(data=tmp_path, bind=bind)
        found = await looked(monkeypatch, config, {"broker-a": {0: address}})
    ((mark, sentence),) = [each for each in found if address in each[1]]
    assert (mark, "only this machine reaches" in sentence) == (wanted, wanted == "!")


async def test_a_slave_that_is_missing_is_told_and_so_is_a_cluster_without_brokers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = ApplianceConfig(data=tmp_path, slaves=2)
    found = await looked(monkeypatch, config, {"broker-a": {0: "127.0.0.1:1", 1: "127.0.0.1:2"}})
    assert [mark for mark, sentence in found if "broker-a has 1 of 2 slaves" in sentence] == ["!"]
    found = await looked(monkeypatch, config, {})
    assert [mark for mark, sentence in found if "No broker is registered" in sentence] == ["✗"]


def test_a_slow_disk_and_a_clock_that_no_program_keeps_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = ApplianceConfig(data=tmp_path)
    monkeypatch.setattr(folder, "fsyncs_per_s", lambda *_: folder.SLOW_FSYNCS_PER_S - 1)
    (slow,) = folder.check_disk_speed(config)
    assert slow.mark == "!" and "ASYNC_FLUSH" in slow.sentence
    for state, mark in ((machine.CLOCK_UNKNOWN, "!"), (0, "✓")):
        kernel = SimpleNamespace(adjtimex=lambda _, state=state: state)
        monkeypatch.setattr(machine.ctypes, "CDLL", lambda _, kernel=kernel: kernel)
        (found,) = machine.check_clock(config)
        assert found.mark == mark and ("chrony" in found.sentence) is (mark == "!")


@pytest.mark.parametrize(("is_refusing", "mark"), [(True, "✗"), (False, "!")])
async def test_what_brokers_say_of_their_etcd_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_refusing: bool, mark: str
) -> None:
    etcd = FailoverStatus("broker-a", etcd_trouble="nobody compacts it", is_etcd_refusing=is_refusing)
    brokers = {"broker-a": {0: f"127.0.0.1:{free_ports()}"}}
    found = await looked(monkeypatch, ApplianceConfig(data=tmp_path), brokers, etcd)
    assert (mark, "broker-a: nobody compacts it.") in found


@pytest.mark.parametrize("is_automatic", [True, False])
async def test_a_store_that_machines_may_share_is_named_where_a_lease_has_to_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_automatic: bool
) -> None:
    told = FailoverStatus("broker-a", is_automatic=is_automatic, lease_s=5.0, shared_stores=("10.0.0.2:10911",))
    brokers = {"broker-a": {0: f"127.0.0.1:{free_ports()}"}}
    found = await looked(monkeypatch, ApplianceConfig(data=tmp_path), brokers, told)
    named = [mark for mark, sentence in found if "the store of 10.0.0.2:10911" in sentence and "(5 s)" in sentence]
    assert named == ["!"] * is_automatic


async def test_no_broker_waits_for_another_to_tell_of_its_etcd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    brokers = {f"broker-{letter}": {0: "127.0.0.1:1"} for letter in "abc"}
    monkeypatch.setattr(running, "AdminClient", lambda *_, **__: Slow(brokers))
    async with timeout(WITHIN_S):
        found = await running.look(ApplianceConfig(data=tmp_path))
    assert [one.sentence[:8] for one in found if "nobody compacts it" in one.sentence] == list(brokers)
