"""Our SDK and the official Java client together: requests and replies both ways, traces, one ordered group."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import get_args

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import AdminClient, ConsumeFrom, Message, MessageExt, MessageQueue, Producer, PushConsumer
from gantrymq.client.admin.results import MessageTrace
from gantrymq.client.produce.trace_records import TraceKind, TraceRecord, encode_record
from gantrymq.message.compression import CompressType
from tests.gantrymq.client.seen import Seen, until
from tests.interop.clients import ClientProgram, JavaClient
from tests.waiting import WITHIN_S

QUESTIONS = ["one", "grüße", "long " * 2000]


@pytest.fixture
def topic(cluster: Peer) -> str:
    name = f"Interop-sdk-{time.monotonic_ns()}"
    rpc.create_topic(cluster.broker_address, name, 4)
    return name


async def test_java_asks_and_our_consumer_answers(cluster: Peer, java: JavaClient, topic: str) -> None:
    async def listener(messages: list[MessageExt]) -> None:
        for message in messages:
            await consumer.reply(message, b"we answer " + message.body)

    consumer = PushConsumer(
        cluster.namesrv_address, group=topic, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe(topic)
    async with consumer:
        packed = {"rocketmq.message.compressType": "LZ4"}
        ask = java.run("RequestReply", cluster.namesrv_address, topic, topic, "ask", *QUESTIONS, java_properties=packed)
        with ask as program:
            await asyncio.to_thread(program.wait_done)
        answers = program.lines("ANSWER")
    assert [(line[0], line[1], line[3]) for line in answers] == [
        (question, f"we answer {question}", "true") for question in QUESTIONS
    ]


async def test_we_ask_and_a_java_consumer_answers(cluster: Peer, java: JavaClient, topic: str) -> None:
    """Java's long answers are packed by Zstandard, our long questions by each codec."""
    packed = {"rocketmq.message.compressType": "ZSTD"}
    answer = java.run("RequestReply", cluster.namesrv_address, topic, topic, "answer", java_properties=packed)
    with answer as program:
        await asyncio.to_thread(program.wait_started)
        for name in get_args(CompressType):
            async with Producer(cluster.namesrv_address, group=f"{topic}-{name}", compress_type=name) as producer:
                replies = [await producer.request(Message(topic, question.encode()), 30.0) for question in QUESTIONS]
            assert [reply.body.decode() for reply in replies] == [f"java answers {question}" for question in QUESTIONS]
        assert not program.lines("FAILED")


async def test_traces_of_either_client_are_read_by_the_other(cluster: Peer, java: JavaClient, topic: str) -> None:
    ours = [
        TraceRecord(kind=TraceKind.PUB, msg_id="M1", time_ms=7, region="R", group="G", topic="T", keys="k", cost_ms=3,
                    offset_msg_id="O", store_host="h:1"),
        TraceRecord(kind=TraceKind.SUB_BEFORE, msg_id="M1", time_ms=8, region="R", group="G", request_id="Q"),
        TraceRecord(kind=TraceKind.SUB_AFTER, msg_id="M1", time_ms=9, group="G", request_id="Q", cost_ms=5,
                    is_success=False, outcome=4),
    ]  # fmt: skip
    text = "".join(map(encode_record, ours)).replace("\x01", "^").replace("\x02", "~")
    with java.run("Traced", cluster.namesrv_address, topic, topic, text) as program:
        await asyncio.to_thread(program.wait_done)
        (sent,) = program.lines("SENT")
    assert program.lines("DECODED") == [
        ["Pub", "G", "M1", "k", "true", "3", "0"],
        ["SubBefore", "G", "M1", "null", "true", "0", "0"],
        ["SubAfter", "G", "M1", "null", "false", "5", "4"],
    ]
    trace = await _traced(cluster, sent[0], 3)
    assert [record.kind for record in trace.records] == [TraceKind.PUB, TraceKind.SUB_BEFORE, TraceKind.SUB_AFTER]
    assert (trace.records[0].topic, trace.records[0].keys, trace.records[0].group) == (
        topic, "key-t", f"{topic}-producer",
    )  # fmt: skip
    assert trace.records[2].is_success


async def _traced(cluster: Peer, message_id: str, count: int) -> MessageTrace:
    async with AdminClient(cluster.namesrv_address) as admin, asyncio.timeout(WITHIN_S):
        while len((found := await admin.messages.trace(message_id)).records) < count:
            await asyncio.sleep(0.2)
        return found


async def test_java_and_our_consumer_share_an_ordered_group(cluster: Peer, java: JavaClient, topic: str) -> None:
    count = 2000
    seen = Seen()
    ours = PushConsumer(
        cluster.namesrv_address, group=topic, listener=seen, ordered=True, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    ours.subscribe(topic)

    def mine() -> set[int]:
        return {queue.queue_id for queue in ours.assigned_queues if queue.topic == topic}

    with ExitStack() as stack:
        theirs = stack.enter_context(java.consume(cluster.namesrv_address, topic, topic, orderly=True))
        await asyncio.to_thread(theirs.wait_started)
        async with ours:
            # Queues are taken one by one: halves alone may be a passing state.
            await until(
                lambda: len(mine()) == len(theirs.queues()) == 2 and mine() | theirs.queues() == {0, 1, 2, 3},
                within_s=WITHIN_S,
            )
            producing = stack.enter_context(java.produce(cluster.namesrv_address, topic, count))
            await asyncio.to_thread(producing.wait_done)
            await until(lambda: len(seen.messages) + theirs.count("GOT") >= count, within_s=WITHIN_S)
            got = theirs.got()
    places = [(message.queue_id, message.queue_offset) for message in got]
    places += [(message.queue_id, message.queue_offset) for message in seen.messages]
    assert len(places) == len(set(places)) == count
    for messages in (got, seen.messages):
        by_queue: dict[int, list[int]] = {}
        for message in messages:
            by_queue.setdefault(message.queue_id, []).append(message.queue_offset)
        assert all(offsets == sorted(offsets) for offsets in by_queue.values())


async def test_java_and_our_clients_meet_in_a_namespace(cluster: Peer, java: JavaClient, topic: str) -> None:
    """Each sends to the other; one group of both; what Java puts off comes again, to either."""
    space = {"interop.namespace": "space"}
    whole = f"space%{topic}"
    rpc.create_topic(cluster.broker_address, whole, 4)
    seen = Seen()
    ours = PushConsumer(
        cluster.namesrv_address, group=topic, listener=seen, namespace="space", consume_from=ConsumeFrom.FIRST_OFFSET
    )
    ours.subscribe(topic)

    def got(program: ClientProgram, body: str) -> bool:
        return any(line[5] == body for line in program.lines("GOT")) or body.encode() in seen.bodies

    def mine() -> set[int]:
        return {queue.queue_id for queue in ours.assigned_queues if queue.topic == topic}

    with ExitStack() as stack:
        consume = java.run("Consume", cluster.namesrv_address, topic, topic, "*", "concurrently", java_properties=space)
        theirs = stack.enter_context(consume)
        await asyncio.to_thread(theirs.wait_started)
        async with ours, Producer(cluster.namesrv_address, namespace="space") as producer:
            await until(
                lambda: len(mine()) == len(theirs.queues()) == 2 and mine() | theirs.queues() == {0, 1, 2, 3},
                within_s=WITHIN_S,
            )
            produce = java.run("Produce", cluster.namesrv_address, topic, f"{topic}-p", 8, 0, java_properties=space)
            producing = stack.enter_context(produce)
            for queue in await producer.queues(topic):
                await producer.send(Message(topic, b"ours %d" % queue.queue_id), queue=queue)
            put_off = MessageQueue(topic, cluster.broker_name, min(theirs.queues()))
            await producer.send(Message(topic, b"put off", properties={"later": "yes"}), queue=put_off)
            await asyncio.to_thread(producing.wait_done)
            bodies = [f"ours {queue_id}" for queue_id in range(4)] + ["body-7-\u00e4\u6d88\u606f", "put off"]
            await until(lambda: all(got(theirs, body) for body in bodies), within_s=WITHIN_S)
            await until(lambda: theirs.count("GOT") + len(seen.messages) >= 4 + 8 + 2, within_s=WITHIN_S)
            assert {message.topic for message in seen.messages} == {line[7] for line in theirs.lines("GOT")} == {topic}
        async with AdminClient(cluster.namesrv_address) as admin, asyncio.timeout(WITHIN_S):
            # Java's is left, in the same group as ours was: the broker may learn of that by the closed connection
            while len((await admin.clients.consumers_at(cluster.broker_address, whole)).connection_set) != 1:
                await asyncio.sleep(0.1)
