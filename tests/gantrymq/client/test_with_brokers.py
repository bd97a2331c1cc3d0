"""The SDK against running brokers: GantryMQ's, and Apache RocketMQ's."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from appliance.bench.peer import Peer
from gantrymq import (
    AdminClient,
    ConsumeFrom,
    ConsumeResult,
    Message,
    MessageExt,
    MessageModel,
    MessageQueue,
    Producer,
    PushConsumer,
    SendStatus,
    SyncProducer,
    SyncPushConsumer,
)
from gantrymq.client.consume import push_consumer
from gantrymq.client.consume.options import FlowLimits
from gantrymq.errors import ClientClosed, GantryError, MessageRejected, ResponseError
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import ROCKETMQ
from tests.gantrymq.client.peers import dead_letters, held_of, running_peer, subscribed, topic_at
from tests.gantrymq.client.seen import Seen, until
from tests.peers.dispatch import until_dispatched
from tests.waiting import WITHIN_S
from tests.waiting import until as until_it

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A name for a topic and a group that no other test used."""
    return f"sdk_{next(_numbers)}"


async def offsets_written(admin: AdminClient, peer: Peer, group: str, topic: str) -> dict[int, tuple[int, int]]:
    stats = await admin.offsets.stats_at(peer.broker_address, group, topic)
    return {queue.queue_id: (at.consumer_offset, at.broker_offset) for queue, at in stats.offset_table.items()}


# -- sending ----------------------------------------------------------------------------------------------------------


async def test_a_message_to_a_topic_that_does_not_exist_creates_it(peer: Peer, name: str) -> None:
    async with Producer(peer.namesrv_address) as producer:
        result = await producer.send(Message(name, b"hello", tags="T", keys="key"))
    assert result.status is SendStatus.SEND_OK
    assert result.queue.broker_name == peer.broker_name
    assert (len(result.msg_id), len(result.offset_msg_id)) == (32, 32)


async def test_every_way_to_send_stores_what_was_sent(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address, group="PG") as producer:
        third = MessageQueue(name, peer.broker_name, 3)
        large = bytes(range(256)) * 100
        sent = [
            await producer.send(Message(name, b"explicit", properties={"p": "ü"}, flag=7), queue=third),
            await producer.send(Message(name, b"selected"), selector=lambda queues, message: queues[3]),
            await producer.send(Message(name, large, tags="big"), queue=third),
        ]
        batch = await producer.send_batch([Message(name, b"b0", tags="x"), Message(name, b"b1", keys="k")], queue=third)
        await producer.send_oneway(Message(name, b"oneway"), queue=third)
        found: list[MessageExt] = []
        async with asyncio.timeout(WITHIN_S):
            while len(found) < 6:
                found, *_ = await admin.messages.pull_at(peer.broker_address, name, 3, 0, 32)
        assert [message.body for message in found] == [b"explicit", b"selected", large, b"b0", b"b1", b"oneway"]
        assert [message.msg_id for message in found[:3]] == [result.msg_id for result in sent]
        assert [message.offset_msg_id for message in found[:3]] == [result.offset_msg_id for result in sent]
        assert [message.offset_msg_id for message in found[3:5]] == batch.offset_msg_id.split(",")
        assert [message.msg_id for message in found[3:5]] == batch.msg_id.split(",")
        assert (found[0].flag, found[0].properties["p"], found[2].tags, found[4].keys) == (7, "ü", "big", ["k"])
        assert batch.queue_offset == 3


async def test_many_messages_are_answered_in_order_and_spread_over_the_queues(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        results = await producer.send_many((Message(name, b"%d" % n) for n in range(2000)), in_flight=100)
        assert len({result.offset_msg_id for result in results}) == 2000
        assert Counter(result.queue.queue_id for result in results) == dict.fromkeys(range(4), 500)
        last = await admin.messages.view_at(peer.broker_address, int(results[1234].offset_msg_id[16:], 16))
        assert (last.body, last.msg_id) == (b"1234", results[1234].msg_id)


async def test_the_binary_header_encoding_works_as_well(peer: Peer, name: str) -> None:
    async with topic_at(peer, name), Producer(peer.namesrv_address, serialize_type=ROCKETMQ) as producer:
        seen = Seen()
        async with subscribed(peer, name, seen, serialize_type=ROCKETMQ):
            await producer.send(Message(name, b"binary", tags="x"))
            await until(lambda: seen.bodies == [b"binary"])


async def test_a_queue_that_does_not_exist_is_the_brokers_error_and_a_bad_name_is_ours(peer: Peer, name: str) -> None:
    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        with pytest.raises(ResponseError) as caught:
            await producer.send(Message(name, b"x"), queue=MessageQueue(name, peer.broker_name, 99))
        assert caught.value.code == 1
        for topic in ("", "with space", "SCHEDULE_TOPIC_XXXX", "x" * 128):
            with pytest.raises(MessageRejected):
                await producer.send(Message(topic, b"x"))
    with pytest.raises(ClientClosed):
        await producer.send(Message(name, b"x"))


# -- consuming --------------------------------------------------------------------------------------------------------


async def test_two_consumers_share_a_group_and_the_next_one_goes_on_where_they_were(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        one, two = Seen(), Seen()
        consumers = [
            PushConsumer(peer.namesrv_address, group=name, listener=seen, batch_size=16) for seen in (one, two)
        ]
        for consumer in consumers:
            consumer.subscribe(name, "A || B")
        async with consumers[0], consumers[1]:
            await until(lambda: all(sum(q.topic == name for q in c.assigned_queues) == 2 for c in consumers))
            assert {q for c in consumers for q in c.assigned_queues if q.topic == name} == {
                MessageQueue(name, peer.broker_name, queue_id) for queue_id in range(4)
            }
            await producer.send_many(Message(name, b"%d" % n, tags="ABC"[n % 3]) for n in range(900))
            # the last of each queue is wanted: how far a consumer came is not told of those behind it that are not
            for n, queue in enumerate(await producer.queues(name), start=900):
                await producer.send(Message(name, b"%d" % n, tags="A"), queue=queue)
            await until(lambda: len(one.messages) + len(two.messages) >= 604)
            connections = await admin.clients.consumers_at(peer.broker_address, name)
            assert {c.client_id for c in connections.connection_set} == {c.client_id for c in consumers}
        assert sorted(map(int, one.bodies + two.bodies)) == [n for n in range(904) if n % 3 != 2 or n >= 900]
        assert one.messages
        assert two.messages
        assert all(message.tags in ("A", "B") and message.broker_name == peer.broker_name for message in one.messages)
        written = await offsets_written(admin, peer, name, name)
        assert all(consumed == stored for consumed, stored in written.values())

        later = Seen()
        async with subscribed(peer, name, later, tags="A || B") as consumer:
            await producer.send(Message(name, b"new", tags="A"))
            await until(lambda: bool(later.messages))
        assert later.bodies == [b"new"]


async def test_messages_of_one_queue_come_in_order_and_large_ones_whole(peer: Peer, name: str) -> None:
    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        seen = Seen()
        consumer = subscribed(peer, name, seen, concurrency=1)
        queue = MessageQueue(name, peer.broker_name, 1)
        async with consumer:
            for n in range(50):
                await producer.send(Message(name, b"%d" % n * 2000), queue=queue)
            await until(lambda: len(seen.messages) == 50)
        assert seen.bodies == [b"%d" % n * 2000 for n in range(50)]
        assert [message.queue_offset for message in seen.messages] == list(range(50))


async def test_a_failed_message_comes_again_and_rests_in_the_dead_letters_at_last(peer: Peer, name: str) -> None:
    tries: list[tuple[str, int, str]] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        (message,) = messages
        tries.append((message.topic, message.reconsume_times, message.msg_id))
        if message.body == b"raise":
            raise ValueError("the listener's own mistake")
        return ConsumeResult.LATER

    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        async with subscribed(peer, name, listener, max_reconsume_times=1) as consumer:
            await until(lambda: len(consumer.assigned_queues) == 5)
            sent = [await producer.send(Message(name, body)) for body in (b"raise", b"later")]
            await until(lambda: len(tries) >= 4)
            assert sorted(tries) == sorted((name, times, result.msg_id) for times in (0, 1) for result in sent)
            found = await dead_letters(admin, peer, name, 2)
        assert sorted(message.body for message in found) == [b"later", b"raise"]
        assert {message.msg_id for message in found} == {result.msg_id for result in sent}


async def test_broadcasting_gives_all_everything_and_keeps_offsets_on_disk(
    peer: Peer, name: str, tmp_path: Path
) -> None:
    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"before"))
        await until_dispatched(peer)

        def member(number: int, seen: Seen) -> PushConsumer:
            return subscribed(
                peer, name, seen, model=MessageModel.BROADCASTING, instance_name=f"member-{number}",
                offsets_folder=tmp_path,
            )  # fmt: skip

        seen = [Seen(), Seen()]
        consumers = [member(number, one) for number, one in enumerate(seen)]
        async with consumers[0], consumers[1]:
            await until(lambda: all(len(c.assigned_queues) == 4 for c in consumers))
            await producer.send_many(Message(name, b"%d" % n) for n in range(20))
            await until(lambda: all(len(one.messages) == 20 for one in seen))
        assert all(sorted(map(int, one.bodies)) == list(range(20)) for one in seen)
        await producer.send(Message(name, b"meanwhile"))
        again = Seen()
        async with member(0, again):
            await until(lambda: again.bodies == [b"meanwhile"])


async def test_an_operator_resets_the_group_and_asks_a_consumer_how_it_is(peer: Peer, name: str) -> None:
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address) as producer:
        seen = Seen()
        consumer = subscribed(peer, name, seen)
        started_ms = int(time.time() * 1000)
        async with consumer:
            await producer.send_many(Message(name, b"%d" % n) for n in range(40))
            await until(lambda: len(seen.messages) == 40)
            queue, info = MessageQueue(name, peer.broker_name, 0), {}

            async def is_done() -> bool:
                told = await admin.clients.running_info_json_at(peer.broker_address, name, consumer.client_id)
                info.update(fastjson.loads(told))
                return bool(info["mqTable"][queue]["commitOffset"] == 10)

            await until_it(is_done)
            assert info["statusTable"][name]["consumeFailedMsgs"] == 0
            async with asyncio.timeout(WITHIN_S):  # the broker wants an offset of every queue first
                while len(await offsets_written(admin, peer, name, name)) < 4:
                    await asyncio.sleep(0.1)
            reset = await admin.offsets.reset_at(peer.broker_address, name, name, started_ms - 60_000)
            assert set(reset.offset_table.values()) == {0}
            await until(lambda: len(seen.messages) == 80)
            assert Counter(seen.bodies) == {b"%d" % n: 2 for n in range(40)}


@pytest.mark.parametrize("begin", ConsumeFrom)
async def test_a_new_group_begins_where_it_wants_to(peer: Peer, name: str, begin: ConsumeFrom) -> None:
    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"old"))
        await asyncio.sleep(0.05)  # the moment lies clearly behind the first message
        middle_ms = int(time.time() * 1000)
        await asyncio.sleep(0.05)  # and before the second
        await producer.send(Message(name, b"new"))
        seen = Seen()
        async with subscribed(peer, name, seen, consume_from=begin, consume_from_ms=middle_ms):
            await until(lambda: b"new" in seen.bodies)
        # both brokers say "go on at 0" to a new group on a young queue, whatever the group would have wanted
        assert seen.bodies == [b"old", b"new"]


async def test_topics_come_and_go_while_the_consumer_runs(peer: Peer, name: str) -> None:
    other = f"{name}_other"
    async with topic_at(peer, name), topic_at(peer, other), Producer(peer.namesrv_address) as producer:
        seen = Seen()
        async with subscribed(peer, name, seen) as consumer:
            await until(lambda: len(consumer.assigned_queues) == 5)
            consumer.subscribe(other)
            await producer.send(Message(other, b"added"))
            await until(lambda: b"added" in seen.bodies)
            consumer.unsubscribe(name)
            await until(lambda: not any(queue.topic == name for queue in consumer.assigned_queues))


async def test_a_slow_listener_holds_no_more_than_its_limits(peer: Peer, name: str) -> None:
    gate = asyncio.Event()
    consumed = 0

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal consumed
        await gate.wait()
        consumed += len(messages)

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        async with subscribed(peer, name, listener, limits=FlowLimits(messages_per_queue=10), pull_batch=4) as consumer:
            await producer.send_many(Message(name, b"x") for _ in range(200))
            queue = MessageQueue(name, peer.broker_name, 0)
            await until(lambda: queue in consumer.assigned_queues)

            async def count() -> int:
                return int((await held_of(admin, peer, name, consumer.client_id, queue))["cachedMsgCount"])

            async def is_full() -> bool:
                return await count() >= 10

            await until_it(is_full)
            await asyncio.sleep(0.5)  # it would fetch more than it may hold meanwhile
            held = await count()
            gate.set()
            await until(lambda: consumed == 200)
        assert 10 <= held < 14
        assert await offsets_written(admin, peer, name, name) == {0: (200, 200)}


async def test_offsets_of_unfinished_messages_are_not_written(peer: Peer, name: str) -> None:
    gate = asyncio.Event()
    done: list[int] = []

    async def listener(messages: list[MessageExt]) -> None:
        if messages[0].queue_offset == 3:
            await gate.wait()
        done.append(messages[0].queue_offset)

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        async with subscribed(peer, name, listener, close_wait_s=0.1):
            await producer.send_many(Message(name, b"x") for _ in range(10))
            await until(lambda: len(done) == 9)
        assert await offsets_written(admin, peer, name, name) == {0: (3, 10)}


async def test_an_offset_outside_the_queue_is_corrected(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"old"))
        await until_dispatched(peer)
        await admin.offsets.set_at(peer.broker_address, name, name, 0, 999)
        seen = Seen()
        async with subscribed(peer, name, seen):
            async with asyncio.timeout(WITHIN_S):
                while await admin.offsets.get_at(peer.broker_address, name, name, 0) != 1:
                    await asyncio.sleep(0.05)
            await producer.send(Message(name, b"new"))
            await until(lambda: seen.bodies == [b"new"])


async def test_a_listener_that_never_returns_does_not_hold_the_offset_for_ever(
    peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_consumer, "PERSIST_S", 0.1)  # overdue calls are looked for as often as offsets are written
    tries: list[int] = []

    async def listener(messages: list[MessageExt]) -> None:
        tries.append(messages[0].reconsume_times)
        if messages[0].reconsume_times == 0:
            await asyncio.Event().wait()

    async with (
        topic_at(peer, name, queues=1) as admin,
        Producer(peer.namesrv_address) as producer,
        subscribed(peer, name, listener, overdue_s=0.05, close_wait_s=0.0, concurrency=2) as consumer,
    ):
        await producer.send(Message(name, b"x"))
        await until(lambda: tries == [0, 1])
        queue = MessageQueue(name, peer.broker_name, 0)

        async def is_finished() -> bool:
            return bool((await held_of(admin, peer, name, consumer.client_id, queue))["commitOffset"] == 1)

        await until_it(is_finished)


async def test_a_tool_hands_a_message_to_a_consumer_and_asks_for_its_offsets(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        seen = Seen()
        async with subscribed(peer, name, seen) as consumer:
            sent = await producer.send(Message(name, b"x"))
            await until(lambda: seen.bodies == [b"x"])
            fields = {"consumerGroup": name, "clientId": consumer.client_id, "msgId": sent.offset_msg_id}
            answer = await admin.calls.call(peer.broker_address, RequestCode.CONSUME_MESSAGE_DIRECTLY, fields)
            assert fastjson.loads(answer.body)["consumeResult"] == "CR_SUCCESS"
            assert seen.bodies == [b"x", b"x"]
            answer = await admin.calls.call(
                peer.broker_address, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": name, "group": name}
            )
            queue = MessageQueue(name, peer.broker_name, 0)
            assert fastjson.loads(answer.body)["consumerTable"] == {consumer.client_id: {queue: 1}}


# -- for threads ------------------------------------------------------------------------------------------------------


def test_the_blocking_clients_do_the_same_from_threads(peer: Peer, name: str) -> None:
    got: list[bytes] = []
    echoed = threading.Event()

    with SyncProducer(peer.namesrv_address) as producer:

        def listener(messages: list[MessageExt]) -> None:
            got.extend(message.body for message in messages)
            if messages[0].body == b"ping":
                producer.send(Message(name, b"pong"))  # a listener may use blocking clients
            if len(got) == 12:
                echoed.set()

        producer.send(Message(name, b"ping"))
        consumer = SyncPushConsumer(
            peer.namesrv_address, group=name, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
        )
        consumer.subscribe(name)
        with consumer:
            assert len(producer.send_many(Message(name, b"%d" % n) for n in range(5))) == 5
            threads = [threading.Thread(target=producer.send, args=(Message(name, b"t"),)) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert echoed.wait(WITHIN_S)
        assert sorted(got) == sorted([b"ping", b"pong", *[b"%d" % n for n in range(5)], *[b"t"] * 5])
    with pytest.raises(ClientClosed):
        producer.send(Message(name, b"x"))


# -- when the broker goes away ----------------------------------------------------------------------------------------


async def test_a_killed_broker_loses_no_acknowledged_message_and_both_sides_go_on(tmp_path: Path, name: str) -> None:
    with running_peer("gantry", tmp_path) as peer:
        async with topic_at(peer, name), Producer(peer.namesrv_address, delivery_timeout_s=1.0) as producer:
            seen = Seen()
            consumer = subscribed(peer, name, seen)
            acknowledged: list[str] = []
            is_over = False

            async def send_on() -> None:
                while not is_over:
                    try:
                        acknowledged.append((await producer.send(Message(name, b"x"))).msg_id)
                    except GantryError:
                        await asyncio.sleep(0.05)
                    await asyncio.sleep(0.002)

            async with consumer, asyncio.TaskGroup() as group:
                group.create_task(send_on())
                await until(lambda: len(seen.messages) > 50)
                await asyncio.to_thread(peer.kill_broker)
                await asyncio.sleep(0.3)  # sends fail meanwhile
                await asyncio.to_thread(peer.start_broker)
                before = len(acknowledged)
                await until(lambda: len(acknowledged) > before + 50)
                is_over = True
                await until(lambda: {message.msg_id for message in seen.messages} >= set(acknowledged))
