"""A broker and a client that pops from its topic, and what tests of leases ask of both."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from gantrymq.errors import MessageRejected
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance.broker.pop.popper import Delivered, Popper, popping
from tests.harness import serving


@contextlib.asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[tuple[BrokerController, Popper]]:
    """A broker, and a client that pops from its topic "orders" (two queues)."""
    async with serving(folder) as cluster, popping(cluster.broker_address) as popper:
        await popper.send(b"first", TAGS="a")
        yield cluster.broker, popper


def bodies(delivered: list[Delivered]) -> list[bytes]:
    return sorted(each.body for each in delivered)


def offset_of(broker: BrokerController, topic: str = "orders", queue_id: int = 0) -> int:
    return broker.offsets.query("g", topic, queue_id)


def refuse_twice(broker: BrokerController, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the next two retry topics find no room; return the names of all that are asked for."""
    tries: list[str] = []
    create = broker.topics.create_retry_topic

    def create_retry_topic(name: str, queues: int) -> TopicConfig:
        tries.append(name)
        if len(tries) < 3:
            raise MessageRejected("there are too many topics")
        return create(name, queues)

    monkeypatch.setattr(broker.topics, "create_retry_topic", create_retry_topic)
    return tries


async def offset_after_a_kill(folder: Path, journal: Path, lines: bytes, topic: str = "orders") -> int:
    """Where a start puts the group that finds these lines."""
    journal.write_bytes(lines)
    (journal.parent.parent / "abort").touch()
    async with serving(folder) as cluster:
        return offset_of(cluster.broker, topic)
