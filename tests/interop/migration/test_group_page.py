"""docs/rocketmq5.md, "Move a group": its commands, with consumers of RocketMQ 4 and of RocketMQ 5 in turns.

A producer sends all the time, some messages fail once, some are in flight when the mode changes. In the end each
message was done, by whichever consumer.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from appliance.proxy.protocol.definition_pb2 import (
    Broker,
    ClientType,
    Code,
    FilterExpression,
    FilterType,
    MessageQueue,
    Resource,
    Settings,
)
from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, Producer, PushConsumer
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageExt
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.client import RemotingClient
from tests.appliance.proxy.proxies import ENDPOINTS, ProxyClient, ProxyCluster, proxied
from tests.docs.pages import ROOT, Block, blocks
from tests.interop.migration.rehearsal import Rehearsal
from tests.waiting import aside, until

COMMANDS = [each for each in blocks(ROOT / "docs" / "rocketmq5.md") if each.code.startswith("gantry admin groups")]
TOPIC, GROUP = "orders", "billing"
QUEUE = MessageQueue(topic=Resource(name=TOPIC), id=-1, broker=Broker(name="broker-a", endpoints=ENDPOINTS))
EACH_S = 0.02


class History:
    """What was sent, and what was done by whom. fails: bodies that fail at their first delivery."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.done: Counter[bytes] = Counter()
        self.by: dict[str, int] = Counter()
        self.failed: set[bytes] = set()

    def is_bad(self, body: bytes) -> bool:
        """Whether to fail now: each tenth message does, once."""
        if int(body) % 10 or body in self.failed:
            return False
        self.failed.add(body)
        return True

    def note(self, who: str, body: bytes) -> None:
        self.done[body] += 1
        self.by[who] += 1

    def is_whole(self) -> bool:
        return self.done.keys() >= set(self.sent)


@contextlib.asynccontextmanager
async def sending(namesrv: str, history: History) -> AsyncIterator[None]:
    """One message after the other, until the end."""

    async def send(producer: Producer) -> None:
        for number in itertools.count():
            await producer.send(Message(TOPIC, b"%d" % number))
            history.sent.append(b"%d" % number)
            await asyncio.sleep(EACH_S)  # a steady load: some of it in each phase

    async with Producer(namesrv, group="shop") as producer, aside(send(producer)):
        yield


@contextlib.asynccontextmanager
async def pulling(namesrv: str, history: History) -> AsyncIterator[None]:
    """A consumer of RocketMQ 4's protocol."""

    async def listen(messages: Sequence[MessageExt]) -> ConsumeResult:
        (message,) = messages
        if history.is_bad(message.body):
            return ConsumeResult.LATER
        history.note("pull", message.body)
        return ConsumeResult.SUCCESS

    consumer = PushConsumer(namesrv, group=GROUP, listener=listen, batch_size=1, consume_from=ConsumeFrom.FIRST_OFFSET)
    consumer.subscribe(TOPIC)
    async with consumer:
        yield


@contextlib.asynccontextmanager
async def popping(scene: ProxyCluster, history: History) -> AsyncIterator[ProxyClient]:
    """A consumer of RocketMQ 5."""
    client = ProxyClient(scene.proxy.port, "me@5@0@abc")
    settings = Settings(client_type=ClientType.SIMPLE_CONSUMER)
    settings.subscription.group.name = GROUP
    settings.subscription.subscriptions.add().topic.name = TOPIC

    is_stopped = asyncio.Event()

    async def consume() -> None:
        while not is_stopped.is_set():
            for handle, body in await receive(client, 8):
                if history.is_bad(body):
                    continue  # it comes again
                if await ack(client, handle) == Code.OK:
                    history.note("pop", body)

    async with client.telemetry(settings):
        task = asyncio.create_task(consume())
        try:
            yield client
        finally:
            is_stopped.set()
            await task
            await client.call("NotifyClientTermination", group=Resource(name=GROUP))
    client.channel.close()


async def answers(client: ProxyClient, count: int) -> list:  # type: ignore[type-arg]
    found: list = await client.answers(  # type: ignore[type-arg]
        "ReceiveMessage", group=Resource(name=GROUP), message_queue=QUEUE, batch_size=count, timeout_s=10,
        invisible_duration={"seconds": 10}, filter_expression=FilterExpression(type=FilterType.TAG, expression="*"),
    )  # fmt: skip
    return found


async def receive(client: ProxyClient, count: int) -> list[tuple[str, bytes]]:
    """Handles and bodies."""
    messages = [each.message for each in await answers(client, count) if each.WhichOneof("content") == "message"]
    return [(each.system_properties.receipt_handle, each.body) for each in messages]


async def ack(client: ProxyClient, handle: str) -> Code:
    entry = {"message_id": "x", "receipt_handle": handle}
    answer = await client.call("AckMessage", group=Resource(name=GROUP), topic=Resource(name=TOPIC), entries=[entry])
    return answer.status.code


async def play(rehearsal: Rehearsal, block: Block) -> None:
    await asyncio.to_thread(rehearsal.play, block)


async def grown(history: History, who: str) -> None:
    """Wait until that consumer has done some more."""
    before = history.by[who]
    await until(lambda: history.by[who] >= before + 30)


async def refused_pull(scene: ProxyCluster) -> str:
    """What a consumer of RocketMQ 4 is told that comes by mistake."""
    remoting = RemotingClient()
    try:
        await BrokerCalls(remoting).pull(scene.cluster.broker_address, GROUP, TOPIC, 0, 0, subscription="*")
    except ResponseError as exc:
        return str(exc)
    finally:
        await remoting.close()
    return ""


async def test_a_group_moves_to_rocketmq_5_and_back_and_loses_nothing(tmp_path: Path) -> None:
    history = History()
    show, to_pop, look, to_pull = COMMANDS
    async with proxied(tmp_path) as scene, AdminClient(scene.cluster.namesrv_address) as admin:
        namesrv = scene.cluster.namesrv_address
        await admin.topics.create(TopicConfig(TOPIC, 2, 2))
        await admin.groups.create(SubscriptionGroupConfig(GROUP))
        rehearsal = Rehearsal(tmp_path, {}, {}, {"GANTRY_NAMESRV": namesrv})
        try:
            async with sending(namesrv, history):
                async with pulling(namesrv, history):
                    await grown(history, "pull")
                await play(rehearsal, show)
                await play(rehearsal, to_pop)
                async with popping(scene, history):
                    await grown(history, "pop")
                    assert "billing consumes topic orders by POP" in await refused_pull(scene)
                    await play(rehearsal, look)
                held = await receive(scene.client, 5)
                assert held, "in flight when the mode changes"
                await play(rehearsal, to_pull)
                assert {await ack(scene.client, handle) for handle, _ in held} == {Code.INVALID_RECEIPT_HANDLE}
                [refusal, _] = await answers(scene.client, 1)
                assert refusal.status.code == Code.FORBIDDEN and "by pulling" in refusal.status.message
                async with pulling(namesrv, history):
                    await grown(history, "pull")
            async with pulling(namesrv, history):
                await until(history.is_whole)
        finally:
            rehearsal.end()
    assert history.by["pull"] and history.by["pop"] and len(history.failed) > 3
    twice = {body: times for body, times in history.done.items() if times > 1}
    assert not twice, f"of {len(history.sent)} sent: {twice}"
