"""Two brokers of one cluster: topics on both, official clients and ours that use both, one of them killed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gantrymq import ConsumeFrom, Message, MessageExt, Producer, PushConsumer
from gantrymq.errors import GantryError, RouteNotFound
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting.bodies import TopicConfig, TopicRouteData
from tests.client.seen import Seen, until
from tests.interop.broker_cluster import PEER, QUEUES, BrokerCluster
from tests.interop.clients import ClientProgram, JavaClient, JavaScriptClient, Sent

pytestmark = pytest.mark.interop

BOTH = {"a", "b"}
RATE = 50  # messages a second of each producer while a broker is killed
SECONDS = 14


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    # in memory as RocketMQ has it: a group without offsets begins at the first message of a young queue
    properties = {"accessMessageInMemoryMaxRatio": "40"}
    with BrokerCluster(tmp_path_factory.mktemp("pair"), brokers=2, properties=properties) as cluster:
        yield cluster


@pytest.fixture
def topic() -> str:
    return f"Two-{time.monotonic_ns()}"


def _queues(route: TopicRouteData) -> dict[str, int]:
    """Broker name to how many queues may be written to."""
    return {data.broker_name: data.write_queue_nums for data in route.queue_datas}


def _brokers(cluster: BrokerCluster, sent: list[Sent]) -> list[str]:
    """The broker that each message was stored by, told by the id it gave."""
    names = {int(address.rpartition(":")[2]): name for name, address in cluster.addresses.items()}
    return [names[decode_offset_message_id(message.offset_id)[1]] for message in sent]


async def test_a_topic_is_made_and_deleted_at_both(pair: BrokerCluster, topic: str) -> None:
    async with pair.admin() as admin:
        assert set(await admin.create_topic_everywhere(TopicConfig(topic, QUEUES, QUEUES))) == BOTH
        assert _queues(await admin.topic_route(topic)) == {"a": QUEUES, "b": QUEUES}
        async with Producer(pair.namesrv_address) as producer:
            results = [await producer.send(Message(topic, b"-")) for _ in range(4 * QUEUES)]
        assert Counter(result.queue.broker_name for result in results) == {"a": 2 * QUEUES, "b": 2 * QUEUES}
        assert set(await admin.delete_topic_everywhere(topic)) == BOTH
        with pytest.raises(RouteNotFound):
            await admin.topic_route(topic)
        for address in pair.addresses.values():
            assert await admin.topic_config(address, topic) is None


@pytest.mark.skipif(PEER == "apache", reason="Apache's brokers create a topic each on its own")
@pytest.mark.parametrize("sender", ["java", "ours"])  # ali-ons never sends to a topic without a route
async def test_a_topic_that_a_send_creates_appears_at_both(
    pair: BrokerCluster, java: JavaClient, topic: str, sender: str
) -> None:
    if sender == "ours":
        async with Producer(pair.namesrv_address) as producer:
            await producer.send(Message(topic, b"-"))
    else:
        with java.produce(pair.namesrv_address, topic, 1) as program:
            await asyncio.to_thread(program.wait_done, 60)
    async with pair.admin() as admin, asyncio.timeout(10):
        while True:
            with contextlib.suppress(RouteNotFound):
                if set(route := _queues(await admin.topic_route(topic))) == BOTH:
                    break
            await asyncio.sleep(0.1)
    assert len(set(route.values())) == 1


@pytest.mark.skipif(PEER == "apache", reason="its name server runs without orderMessageEnable")
def test_an_ordered_topic_keeps_its_layout_and_its_order_at_both(
    pair: BrokerCluster, java: JavaClient, topic: str
) -> None:
    async def create() -> TopicRouteData:
        async with pair.admin() as admin:
            await admin.create_topic_everywhere(TopicConfig(topic, QUEUES, QUEUES, order=True))
            return await admin.topic_route(topic)

    assert asyncio.run(create()).order_topic_conf == f"a:{QUEUES};b:{QUEUES}"
    count = 400
    with java.consume(pair.namesrv_address, topic, topic, orderly=True) as consumer:
        with java.produce(pair.namesrv_address, topic, count) as producer:
            producer.wait_done(60)
        consumer.wait_for(lambda: consumer.count("GOT") >= count, 60, "every message")
    sent = producer.sent()
    assert [message.queue_id for message in sent[: 2 * QUEUES]] == 2 * list(range(QUEUES))
    homes = dict(zip((message.number for message in sent), _brokers(pair, sent), strict=True))
    assert Counter(homes.values()) == {"a": count // 2, "b": count // 2}
    last: dict[tuple[str, int], int] = {}
    for got in consumer.got():
        place = (homes[got.number], got.queue_id)
        assert got.number > last.get(place, -1)
        last[place] = got.number
    assert len(consumer.got()) == count


def test_two_consumers_take_queues_of_both(pair: BrokerCluster, java: JavaClient, topic: str) -> None:
    pair.create_topics(topic)
    count = 800
    with ExitStack() as stack:
        consumers = [stack.enter_context(java.consume(pair.namesrv_address, topic, topic)) for _ in range(2)]
        # average shares of the sorted list: one broker's queues each
        consumers[1].wait_for(lambda: all(each.queues() == set(range(QUEUES)) for each in consumers), 60, "shares")
        time.sleep(1)
        with java.produce(pair.namesrv_address, topic, count) as producer:
            producer.wait_done(60)
        consumers[1].wait_for(lambda: sum(each.count("GOT") for each in consumers) >= count, 60, "every message")
    homes = dict(enumerate(_brokers(pair, producer.sent())))
    shares = [{got.number for got in each.got()} for each in consumers]
    assert not shares[0] & shares[1]
    assert shares[0] | shares[1] == set(range(count))
    assert [{homes[number] for number in share} for share in shares] in ([{"a"}, {"b"}], [{"b"}, {"a"}])


async def test_a_killed_broker_is_avoided_and_used_again_when_it_is_back(
    pair: BrokerCluster, java: JavaClient, javascript: JavaScriptClient
) -> None:
    topics = {name: f"Killed-{name}-{time.monotonic_ns()}" for name in ("java", "javascript", "ours")}
    await asyncio.to_thread(pair.create_topics, *topics.values())
    address, count = pair.namesrv_address, RATE * SECONDS
    seen, ours_sent = Seen(), asyncio.create_task(_produce_ours(pair, topics["ours"], count))
    consumer = PushConsumer(address, group="Killed-ours", listener=seen, consume_from=ConsumeFrom.FIRST_OFFSET)
    for topic in topics.values():
        consumer.subscribe(topic)
    with ExitStack() as stack:
        theirs = stack.enter_context(java.consume(address, topics["ours"], "Killed-java"))
        producers = {
            "java": stack.enter_context(
                java.run("Produce", address, topics["java"], "Killed-producers", count, RATE, "turns")
            ),
            "javascript": stack.enter_context(javascript.produce(address, topics["javascript"], count, RATE)),
        }
        async with consumer:
            for program in producers.values():
                await asyncio.to_thread(program.wait_for, functools.partial(_has_begun, program), 60, "a beginning")
            pair.peers["b"].kill_broker()
            await asyncio.to_thread(pair.wait_registered, ("a",))
            await asyncio.sleep(3)
            pair.peers["b"].relaunch_broker()
            await asyncio.to_thread(pair.wait_registered, ("a", "b"))
            for program in producers.values():
                await asyncio.to_thread(program.wait_done, 90)
            sent = {name: program.sent() for name, program in producers.items()} | {"ours": await ours_sent}
            stored = {message.number for message in sent["ours"]}
            await until(lambda: len({_key(message) for message in seen.messages}) >= 3 * count, within_s=60)
            await until(lambda: {got.number for got in theirs.got()} >= stored, within_s=60)
    for name, messages in sent.items():
        assert {message.number for message in messages} == set(range(count))
        runs = [(home, len(list(run))) for home, run in itertools.groupby(_brokers(pair, messages))]
        longest = max(range(len(runs)), key=lambda index: runs[index][1])
        assert runs[longest][0] == "a" and runs[longest][1] >= RATE, f"{name}: while b was away {runs}"
        for around in (runs[:longest], runs[longest + 1 :]):
            assert {home for home, _ in around} >= {"b"}, f"{name}: before and after that also to b, {runs}"
    print(
        {name: program.count("RETRY") for name, program in producers.items()}, "sends told to the application as failed"
    )


def _has_begun(program: ClientProgram) -> bool:
    return program.count("ACK") > RATE


def _key(message: MessageExt) -> tuple[str, str]:
    return message.topic, message.properties["number"]


async def _produce_ours(cluster: BrokerCluster, topic: str, count: int) -> list[Sent]:
    sent = []
    async with Producer(cluster.namesrv_address) as producer:
        for number in range(count):
            message = Message(topic, b"-", properties={"number": str(number)})
            while True:
                try:
                    result = await producer.send(message)
                    break
                except GantryError:
                    await asyncio.sleep(0.1)
            queue_id, offset = result.queue.queue_id, result.queue_offset
            sent.append(Sent(number, queue_id, offset, result.msg_id, result.offset_msg_id))
            await asyncio.sleep(1 / RATE)
    return sent
