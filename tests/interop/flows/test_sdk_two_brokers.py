"""Our own clients at two brokers, plain and with TLS and accounts: each kind of message and consumer; one is killed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from gantrymq import (
    ConsumeFrom,
    ConsumeResult,
    Credentials,
    Message,
    MessageExt,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)
from gantrymq.client.connection import session
from gantrymq.client.produce.trace_records import TraceKind
from gantrymq.errors import GantryError
from tests.gantrymq.client.seen import Seen, until
from tests.interop.broker_cluster import FLOW_PROPERTIES, PEER, QUEUES, BrokerCluster
from tests.waiting import WITHIN_S

BOTH = {"a", "b"}
COUNT = 64
WAIT_S = WITHIN_S
TRANSACTION_TIMEOUT_S = int(FLOW_PROPERTIES["transactionTimeOut"]) / 1000


@pytest.fixture(scope="module", params=["plain", "TLS, accounts"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    guarded = request.param != "plain"
    if guarded and PEER == "apache":
        pytest.skip("Apache's TLS takes other settings")
    with BrokerCluster(tmp_path_factory.mktemp("pair"), brokers=2, tls=guarded, acl=guarded) as cluster:
        yield cluster


@pytest.fixture
def topic(pair: BrokerCluster) -> str:
    name = f"Sdk-{time.monotonic_ns()}"
    pair.create_topics(name)
    return name


@pytest.fixture
async def producer(pair: BrokerCluster) -> AsyncIterator[Producer]:
    async with Producer(pair.namesrv_address, group="sdk", **pair.client_options) as producer:
        yield producer


def consumer_of(pair: BrokerCluster, topic: str, listener: Any, **settings: Any) -> PushConsumer:
    settings = {"group": f"{topic}-group", "consume_from": ConsumeFrom.FIRST_OFFSET, **settings}
    consumer = PushConsumer(pair.namesrv_address, listener=listener, **settings, **pair.client_options)
    consumer.subscribe(topic)
    return consumer


def numbered(topic: str, number: int, **more: Any) -> Message:
    return Message(topic, f"body-{number}".encode(), properties={"number": str(number)}, **more)


def numbers(messages: list[MessageExt]) -> list[int]:
    return sorted(int(message.properties["number"]) for message in messages)


async def test_messages_are_sent_to_both_and_shared_by_two_consumers(
    pair: BrokerCluster, producer: Producer, topic: str
) -> None:
    one, two = Seen(), Seen()
    first, second = consumer_of(pair, topic, one), consumer_of(pair, topic, two)
    async with first, second:
        await until_shared(first, second, topic)
        results = [await producer.send(numbered(topic, number)) for number in range(COUNT)]
        batch = await producer.send_batch([numbered(topic, COUNT + number) for number in range(10)])
        await until(lambda: len(one.messages) + len(two.messages) >= COUNT + 10, within_s=WAIT_S)
    assert Counter(result.queue.broker_name for result in results) == {"a": COUNT // 2, "b": COUNT // 2}
    assert len(batch.offset_msg_id.split(",")) == 10
    assert numbers(one.messages + two.messages) == list(range(COUNT + 10))


def mine(consumer: PushConsumer, topic: str) -> list[tuple[str, int]]:
    return [(queue.broker_name, queue.queue_id) for queue in consumer.assigned_queues if queue.topic == topic]


async def until_shared(first: PushConsumer, second: PushConsumer, topic: str) -> None:
    """Each has half of the queues, together all: queues are taken one by one, halves alone may be a passing state."""
    every = {(name, each) for name in BOTH for each in range(QUEUES)}

    def is_shared() -> bool:
        halves = mine(first, topic), mine(second, topic)
        return len(halves[0]) == len(halves[1]) == QUEUES and {*halves[0], *halves[1]} == every

    await until(is_shared, within_s=WAIT_S)


async def test_a_failed_message_comes_back_from_its_broker(pair: BrokerCluster, producer: Producer, topic: str) -> None:
    tries: Counter[int] = Counter()

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        (message,) = messages
        tries[int(message.properties["number"])] += 1
        return ConsumeResult.SUCCESS if message.reconsume_times == 1 else ConsumeResult.LATER

    async with consumer_of(pair, topic, listener):
        for number in range(2 * QUEUES):
            await producer.send(numbered(topic, number))
        await until(lambda: sum(tries.values()) >= 4 * QUEUES, within_s=WAIT_S)
    assert tries == dict.fromkeys(range(2 * QUEUES), 2)


async def test_keys_keep_their_order_with_two_ordered_consumers(
    pair: BrokerCluster, producer: Producer, topic: str
) -> None:
    one, two = Seen(), Seen()
    first = consumer_of(pair, topic, one, ordered=True)
    second = consumer_of(pair, topic, two, ordered=True)
    async with first, second:
        await until_shared(first, second, topic)
        for number in range(COUNT):
            await producer.send(numbered(topic, number), sharding_key=f"order-{number % 8}")
        await until(lambda: len(one.messages) + len(two.messages) >= COUNT, within_s=WAIT_S)
    assert numbers(one.messages + two.messages) == list(range(COUNT))
    for messages in (one.messages, two.messages):
        for key in range(8):
            of_key = [n for n in (int(message.properties["number"]) for message in messages) if n % 8 == key]
            assert of_key == sorted(of_key)


async def test_transactions_end_at_the_broker_that_has_them(pair: BrokerCluster, topic: str) -> None:
    class Listener:
        asked: set[int] = set()

        async def execute(self, message: Message, number: int) -> TransactionState:
            return (TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.UNKNOWN)[number % 3]

        async def check(self, message: MessageExt) -> TransactionState:
            number = int(message.properties["number"])
            self.asked.add(number)
            return TransactionState.ROLLBACK if number % 3 == 1 else TransactionState.COMMIT

    listener, seen, count = Listener(), Seen(), 24
    wanted = [number for number in range(count) if number % 3 != 1]
    async with (
        consumer_of(pair, topic, seen),
        TransactionProducer(
            pair.namesrv_address, listener=listener, group=f"{topic}-group", **pair.client_options
        ) as producer,
    ):
        results, late = [], set()
        for number in range(count):
            begun = time.monotonic()
            results.append(await producer.send_in_transaction(numbered(topic, number), number))
            if time.monotonic() - begun >= TRANSACTION_TIMEOUT_S:  # the broker may have asked before it was told
                late.add(number)
        await until(lambda: len(seen.messages) >= len(wanted), within_s=WAIT_S)
    assert {result.send.queue.broker_name for result in results} == BOTH
    assert all(result.is_confirmed for number, result in enumerate(results) if number % 3 != 2)
    assert numbers(seen.messages) == wanted
    unknown = set(range(2, count, 3))
    assert unknown <= listener.asked <= unknown | late


async def test_requests_are_answered_wherever_they_lie(pair: BrokerCluster, producer: Producer, topic: str) -> None:
    async def listener(messages: list[MessageExt]) -> None:
        for message in messages:
            await consumer.reply(message, b"re: " + message.body)

    consumer = consumer_of(pair, topic, listener)
    async with consumer:
        replies = [await producer.request(numbered(topic, number), 20.0) for number in range(2 * QUEUES)]
    assert [reply.body for reply in replies] == [b"re: body-%d" % number for number in range(2 * QUEUES)]


async def test_a_pull_consumer_polls_both_and_goes_on_where_it_committed(
    pair: BrokerCluster, producer: Producer, topic: str
) -> None:
    for number in range(COUNT):
        await producer.send(numbered(topic, number))
    got: list[MessageExt] = []
    for part in (COUNT // 2, COUNT):
        consumer = PullConsumer(
            pair.namesrv_address,
            group=f"{topic}-group",
            consume_from=ConsumeFrom.FIRST_OFFSET,
            auto_commit=False,
            batch_size=4,
            **pair.client_options,
        )
        consumer.subscribe(topic)
        async with consumer, asyncio.timeout(WAIT_S):
            while len(got) < part:
                got += await consumer.poll()
            await consumer.commit()
    assert numbers(got) == list(range(COUNT))


async def test_what_was_sent_is_found_and_its_trace_too(pair: BrokerCluster, topic: str) -> None:
    seen = Seen()
    consumer = consumer_of(pair, topic, seen, trace=True)
    options = pair.client_options
    async with consumer, Producer(pair.namesrv_address, group="traced", trace=True, **options) as producer:
        results = [await producer.send(numbered(topic, number, keys=[f"key-{number}"])) for number in range(2 * QUEUES)]
        await until(lambda: len(seen.messages) >= 2 * QUEUES, within_s=WAIT_S)
    async with pair.admin() as admin, asyncio.timeout(WAIT_S):
        for number, result in enumerate(results):
            while not (found := await admin.messages.find_by_key(topic, f"key-{number}")):
                await asyncio.sleep(0.1)
            assert [message.body for message in found] == [b"body-%d" % number]
            by_id = await admin.messages.find_by_id(topic, result.msg_id)
            assert by_id is not None and by_id.queue_offset == result.queue_offset
            while len(records := (await admin.messages.trace(result.msg_id)).records) < 3:
                await asyncio.sleep(0.1)
            assert {record.kind for record in records} == set(TraceKind) - {TraceKind.END_TRANSACTION}


async def test_a_killed_broker_is_avoided_and_used_again_when_it_is_back(
    pair: BrokerCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "REFRESH_S", 1.0)
    seen = Seen()
    sent: list[int] = []

    async def send() -> str:
        """Until it is acknowledged; the name of the broker that did."""
        while True:
            with contextlib.suppress(GantryError):  # told to the application: it sends again
                result = await producer.send(numbered(topic, len(sent)))
                sent.append(len(sent))
                return result.queue.broker_name

    options = pair.client_options
    async with (
        Producer(pair.namesrv_address, group="sdk", **options) as producer,
        consumer_of(pair, topic, seen),
        asyncio.timeout(WAIT_S),
    ):
        pair.peers["b"].kill_broker()
        await asyncio.to_thread(pair.wait_registered, ("a",))
        await send()  # which finds out, if the route has not been asked for since
        assert {await send() for _ in range(4 * QUEUES)} == {"a"}
        pair.peers["b"].launch_broker()
        await asyncio.to_thread(pair.wait_registered, ("a", "b"))
        while await send() != "b":
            await asyncio.sleep(0.05)
        await until(lambda: set(numbers(seen.messages)) == set(sent), within_s=WAIT_S)


@pytest.mark.parametrize("account", [None, Credentials("clientKey1", "wrongSecret")], ids=["none", "wrong secret"])
async def test_strangers_are_served_only_where_nobody_is_asked(
    pair: BrokerCluster, topic: str, account: Credentials | None
) -> None:
    options = {**pair.client_options, "credentials": account}
    async with Producer(pair.namesrv_address, group="strangers", **options) as producer:
        for queue in await producer.queues(topic):
            if pair.has_accounts:
                with pytest.raises(GantryError, match="AclException"):
                    await producer.send(numbered(topic, 0), queue=queue)
            else:
                await producer.send(numbered(topic, 0), queue=queue)
