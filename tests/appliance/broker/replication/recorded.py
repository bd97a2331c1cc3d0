"""A group of brokers whose record stands in a real etcd, and what its tests ask them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from appliance.bench.frames import send_fields
from appliance.broker.life import BrokerLife
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import CLUSTER, GROUP, Register
from appliance.register.term import Term
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.timeouts import timeout
from tests.appliance.broker.replication.brokers import Group, is_master, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.appliance.peer import connected
from tests.servers.etcd import EtcdMember
from tests.waiting import WITHIN_S, until

ALL = {"broker_role": "SYNC_MASTER", "all_ack_in_sync": True, "in_sync_lag_ms": 1000}


class OnRecord:
    """A group of brokers and the etcd that they all know."""

    def __init__(self, brokers: Group, member: EtcdMember) -> None:
        self._brokers, self.member = brokers, member
        client = EtcdClient(endpoints_of(member.url), deadline_s=WITHIN_S)
        self._client = client
        self.register = Register(client, "DefaultCluster", "broker-a")

    def master(self, name: str, **settings: Any) -> contextlib.AbstractAsyncContextManager[BrokerLife]:
        return self._brokers.broker(name, **{**ALL, "etcd_endpoints": self.member.url, **settings})

    def slave(self, name: str, number: int, **settings: Any) -> contextlib.AbstractAsyncContextManager[BrokerLife]:
        return self._brokers.broker(name, broker_id=number, etcd_endpoints=self.member.url, **settings)

    def store_of(self, name: str) -> Path:
        return self._brokers.store_of(name)

    async def term(self) -> Term:
        found = (await self.register.view()).term
        assert found is not None
        return found

    async def is_restored(self) -> None:
        """Have etcd say that its record is of another cluster, as one says that was restored from a backup."""
        await self._client.change([], {f"{self.register.prefix}{CLUSTER}": b"1"})

    async def is_of_group(self, group: str) -> None:
        """Have etcd's record be another group's, as where another cluster's etcd answers."""
        await self._client.change([], {f"{self.register.prefix}{GROUP}": group.encode()})

    async def begin(self, master: BrokerLife) -> None:
        """As `gantry admin ha init` does."""
        epochs = master.controller.standing.standing.epochs
        await self.register.init(epochs.current, epochs.current_id, master.controller.address)
        await until(lambda: takes_messages(master))

    async def join(self, *members: BrokerLife) -> None:
        """As `gantry admin ha join` does, and wait until the master has their boots on record."""
        for each in members:
            async with connected(each.port) as peer:
                answer = await peer.ask(RequestCode.JOIN_GROUP, {"brokerName": "broker-a"})
                assert answer.code == 0, answer.remark
        wanted = {
            each.controller.address: (each.controller.member.membership.number, each.controller.member.membership.boot)
            for each in members
        }
        await until_record(lambda term: wanted.items() <= term.holders.items(), self)

    async def until_in_sync(self, *members: BrokerLife) -> None:
        await until(lambda: all(each.controller.is_open for each in members))  # one may begin a turn
        wanted = {each.controller.address for each in members}
        await until_record(lambda term: set(term.in_sync) == wanted, self)

    async def begin_with_copies(self, master: BrokerLife, *slaves: BrokerLife, are_joined: bool = False) -> None:
        """The slaves are in sync, on record with their boots if they are joined, and the first has messages."""
        await self.begin(master)
        await self.until_in_sync(master, *slaves)
        if are_joined:
            await self.join(master, *slaves)
        await send(master, 20)
        await same_logs(master, slaves[0])


async def until_record(is_so: Callable[[Term], bool], on_record: OnRecord) -> None:
    async with timeout(WITHIN_S):
        while not is_so(await on_record.term()):
            await asyncio.sleep(0.05)


def takes_messages(broker: BrokerLife) -> bool:
    return is_master(broker) and broker.controller.store.parts.state.refusal is None


async def is_refused(broker: BrokerLife) -> bool:
    async with connected(broker.port) as peer:
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"x")
        return answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
