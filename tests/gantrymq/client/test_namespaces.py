"""Clients in a namespace: plain names for the application, whole names at the broker; GantryMQ's and Apache's."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.bench.peer import Peer
from gantrymq import (
    ConsumeFrom,
    ConsumeResult,
    MessageModel,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import MessageRejected, WrongType
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode
from tests.gantrymq.client.peers import dead_letters, subscribed, topic_at
from tests.gantrymq.client.seen import Seen, numbers, until
from tests.waiting import WITHIN_S

SPACE = "space"


@pytest.fixture
def name() -> str:
    return f"spaced_{next(numbers)}"


async def test_a_message_keeps_its_plain_topic_through_retry_and_dead_letters(peer: Peer, name: str) -> None:
    tries: list[tuple[str, str, int]] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        (message,) = messages
        tries.append((message.topic, message.queue.topic, message.tries))
        return ConsumeResult.LATER

    async with topic_at(peer, f"{SPACE}%{name}") as admin, Producer(peer.namesrv_address, namespace=SPACE) as producer:
        async with subscribed(peer, name, listener, namespace=SPACE, max_reconsume_times=1) as consumer:
            await until(lambda: len(consumer.assigned_queues) == 5)
            sent = await producer.send(Message(name, b"spaced"))
            assert sent.queue.topic == name
            await until(lambda: len(tries) == 2)
            assert tries == [(name, name, 1), (name, name, 2)]
            connections = await admin.clients.consumers_at(peer.broker_address, f"{SPACE}%{name}")
            assert [each.client_id for each in connections.connection_set] == [consumer.client_id]
            wanted = {f"{SPACE}%{name}", f"%RETRY%{SPACE}%{name}"}
            assert set(connections.subscription_table) == wanted
            await dead_letters(admin, peer, f"{SPACE}%{name}")
        stored, *_ = await admin.messages.pull_at(peer.broker_address, f"{SPACE}%{name}", sent.queue.queue_id, 0, 1)
        assert (stored[0].topic, stored[0].properties["INSTANCE_ID"]) == (f"{SPACE}%{name}", SPACE)
        assert sum(pair[0] for pair in (await _written(admin, peer, f"{SPACE}%{name}")).values()) == 1
    async with PullConsumer(
        peer.namesrv_address, group=f"{name}_dead", namespace=SPACE, consume_from=ConsumeFrom.FIRST_OFFSET
    ) as reader:
        await reader.assign([MessageQueue(f"%DLQ%{name}", peer.broker_name, 0)])
        await reader.seek_to_begin(MessageQueue(f"%DLQ%{name}", peer.broker_name, 0))
        (dead,) = await reader.poll(WITHIN_S)
        assert (dead.topic, dead.body, dead.properties["RETRY_TOPIC"]) == (
            f"%DLQ%{name}", b"spaced", f"{SPACE}%{name}",
        )  # fmt: skip


async def _written(admin: AdminClient, peer: Peer, whole: str) -> dict[int, tuple[int, int]]:
    stats = await admin.offsets.stats_at(peer.broker_address, whole, whole)
    return {queue.queue_id: (at.consumer_offset, at.broker_offset) for queue, at in stats.offset_table.items()}


async def test_an_ordered_group_locks_its_queues_and_tools_reset_and_ask_it(peer: Peer, name: str) -> None:
    whole = f"{SPACE}%{name}"
    async with topic_at(peer, whole, queues=1) as admin, Producer(peer.namesrv_address, namespace=SPACE) as producer:
        seen = Seen()
        consumer = subscribed(peer, name, seen, ordered=True, namespace=SPACE, consume_from=ConsumeFrom.FIRST_OFFSET)
        await producer.send_many([Message(name, b"1"), Message(name, b"2")], sharding_key="k")
        async with consumer:
            await until(lambda: seen.bodies == [b"1", b"2"])
            assert {message.topic for message in seen.messages} == {name}
            info = await admin.clients.running_info_at(peer.broker_address, whole, consumer.client_id)
            queue = MessageQueue(whole, peer.broker_name, 0)
            assert info["mqTable"][queue]["locked"]
            fields = {"topic": whole, "group": whole}
            answer = await admin.calls.call(
                peer.broker_address, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields
            )
            assert fastjson.loads(answer.body)["consumerTable"][consumer.client_id] == {queue: 2}
            await admin.offsets.reset_at(peer.broker_address, whole, whole, 0)
            await until(lambda: seen.bodies == [b"1", b"2"] * 2)


async def test_a_transaction_and_a_request_stay_in_the_namespace(peer: Peer, name: str) -> None:
    class Listener:
        def execute(self, message: Message, argument: object) -> TransactionState:
            return TransactionState.COMMIT

        def check(self, message: MessageExt) -> TransactionState:
            raise AssertionError(message)

    async def listener(messages: list[MessageExt]) -> None:
        for message in messages:
            if message.properties.get("CORRELATION_ID"):
                await consumer.reply(message, message.topic.encode())
            else:
                committed.append((message.topic, message.body))

    committed: list[tuple[str, bytes]] = []
    consumer = subscribed(peer, name, listener, namespace=SPACE, consume_from=ConsumeFrom.FIRST_OFFSET)
    async with (
        topic_at(peer, f"{SPACE}%{name}"),
        consumer,
        TransactionProducer(peer.namesrv_address, group=name, listener=Listener(), namespace=SPACE) as producer,
    ):
        assert (await producer.send_in_transaction(Message(name, b"paid"))).is_confirmed
        await until(lambda: committed == [(name, b"paid")])
        reply = await producer.request(Message(name, b"who"), timeout_s=WITHIN_S)
        assert reply.body == name.encode()


async def test_another_namespace_sees_nothing_and_a_whole_name_stays_itself(peer: Peer, name: str) -> None:
    async with topic_at(peer, f"{SPACE}%{name}"), topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        inside, outside = Seen(), Seen()
        consumers = [
            PushConsumer(peer.namesrv_address, group=name, listener=inside, namespace=SPACE),
            PushConsumer(peer.namesrv_address, group=name, listener=outside),
        ]
        for consumer in consumers:
            consumer.subscribe(name)
        async with consumers[0], consumers[1]:
            await until(lambda: all(len(consumer.assigned_queues) == 5 for consumer in consumers))
            await producer.send(Message(name, b"outside"))
            await producer.send(Message(f"{SPACE}%{name}", b"inside"))
            await until(lambda: (inside.bodies, outside.bodies) == ([b"inside"], [b"outside"]))


async def test_a_broadcasting_members_file_has_the_names_java_writes(peer: Peer, name: str, tmp_path: Path) -> None:
    async with topic_at(peer, f"{SPACE}%{name}", queues=1), Producer(peer.namesrv_address, namespace=SPACE) as producer:
        for body in (b"1", b"2"):
            seen = Seen()
            consumer = subscribed(
                peer, name, seen, model=MessageModel.BROADCASTING, namespace=SPACE,
                consume_from=ConsumeFrom.FIRST_OFFSET, offsets_folder=tmp_path,
            )  # fmt: skip
            await producer.send(Message(name, body))
            async with consumer:
                await until(lambda seen=seen, body=body: seen.bodies == [body])  # type: ignore[misc]
            (file,) = tmp_path.glob("*/*/offsets.json")
            assert file.parent.name == f"{SPACE}%{name}"
            assert f'"topic":"{SPACE}%{name}"' in file.read_text()


def test_what_can_be_no_namespace_is_refused() -> None:
    for wrong in ("a%b", "a b", " "):
        with pytest.raises(MessageRejected):
            Producer("h:1", namespace=wrong)
    with pytest.raises(WrongType):
        Producer("h:1", namespace=7)  # type: ignore[arg-type]
    with pytest.raises(MessageRejected, match="longer"):
        Producer("h:1", namespace="n" * 200, group="g" * 100)
