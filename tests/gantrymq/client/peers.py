"""Brokers for the client's tests: GantryMQ's and Apache's, with delay levels short enough to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from appliance.bench.peer import Peer
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.results import MessageTrace
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.errors import GantryError
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.harness import LocalCluster, ServingCluster
from tests.peers.fixtures import PATIENT, make_apache_peer
from tests.waiting import WITHIN_S

DELAYS = {"messageDelayLevel": " ".join(["1s"] * 18)}


@contextmanager
def running_peer(make: str, home: Path, **settings: str) -> Iterator[Peer]:
    """A running name server and broker of `make`: "gantry" or "apache". settings: properties of the broker."""
    if make == "gantry":
        with LocalCluster(home, broker_properties=PATIENT | DELAYS | settings) as peer:
            yield peer
        return
    with make_apache_peer(home, broker_properties=DELAYS | settings) as apache:
        yield apache


@asynccontextmanager
async def topic_at(peer: Peer, name: str, *, queues: int = 4) -> AsyncIterator[AdminClient]:
    """An AdminClient of the peer, with the topic made and known to the name server."""
    async with AdminClient(peer.namesrv_address) as admin:
        await admin.topics.create_at(peer.broker_address, TopicConfig(name, queues, queues))
        yield admin


def subscribed(
    peer: Peer | ServingCluster, name: str, listener: object, *, tags: str = "*", **options: object
) -> PushConsumer:
    """A consumer of the topic and in the group of that name, which is not started yet."""
    consumer = PushConsumer(peer.namesrv_address, group=name, listener=listener, **options)  # type: ignore[arg-type]
    consumer.subscribe(name, tags)
    return consumer


async def dead_letters(admin: AdminClient, peer: Peer, group: str, count: int = 1) -> list[MessageExt]:
    """Those of a group, once there are so many and clients find their topic."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            with suppress(GantryError):  # the topic is made when the first dead letter comes
                found, *_ = await admin.messages.pull_at(peer.broker_address, f"%DLQ%{group}", 0, 0)
                if len(found) >= count and f"%DLQ%{group}" in await admin.topics.names():
                    return found
            await asyncio.sleep(0.1)


async def held_of(admin: AdminClient, peer: Peer, group: str, client_id: str, queue: MessageQueue) -> dict[str, Any]:
    """What a running consumer holds of a queue, as it tells a tool: cachedMsgCount, commitOffset and so on."""
    info = await admin.clients.running_info_at(peer.broker_address, group, client_id)
    held: dict[str, Any] = info["mqTable"][queue]
    return held


async def traced(admin: AdminClient, msg_id: str, count: int) -> MessageTrace:
    """The trace of a message, once it has so many records."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                found = await admin.messages.trace(msg_id)
            except GantryError:
                found = None  # the topic is made by the first trace
            if found is not None and len(found.records) >= count:
                return found
            await asyncio.sleep(0.1)
