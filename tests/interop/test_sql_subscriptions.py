"""Subscriptions by SQL92: the SDK at our broker and at Apache's; the filter bits of both."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench import rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.peer import Peer
from appliance.broker.filters.consumer_filter import ConsumerFilterManager
from appliance.settings.roles import BrokerConfig
from gantrymq import ConsumeFrom, ConsumeResult, Message, MessageExt, MessageQueue, Producer, PushConsumer
from gantrymq.errors import ResponseError
from gantrymq.remoting import fastjson
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store import MessageStore, MessageStoreConfig
from tests.peers.fixtures import make_apache_peer
from tests.waiting import WITHIN_S, until

WITH_BITS = {"enablePropertyFilter": "true", "enableCalcFilterBitMap": "true", "enableConsumeQueueExt": "true"}
CONDITION = "price BETWEEN 10 AND 20 AND (region IN ('eu', 'us') OR TAGS = 'gift') AND note IS NULL"
MESSAGES = [
    Message(
        "",
        f"{number}".encode(),
        tags="gift" if number % 7 == 0 else None,
        properties={"price": str(number % 25), "region": ("eu", "us", "asia")[number % 3]}
        | ({"note": "x"} if number % 10 == 0 else {}),
    )
    for number in range(200)
]


def is_wanted(number: int) -> bool:
    return 10 <= number % 25 <= 20 and (number % 3 < 2 or number % 7 == 0) and number % 10 != 0


WANTED = {number for number in range(200) if is_wanted(number)}


@pytest.fixture(params=["gantry-bits", "apache-bits"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    make, _, bits = request.param.partition("-")
    properties = WITH_BITS if bits else {}
    running = (
        GantryPeer(tmp_path / make, broker_properties=properties)
        if make == "gantry"
        else make_apache_peer(tmp_path / make, heap="512m", broker_properties=properties)
    )
    with running:
        yield running


def new_topic(peer: Peer) -> str:
    topic = f"Sql-{time.monotonic_ns()}"
    rpc.create_topic(peer.broker_address, topic, 2)
    return topic


async def send_all(peer: Peer, topic: str) -> None:
    async with Producer(peer.namesrv_address) as producer:
        for message in MESSAGES:
            message.topic = topic
            await producer.send(message)


async def is_known(peer: Peer, topic: str, group: str) -> bool:
    """Whether the broker has the group's condition: of a heartbeat it registers the member first, and then this."""
    shown = await shown_body(peer, topic, 0, group)
    return str(shown.get("filterData")).startswith("{")


async def until_got(got: set[int]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not got >= WANTED:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)  # for what should not come


async def test_the_sdk_gets_what_meets_its_condition_and_is_told_when_it_is_none(peer: Peer) -> None:
    topic = await asyncio.to_thread(new_topic, peer)
    got: set[int] = set()

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        got.update(int(message.body) for message in messages)
        return ConsumeResult.SUCCESS

    consumer = PushConsumer(
        peer.namesrv_address, group=f"{topic}-g", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe(topic, sql=CONDITION)
    async with consumer:
        async with Producer(peer.namesrv_address) as producer:  # 321 asks for a queue that has something
            await producer.send(Message(topic, b"-1"), queue=MessageQueue(topic, peer.broker_name, 0))
        await until(functools.partial(is_known, peer, topic, f"{topic}-g"))  # from now on all get the condition's bits
        await send_all(peer, topic)
        await until_got(got)
    assert got == WANTED
    refused = PushConsumer(peer.namesrv_address, group=f"{topic}-h", listener=listener)
    refused.subscribe(topic, sql="price >")
    with pytest.raises(ResponseError) as caught:
        await refused.start()
    assert caught.value.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    await asyncio.to_thread(peer.stop_broker)
    bitmaps = check_bits(peer.store, topic, f"{topic}-g")
    assert not bitmaps or bitmaps >= len(MESSAGES)
    assert bitmaps or peer.label != "apache"


def check_bits(root: Path, topic: str, group: str) -> int:
    """Every message's bits are what we would make of it; return how many have some."""
    filters = ConsumerFilterManager(root / "config" / "consumerFilter.json", BrokerConfig())
    filters.load()
    found = filters.get(topic, group)
    assert found is not None and found.condition.text == CONDITION and found.is_dead
    store = MessageStore(MessageStoreConfig(root=root, consume_queue_ext_enable=(root / "consumequeue_ext").is_dir()))
    store.load()
    try:
        count = 0
        for queue_id in store.queue_ids(topic):
            for offset in range(store.max_offset(topic, queue_id)):
                (unit,) = store.consume_queue_units(topic, queue_id, offset, 1)
                extended = store.extended_unit(topic, queue_id, unit.tags_code)
                if extended is not None and extended.bitmap:
                    (properties,) = store.properties_of(topic, queue_id, offset, 1)
                    assert extended.bitmap == filters.bitmap_of(topic, properties)
                    count += 1
        return count
    finally:
        store.close()


async def test_apache_goes_on_with_our_conditions_and_bits_and_shows_them_as_we_do(tmp_path: Path) -> None:
    home, topic = tmp_path / "both", "SqlBoth"
    ours = GantryPeer(home, broker_properties=WITH_BITS)
    apaches = make_apache_peer(home, heap="512m", broker_properties=WITH_BITS)
    shown: list[list[dict[str, Any]]] = []
    for peer in (ours, apaches):
        await asyncio.to_thread(peer.start)
        try:
            if peer is ours:
                rpc.create_topic(peer.broker_address, topic, 2)
            consumer = PushConsumer(peer.namesrv_address, group="g", listener=lambda _: ConsumeResult.SUCCESS)
            consumer.subscribe(topic, sql=CONDITION)
            async with consumer, asyncio.timeout(WITHIN_S):
                while not consumer.assigned_queues:
                    await asyncio.sleep(0.05)
                if peer is ours:
                    await send_all(peer, topic)
                shown.append([await shown_queue(peer, topic, queue_id) for queue_id in (0, 1)])
        finally:
            await asyncio.to_thread(peer.stop)
    assert shown[0] == shown[1]
    units = [unit for queue in shown[0] for unit in queue["queueData"]]
    assert len(units) == len(MESSAGES)
    assert sum(unit["eval"] for unit in units) == len(WANTED)


async def shown_queue(peer: Peer, topic: str, queue_id: int) -> dict[str, Any]:
    """What 321 tells, without what another start or another consumer changes."""
    body = await shown_body(peer, topic, queue_id, "g")
    filter_data = json.loads(body.pop("filterData"))
    del filter_data["clientVersion"], body["subscriptionData"]["subVersion"]
    for unit in body["queueData"]:
        unit["extendDataJson"] = json.loads(unit["extendDataJson"])
    return {**body, "filterData": filter_data}


async def shown_body(peer: Peer, topic: str, queue_id: int, group: str) -> dict[str, Any]:
    """What 321 tells of a queue's first 200 units; nothing while the broker has no such queue."""
    fields = {"topic": topic, "queueId": str(queue_id), "index": "0", "count": "200", "consumerGroup": group}
    client = RemotingClient()
    try:
        request = RemotingCommand.request(RequestCode.QUERY_CONSUME_QUEUE, fields)
        body = (await client.invoke(peer.broker_address, request, timeout_s=WITHIN_S)).body
    finally:
        await client.close()
    return fastjson.loads(body) if body else {}
