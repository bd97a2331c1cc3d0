"""Masters and slaves as processes: small files, quick heartbeats, and what they say of themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from appliance.bench import rpc
from gantrymq import AdminClient
from gantrymq.client.admin.succession import Changed
from gantrymq.errors import ConfigError, GantryError
from tests.harness import LocalCluster
from tests.waiting import wait_until

TOPIC = "Copied"
FILES = {"mappedFileSizeCommitLog": str(1 << 20), "haSendHeartbeatInterval": "200", "haHousekeepingInterval": "1000"}
SYNC = FILES | {  # what was acknowledged, two have
    "slavesEnable": "true",
    "brokerRole": "SYNC_MASTER",
    "allAckInSyncStateSet": "true",
    "minInSyncReplicas": "2",
    "slaveTimeout": "2000",
}
ASYNC = FILES | {"slavesEnable": "true"}


def runtime_info(peer: LocalCluster) -> dict[str, str]:
    async def ask() -> dict[str, str]:
        async with AdminClient(peer.namesrv_address, timeout_s=5) as admin:
            return await admin.brokers.runtime_info(peer.broker_address)

    try:
        return asyncio.run(ask())
    except GantryError:  # stopped, or not up yet
        return {}


def make_topic(master: LocalCluster, topic: str, queues: int = 1) -> None:
    """Ask until it is there: a master that etcd does not prove for a moment closes the connection without an answer."""

    def is_there() -> bool:
        try:
            rpc.create_topic(master.broker_address, topic, queues)
        except GantryError:
            return False
        return True

    wait_until(is_there)


def promote(slave: LocalCluster) -> Changed:
    """Make it the master, whatever it lacks; a starved machine may let it answer too late for the first look."""

    async def ask() -> Changed:
        async with AdminClient(slave.namesrv_address, timeout_s=10) as admin:
            promotion = await admin.succession.promotion(slave.broker_name, slave.broker_address, accepted_loss=1 << 20)
            return await admin.succession.promote(promotion, accept_unknown=True)  # it has just joined, perhaps

    def has_answered() -> bool:
        try:
            changed.append(asyncio.run(ask()))
        except ConfigError as exc:
            if "that answers" not in str(exc):
                raise
        return bool(changed)

    changed: list[Changed] = []
    wait_until(has_answered)
    return changed[0]


def promote_checked(slave: LocalCluster, *, accept_unknown: bool = False) -> Changed:
    """As a person's command does it, once. ConfigError for what speaks against it."""

    async def ask() -> Changed:
        async with AdminClient(slave.namesrv_address, timeout_s=5) as admin:
            promotion = await admin.succession.promotion(slave.broker_name, slave.broker_address)
            return await admin.succession.promote(promotion, accept_unknown=accept_unknown)

    return asyncio.run(ask())


def is_same(master: LocalCluster, slave: LocalCluster) -> bool:
    end = runtime_info(master).get("commitLogMaxOffset")
    return end is not None and runtime_info(slave).get("commitLogMaxOffset") == end


def log_of(peer: LocalCluster) -> bytes:
    files = sorted((peer.store / "commitlog").iterdir())
    return b"".join(path.read_bytes() for path in files).rstrip(b"\0")


class Replica(LocalCluster):
    """A slave with an id of its own: there may be several."""

    def __init__(self, home: Path, master: LocalCluster, number: int, properties: dict[str, str]) -> None:
        super().__init__(home, broker_properties=properties)
        self.join_as_slave(master)
        self._extra_properties["brokerId"] = str(number)
