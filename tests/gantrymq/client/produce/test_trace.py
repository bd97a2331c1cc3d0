"""Message traces: the records as text, and what clients with tracing on leave in the trace topic."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import pytest

from appliance.bench.peer import Peer
from appliance.broker.access.cost_limits import check_keys
from appliance.settings.roles import BrokerConfig
from gantrymq import (
    AdminClient,
    ConsumeFrom,
    ConsumeResult,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PullConsumer,
    SendResult,
    SendStatus,
    SyncAdminClient,
    SyncProducer,
    SyncPullConsumer,
)
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce import trace
from gantrymq.client.produce.trace import TraceDispatcher
from gantrymq.client.produce.trace_records import TraceKind, TraceRecord, decode_records, encode_record, in_order
from gantrymq.errors import GantryError
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.bodies import HeartbeatData
from tests.gantrymq.client.peers import subscribed, topic_at, traced
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import numbers, until
from tests.harness import serving
from tests.peers.dispatch import until_dispatched
from tests.waiting import WITHIN_S, wait_until

# captured from a Java 4.9.4 producer
FROM_JAVA = (
    "Pub\x011795228600639\x01DefaultRegion\x01PG1\x01TopicA\x01FD0004\x01TagB\x01null\x01127.0.0.1:31911\x015\x0110"
    "\x010\x017F00DB\x01true\x02"
)


def test_a_record_of_the_java_client_is_read_and_written_to_the_byte() -> None:
    (record,) = decode_records(FROM_JAVA)
    assert (record.kind, record.topic, record.msg_id, record.tags, record.keys) == (
        TraceKind.PUB, "TopicA", "FD0004", "TagB", None,
    )  # fmt: skip
    assert (record.body_bytes, record.cost_ms, record.offset_msg_id, record.is_success) == (5, 10, "7F00DB", True)
    assert encode_record(record) == FROM_JAVA


@pytest.mark.parametrize("kind", TraceKind)
def test_every_kind_of_record_comes_back_as_it_was(kind: TraceKind) -> None:
    record = TraceRecord(kind=kind, msg_id="M", time_ms=7, group="G", keys="k1 k2", cost_ms=3)
    if kind is not TraceKind.SUB_AFTER:
        record.region = "R"
    if kind in (TraceKind.PUB, TraceKind.END_TRANSACTION):
        record.topic, record.store_host = "T", "h:1"
    if kind in (TraceKind.SUB_BEFORE, TraceKind.END_TRANSACTION):
        record.cost_ms = 0
    if kind is TraceKind.END_TRANSACTION:
        record.transaction_id, record.transaction_state, record.is_from_check = "X", "COMMIT_MESSAGE", True
    assert decode_records(encode_record(record)) == [record]


def test_what_is_no_record_is_left_out_and_separators_cannot_be_smuggled_in() -> None:
    assert decode_records("\x02Pub\x01x\x02Nonsense\x011\x02SubAfter\x01r\x02" + FROM_JAVA)[0].msg_id == "FD0004"
    record = TraceRecord(kind=TraceKind.PUB, msg_id="M", topic="T", keys="a\x02Pub\x01b")
    assert [each.keys for each in decode_records(encode_record(record))] == ["a Pub b"]


def test_what_was_delivered_within_its_millisecond_was_sent_before() -> None:
    told = [(7, TraceKind.SUB_BEFORE), (7, TraceKind.SUB_AFTER), (7, TraceKind.PUB), (6, TraceKind.SUB_BEFORE)]
    records = in_order(TraceRecord(kind=kind, msg_id="M", time_ms=time_ms) for time_ms, kind in told)
    assert [(record.time_ms, record.kind) for record in records] == [told[3], told[2], told[0], told[1]]


async def test_a_message_is_followed_from_its_producer_to_its_consumer(peer: Peer) -> None:
    name = f"trace_{next(numbers)}"
    tries = 0

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        nonlocal tries
        tries += 1
        is_first_try = messages[0].body == b"followed" and messages[0].reconsume_times == 0
        return ConsumeResult.LATER if is_first_try else ConsumeResult.SUCCESS

    async with topic_at(peer, name) as admin:
        consumer = subscribed(peer, name, listener, trace=True)
        async with Producer(peer.namesrv_address, group="traced", trace=True) as producer, consumer:
            await until(lambda: len(consumer.assigned_queues) == 5)
            sent = await producer.send(Message(name, b"followed", tags="T", keys="order-7"))
            batch = await producer.send_batch([Message(name, b"b0"), Message(name, b"b1")])
            many = await producer.send_many([Message(name, b"m")])
            await until(lambda: tries >= 5)
        records = (await traced(admin, sent.msg_id, 5)).records
        assert [record.kind.value for record in records] == ["Pub", *["SubBefore", "SubAfter"] * 2]
        pub, _, failed, _, done = records
        assert (pub.group, pub.topic, pub.tags, pub.keys, pub.body_bytes) == ("traced", name, "T", "order-7", 8)
        assert (pub.offset_msg_id, pub.store_host) == (sent.offset_msg_id, peer.broker_address)
        assert (failed.is_success, failed.outcome, done.is_success, done.group) == (False, 4, True, name)
        assert records[1].request_id == failed.request_id
        assert records[3].retry_times == 1
        for msg_id in (*batch.msg_id.split(","), many[0].msg_id):
            assert (await traced(admin, msg_id, 3)).records[0].kind is TraceKind.PUB


async def test_a_trace_that_cannot_be_sent_neither_blocks_nor_fails_anything() -> None:
    session = ClientSession(ClientOptions(name_servers=closed_port()), heartbeat=HeartbeatData)
    session.open()
    dispatcher = TraceDispatcher(session, "g")
    for _ in range(trace.WAITING_MAX + 5):
        dispatcher.append(TraceRecord(kind=TraceKind.PUB, msg_id="M"))
    assert dispatcher.dropped == 5
    async with asyncio.timeout(WITHIN_S):
        await dispatcher.flush()
    await session.close()


def unsent(group: str = "g", *, sample: float = 1.0) -> TraceDispatcher:
    """Of a client that was not opened."""
    session = ClientSession(ClientOptions(name_servers="h:1"), heartbeat=HeartbeatData)
    return TraceDispatcher(session, group, sample=sample)


def test_a_batch_of_records_fits_into_one_message() -> None:
    dispatcher = unsent()
    for number in range(trace.WAITING_MAX):
        dispatcher.append(TraceRecord(kind=TraceKind.PUB, msg_id=f"{number:032X}", keys="k" * 400))
    sizes = []
    found: list[str] = []
    while dispatcher.waiting:
        batch = dispatcher.take_batch()
        sizes.append((len(batch.body), len(batch.encoded_properties())))
        found += [record.msg_id for record in decode_records(batch.body.decode())]
    assert max(body for body, _ in sizes) < 128_000
    assert max(properties for _, properties in sizes) < 32_767
    assert found == [f"{number:032X}" for number in range(trace.WAITING_MAX)]


def test_a_batch_has_no_more_keys_than_any_topic_takes() -> None:
    dispatcher = unsent()
    most = " ".join(f"k{number}" for number in range(64))
    for number in range(200):
        keys = most if number == 100 else f"order{number} user{number}"
        dispatcher.append(TraceRecord(kind=TraceKind.PUB, msg_id=f"{number:032X}", keys=keys))
    batches = []
    while dispatcher.waiting:
        batches.append(dispatcher.take_batch())
    for batch in batches:
        check_keys(BrokerConfig(), f"{batch.topic}_of_ones_own", batch.encoded_properties())
    keys_found = {key for batch in batches for key in batch.keys}
    assert keys_found >= {f"{number:032X}" for number in range(200)}, "each message is found by its id"
    assert keys_found >= {f"order{number}" for number in range(200) if number != 100}
    assert max(len(batch.keys) for batch in batches) > 60, "few messages all the same"


def test_a_sample_is_the_same_part_of_the_messages_for_all_clients() -> None:
    ids = [f"{number:032X}" for number in range(4000)]
    one, other = (unsent(group, sample=0.25) for group in ("g", "h"))
    wanted = [msg_id for msg_id in ids if one.wants(msg_id)]
    assert 800 < len(wanted) < 1200
    assert wanted == [msg_id for msg_id in ids if other.wants(msg_id)]
    assert not any(map(unsent(sample=0.0).wants, ids))
    assert all(map(unsent().wants, ids))


def test_only_the_sample_leaves_records_of_a_send() -> None:
    dispatcher = unsent(sample=0.5)
    ids = [f"{number:032X}" for number in range(64)]
    messages = [Message("T", b"x") for _ in ids]
    result = SendResult(SendStatus.SEND_OK, ",".join(ids), ",".join(ids), MessageQueue("T", "b", 0), 0)
    trace.SendTracer(dispatcher, "g").sent(messages, result, "h:1", 0.0)
    assert 0 < dispatcher.waiting < 64
    assert dispatcher.waiting == sum(map(dispatcher.wants, ids))


async def test_where_no_trace_topic_is_the_log_says_so_once_and_sends_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "BATCH_WAIT_S", 0.01)
    async with serving(tmp_path, broker={"auto_create_topic_enable": False}) as cluster:
        async with AdminClient(cluster.namesrv_address) as admin:
            await admin.topics.create_at(cluster.broker_address, TopicConfig("orders", 1, 1))
        async with Producer(cluster.namesrv_address, group="traced", trace=True) as producer:
            assert producer._traces is not None
            for _ in range(3):
                await producer.send(Message("orders", b"x"))
                await until(lambda: not producer._traces.waiting)
        assert cluster.broker.store.max_offset("orders", 0) == 3
    warnings = [record for record in caplog.records if record.name == trace.__name__]
    assert [getattr(record, "event", "") for record in warnings] == ["trace_topic_missing"]
    assert "traceTopicEnable=true" in warnings[0].getMessage()


async def test_a_pull_consumer_tells_of_each_poll_whether_it_was_finished(peer: Peer) -> None:
    name = f"trace_{next(numbers)}"
    pull = functools.partial(
        PullConsumer, peer.namesrv_address, group=name, trace=True, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    async with topic_at(peer, name, queues=1) as admin:
        async with Producer(peer.namesrv_address) as producer:
            sent = await producer.send_batch([Message(name, b"1", keys="k"), Message(name, b"2")])
        await until_dispatched(peer)  # else one poll may end before the second message, which finishes the first
        first, second = sent.msg_id.split(",")
        async with pull() as consumer:
            consumer.subscribe(name)
            polled: list[MessageExt] = []
            while len(polled) < 2:
                polled += await consumer.poll(WITHIN_S)
            await consumer.close()  # not finished: they come again
        with pytest.raises(LookupError, match="second"):
            async with pull() as consumer:
                consumer.subscribe(name)
                async for message in consumer:
                    if message.msg_id == second:
                        raise LookupError("second")
        once = [TraceKind.SUB_BEFORE, TraceKind.SUB_AFTER]
        records = (await traced(admin, first, 4)).records
        assert [record.kind for record in records] == once * 2
        assert [record.is_success for record in records[1::2]] == [False, True]
        assert (records[0].group, records[0].keys, records[0].request_id) == (name, "k", records[1].request_id)
        records = (await traced(admin, second, 4)).records
        assert [record.is_success for record in records if record.kind is TraceKind.SUB_AFTER] == [False, False]


def test_a_blocking_pull_consumer_traces_from_its_thread(peer: Peer) -> None:
    name = f"trace_{next(numbers)}"
    with SyncAdminClient(peer.namesrv_address) as admin:
        admin.topics.create_at(peer.broker_address, TopicConfig(name, 1, 1))
        with SyncProducer(peer.namesrv_address) as producer:
            sent = producer.send(Message(name, b"1"))
        with SyncPullConsumer(
            peer.namesrv_address, group=name, trace=True, consume_from=ConsumeFrom.FIRST_OFFSET
        ) as consumer:
            consumer.subscribe(name)
            for message in consumer:
                assert message.msg_id == sent.msg_id
                break

        def outcome() -> list[bool]:
            try:
                records = admin.messages.trace(sent.msg_id).records
            except GantryError:
                return []  # the topic is made by the first trace
            return [record.is_success for record in records if record.kind is TraceKind.SUB_AFTER]

        wait_until(lambda: outcome() == [True])
