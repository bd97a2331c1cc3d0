"""Brokers with automatic failover, as the tests of this folder start them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from appliance.broker.life import BrokerLife
from tests.appliance.broker.replication.brokers import same_logs, send
from tests.appliance.broker.replication.recorded import OnRecord

LEASE_S = 5  # a busy machine renews late
SETTINGS: dict[str, Any] = {
    "broker_role": "SYNC_MASTER",
    "all_ack_in_sync": True,
    "read_confirmed_only": True,
    "in_sync_lag_ms": 1000,
    "automatic_failover": True,
    "failover_lease_s": LEASE_S,
}


def member(
    on_record: OnRecord, name: str, number: int, **more: Any
) -> contextlib.AbstractAsyncContextManager[BrokerLife]:
    settings = {**SETTINGS, **more}
    if number:
        del settings["broker_role"]
        return on_record.slave(name, number, **settings)
    return on_record.master(name, **settings)


async def begun(on_record: OnRecord, master: BrokerLife, *slaves: BrokerLife) -> None:
    """All have joined, and are in sync."""
    await on_record.begin(master)
    await on_record.join(master, *slaves)
    await on_record.until_in_sync(master, *slaves)


async def begun_with_copies(on_record: OnRecord, master: BrokerLife, *slaves: BrokerLife) -> None:
    """So, and all have the messages that the master has."""
    await begun(on_record, master, *slaves)
    await send(master, 10)
    for slave in slaves:
        await same_logs(master, slave)


@contextlib.asynccontextmanager
async def master_of(on_record: OnRecord, *slaves: BrokerLife) -> AsyncIterator[BrokerLife]:
    """Broker one as the master of these, begun with copies."""
    async with member(on_record, "one", 0) as one:
        await begun_with_copies(on_record, one, *slaves)
        yield one


def die(broker: BrokerLife) -> None:
    """Have it end without giving up its role, as a killed process does; its block has to end then."""
    broker.controller.master_role = None


def reason(slave: BrokerLife) -> str:
    """Why it does not become the master now."""
    follower = slave.controller.follower
    return "" if follower is None or follower.candidate is None else follower.candidate.refusal
