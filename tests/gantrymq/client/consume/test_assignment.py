"""Which queues are held, and when one is handed over, without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from gantrymq.client.connection.background import Background
from gantrymq.client.consume import assignment as assignment_module
from gantrymq.client.consume.assignment import Assignment
from gantrymq.client.consume.offset_store import BrokerOffsets
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.outages import Outages
from tests.gantrymq.client.messages import stored
from tests.waiting import until

QUEUE = MessageQueue("T", "b", 0)


class Cluster:
    """Keeps offsets and locks of one consumer, whose share of the topic is `share`."""

    def __init__(self) -> None:
        self.share = [QUEUE]
        self.offsets: dict[int, int] = {}
        self.given_back: list[MessageQueue] = []

    async def share_of(self, topic: str) -> list[MessageQueue]:
        return self.share

    async def consumer_offset(self, address: str, group: str, topic: str, queue_id: int, **_: Any) -> int:
        return self.offsets.get(queue_id, 0)

    async def update_consumer_offset(
        self, address: str, group: str, topic: str, queue_id: int, offset: int, **_: Any
    ) -> int:
        self.offsets[queue_id] = offset
        return offset

    async def lock(self, queues: Iterable[MessageQueue]) -> tuple[set[MessageQueue], set[MessageQueue]]:
        return set(queues), set()

    async def renew(self) -> set[MessageQueue]:
        return {QUEUE}  # lost

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        self.given_back += queues


async def waits_for_messages(process_queue: ProcessQueue) -> None:
    await asyncio.Event().wait()


def ordered_at(
    cluster: Cluster,
    background: Background,
    keep_pulling: Callable[[ProcessQueue], Coroutine[Any, Any, None]] = waits_for_messages,
) -> Assignment:
    routes = SimpleNamespace(address=lambda name: "h:1", require_address_to_read=lambda name: ("h:1", True))
    session: Any = SimpleNamespace(
        calls=cluster, routes=routes, outages=Outages(), before_greeting=None, is_just_back=lambda address: False
    )
    options: Any = SimpleNamespace(group="g", on_assigned=None, on_revoked=None)
    return Assignment(
        session,
        options,
        share=cluster.share_of,
        offsets=BrokerOffsets(session.calls, session.routes, session.outages, "g"),
        background=background,
        keep_pulling=keep_pulling,
        locks=cluster,  # type: ignore[arg-type]
    )


async def test_a_queue_is_handed_over_when_the_call_from_before_a_lost_lock_has_ended() -> None:
    cluster, background = Cluster(), Background()
    assignment = ordered_at(cluster, background)
    await assignment.rebalance(["T"])
    former = assignment.held[QUEUE]
    former.add([stored(0), stored(1)], 2)
    with former.in_use():
        await assignment.renew_locks()
        await assignment.rebalance(["T"])
        assert assignment.held[QUEUE].must_wait()
        assignment.held[QUEUE].add([stored(0), stored(1)], 2)
        cluster.given_back.clear()
        cluster.share = []
        await assignment.rebalance(["T"])
        for _ in range(5):
            await asyncio.sleep(0)
        assert cluster.given_back == [], "the next member would consume beside the call"
        former.remove([stored(0)])
    await until(lambda: cluster.given_back == [QUEUE])
    assert cluster.offsets == {0: 1}, "what the call did counts"
    await background.close()


async def test_a_queue_whose_pulling_failed_is_pulled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment_module, "SOON_S", 0)
    cluster, background, pulls = Cluster(), Background(), list[MessageQueue]()

    async def fails_first(process_queue: ProcessQueue) -> None:
        pulls.append(process_queue.queue)
        if len(pulls) == 1:
            raise ValueError("a mistake")

    await ordered_at(cluster, background, fails_first).rebalance(["T"])
    await until(lambda: pulls == [QUEUE, QUEUE])
    await background.close()
