"""The proxy's calls, made over gRPC, in front of a real name server and broker."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Status as GrpcStatus
from grpclib.exceptions import GRPCError

from appliance.errors import StartError
from appliance.proxy.controller import ProxyController
from appliance.proxy.protocol import definition_pb2 as pb
from appliance.settings.roles import ProxyConfig
from gantrymq import AdminClient
from gantrymq.errors import ConfigError
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance.proxy.proxies import ENDPOINTS, ProxyClient, ProxyCluster, proxied, stored
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("door")

TOPIC = pb.Resource(name="orders")
QUICK_CHECKS = {"transaction_check_interval_ms": 100, "transaction_timeout_ms": 100}


async def make_topic(cluster: ProxyCluster, name: str = "orders", queues: int = 4, **attributes: str) -> None:
    async with AdminClient(cluster.cluster.namesrv_address) as admin:
        config = TopicConfig(
            name, queues, queues, attributes={f"+{key.replace('_', '.')}": value for key, value in attributes.items()}
        )
        await admin.topics.create(config)


def producer(*topics: str) -> pb.Settings:
    publishing = pb.Publishing(topics=[pb.Resource(name=name) for name in topics])
    return pb.Settings(client_type=pb.ClientType.PRODUCER, publishing=publishing)


async def test_a_route_leads_to_where_the_client_came_from(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    answer = await cluster.client.call("QueryRoute", topic=TOPIC, endpoints=ENDPOINTS)
    assert answer.status.code == pb.Code.OK
    assert [queue.id for queue in answer.message_queues] == [0, 1, 2, 3]
    for queue in answer.message_queues:
        assert (queue.permission, queue.broker.id, queue.broker.endpoints) == (pb.Permission.READ_WRITE, 0, ENDPOINTS)
        assert list(queue.accept_message_types) == [1, 2, 3, 4]


async def test_a_topics_type_is_told_and_kept_to(cluster: ProxyCluster) -> None:
    await make_topic(cluster, message_type="FIFO")
    answer = await cluster.client.call("QueryRoute", topic=TOPIC, endpoints=ENDPOINTS)
    assert list(answer.message_queues[0].accept_message_types) == [pb.MessageType.FIFO]
    sent = await cluster.client.call("SendMessage", messages=[cluster.client.message("orders")])
    assert sent.status.code == pb.Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE


@pytest.mark.parametrize(
    ("call", "fields", "code"),
    [
        ("QueryRoute", {"topic": pb.Resource(name="nowhere"), "endpoints": ENDPOINTS}, pb.Code.TOPIC_NOT_FOUND),
        ("QueryRoute", {"topic": pb.Resource(name="TBW102"), "endpoints": ENDPOINTS}, pb.Code.ILLEGAL_TOPIC),
        ("QueryRoute", {"topic": pb.Resource(name="a b"), "endpoints": ENDPOINTS}, pb.Code.ILLEGAL_TOPIC),
        ("QueryRoute", {"topic": pb.Resource(), "endpoints": ENDPOINTS}, pb.Code.ILLEGAL_TOPIC),
        ("QueryRoute", {"topic": TOPIC}, pb.Code.ILLEGAL_ACCESS_POINT),
        (
            "QueryAssignment",
            {"topic": TOPIC, "group": pb.Resource(name="a b"), "endpoints": ENDPOINTS},
            pb.Code.ILLEGAL_CONSUMER_GROUP,
        ),
        ("SendMessage", {}, pb.Code.MESSAGE_CORRUPTED),
        ("Heartbeat", {}, pb.Code.UNRECOGNIZED_CLIENT_TYPE),
        ("EndTransaction", {"topic": TOPIC, "transaction_id": " "}, pb.Code.INVALID_TRANSACTION_ID),
        ("EndTransaction", {"topic": TOPIC, "transaction_id": "abc"}, pb.Code.INVALID_TRANSACTION_ID),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_said_in_an_answer(
    cluster: ProxyCluster, call: str, fields: dict[str, Any], code: pb.Code
) -> None:
    answer = await cluster.client.call(call, **fields)
    assert pb.Code.Name(answer.status.code) == pb.Code.Name(code), answer
    assert answer.status.message


async def test_a_client_without_an_id_is_refused(cluster: ProxyCluster) -> None:
    cluster.client.client_id = ""
    answer = await cluster.client.call("QueryRoute", topic=TOPIC, endpoints=ENDPOINTS)
    assert answer.status.code == pb.Code.CLIENT_ID_REQUIRED
    with pytest.raises(GRPCError) as refused:
        async with cluster.client.telemetry(producer("orders")):
            pass
    assert refused.value.status == GrpcStatus.INVALID_ARGUMENT


async def test_what_is_not_built_is_unimplemented(cluster: ProxyCluster) -> None:
    with pytest.raises(GRPCError) as refused:
        await cluster.client.call("GetOffset")
    assert refused.value.status == GrpcStatus.UNIMPLEMENTED


async def test_a_delayed_message_is_recalled(cluster: ProxyCluster) -> None:
    await make_topic(cluster, message_type="DELAY")
    due_ms = int(time.time() * 1000) + 10_000
    at = {"seconds": due_ms // 1000, "nanos": due_ms % 1000 * 1_000_000}
    entries = []
    for body in (b"recalled", b"stays"):
        message = cluster.client.message("orders", body, delivery_timestamp=at, message_type=pb.MessageType.DELAY)
        sent = await cluster.client.call("SendMessage", messages=[message])
        entries.append(sent.entries[0])
    assert RecallHandle.parse(entries[0].recall_handle) == ("orders", "broker-a", due_ms, entries[0].message_id)
    recalled = await cluster.client.call(
        "RecallMessage", topic=TOPIC, recall_handle=entries[0].recall_handle, timeout_s=60
    )
    assert (recalled.status.code, recalled.message_id) == (pb.Code.OK, entries[0].message_id), recalled.status
    await until(lambda: any(cluster.cluster.broker.store.max_offset("orders", queue_id) for queue_id in range(4)))
    found = await stored(cluster)
    assert [message.body for message in found] == [b"stays"]
    late = await cluster.client.call("RecallMessage", topic=TOPIC, recall_handle=entries[1].recall_handle)
    assert (late.status.code, late.message_id) == (pb.Code.BAD_REQUEST, "")
    assert "timestamp invalid" in late.status.message


@pytest.mark.parametrize("handle", ["", "djEg", str(RecallHandle("others", "broker-a", 1 << 41, "x"))])
async def test_what_is_no_handle_of_the_topic_recalls_nothing(cluster: ProxyCluster, handle: str) -> None:
    await make_topic(cluster)
    answer = await cluster.client.call("RecallMessage", topic=TOPIC, recall_handle=handle)
    assert (answer.status.code, answer.message_id) == (pb.Code.BAD_REQUEST, ""), answer


async def test_a_message_without_a_time_has_no_recall_handle(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    sent = await cluster.client.call("SendMessage", messages=[cluster.client.message("orders")])
    assert (sent.status.code, sent.entries[0].recall_handle) == (pb.Code.OK, "")


async def test_an_acknowledged_message_is_what_consumers_of_rocketmq_4_read(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    message = cluster.client.message("orders", b"body", tag="red", keys=["k1", "k2"])
    message.user_properties["mine"] = "yes"
    answer = await cluster.client.call("SendMessage", messages=[message])
    (entry,) = answer.entries
    assert (answer.status.code, entry.status.code) == (pb.Code.OK, pb.Code.OK)
    (found,) = await stored(cluster)
    assert (found.body, found.tags, found.keys) == (b"body", "red", ["k1", "k2"])
    assert (found.properties["UNIQ_KEY"], found.properties["mine"]) == (entry.message_id, "yes")
    assert entry.message_id == message.system_properties.message_id
    assert entry.offset == found.queue_offset


async def test_messages_of_a_group_stay_in_one_queue_in_order(cluster: ProxyCluster) -> None:
    await make_topic(cluster, queues=8)
    for number in range(5):
        for group in "abc":
            message = cluster.client.message("orders", b"%d" % number, message_group=group, message_type=2)
            assert (await cluster.client.call("SendMessage", messages=[message])).status.code == pb.Code.OK
    found = await stored(cluster)
    for group in "abc":
        mine = [message for message in found if message.properties["__SHARDINGKEY"] == group]
        assert len({message.queue_id for message in mine}) == 1
        assert [message.body for message in mine] == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_message_for_a_time_comes_then(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    at = int(time.time()) + 2
    message = cluster.client.message("orders", delivery_timestamp={"seconds": at}, message_type=3)
    assert (await cluster.client.call("SendMessage", messages=[message])).status.code == pb.Code.OK
    early = await stored(cluster)
    assert early == [] or time.time() >= at - 1

    async def came() -> bool:
        return bool(await stored(cluster))

    while not await came():
        await asyncio.sleep(0.05)
    assert time.time() >= at - 1


async def test_settings_come_back_with_what_the_proxy_decides(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    async with cluster.client.telemetry(producer("orders")) as stream:
        assert stream.settings.backoff_policy.WhichOneof("strategy") == "exponential_backoff"
        assert stream.settings.publishing.max_body_size == 4 << 20
        assert [topic.name for topic in stream.settings.publishing.topics] == ["orders"]
    consumer = pb.Settings(
        client_type=pb.ClientType.PUSH_CONSUMER,
        subscription=pb.Subscription(group=pb.Resource(name="readers"), subscriptions=[{"topic": TOPIC}]),
    )
    async with cluster.client.telemetry(consumer) as stream:
        assert stream.settings.backoff_policy.max_attempts == 17
        assert len(stream.settings.backoff_policy.customized_backoff.next) == 18
        assert stream.settings.subscription.receive_batch_size == 32
        assert not stream.settings.metric.on


@pytest.mark.parametrize(
    ("address", "scheme", "host"),
    [
        ("collector.example:4317", pb.AddressScheme.DOMAIN_NAME, "collector.example"),
        ("10.0.0.9:4317", pb.AddressScheme.IPv4, "10.0.0.9"),
        ("[fd00::9]:4317", pb.AddressScheme.IPv6, "fd00::9"),
    ],
)
async def test_clients_send_their_metrics_to_the_collector_that_is_set(
    tmp_path: Path, address: str, scheme: pb.AddressScheme, host: str
) -> None:
    async with proxied(tmp_path, metric_collector=address) as cluster:
        await make_topic(cluster)
        async with cluster.client.telemetry(producer("orders")) as stream:
            metric = stream.settings.metric
            assert metric.on and metric.endpoints.scheme == scheme
            assert [(one.host, one.port) for one in metric.endpoints.addresses] == [(host, 4317)]


def test_a_collector_needs_a_port() -> None:
    with pytest.raises(ConfigError, match="metricCollectorAddress=collector"):
        ProxyConfig(metric_collector="collector")


async def test_settings_of_neither_kind_end_the_stream(cluster: ProxyCluster) -> None:
    with pytest.raises(GRPCError) as refused:
        async with cluster.client.telemetry(pb.Settings()):
            pass
    assert refused.value.status == GrpcStatus.INVALID_ARGUMENT


async def test_a_heartbeat_is_enough_for_a_proxy_that_never_saw_the_client(cluster: ProxyCluster) -> None:
    answer = await cluster.client.call(
        "Heartbeat", group=pb.Resource(name="readers"), client_type=pb.ClientType.SIMPLE_CONSUMER
    )
    assert answer.status.code == pb.Code.OK
    (client,) = cluster.proxy.clients
    assert client.group == "readers"
    assert (await cluster.client.call("NotifyClientTermination")).status.code == pb.Code.OK
    assert len(cluster.proxy.clients) == 0


async def test_a_transaction_is_committed_by_any_proxy(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    config = ProxyConfig(listen_port=0, namesrv_addresses=cluster.cluster.namesrv_address)
    async with ProxyController(config) as other:
        further = ProxyClient(other.port)
        for end, body in ((pb.TransactionResolution.COMMIT, b"yes"), (pb.TransactionResolution.ROLLBACK, b"no")):
            message = cluster.client.message("orders", body, message_type=pb.MessageType.TRANSACTION)
            (entry,) = (await cluster.client.call("SendMessage", messages=[message])).entries
            assert await stored(cluster) == [] or end != pb.TransactionResolution.COMMIT
            ended = await further.call(
                "EndTransaction",
                topic=TOPIC,
                message_id=entry.message_id,
                transaction_id=entry.transaction_id,
                resolution=end,
                source=1,
            )
            assert ended.status.code == pb.Code.OK, ended
        further.channel.close()
    assert [message.body for message in await stored(cluster)] == [b"yes"]


async def test_a_client_is_asked_for_a_transaction_that_another_left_open(tmp_path: Path) -> None:
    async with proxied(tmp_path, broker=QUICK_CHECKS) as cluster:
        await make_topic(cluster)
        left = ProxyClient(cluster.proxy.port, "left@1@0@x")
        message = left.message("orders", b"open", message_type=pb.MessageType.TRANSACTION)
        assert (await left.call("SendMessage", messages=[message])).status.code == pb.Code.OK
        left.channel.close()
        async with cluster.client.telemetry(producer("orders")) as stream:
            told = (await stream.recv_message()).recover_orphaned_transaction_command
            assert told.message.body == b"open"
            assert told.message.system_properties.message_id == message.system_properties.message_id
            ended = await cluster.client.call(
                "EndTransaction",
                topic=TOPIC,
                message_id=told.message.system_properties.message_id,
                transaction_id=told.transaction_id,
                resolution=pb.TransactionResolution.COMMIT,
                source=2,
            )
            assert ended.status.code == pb.Code.OK, ended
        assert [found.body for found in await stored(cluster)] == [b"open"]


async def test_names_of_a_namespace_are_whole_ones_at_brokers(cluster: ProxyCluster) -> None:
    await make_topic(cluster, "shop%orders")
    message = cluster.client.message("orders")
    message.topic.resource_namespace = "shop"
    assert (await cluster.client.call("SendMessage", messages=[message])).status.code == pb.Code.OK
    assert len(await stored(cluster, "shop%orders")) == 1


async def test_a_taken_port_is_said(cluster: ProxyCluster) -> None:
    config = ProxyConfig(listen_port=cluster.proxy.port, namesrv_addresses=cluster.cluster.namesrv_address)
    with pytest.raises(StartError, match=f"{cluster.proxy.port} can't be opened"):
        async with ProxyController(config):
            pass
