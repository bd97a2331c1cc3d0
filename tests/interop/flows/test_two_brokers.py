"""Two brokers of one cluster: topics on both, official clients and ours that use both, one of them killed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Self

import pytest

from gantrymq import ConsumeFrom, Message, MessageExt, Producer, PushConsumer
from gantrymq.errors import GantryError, RouteNotFound
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.bodies import TopicRouteData
from tests.gantrymq.client.seen import Seen, until
from tests.interop.broker_cluster import PEER, QUEUES, BrokerCluster
from tests.interop.clients import JavaClient, JavaScriptClient, Sent
from tests.waiting import WITHIN_S

BOTH = {"a", "b"}
RATE = 50  # messages a second of each producer while a broker is killed
ENDLESS = 100_000
UNDER_WAY = 2 * RATE  # sends at most that were acknowledged when a broker died, and not yet read here


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
        assert set(await admin.topics.create(TopicConfig(topic, QUEUES, QUEUES))) == BOTH
        assert _queues(await admin.topics.route(topic)) == {"a": QUEUES, "b": QUEUES}
        async with Producer(pair.namesrv_address) as producer:
            results = [await producer.send(Message(topic, b"-")) for _ in range(4 * QUEUES)]
        assert Counter(result.queue.broker_name for result in results) == {"a": 2 * QUEUES, "b": 2 * QUEUES}
        assert set(await admin.topics.delete(topic)) == BOTH
        with pytest.raises(RouteNotFound):
            await admin.topics.route(topic)
        for address in pair.addresses.values():
            assert await admin.topics.config_at(address, topic) is None


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
            await asyncio.to_thread(program.wait_done)
    async with pair.admin() as admin, asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(RouteNotFound):
                if set(route := _queues(await admin.topics.route(topic))) == BOTH:
                    break
            await asyncio.sleep(0.1)
    assert len(set(route.values())) == 1


@pytest.mark.skipif(PEER == "apache", reason="its name server runs without orderMessageEnable")
def test_an_ordered_topic_keeps_its_layout_and_its_order_at_both(
    pair: BrokerCluster, java: JavaClient, topic: str
) -> None:
    async def create() -> TopicRouteData:
        async with pair.admin() as admin:
            await admin.topics.create(TopicConfig(topic, QUEUES, QUEUES, order=True))
            return await admin.topics.route(topic)

    assert asyncio.run(create()).order_topic_conf == f"a:{QUEUES};b:{QUEUES}"
    count = 400
    with java.consume(pair.namesrv_address, topic, topic, orderly=True) as consumer:
        with java.produce(pair.namesrv_address, topic, count) as producer:
            producer.wait_done()
        consumer.wait_for(lambda: consumer.count("GOT") >= count, "every message")
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
        consumers[1].wait_for(lambda: all(each.queues() == set(range(QUEUES)) for each in consumers), "shares")
        time.sleep(1)  # a rebalance that moves more queues has time to come
        with java.produce(pair.namesrv_address, topic, count) as producer:
            producer.wait_done()
        consumers[1].wait_for(lambda: sum(each.count("GOT") for each in consumers) >= count, "every message")
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
    address, seen = pair.namesrv_address, Seen()
    consumer = PushConsumer(address, group="Killed-ours", listener=seen, consume_from=ConsumeFrom.FIRST_OFFSET)
    for topic in topics.values():
        consumer.subscribe(topic)
    with ExitStack() as stack:
        theirs = stack.enter_context(java.consume(address, topics["ours"], "Killed-java"))
        programs = {
            "java": stack.enter_context(
                java.run("Produce", address, topics["java"], "Killed-producers", ENDLESS, RATE, "turns")
            ),
            "javascript": stack.enter_context(javascript.produce(address, topics["javascript"], ENDLESS, RATE)),
        }
        async with consumer, OurProducer(pair, topics["ours"]) as ours:
            senders: dict[str, Callable[[], list[Sent]]] = {name: each.sent for name, each in programs.items()}
            senders["ours"] = lambda: list(ours.sent)
            await _until_to_b(pair, senders, dict.fromkeys(senders, RATE))
            pair.peers["b"].kill_broker()
            killed = {name: len(sent()) for name, sent in senders.items()}
            await asyncio.to_thread(pair.wait_registered, ("a",))
            enough = {name: count + UNDER_WAY + 2 * RATE for name, count in killed.items()}
            await until(lambda: all(len(sent()) > enough[name] for name, sent in senders.items()), within_s=WITHIN_S)
            while_away = {name: len(sent()) for name, sent in senders.items()}
            pair.peers["b"].relaunch_broker()
            await asyncio.to_thread(pair.wait_registered, ("a", "b"))
            await _until_to_b(pair, senders, while_away)
            await ours.stop()
            for program in programs.values():
                program.kill()
            sent = {name: messages() for name, messages in senders.items()}
            wanted = {(topics[name], str(message.number)) for name in sent for message in sent[name]}
            await until(lambda: {_key(message) for message in seen.messages} >= wanted, within_s=WITHIN_S)
            await until(
                lambda: {got.number for got in theirs.got()} >= set(range(len(sent["ours"]))), within_s=WITHIN_S
            )
    for name, messages in sent.items():
        assert [message.number for message in messages] == list(range(len(messages)))
        # what was under way when b died may still have been acknowledged by it
        away = _brokers(pair, messages)[killed[name] + UNDER_WAY : while_away[name]]
        assert len(away) > RATE and set(away) == {"a"}, f"{name}: while b was away {Counter(away)}"
    retries = {name: program.count("RETRY") for name, program in programs.items()}
    print(f"sends told to the application as failed: {retries}")


async def _until_to_b(
    cluster: BrokerCluster, senders: Mapping[str, Callable[[], list[Sent]]], since: Mapping[str, int]
) -> None:
    """Until each sender has stored messages at broker b after so many messages."""
    for name, sent in senders.items():
        await until(functools.partial(_reach_b, cluster, sent, since[name]), within_s=WITHIN_S)


def _reach_b(cluster: BrokerCluster, sent: Callable[[], list[Sent]], since: int) -> bool:
    return "b" in _brokers(cluster, sent()[since:])


class OurProducer:
    """Our producer sends numbered messages while the block runs, or until it is told to stop."""

    def __init__(self, cluster: BrokerCluster, topic: str) -> None:
        self.sent: list[Sent] = []
        self._cluster = cluster
        self._topic = topic
        self._is_stopping = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._produce())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._is_stopping = True
        await self._task

    async def _produce(self) -> None:
        async with Producer(self._cluster.namesrv_address) as producer:
            while not self._is_stopping:
                number = len(self.sent)
                with contextlib.suppress(GantryError):  # told to the application: it sends again
                    result = await producer.send(Message(self._topic, b"-", properties={"number": str(number)}))
                    place = (result.queue.queue_id, result.queue_offset)
                    self.sent.append(Sent(number, *place, result.msg_id, result.offset_msg_id))
                await asyncio.sleep(1 / RATE)


def _key(message: MessageExt) -> tuple[str, str]:
    return message.topic, message.properties["number"]
