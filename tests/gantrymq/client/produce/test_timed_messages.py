"""Messages for a time: only a broker that keeps times gets them, by each way to send."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import Message, Producer, SyncProducer, TransactionProducer
from gantrymq.client.connection.send_codec import pack
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce.timed_messages import at_level, keeps_times
from gantrymq.errors import MessageRejected, SendIncomplete
from gantrymq.message import properties as names
from gantrymq.message.topics import SCHEDULE_TOPIC
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.peers import topic_at
from tests.gantrymq.client.seen import numbers
from tests.peers.dispatch import until_dispatched

SENDS: dict[str, Callable[[Producer, Message], Awaitable[object]]] = {
    "send": lambda producer, message: producer.send(message),
    "selector": lambda producer, message: producer.send(message, selector=lambda queues, message: queues[0]),
    "send_oneway": lambda producer, message: producer.send_oneway(message),
    "send_many": lambda producer, message: producer.send_many([message]),
    "send_many with a key": lambda producer, message: producer.send_many([message], sharding_key="a"),
    "request": lambda producer, message: producer.request(message, 20),
}


def later(topic: str) -> list[Message]:
    return [
        Message(topic, b"x", delay_seconds=1.2),
        Message(topic, b"x", deliver_at=time.time() + 60),
        Message(topic, b"x", deliver_at=datetime.now(UTC) + timedelta(minutes=1)),
        Message(topic, b"x", properties={names.TIMER_DELAY_SEC: "60"}),
    ]


async def stored(peer: Peer, topic: str) -> int:
    await until_dispatched(peer)
    return sum(await asyncio.to_thread(rpc.max_offsets, peer.broker_address, topic, 4))


@pytest.mark.parametrize("way", SENDS)
async def test_a_broker_with_delay_levels_alone_gets_none_for_a_time(peer_of: Callable[[str], Peer], way: str) -> None:
    peer, topic = peer_of("apache"), f"timed_{next(numbers)}"
    async with topic_at(peer, topic), Producer(peer.namesrv_address) as producer:
        for message in later(topic):
            with pytest.raises((MessageRejected, SendIncomplete)) as caught:
                await SENDS[way](producer, message)
            error = caught.value.failures[0] if isinstance(caught.value, SendIncomplete) else caught.value
            assert "round_delays_up=True" in str(error) and peer.broker_address in str(error)
        assert await stored(peer, topic) == 0
        await producer.send(Message(topic, b"x"))
        assert await stored(peer, topic) == 1


async def test_nor_does_it_in_batches_transactions_and_threads(peer_of: Callable[[str], Peer]) -> None:
    peer, topic = peer_of("apache"), f"timed_{next(numbers)}"
    message = Message(topic, b"x", delay_seconds=1.2)

    def from_a_thread() -> None:
        with SyncProducer(peer.namesrv_address) as producer:
            producer.send(Message(topic, b"x"))
            producer.send(Message(topic, b"x"))  # by a connection of the thread's own
            for send in (producer.send, producer.send_oneway, lambda one: producer.send_soon(one).result(20)):
                with pytest.raises(MessageRejected, match="delay levels only"):
                    send(message)

    async with (
        topic_at(peer, topic),
        Producer(peer.namesrv_address) as producer,
        TransactionProducer(peer.namesrv_address, listener=Checker(), group="timed") as transactions,
    ):
        await asyncio.to_thread(from_a_thread)
        with pytest.raises(MessageRejected, match="delay levels only"):
            await (await producer.send_soon(message))
        with pytest.raises(MessageRejected, match="delayed"):
            await producer.send_batch([message])
        with pytest.raises(MessageRejected, match="delay levels only"):
            async with transactions.transaction(message):
                pytest.fail("the block ran")
        assert await stored(peer, topic) == 2


class Checker:
    def check(self, message: object) -> None:
        raise AssertionError(message)


async def test_a_delay_is_rounded_up_to_a_level_when_the_caller_says_so(peer_of: Callable[[str], Peer]) -> None:
    peer, topic = peer_of("apache"), f"timed_{next(numbers)}"

    async def at_levels() -> list[int]:
        await until_dispatched(peer)
        return await asyncio.to_thread(rpc.max_offsets, peer.broker_address, SCHEDULE_TOPIC, 18)

    async with topic_at(peer, topic), Producer(peer.namesrv_address, round_delays_up=True) as producer:
        before = await at_levels()
        await producer.send(Message(topic, b"x", delay_seconds=1.2))
        await producer.send(Message(topic, b"x", deliver_at=time.time() + 3000))
        await producer.send_many([Message(topic, b"x", delay_seconds=9)] * 3)
        grown = [now - then for then, now in zip(before, await at_levels(), strict=True)]
        assert grown == [0, 1, 3, *[0] * 13, 1, 0]
        with pytest.raises(MessageRejected, match="7200 s"):
            await producer.send(Message(topic, b"x", delay_seconds=7201))


@pytest.mark.parametrize("way", [way for way in SENDS if way != "request"])
async def test_gantrymq_keeps_the_time(peer_of: Callable[[str], Peer], way: str) -> None:
    peer, topic = peer_of("gantry"), f"timed_{next(numbers)}"
    async with topic_at(peer, topic), Producer(peer.namesrv_address, round_delays_up=True) as producer:
        for message in later(topic)[1:]:
            await SENDS[way](producer, message)
        assert await stored(peer, topic) == 0


async def test_other_messages_ask_the_broker_nothing(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = f"timed_{next(numbers)}"

    async def asked(session: ClientSession, address: str, timeout_s: float) -> None:
        raise AssertionError(address)

    monkeypatch.setattr(ClientSession, "greeting", asked)
    async with topic_at(peer, topic), Producer(peer.namesrv_address) as producer:
        await producer.send(Message(topic, b"x", tags="a"))
        await producer.send(Message(topic, b"x", delay_level=1, delay_seconds=5))
        await producer.send_many([Message(topic, b"x")])


@pytest.mark.parametrize(
    ("version", "fields", "expected"),
    [(401, {}, False), (407, {}, False), (401, {"timerMaxDelaySec": "604800"}, True), (413, {}, True)],
)
def test_a_heartbeats_answer_says_whether_times_are_kept(version: int, fields: dict[str, str], expected: bool) -> None:
    answer = RemotingCommand.request(34).reply(ext_fields=fields)
    answer.version = version
    assert keeps_times(answer) is expected
    assert not keeps_times(None)


def test_a_time_that_has_passed_is_no_delay() -> None:
    message = Message("t", b"x", keys="k", deliver_at=1000.0)
    outgoing = pack(message)
    levelled = at_level(outgoing, "broker", 1001.0)
    assert names.decode_properties(levelled.properties) == {"KEYS": "k", "UNIQ_KEY": outgoing.msg_id}
    assert not levelled.is_timed and outgoing.is_timed
