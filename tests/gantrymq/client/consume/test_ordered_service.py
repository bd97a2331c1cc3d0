"""Ordered consumption with broker locks, against GantryMQ's broker and Apache's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, MessageExt, MessageQueue, Producer, PushConsumer
from gantrymq.client.consume import push_consumer, queue_locks
from gantrymq.errors import ConfigError, GantryError
from gantrymq.remoting.bodies import LockBatchRequest, LockBatchResponse
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.conftest import time_limit
from tests.gantrymq.client.peers import dead_letters, topic_at
from tests.gantrymq.client.seen import Seen, numbers, until
from tests.soak.relay import Relay
from tests.waiting import WITHIN_S
from tests.waiting import until as until_it


@pytest.fixture
def name() -> str:
    return f"ordered_{next(numbers)}"


def ordered(peer: Peer, name: str, listener: object, *, name_servers: str = "", **options: object) -> PushConsumer:
    consumer = PushConsumer(
        name_servers or peer.namesrv_address,
        group=name,
        listener=listener,  # type: ignore[arg-type]
        ordered=True,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        **options,  # type: ignore[arg-type]
    )
    consumer.subscribe(name)
    return consumer


async def test_messages_of_one_key_stay_in_order_over_many_workers(peer: Peer, name: str) -> None:
    seen: dict[int, list[int]] = defaultdict(list)
    at_once: dict[int, int] = defaultdict(int)
    most = 0

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal most
        queue_id = messages[0].queue_id
        at_once[queue_id] += 1
        most = max(most, at_once[queue_id])
        await asyncio.sleep(0.001)
        at_once[queue_id] -= 1
        for message in messages:
            seen[int(message.body) % 7].append(int(message.body))

    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        for number in range(140):
            await producer.send(Message(name, b"%d" % number), sharding_key=f"order-{number % 7}")
        async with ordered(peer, name, listener, batch_size=3):
            await until(lambda: sum(map(len, seen.values())) == 140)
    assert all(numbers_of == sorted(numbers_of) for numbers_of in seen.values())
    assert most == 1


async def test_a_failed_message_is_tried_again_before_the_next_one(peer: Peer, name: str) -> None:
    tries: list[tuple[bytes, int]] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        (message,) = messages
        tries.append((message.body, message.reconsume_times))
        if message.body == b"raise" and message.reconsume_times < 1:
            raise ValueError("the listener's own mistake")
        return (
            ConsumeResult.LATER if message.body == b"later" and message.reconsume_times < 2 else ConsumeResult.SUCCESS
        )

    async with topic_at(peer, name, queues=1), Producer(peer.namesrv_address) as producer:
        for body in (b"raise", b"later", b"last"):
            await producer.send(Message(name, body))
        async with ordered(peer, name, listener, suspend_s=0.05):
            await until(lambda: (b"last", 0) in tries)
    assert tries == [(b"raise", 0), (b"raise", 1), (b"later", 0), (b"later", 1), (b"later", 2), (b"last", 0)]


async def test_a_message_that_failed_often_enough_rests_in_the_dead_letters(peer: Peer, name: str) -> None:
    tries: list[tuple[bytes, int]] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        tries.append((messages[0].body, messages[0].reconsume_times))
        return ConsumeResult.LATER if messages[0].body == b"bad" else ConsumeResult.SUCCESS

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        consumer = ordered(peer, name, listener, suspend_s=0.05, max_reconsume_times=2)
        async with consumer:
            await until(lambda: len(consumer.assigned_queues) == 2)  # with the retry topic's
            sent = await producer.send(Message(name, b"bad", tags="T"))
            await producer.send(Message(name, b"good"))
            await until(lambda: (b"good", 0) in tries)
            found = await dead_letters(admin, peer, name)
    assert tries == [(b"bad", 0), (b"bad", 1), (b"bad", 2), (b"good", 0)]
    assert [(message.body, message.msg_id, message.tags) for message in found] == [(b"bad", sent.msg_id, "T")]


async def test_a_queue_changes_hands_only_when_the_call_in_progress_has_ended(peer: Peer, name: str) -> None:
    gate = asyncio.Event()
    calls_of_first: list[int] = []
    spans: list[tuple[str, int, float, float]] = []

    def member(who: str) -> object:
        async def listener(messages: list[MessageExt]) -> None:
            began = time.monotonic()
            if who == "first":
                calls_of_first.append(messages[0].queue_id)
                await gate.wait()
            spans.append((who, messages[0].queue_id, began, time.monotonic()))

        return listener

    async with topic_at(peer, name, queues=2), Producer(peer.namesrv_address) as producer:
        for queue_id in (0, 1):
            for number in range(3):
                await producer.send(Message(name, b"%d" % number), queue=MessageQueue(name, peer.broker_name, queue_id))
        async with ordered(peer, name, member("first"), instance_name="a") as first:
            await until(lambda: sorted(calls_of_first) == [0, 1])
            async with ordered(peer, name, member("second"), instance_name="b") as second:
                await until(lambda: len([q for q in first.assigned_queues if q.topic == name]) == 1)
                await asyncio.sleep(2.5)  # two tries of the second to get the lock
                assert not [queue for queue in second.assigned_queues if queue.topic == name]
                assert not spans
                gate.set()
                await until(lambda: len(spans) == 6)
    moved = {queue_id for who, queue_id, *_ in spans if who == "second"}
    assert len(moved) == 1  # the other stayed
    of_moved = [(who, began, ended) for who, queue_id, began, ended in spans if queue_id in moved]
    assert [who for who, *_ in of_moved] == ["first", "second", "second"]  # nothing twice, nothing left out
    assert of_moved[0][2] <= of_moved[1][1]


async def test_the_next_consumer_gets_the_queues_of_one_that_left_at_once(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=2) as admin, Producer(peer.namesrv_address) as producer:
        seen = Seen()
        async with ordered(peer, name, seen) as consumer:
            await producer.send(Message(name, b"one"))
            await until(lambda: seen.bodies == [b"one"])
            admin_view = await admin.clients.running_info_at(peer.broker_address, name, consumer.client_id)
            assert admin_view["properties"]["PROP_CONSUMEORDERLY"] == "true"
            assert all(queue["locked"] for queue in admin_view["mqTable"].values())
        again = Seen()
        started = time.monotonic()
        async with ordered(peer, name, again):
            await producer.send(Message(name, b"two"))
            await until(lambda: b"two" in again.bodies)  # Apache may take a late pull's older offset for the newer one
        assert time.monotonic() - started < time_limit(20)  # not the 60 s after which a broker forgets a lock


async def test_a_reset_waits_for_the_call_in_progress(peer: Peer, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="gantrymq.client.consume.request_handlers")
    gate = asyncio.Event()
    at_once = most = 0
    got: list[bytes] = []

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        at_once -= 1
        got.extend(message.body for message in messages)

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"zero"))
        async with ordered(peer, name, listener):
            await until(lambda: at_once == 1)
            await admin.offsets.reset_at(peer.broker_address, name, name, 0)
            await until(lambda: any(getattr(record, "event", "") == "offsets_reset" for record in caplog.records))
            await asyncio.sleep(0.5)  # a second call would begin meanwhile
            gate.set()
            await until(lambda: got == [b"zero", b"zero"])
    assert most == 1


class Told:
    """What an ordered consumer is told of a queue of its topic: when it is taken, and when its lock was lost."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.events: list[str] = []

    def on_assigned(self, queues: list[MessageQueue]) -> None:
        self.events += ["taken" for queue in queues if queue.topic == self._name]

    def on_revoked(self, queues: list[MessageQueue]) -> None:
        self.events += ["lost" for queue in queues if queue.topic == self._name]


async def until_written(admin: AdminClient, peer: Peer, name: str, offset: int) -> None:
    """Until the broker knows how far the group is in queue 0: who takes it anew would begin before it."""

    async def is_known() -> bool:
        with contextlib.suppress(GantryError):
            return await admin.offsets.get_at(peer.broker_address, name, name, 0) == offset
        return False

    await until_it(is_known)


async def test_a_queue_whose_lock_another_member_got_stops_until_it_is_taken_anew(
    peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_consumer, "RENEW_S", 0.1)
    monkeypatch.setattr(push_consumer, "PERSIST_S", 0.1)
    seen, told, queue = Seen(), Told(name), MessageQueue(name, peer.broker_name, 0)
    remoting = RemotingClient()

    async def ask(code: RequestCode, client_id: str) -> RemotingCommand:
        request = RemotingCommand.request(code, {}, LockBatchRequest(name, client_id, [queue]).to_json())
        return await remoting.invoke(peer.broker_address, request, timeout_s=WITHIN_S)

    async with (
        topic_at(peer, name, queues=1) as admin,
        Producer(peer.namesrv_address) as producer,
        ordered(peer, name, seen, on_assigned=told.on_assigned, on_revoked=told.on_revoked) as consumer,
    ):
        await producer.send(Message(name, b"one"))
        await until(lambda: seen.bodies == [b"one"])
        await until_written(admin, peer, name, 1)

        async def is_anothers() -> bool:
            await ask(RequestCode.UNLOCK_BATCH_MQ, consumer.client_id)
            answer = await ask(RequestCode.LOCK_BATCH_MQ, "another")
            return queue in LockBatchResponse.from_json(answer.body).lock_ok_mq_set

        await until_it(is_anothers)
        await until(lambda: told.events == ["taken", "lost"])
        await producer.send(Message(name, b"two"))
        assert (seen.bodies, queue in consumer.assigned_queues) == ([b"one"], False)
        await ask(RequestCode.UNLOCK_BATCH_MQ, "another")
        await until(lambda: seen.bodies == [b"one", b"two"])
        assert told.events == ["taken", "lost", "taken"]
    await remoting.close()


@pytest.mark.parametrize(
    ("broker_waits_s", "events"), [(3600.0, ["taken"]), (0.0, ["taken", "lost", "taken"])], ids=["moment", "long"]
)
async def test_a_queue_goes_on_after_its_connection_was_gone_and_is_taken_anew_if_that_was_for_long(
    peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch, broker_waits_s: float, events: list[str]
) -> None:
    monkeypatch.setattr(queue_locks, "BROKER_WAITS_S", broker_waits_s)
    monkeypatch.setattr(push_consumer, "RENEW_S", 3600.0)  # it is the break that has the lock renewed
    monkeypatch.setattr(push_consumer, "PERSIST_S", 0.1)
    seen, told = Seen(), Told(name)
    async with (
        topic_at(peer, name, queues=1) as admin,
        Producer(peer.namesrv_address) as producer,
        Relay(peer.broker_address) as broker,
        Relay(peer.namesrv_address, rewrite=(peer.broker_address.encode(), broker.address.encode())) as name_server,
    ):
        listener = {"on_assigned": told.on_assigned, "on_revoked": told.on_revoked}
        async with ordered(peer, name, seen, name_servers=name_server.address, **listener):
            await producer.send(Message(name, b"one"))
            await until(lambda: seen.bodies == [b"one"])
            await until_written(admin, peer, name, 1)
            broker.reset()
            await until(lambda: told.events == events)
            await producer.send(Message(name, b"two"))
            await until(lambda: seen.bodies == [b"one", b"two"])
            assert told.events == events


def test_a_sharding_key_chooses_alone() -> None:
    async def send() -> None:
        async with Producer("127.0.0.1:1") as producer:
            await producer.send(Message("T", b"x"), sharding_key="k", queue=MessageQueue("T", "b", 0))

    with pytest.raises(ConfigError):
        asyncio.run(send())
