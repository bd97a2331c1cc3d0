"""Request and reply, against GantryMQ's broker and Apache's; what a pushed reply looks like."""

from __future__ import annotations

import asyncio
import zlib

import pytest

from appliance.bench.peer import Peer
from gantrymq import ConsumeFrom, Message, MessageExt, Producer, SyncProducer, SyncPushConsumer, reply_to
from gantrymq.client.produce import request_reply
from gantrymq.client.produce.request_reply import WaitingRequests, read_reply
from gantrymq.errors import MessageRejected, RequestTimeout
from gantrymq.message import properties as names
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.messages import stored
from tests.gantrymq.client.peers import subscribed, topic_at
from tests.gantrymq.client.seen import numbers
from tests.waiting import WITHIN_S


@pytest.fixture
def name() -> str:
    return f"ask_{next(numbers)}"


async def test_requests_get_the_answers_meant_for_them(peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reply, "WAITING_MAX", 9)
    async with topic_at(peer, name), Producer(peer.namesrv_address, group=f"P{name}") as producer:

        async def listener(messages: list[MessageExt]) -> None:
            for message in messages:
                await consumer.reply(message, b"answer to " + message.body)

        async with subscribed(peer, name, listener, consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
            bodies = [b"%d" % n for n in range(8)] + [b"long" * 5000]
            replies = await asyncio.gather(*(producer.request(Message(name, body), WITHIN_S) for body in bodies))
            await producer.request(
                Message(name, b"one more"), WITHIN_S
            )  # rejected if any of the nine were still waiting
        assert [reply.body for reply in replies] == [b"answer to " + body for body in bodies]
        assert int(replies[0].properties[names.ARRIVE_TIME]) >= replies[0].born_timestamp > 0


async def test_a_request_without_an_answer_ends_in_time_and_waits_no_longer(
    peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_reply, "WAITING_MAX", 1)
    async with topic_at(peer, name), Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"connects"))  # which takes a time of its own
        for _ in range(2):  # the second would be rejected if the first still waited
            with pytest.raises(RequestTimeout):
                await producer.request(Message(name, b"anyone?"), 0.5)


def test_threads_ask_and_answer_as_well(peer: Peer, name: str) -> None:
    with SyncProducer(peer.namesrv_address) as producer:

        def listener(messages: list[MessageExt]) -> None:
            if names.CORRELATION_ID in messages[0].properties:
                producer.reply(messages[0], messages[0].body.upper())

        producer.send(Message(name, b"makes the topic"))
        consumer = SyncPushConsumer(peer.namesrv_address, group=name, listener=listener)
        consumer.subscribe(name)
        with consumer:
            assert producer.request(Message(name, b"shout"), WITHIN_S).body == b"SHOUT"


def test_a_message_that_asks_for_no_reply_gets_none() -> None:
    with pytest.raises(MessageRejected):
        reply_to(stored(1, CLUSTER="C", CORRELATION_ID="x"), b"answer")
    request = stored(1, CLUSTER="C", CORRELATION_ID="x", REPLY_TO_CLIENT="c", TTL="3000")
    answer = reply_to(request, b"answer")
    assert (answer.topic, answer.body) == ("C_REPLY_TOPIC", b"answer")
    assert answer.properties == {"MSG_TYPE": "reply", "CORRELATION_ID": "x", "REPLY_TO_CLIENT": "c", "TTL": "3000"}


def pushed(body: bytes = b"answer", **fields: str) -> RemotingCommand:
    given = {
        "topic": "C_REPLY_TOPIC", "queueId": "1", "sysFlag": "0", "bornTimestamp": "17", "flag": "0",
        "bornHost": "/127.0.0.1:4711", "storeHost": "[::1]:10911", "storeTimestamp": "18",
        "properties": "CORRELATION_ID\x01id-1\x02UNIQ_KEY\x01U\x02",
    }  # fmt: skip
    return RemotingCommand.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, given | fields, body)


async def test_a_pushed_reply_is_read_with_either_form_of_host_and_unpacked() -> None:
    message = await read_reply(pushed(zlib.compress(b"answer"), sysFlag=str(0x301)))
    assert (message.body, message.born_host, message.store_host) == (b"answer", ("127.0.0.1", 4711), ("::1", 10911))
    assert (message.msg_id, message.queue_id, message.born_timestamp, message.sys_flag) == ("U", 1, 17, 0)


async def test_replies_without_a_request_and_broken_ones_are_answered_too() -> None:
    waiting = WaitingRequests()
    assert (await waiting.reply_pushed("b", pushed())).code == 0
    assert (await waiting.reply_pushed("b", pushed(queueId="x"))).code == 1


async def test_no_more_requests_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reply, "WAITING_MAX", 2)
    waiting = WaitingRequests()
    first, _ = waiting.begin(Message("T", b"x"), "c", 1.0)
    waiting.begin(Message("T", b"x"), "c", 1.0)
    with pytest.raises(MessageRejected):
        waiting.begin(Message("T", b"x"), "c", 1.0)
    waiting.end(first)
    waiting.begin(Message("T", b"x"), "c", 1.0)
