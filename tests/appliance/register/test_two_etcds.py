"""Another etcd answers between the look and the command of an administrator: it stays as it is, or that is said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from appliance.failover.view import Figures, Pause, Switch
from appliance.register.etcd import EtcdClient, Is, OutcomeUnknown, Snapshot, Value, endpoints_of
from appliance.register.register import CLUSTER, Refused, Register
from appliance.register.term import View
from tests.servers.etcd import etcd

pytestmark = pytest.mark.usefixtures("patient_clients")
ONE = "127.0.0.1:1"
SWITCH = Switch("x", 2, True, 0, 1, 2)
FIGURES = Figures(ONE, "boot", 1, 9, 9, is_healthy=True)
COMMANDS: dict[str, Callable[[Register, View], Awaitable[Any]]] = {
    "pause": lambda register, view: register.pause(view, Pause("ops", "", 0, 0)),
    "resume": lambda register, view: register.resume(view),
    "switch": lambda register, view: register.switch(view, SWITCH),
    "drop_switch": lambda register, view: register.drop_switch(view, "late", "x"),
    "remove": lambda register, view: register.remove(view),
    "tell": lambda register, view: register.tell(1, FIGURES, view),
    "join": lambda register, view: register.join("a store"),
}
EACH = pytest.mark.parametrize("name", COMMANDS)


class Moving(EtcdClient):
    """The first look is at one etcd, all else at another."""

    def __init__(self, one: EtcdClient, another: EtcdClient) -> None:
        super().__init__([])
        self._one, self._another, self._has_looked = one, another, False

    async def read(self, prefix: str) -> Snapshot:
        has_looked, self._has_looked = self._has_looked, True
        return await (self._another if has_looked else self._one).read(prefix)

    async def change(
        self, compare: Sequence[Is], puts: Mapping[str, bytes], deletes: Sequence[str] = (), *, cluster_id: int = 0
    ) -> int | None:
        return await self._another.change(compare, puts, deletes, cluster_id=cluster_id)


class TwoEtcds:
    """Each has a record of the same revisions. moving: who uses it finds the second one after the first look."""

    def __init__(self, urls: list[str]) -> None:
        self._clients = [EtcdClient(endpoints_of(url)) for url in urls]
        self.registers = [Register(client, "cluster", "broker-a") for client in self._clients]
        self.moving = Register(Moving(*self._clients), "cluster", "broker-a")

    async def begin(self) -> None:
        for register in self.registers:
            await register.init(1, "id", ONE)

    async def restore(self) -> None:
        """The second one has a backup of the first one's record."""
        first = self.registers[0]
        adopted = str((await first.view()).cluster_id).encode()
        for client in self._clients:
            await client.change([], {f"{first.prefix}{CLUSTER}": adopted})

    async def second(self) -> Mapping[str, Value]:
        return (await self._clients[1].read(self.moving.prefix)).values


async def done(name: str, register: Register) -> None:
    await COMMANDS[name](register, View() if name == "join" else await register.view())  # join looks itself


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[TwoEtcds]:
    with etcd(tmp_path / "one") as (one,), etcd(tmp_path / "two") as (other,):
        found = TwoEtcds([one.url, other.url])
        await found.begin()
        yield found


@EACH
async def test_another_installations_record_stays_as_it_is(two: TwoEtcds, name: str) -> None:
    before = await two.second()
    with pytest.raises(OutcomeUnknown, match="another cluster of etcd"):
        await done(name, two.moving)
    assert await two.second() == before


@EACH
async def test_of_a_backup_of_the_record_it_is_said_that_another_etcd_has_answered(two: TwoEtcds, name: str) -> None:
    await two.restore()
    with pytest.raises(OutcomeUnknown, match="another cluster of etcd"):
        await done(name, two.moving)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("remove", "tell")])
async def test_in_an_etcd_that_was_restored_an_administrator_has_to_adopt_first(two: TwoEtcds, name: str) -> None:
    await two.restore()
    before = await two.second()
    with pytest.raises(Refused, match="restored"):
        await done(name, two.registers[1])
    assert await two.second() == before
