"""Messages that consumers get, acknowledge, keep longer, give back and bury."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from appliance.proxy import leases, receiving
from appliance.proxy.controller import ProxyController
from appliance.proxy.messages.outgoing import client_message
from appliance.proxy.protocol import definition_pb2 as pb
from appliance.settings.roles import ProxyConfig
from gantrymq import AdminClient
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageExt
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.codes import ResponseCode
from tests.appliance.broker.pop.popper import popping
from tests.appliance.proxy.proxies import ENDPOINTS, ProxyClient, ProxyCluster, proxied, stored
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("door")

TOPIC, GROUP = pb.Resource(name="orders"), pb.Resource(name="readers")
QUEUE = pb.MessageQueue(topic=TOPIC, id=-1, broker=pb.Broker(name="broker-a", id=0, endpoints=ENDPOINTS))


async def make_topic(cluster: ProxyCluster, kind: str = "") -> None:
    async with AdminClient(cluster.cluster.namesrv_address) as admin:
        await admin.topics.create(TopicConfig("orders", 2, 2, attributes={"+message.type": kind} if kind else None))


async def send(cluster: ProxyCluster, *bodies: bytes, **system: Any) -> None:
    for body in bodies:
        message = cluster.client.message("orders", body, **system)
        assert (await cluster.client.call("SendMessage", messages=[message])).status.code == pb.Code.OK


async def receive(client: ProxyClient, **fields: Any) -> tuple[pb.Code, list[pb.Message]]:
    wanted = {"group": GROUP, "message_queue": QUEUE, "batch_size": 32, "invisible_duration": {"seconds": 30}}
    wanted |= {"filter_expression": pb.FilterExpression(type=pb.FilterType.TAG, expression="*")}
    answers = await client.answers("ReceiveMessage", **{"timeout_s": 10, **wanted, **fields})
    assert answers[0].WhichOneof("content") == "status"
    assert answers[-1].WhichOneof("content") == "delivery_timestamp"
    return answers[0].status.code, [answer.message for answer in answers[1:-1]]


def handle(message: pb.Message) -> str:
    return message.system_properties.receipt_handle


async def ack(client: ProxyClient, *handles: str) -> Any:
    entries = [{"message_id": "x", "receipt_handle": each} for each in handles]
    return await client.call("AckMessage", group=GROUP, topic=TOPIC, entries=entries)


async def change(client: ProxyClient, given: str, seconds: int) -> Any:
    fields = {"group": GROUP, "topic": TOPIC, "receipt_handle": given, "invisible_duration": {"seconds": seconds}}
    return await client.call("ChangeInvisibleDuration", **fields)


async def test_what_is_acknowledged_does_not_come_again(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    await send(cluster, b"1", b"2", tag="red", keys=["k"])
    code, found = await receive(cluster.client)
    assert (code, sorted(message.body for message in found)) == (pb.Code.OK, [b"1", b"2"])
    system = found[0].system_properties
    assert (system.tag, list(system.keys), system.delivery_attempt) == ("red", ["k"], 1)
    assert system.invisible_duration.seconds == 30
    answer = await ack(cluster.client, *map(handle, found))
    assert [entry.status.code for entry in answer.entries] == [pb.Code.OK, pb.Code.OK]
    again = await ack(cluster.client, handle(found[0]))
    assert again.status.code == pb.Code.INVALID_RECEIPT_HANDLE


async def test_a_message_that_is_given_back_comes_again_with_its_attempt(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    await send(cluster, b"1")
    _, (first,) = await receive(cluster.client)
    assert (await change(cluster.client, handle(first), 0)).status.code == pb.Code.OK
    _, (second,) = await receive(cluster.client)
    assert (second.body, second.system_properties.delivery_attempt) == (b"1", 2)
    assert second.system_properties.message_id == first.system_properties.message_id
    assert (await ack(cluster.client, handle(second))).status.code == pb.Code.OK


async def test_any_proxy_takes_an_acknowledgement(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    await send(cluster, b"1")
    _, (message,) = await receive(cluster.client)
    config = ProxyConfig(listen_port=0, namesrv_addresses=cluster.cluster.namesrv_address)
    async with ProxyController(config) as other:
        further = ProxyClient(other.port)
        longer = await change(further, handle(message), 60)
        assert longer.status.code == pb.Code.OK
        assert (await ack(further, handle(message))).status.code == pb.Code.OK
        further.channel.close()


async def test_a_receive_waits_for_a_message(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    waiting = asyncio.create_task(receive(cluster.client))
    await asyncio.sleep(0.3)  # so that it waits; it gets the message either way
    await send(cluster, b"late")
    code, found = await waiting
    assert (code, [message.body for message in found]) == (pb.Code.OK, [b"late"])


async def test_what_comes_for_a_receive_that_was_given_up_goes_to_others(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    waiting = asyncio.create_task(receive(cluster.client, invisible_duration={"seconds": 3600}))
    await asyncio.sleep(0.5)  # it waits at the broker now; given up before, it would never get there
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await send(cluster, b"1")
    _, (message,) = await receive(ProxyClient(cluster.proxy.port, "other@1@0@x"))
    assert message.body == b"1"


async def test_filters_are_tags_and_sql(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    await send(cluster, b"red", tag="red")
    await send(cluster, b"blue", tag="blue")
    tags = pb.FilterExpression(type=pb.FilterType.TAG, expression="red||green")
    _, found = await receive(cluster.client, filter_expression=tags)
    assert [message.body for message in found] == [b"red"]
    sql = pb.FilterExpression(type=pb.FilterType.SQL, expression="TAGS = 'blue'")
    other = pb.Resource(name="other-readers")
    _, found = await receive(cluster.client, group=other, filter_expression=sql)
    assert [message.body for message in found] == [b"blue"]
    wrong = pb.FilterExpression(type=pb.FilterType.SQL, expression="TAGS = = 1")
    code, _ = await receive(cluster.client, group=other, filter_expression=wrong)
    assert code == pb.Code.ILLEGAL_FILTER_EXPRESSION


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"invisible_duration": {"seconds": 9}}, pb.Code.ILLEGAL_INVISIBLE_TIME),
        ({"invisible_duration": {"seconds": 13 * 3600}}, pb.Code.ILLEGAL_INVISIBLE_TIME),
        ({"invisible_duration": {"seconds": 1 << 62}}, pb.Code.ILLEGAL_INVISIBLE_TIME),
        ({"group": pb.Resource(name="a b")}, pb.Code.ILLEGAL_CONSUMER_GROUP),
        ({"timeout_s": 4}, pb.Code.ILLEGAL_POLLING_TIME),
    ],
)
async def test_a_receive_that_is_wrong_is_refused(cluster: ProxyCluster, fields: dict[str, Any], code: pb.Code) -> None:
    await make_topic(cluster)
    found, messages = await receive(cluster.client, **fields)
    assert (pb.Code.Name(found), messages) == (pb.Code.Name(code), [])


async def test_messages_of_a_group_wait_until_the_one_before_is_done(cluster: ProxyCluster) -> None:
    await make_topic(cluster, "FIFO")
    await send(cluster, b"1", b"2", b"3", message_group="g", message_type=2)
    _, (first,) = await receive(cluster.client, batch_size=1)
    waiting = asyncio.create_task(receive(ProxyClient(cluster.proxy.port, "other@1@0@x"), batch_size=1))
    await asyncio.sleep(0.3)  # a chance to overtake, which it must not take
    assert not waiting.done()
    assert (await ack(cluster.client, handle(first))).status.code == pb.Code.OK
    _, (second,) = await waiting
    assert (first.body, second.body) == (b"1", b"2")
    assert (await change(cluster.client, handle(second), 0)).status.code == pb.Code.OK
    _, found = await receive(cluster.client)
    assert [(message.body, message.system_properties.delivery_attempt) for message in found] == [(b"2", 2)]
    assert (await ack(cluster.client, handle(found[0]))).status.code == pb.Code.OK
    _, found = await receive(cluster.client)
    assert [(message.body, message.system_properties.delivery_attempt) for message in found] == [(b"3", 1)]


@pytest.mark.parametrize(("kind", "told"), [("", True), ("FIFO", False), ("FIFO", None)])
async def test_a_group_says_whether_it_consumes_in_order_else_the_topic(
    tmp_path: Path, kind: str, told: bool | None
) -> None:
    is_ordered = told is not False
    async with proxied(tmp_path) as cluster:
        await make_topic(cluster, kind)
        async with AdminClient(cluster.cluster.namesrv_address) as admin:
            await admin.groups.create(SubscriptionGroupConfig("readers", consume_message_orderly=told))
        await send(cluster, b"1", b"2", message_group="g", message_type=2)
        _, (first,) = await receive(cluster.client, batch_size=1)
        waiting = asyncio.create_task(receive(ProxyClient(cluster.proxy.port, "other@1@0@x"), batch_size=1))
        if is_ordered:
            await asyncio.sleep(0.3)  # a chance to overtake
            assert not waiting.done()
        else:
            await until(waiting.done)
        assert (await ack(cluster.client, handle(first))).status.code == pb.Code.OK
        _, (second,) = await waiting
        assert (first.body, second.body) == (b"1", b"2")
        answer = await cluster.client.call("QueryAssignment", topic=TOPIC, group=GROUP, endpoints=ENDPOINTS)
        queues = [assignment.message_queue.id for assignment in answer.assignments]
        assert queues == ([0, 1] if is_ordered else [-1])
        settings = pb.Settings(client_type=pb.ClientType.PUSH_CONSUMER, subscription=pb.Subscription(group=GROUP))
        settings.subscription.subscriptions.add(topic=TOPIC)
        async with cluster.client.telemetry(settings) as stream:
            assert stream.settings.subscription.fifo is is_ordered


@pytest.mark.parametrize("kind", ["", "FIFO"])
async def test_a_message_is_buried_in_the_groups_dead_letters(cluster: ProxyCluster, kind: str) -> None:
    await make_topic(cluster, kind)
    await send(cluster, b"1", **({"message_group": "g", "message_type": 2} if kind else {}))
    _, (message,) = await receive(cluster.client)
    fields = {"group": GROUP, "topic": TOPIC, "receipt_handle": handle(message), "message_id": "x"}
    answer = await cluster.client.call("ForwardMessageToDeadLetterQueue", **fields)
    assert answer.status.code == pb.Code.OK, answer
    assert (await ack(cluster.client, handle(message))).status.code == pb.Code.INVALID_RECEIPT_HANDLE
    (letter,) = await stored(cluster, "%DLQ%readers")
    assert letter.body == b"1"


async def test_what_can_not_be_buried_now_holds_no_others_up(
    cluster: ProxyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_topic(cluster, "FIFO")
    await send(cluster, b"1", b"2", message_group="g", message_type=2)
    async with AdminClient(cluster.cluster.namesrv_address) as admin:
        await admin.groups.create(SubscriptionGroupConfig("readers", consume_message_orderly=True, retry_max_times=0))
    _, found = await receive(cluster.client)
    for message in found:
        assert (await change(cluster.client, handle(message), 0)).status.code == pb.Code.OK
    with monkeypatch.context() as patch:
        patch.setattr(leases, "bury", refused)
        code, _ = await receive(cluster.client, invisible_duration={"seconds": 3600})
        assert code == pb.Code.INTERNAL_SERVER_ERROR
    book = cluster.cluster.broker.pop.book
    await until(lambda: (book.next_due_ms() or 0) <= time.time() * 1000)
    await receive(cluster.client)
    assert [letter.body for letter in await stored(cluster, "%DLQ%readers")] == [b"1", b"2"]


async def test_a_message_with_odd_properties_is_handed_over_with_the_others(cluster: ProxyCluster) -> None:
    await make_topic(cluster)
    odd = [{"BORN_TIMESTAMP": "2024-01-01T00:00:00"}, {"TIMER_OUT_MS": "soon"}, {"BORN_TIMESTAMP": "9" * 30}]
    async with popping(cluster.cluster.broker_address) as producer:
        for number, properties in enumerate(odd):
            await producer.send(b"%d" % number, **properties)
    _, found = await receive(cluster.client)
    assert sorted(message.body for message in found) == [b"0", b"1", b"2"]
    assert {message.system_properties.born_timestamp.ToMilliseconds() for message in found} == {1}


async def test_a_message_that_no_client_could_read_holds_no_others_up(
    cluster: ProxyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(message: MessageExt, topic: pb.Resource, receipt_handle: str) -> pb.Message:
        if message.body == b"odd":
            raise ValueError("not to be shown")
        return client_message(message, topic, receipt_handle)

    monkeypatch.setattr(receiving, "client_message", made)
    await make_topic(cluster)
    await send(cluster, b"1", b"odd", b"2")
    code, found = await receive(cluster.client)
    assert (code, sorted(message.body for message in found)) == (pb.Code.OK, [b"1", b"2"])


async def refused(*_fields: object) -> None:
    raise ResponseError(ResponseCode.SYSTEM_ERROR, "not now", address="")


@pytest.mark.parametrize("text", ["", "x", "1 2 3 4 0 b 6 7", "1 2 3 4 0 b 6 7 8 9", "1 2 3 4 0 broker-a 6 x 8"])
async def test_what_is_no_handle_is_refused(cluster: ProxyCluster, text: str) -> None:
    await make_topic(cluster)
    assert (await ack(cluster.client, text)).status.code == pb.Code.INVALID_RECEIPT_HANDLE
    assert (await change(cluster.client, text, 1)).status.code == pb.Code.INVALID_RECEIPT_HANDLE


async def test_a_push_consumers_leases_are_renewed_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.proxy.renewals.SCAN_S", 0.1)
    monkeypatch.setattr("appliance.proxy.renewals.LEASE_S", 3.0)
    monkeypatch.setattr("appliance.proxy.receiving.LEASE_S", 3.0)
    async with proxied(tmp_path) as cluster:
        await make_topic(cluster)
        beat = {"group": GROUP, "client_type": pb.ClientType.PUSH_CONSUMER}
        assert (await cluster.client.call("Heartbeat", **beat)).status.code == pb.Code.OK
        await send(cluster, b"1")
        _, (message,) = await receive(cluster.client, auto_renew=True)
        await asyncio.sleep(6)  # twice as long as the lease would last
        assert len(cluster.proxy.renewals) == 1
        assert (await ack(cluster.client, handle(message))).status.code == pb.Code.OK
        assert len(cluster.proxy.renewals) == 0
        await send(cluster, b"2")
        await receive(cluster.client, auto_renew=True)
        assert (await cluster.client.call("NotifyClientTermination", group=GROUP)).status.code == pb.Code.OK
        _, (again,) = await receive(ProxyClient(cluster.proxy.port, "other@1@0@x"))
        assert (again.body, again.system_properties.delivery_attempt) == (b"2", 2)
