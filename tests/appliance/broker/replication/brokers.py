"""Brokers that change roles: a name server on the test's loop, and brokers of one name around it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from appliance.bench.frames import send_fields
from appliance.broker.controller import BrokerController
from appliance.broker.life import BrokerLife
from appliance.namesrv.controller import NamesrvController
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig
from tests.appliance.broker.replication.pair import STORE, TOPIC
from tests.appliance.peer import connected
from tests.harness import SMALL_STORE
from tests.waiting import until

LATE = {ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE}
QUICK: dict[str, Any] = {"ha_heartbeat_ms": 200, "slaves_enable": True}


class Group:
    """The brokers of one name, each with a folder and, once it has run, a port of its own."""

    def __init__(self, namesrv_address: str, folder: Path) -> None:
        self.namesrv_address = namesrv_address
        self._folder = folder

    @property
    def namesrv_port(self) -> int:
        return int(self.namesrv_address.rpartition(":")[2])

    def store_of(self, name: str) -> Path:
        return self._folder / name / "store"

    @contextlib.asynccontextmanager
    async def broker(
        self, name: str, *, broker_id: int = 0, store: dict[str, Any] | None = None, **settings: Any
    ) -> AsyncIterator[BrokerLife]:
        """Serve from the folder of that name, as the settings say or as the folder knows better."""
        role = {"broker_role": "SLAVE", "broker_id": broker_id} if broker_id else {}
        names = {"namesrv_addresses": self.namesrv_address}
        config = BrokerConfig(**{"listen_port": 0, **QUICK, **names, **role, **settings})
        store_config = MessageStoreConfig(root=self.store_of(name), **{**SMALL_STORE, **STORE, **(store or {})})
        async with BrokerLife(config, store_config) as life:
            await life.controller.outer_api.register_all()
            yield life


@contextlib.asynccontextmanager
async def copied_pair(brokers: Group, count: int = 20) -> AsyncIterator[tuple[BrokerLife, BrokerLife]]:
    """A master and its slave, which has the master's messages."""
    async with brokers.broker("one") as one, brokers.broker("two", broker_id=1) as two:
        await send(one, count)
        await same_logs(one, two)
        yield one, two


@contextlib.asynccontextmanager
async def group(folder: Path) -> AsyncIterator[Group]:
    config = NamesrvConfig(listen_port=0, kv_config_path=folder / "kvConfig.json")
    async with NamesrvController(config) as namesrv:
        yield Group(f"127.0.0.1:{namesrv.port}", folder)


async def send(
    broker: BrokerLife, count: int, body: bytes = b"%d " * 40, *, properties: str = "", again: bool = False
) -> None:
    """Send `count` messages; with `again`, as clients do, once more each that is stored while a slave was late."""
    async with connected(broker.port) as peer:
        fields = send_fields("G", TOPIC, 0, properties)
        for number in range(count):
            answer = None
            while answer is None or (again and answer.code in LATE):
                answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body.replace(b"%d", b"%d" % number))
            assert answer.code == 0, ResponseCode(answer.code).name


async def promote(broker: BrokerLife, **fields: str) -> RemotingCommand:
    """Ask for the promotion with epoch and end as they are now; what nobody knows is accepted, unless fields say so."""
    controller = broker.controller
    seen = {
        "epoch": str(controller.standing.standing.epochs.highest),
        "end": str(controller.store.max_physical_offset),
        "acceptUnknown": "true",
    }
    async with connected(broker.port) as peer:
        return await peer.ask(RequestCode.PROMOTE_SLAVE, seen | fields)


def is_master(broker: BrokerLife) -> bool:
    return serves(broker.controller) and not broker.controller.config.is_slave


def is_slave(broker: BrokerLife) -> bool:
    return serves(broker.controller) and broker.controller.config.is_slave


def serves(controller: BrokerController) -> bool:
    return controller.is_open


async def same_logs(one: BrokerLife, other: BrokerLife) -> None:
    """Wait until both logs are of one epoch and length."""
    await until(
        lambda: (
            serves(one.controller)
            and serves(other.controller)
            and one.controller.standing.standing.epochs == other.controller.standing.standing.epochs
            and one.controller.store.max_physical_offset == other.controller.store.max_physical_offset > 0
        )
    )
