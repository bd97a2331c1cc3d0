"""What the loop does with a broker's answers, without a broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gantrymq.client.consume import pull_loop
from gantrymq.client.consume.options import PullConsumerOptions
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.pull_loop import PullContext, keep_pulling
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.consume.subscription import parse_subscription
from gantrymq.client.results import PullResult, PullStatus
from gantrymq.message.model import MessageQueue
from tests.gantrymq.client.messages import stored
from tests.waiting import until

QUEUE = MessageQueue("T", "b", 0)


class Broker:
    """Says of each pull that its offset is outside of the queue, and where to go on."""

    def __init__(self, corrected: int) -> None:
        self.corrected = corrected
        self.asked: list[int] = []

    async def pull(self, address: str, group: str, topic: str, queue_id: int, offset: int, **_: Any) -> PullResult:
        self.asked.append(offset)
        return PullResult(PullStatus.OFFSET_ILLEGAL, [], self.corrected, 0, self.corrected, 0)


class Consumer:
    """Pulls one queue. `moved`: the offsets it was told to go on at."""

    def __init__(self, broker: Broker) -> None:
        self.moved: list[int] = []
        routes = SimpleNamespace(require_address_to_read=lambda name, broker_id: ("h:1", True))
        outages = SimpleNamespace(worked=lambda *_, **__: None, given_up=lambda *_, **__: None)
        self.subscriptions = {"T": parse_subscription("T", "*", 1)}
        self.context = PullContext(
            session=SimpleNamespace(routes=routes, calls=broker, outages=outages),  # type: ignore[arg-type]
            options=PullConsumerOptions(name_servers="h:1", group="g"),
            counters=ConsumeCounters(),
            subscription=self.subscriptions.get,
            held=dict,
            commit_offset=lambda process_queue: None,
            received=lambda process_queue, messages: None,
            offset_moved=lambda process_queue, offset: self.moved.append(offset),
            not_registered=lambda address: None,
            rebalance=lambda: None,
        )


async def test_the_group_goes_on_behind_deleted_messages_when_those_it_holds_are_handled() -> None:
    broker = Broker(corrected=1500)
    consumer, process_queue = Consumer(broker), ProcessQueue(QUEUE, 0)
    process_queue.add([stored(offset) for offset in (998, 999)], 1000)
    pulling = asyncio.create_task(keep_pulling(consumer.context, process_queue))
    await until(lambda: broker.asked == [1000])
    process_queue.remove([stored(999)])
    for _ in range(5):
        await asyncio.sleep(0)
    assert consumer.moved == [], "999 was handled, and 998 was not"
    broker.corrected = 1600
    process_queue.remove([stored(998)])
    await pulling
    assert (broker.asked, consumer.moved) == ([1000, 1000], [1600]), "the first answer was old"


async def test_what_is_held_of_a_log_that_was_cut_does_not_keep_the_group_from_going_back() -> None:
    broker = Broker(corrected=1500)
    consumer, process_queue = Consumer(broker), ProcessQueue(QUEUE, 0)
    process_queue.add([stored(1800)], 2000)
    await keep_pulling(consumer.context, process_queue)
    assert consumer.moved == [1500]


async def test_a_queue_is_pulled_again_when_its_topic_is_subscribed_to_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_loop, "PAUSE_S", 0)
    broker = Broker(corrected=1500)
    consumer = Consumer(broker)
    subscription = consumer.subscriptions.pop("T")
    pulling = asyncio.create_task(keep_pulling(consumer.context, ProcessQueue(QUEUE, 0)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert broker.asked == []
    consumer.subscriptions["T"] = subscription
    await pulling
    assert broker.asked == [0]
