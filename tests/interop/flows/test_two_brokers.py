"""The official clients at two brokers: an ordered topic of both, and one broker killed."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from gantrymq import ConsumeFrom, MessageExt, PushConsumer
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.bodies import TopicRouteData
from tests.gantrymq.client.seen import Seen, until
from tests.interop.broker_cluster import PEER, QUEUES, BrokerCluster
from tests.interop.clients import ClientProgram, JavaClient, JavaScriptClient, Sent

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


def _brokers(cluster: BrokerCluster, sent: list[Sent]) -> list[str]:
    """The broker that each message was stored by, told by the id it gave."""
    names = {int(address.rpartition(":")[2]): name for name, address in cluster.addresses.items()}
    return [names[decode_offset_message_id(message.offset_id)[1]] for message in sent]


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


async def test_a_killed_broker_is_avoided_and_used_again_when_it_is_back(
    pair: BrokerCluster, java: JavaClient, javascript: JavaScriptClient
) -> None:
    topics = {name: f"Killed-{name}-{time.monotonic_ns()}" for name in ("java", "javascript")}
    await asyncio.to_thread(pair.create_topics, *topics.values())
    address, seen = pair.namesrv_address, Seen()
    consumer = PushConsumer(address, group="Killed-ours", listener=seen, consume_from=ConsumeFrom.FIRST_OFFSET)
    for topic in topics.values():
        consumer.subscribe(topic)
    with ExitStack() as stack:
        theirs = stack.enter_context(java.consume(address, topics["javascript"], "Killed-java"))
        programs = {
            "java": stack.enter_context(
                java.run("Produce", address, topics["java"], "Killed-producers", ENDLESS, RATE, "turns")
            ),
            "javascript": stack.enter_context(javascript.produce(address, topics["javascript"], ENDLESS, RATE)),
        }
        async with consumer:
            await _until_to_b(pair, programs, dict.fromkeys(programs, RATE))
            pair.peers["b"].kill_broker()
            killed = _counts(programs)
            await asyncio.to_thread(pair.wait_registered, ("a",))
            enough = {name: count + UNDER_WAY + 2 * RATE for name, count in killed.items()}
            await until(lambda: all(count > enough[name] for name, count in _counts(programs).items()))
            while_away = _counts(programs)
            pair.peers["b"].launch_broker()
            await asyncio.to_thread(pair.wait_registered, ("a", "b"))
            await _until_to_b(pair, programs, while_away)
            for program in programs.values():
                program.kill()
            sent = {name: program.sent() for name, program in programs.items()}
            wanted = {(topics[name], str(message.number)) for name in sent for message in sent[name]}
            await until(lambda: {_key(message) for message in seen.messages} >= wanted)
            count = len(sent["javascript"])
            await until(lambda: {got.number for got in theirs.got()} >= set(range(count)))
    for name, messages in sent.items():
        assert [message.number for message in messages] == list(range(len(messages)))
        # what was under way when b died may still have been acknowledged by it
        away = _brokers(pair, messages)[killed[name] + UNDER_WAY : while_away[name]]
        assert len(away) > RATE and set(away) == {"a"}, f"{name}: while b was away {Counter(away)}"
    retries = {name: program.count("RETRY") for name, program in programs.items()}
    print(f"sends told to the application as failed: {retries}")


def _counts(programs: Mapping[str, ClientProgram]) -> dict[str, int]:
    return {name: program.count("ACK") for name, program in programs.items()}


async def _until_to_b(cluster: BrokerCluster, programs: Mapping[str, ClientProgram], since: Mapping[str, int]) -> None:
    """Until each program has stored messages at broker b after so many messages."""
    for name, program in programs.items():
        await until(functools.partial(_reaches_b, cluster, program, since[name]))


def _reaches_b(cluster: BrokerCluster, program: ClientProgram, since: int) -> bool:
    return "b" in _brokers(cluster, program.sent()[since:])


def _key(message: MessageExt) -> tuple[str, str]:
    return message.topic, message.properties["number"]
