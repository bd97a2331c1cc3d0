"""Which failures are tried again, and where: a scripted name server and two scripted brokers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from gantrymq import Message, MessageQueue, Producer, SendResult, SendStatus, SyncProducer
from gantrymq.client.connection.routes import Routes
from gantrymq.client.produce import fault_latency
from gantrymq.client.produce.first_try import FirstTry
from gantrymq.client.produce.sender import Sender
from gantrymq.errors import (
    ClientClosed,
    ConfigError,
    ConnectError,
    GantryError,
    RequestTimeout,
    ResponseError,
    RouteNotFound,
    SendIncomplete,
    WrongType,
)
from gantrymq.remoting.bodies import BrokerData, ClusterInfo, QueueData, TopicRouteData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.conftest import time_limit
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import until
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server, silence
from tests.soak.retries import Retries
from tests.waiting import WITHIN_S


@dataclass
class Broker:
    """Stores what it is sent, or answers `code`; code -1 is silence, -2 hangs up on everybody. Heartbeats are always
    answered. stored_as: what it answers when it stored a message."""

    name: str
    code: int = 0
    stored_as: int = 0
    address: str = ""
    bodies: list[bytes] = field(default_factory=list)
    tries: int = 0
    msg_ids: list[str] = field(default_factory=list)

    def __call__(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code != RequestCode.SEND_MESSAGE_V2:
            writer.write(request.reply().encode())
            return
        self.tries += 1
        self.msg_ids.append(request.ext_fields["i"])
        if self.code == -2:
            for each in server.writers:
                each.close()
        elif self.code > 0:
            writer.write(request.reply(self.code, "refused").encode())
        elif self.code == 0:
            self.bodies.append(request.body)
            fields = {"msgId": "ID", "queueId": request.ext_fields["e"], "queueOffset": str(len(self.bodies) - 1)}
            writer.write(request.reply(self.stored_as, ext_fields=fields).encode())


@dataclass
class Cluster:
    name_server: str
    a: Broker
    b: Broker

    @property
    def tries(self) -> int:
        return self.a.tries + self.b.tries


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Two brokers with one queue each; the producer's turn begins anywhere."""
    a, b = Broker("a"), Broker("b")

    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.ext_fields.get("topic") != "T":
            writer.write(request.reply(17).encode())
            return
        brokers = [BrokerData("c", broker.name, {0: broker.address}) for broker in (a, b)]
        route = TopicRouteData(brokers, [QueueData(broker.name, 1, 1, 6) for broker in (a, b)])
        writer.write(request.reply(body=route.to_json()).encode())

    async with contextlib.AsyncExitStack() as stack:
        for broker in (a, b):
            broker.address = (await stack.enter_async_context(scripted_server(broker))).address
        names = await stack.enter_async_context(scripted_server(name_server))
        yield Cluster(names.address, a, b)


@contextlib.asynccontextmanager
async def connected(cluster: Cluster) -> AsyncIterator[Producer]:
    """A producer that knows the route and has sent to both brokers: in the time of the call under test it need not."""
    async with Producer(cluster.name_server) as producer:
        for broker in ("a", "b"):
            await producer.send(Message("T", b"connects"), queue=MessageQueue("T", broker, 0))
        yield producer


@pytest.mark.parametrize("code", [1, 14, 16, 17, 204, 205, 2, -2])
async def test_what_may_pass_is_tried_at_the_other_broker_with_the_same_id(cluster: Cluster, code: int) -> None:
    cluster.a.code = code
    async with Producer(cluster.name_server) as producer:
        for _ in range(4):
            result = await producer.send(Message("T", b"x"))
            assert result.queue.broker_name == "b"
    assert len(cluster.b.bodies) == 4
    assert 1 <= cluster.a.tries <= 4
    assert set(cluster.a.msg_ids) <= set(cluster.b.msg_ids)


@pytest.mark.parametrize("way", ["send", "send_many", "blocking"])
async def test_a_broker_that_failed_is_left_alone_by_the_messages_after_it(
    cluster: Cluster, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_latency, "PENALTIES_S", ((15.0, 600.0),))  # only a failure, however slow this machine is
    cluster.a.code = 2
    messages = [Message("T", b"x") for _ in range(6)]
    if way == "blocking":
        await asyncio.to_thread(_send_blocking, cluster.name_server, messages)
    else:
        async with Producer(cluster.name_server, send_latency_fault_enable=True) as producer:
            for message in messages[:3]:
                await producer.send(message)
            if way == "send_many":
                await producer.send_many(messages[3:])
            else:
                for message in messages[3:]:
                    await producer.send(message)
    assert (cluster.a.tries, len(cluster.b.bodies)) == (1, 6)


@pytest.mark.parametrize("way", ["send", "send_many", "blocking"])
async def test_a_broker_that_was_silent_is_looked_at_though_no_connection_to_it_is_left(
    cluster: Cluster, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_latency, "SILENT_S", 0.0)
    monkeypatch.setattr(fault_latency, "LOOK_S", 600.0)  # a look that reached nobody would be the only one
    message = Message("T", b"x")

    def send_blocking() -> None:
        with connected_thread(cluster) as producer:
            cluster.a.code = -2
            while cluster.a.tries < 2:
                producer.send(message)
            cluster.a.code = 0
            for _ in range(4):
                producer.send(message)

    if way == "blocking":
        await asyncio.to_thread(send_blocking)
    else:
        async with connected(cluster) as producer:
            cluster.a.code = -2
            while cluster.a.tries < 2:
                await producer.send(message)
            cluster.a.code = 0
            for _ in range(4):
                await (producer.send(message) if way == "send" else producer.send_many([message]))
    assert cluster.a.bodies.count(b"x") >= 1


async def test_a_message_without_an_answer_does_not_look_whether_a_silent_broker_is_back(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_latency, "SILENT_S", 0.0)
    monkeypatch.setattr(fault_latency, "LOOK_S", 600.0)
    async with connected(cluster) as producer:
        cluster.a.code = -2
        while cluster.a.tries < 2:
            await producer.send(Message("T", b"x"))
        cluster.a.code = 0
        for _ in range(4):
            await producer.send_oneway(Message("T", b"one way"))
        for _ in range(2):
            await producer.send(Message("T", b"x"))
        await until(lambda: cluster.b.bodies.count(b"one way") == 4)
    assert cluster.a.bodies == [b"connects", b"x"]


async def test_silence_at_an_old_address_is_not_the_masters(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_latency, "SILENT_S", 600.0)
    message = Message("T", b"x")
    async with connected(cluster) as producer, scripted_server(master := Broker("a")) as server:
        cluster.a.code = -1
        sends = [asyncio.create_task(producer.send(message)) for _ in range(2)]  # one to each broker
        await until(lambda: cluster.a.tries == 2)
        cluster.a.address = server.address  # what the name server says of "a" from now on
        assert {(await sent).queue.broker_name for sent in sends} == {"b"}
        for _ in range(2):
            await producer.send(message)
    assert master.bodies == [b"x"]


async def test_a_message_that_has_just_begun_to_wait_is_sent_to_the_next_master(cluster: Cluster) -> None:
    queue = MessageQueue("T", "a", 0)
    async with connected(cluster) as producer, scripted_server(Broker("a")) as server:
        cluster.a.code = -2
        lost = asyncio.create_task(producer.send(Message("T", b"lost"), queue=queue, timeout_s=3600))
        await until(lambda: cluster.a.tries > 1)  # from now on the route is asked for again and again
        cluster.a.code, before = -1, cluster.a.tries
        sent = asyncio.create_task(producer.send(Message("T", b"x"), queue=queue, timeout_s=3600))
        await until(lambda: cluster.a.tries == before + 2)
        cluster.a.address = server.address
        assert (await sent).queue == (await lost).queue == queue


def _send_blocking(name_server: str, messages: list[Message]) -> None:
    with SyncProducer(name_server, send_latency_fault_enable=True) as producer:
        for message in messages:
            producer.send(message)


@pytest.mark.parametrize("code", [3, 13, 26])
async def test_what_will_not_pass_is_raised_at_once(cluster: Cluster, code: int) -> None:
    cluster.a.code = cluster.b.code = code
    async with Producer(cluster.name_server) as producer:
        with pytest.raises(ResponseError) as caught:
            await producer.send(Message("T", b"x"))
    assert (caught.value.code, cluster.tries) == (code, 1)


@pytest.mark.parametrize("code", [1, 16, 17, 204, 205])
async def test_what_each_broker_refuses_is_tried_once_at_each(cluster: Cluster, code: int) -> None:
    cluster.a.code = cluster.b.code = code
    async with Producer(cluster.name_server) as producer:
        with pytest.raises(ResponseError):
            await producer.send(Message("T", b"x"))
    assert (cluster.a.tries, cluster.b.tries) == (1, 1)


CHOICES: dict[str, dict[str, Any]] = {
    "anywhere": {},
    "queue": {"queue": MessageQueue("T", "a", 0)},
    "selector": {"selector": lambda queues, message: queues[0]},
    "sharding key": {"sharding_key": "k"},
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("code", [2, 14, -2])
async def test_what_may_pass_is_awaited_with_growing_pauses(
    cluster: Cluster, code: int, choice: dict[str, Any]
) -> None:
    cluster.a.code = cluster.b.code = code
    async with Producer(cluster.name_server) as producer:
        sending = asyncio.create_task(producer.send(Message("T", b"x"), **choice))
        await until(lambda: cluster.tries >= 5)
        assert not sending.done()
        cluster.a.code = cluster.b.code = 0
        result = await sending
    assert cluster.tries < 20, "a storm of tries"
    if choice:
        assert 0 in (cluster.a.tries, cluster.b.tries), "an ordered message waits for its own queue"
        assert result.queue.broker_name == ("a" if cluster.a.tries else "b")


async def test_the_time_of_a_call_ends_its_tries_and_so_do_its_retries(cluster: Cluster) -> None:
    async with connected(cluster) as producer:
        cluster.a.code = cluster.b.code = 2
        with pytest.raises(ResponseError) as caught:
            await producer.send(Message("T", b"x"), timeout_s=2)
        assert "tries" in caught.value.__notes__[0]
    for retries in (0, 2):
        tries_before = cluster.tries
        async with Producer(cluster.name_server, retries=retries) as producer:
            with pytest.raises(ResponseError):
                await producer.send(Message("T", b"x"))
        assert cluster.tries - tries_before == 1 + retries


async def test_a_queue_of_an_unknown_broker_is_waited_for(cluster: Cluster) -> None:
    async with connected(cluster) as producer:
        before = cluster.a.tries, cluster.b.tries
        with pytest.raises(ConnectError):
            await producer.send(Message("T", b"x"), queue=MessageQueue("T", "unknown", 0), timeout_s=1)
        with pytest.raises(ResponseError):
            cluster.a.code = 1
            await producer.send(Message("T", b"x"), queue=MessageQueue("T", "a", 0))
    assert (cluster.a.tries, cluster.b.tries) == (before[0] + 1, before[1])


@pytest.mark.parametrize("timeout_s", [0, -1])
async def test_no_time_is_refused(cluster: Cluster, timeout_s: float) -> None:
    async with Producer(cluster.name_server) as producer:
        for send in (producer.send, producer.request):
            with pytest.raises(ConfigError, match="needs some time"):
                await send(Message("T", b"x"), timeout_s=timeout_s)
        with pytest.raises(ConfigError, match="needs some time"):
            await producer.send_many([Message("T", b"x")], timeout_s=timeout_s)
        with pytest.raises(ConfigError, match="needs some time"):
            await producer.send(Message("T", b"x"), timeout_s=float("nan"))
        text: Any = "3"
        with pytest.raises(WrongType, match="number of seconds"):
            await producer.send(Message("T", b"x"), timeout_s=text)
    assert cluster.tries == 0


async def test_what_is_no_message_is_refused_at_once(cluster: Cluster) -> None:
    text: Any = "text"
    async with Producer(cluster.name_server) as producer:
        for send in (producer.send, producer.send_soon, producer.send_oneway):
            with pytest.raises(WrongType, match="a Message is wanted"):
                await send(text)
    with SyncProducer(cluster.name_server) as blocking, pytest.raises(WrongType, match="a Message is wanted"):
        blocking.send_soon(text)
    assert cluster.tries == 0


async def test_many_messages_wait_for_silent_name_servers_together() -> None:
    async with scripted_server(silence) as server, Producer(server.address) as producer:
        started = time.monotonic()
        with pytest.raises(SendIncomplete) as caught:
            await producer.send_many([Message("T", b"x") for _ in range(100)], timeout_s=0.5)
        assert len(caught.value.failures) == 100
        assert {type(failure) for failure in caught.value.failures.values()} == {RequestTimeout}
        assert time.monotonic() - started < time_limit(10), "one after the other they take fifty seconds"


async def test_what_a_name_server_refused_with_is_told_and_not_that_the_time_ran_out_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last try is cut off by the deadline."""
    refused, tries = ConnectError("127.0.0.1:1", "refused"), 0

    async def to_send(_: object, topic: str, *, timeout_s: float) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise refused
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Routes, "to_send", to_send)
    async with Producer(closed_port(), delivery_timeout_s=2.0) as producer:
        with pytest.raises(ConnectError) as caught:
            await producer.queues("T")
    assert caught.value is refused and tries == 2


async def test_many_messages_go_on_when_the_name_server_is_back(cluster: Cluster) -> None:
    is_back = False

    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if not is_back:
            writer.close()
            return
        route = TopicRouteData([BrokerData("c", "a", {0: cluster.a.address})], [QueueData("a", 1, 1, 6)])
        writer.write(request.reply(body=route.to_json()).encode())

    def messages() -> Iterator[Message]:
        nonlocal is_back
        yield Message("T", b"lost")
        yield Message("T", b"0")
        is_back = True
        yield from (Message("T", b"%d" % number) for number in range(1, 20))

    async with scripted_server(name_server) as server, Producer(server.address, retries=0) as producer:
        with pytest.raises(SendIncomplete) as caught:
            await producer.send_many(messages(), in_flight=4)
    assert sorted(caught.value.failures) == [0]
    assert sorted(map(int, cluster.a.bodies)) == list(range(20))


async def test_silent_name_servers_share_the_time_of_the_call_with_everything_else() -> None:
    async with contextlib.AsyncExitStack() as stack:
        servers = [(await stack.enter_async_context(scripted_server(silence))).address for _ in range(3)]
        async with Producer(servers) as producer:
            started = time.monotonic()
            with pytest.raises(RequestTimeout):
                await producer.send(Message("T", b"x"), timeout_s=0.6)
            with pytest.raises(RequestTimeout):
                await producer.send(Message("T", b"x"), sharding_key="k", timeout_s=0.6)
            assert time.monotonic() - started < time_limit(5), "three seconds for each server would be eighteen"


async def test_a_lost_name_server_and_one_without_brokers_are_waited_for() -> None:
    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            body = ClusterInfo({} if len(server.requests) < 10 else {"a": BrokerData("c", "a", {})}, {}).to_json()
            writer.write(request.reply(body=body).encode())
        elif len(server.requests) < 3:
            writer.close()
        else:
            writer.write(request.reply(17).encode())

    async with scripted_server(name_server) as server, Producer(server.address) as producer:
        with pytest.raises(RouteNotFound):
            await producer.send(Message("T", b"x"))
        assert len(server.requests) >= 10, "given up while the name server knew no broker"


@pytest.mark.parametrize(("code", "may_be_stored"), [(14, False), (-2, True)])
async def test_what_is_sent_again_is_logged_with_its_id_and_whether_it_may_be_stored(
    cluster: Cluster, code: int, may_be_stored: bool
) -> None:
    """A message may be stored twice only then: tests/soak takes this log for its books."""
    at_a = MessageQueue("T", "a", 0)
    with Retries().listening() as retries:
        async with connected(cluster) as producer:
            await producer.send(Message("T", b"x"), queue=at_a)
            assert not retries.msg_ids
            cluster.a.code = code
            known = len(cluster.a.msg_ids)
            for _ in range(2):  # at the brokers in turn
                await producer.send(Message("T", b"x"))
            failed = {each.removeprefix("UNIQ_KEY\1") for each in cluster.a.msg_ids[known:]}
            assert failed and retries.msg_ids == (failed if may_be_stored else set())


async def test_all_tries_share_the_time_of_the_call(cluster: Cluster) -> None:
    async with connected(cluster) as producer:
        cluster.a.code = cluster.b.code = -1
        started = time.monotonic()
        with pytest.raises(RequestTimeout):
            await producer.send(Message("T", b"x"), timeout_s=1)
        assert 0.9 < time.monotonic() - started < time_limit(2.5), "a second for each of three tries would be three"


@pytest.mark.parametrize("code", [14, -2])
async def test_many_messages_find_the_broker_that_takes_them(cluster: Cluster, code: int) -> None:
    cluster.a.code = code
    async with Producer(cluster.name_server) as producer:
        results = await producer.send_many((Message("T", b"%d" % n) for n in range(100)), in_flight=10)
    assert all(result.queue.broker_name == "b" for result in results)
    assert sorted(map(int, cluster.b.bodies)) == list(range(100))


async def test_of_many_messages_those_not_sent_are_named(cluster: Cluster) -> None:
    messages = [Message("T", b"good"), Message("T", b""), Message("Unknown", b"x"), Message("T", b"good")]
    async with Producer(cluster.name_server) as producer:
        with pytest.raises(SendIncomplete) as caught:
            await producer.send_many(messages)
    assert sorted(caught.value.failures) == [1, 2]
    assert caught.value.sent == 2
    assert [result is not None for result in caught.value.results] == [True, False, False, True]
    assert caught.value.results[3].queue_offset in (0, 1)
    assert len(cluster.a.bodies + cluster.b.bodies) == 2


async def test_a_silent_cluster_fails_many_messages_together_and_not_one_after_the_other(cluster: Cluster) -> None:
    cluster.a.code = cluster.b.code = -1
    async with Producer(cluster.name_server, delivery_timeout_s=0.2) as producer:
        started = time.monotonic()
        with pytest.raises(SendIncomplete) as caught:
            await producer.send_many([Message("T", b"x") for _ in range(50)])
        assert len(caught.value.failures) == 50
        assert time.monotonic() - started < time_limit(5), "one after the other they take ten seconds"


@pytest.mark.parametrize("status", [SendStatus.FLUSH_DISK_TIMEOUT, SendStatus.SLAVE_NOT_AVAILABLE])
async def test_what_is_not_stored_as_asked_may_go_to_the_other_broker_too(cluster: Cluster, status: SendStatus) -> None:
    cluster.a.stored_as = status.value
    messages = [Message("T", b"x") for _ in range(4)]
    async with Producer(cluster.name_server, retry_unless_send_ok=True) as producer:
        assert {(await producer.send(message)).status for message in messages} == {SendStatus.SEND_OK}
        assert {result.status for result in await producer.send_many(messages)} == {SendStatus.SEND_OK}
        assert len(cluster.b.bodies) == 8
        assert cluster.a.bodies
        there = MessageQueue("T", "a", 0)
        assert (await producer.send(messages[0], queue=there)).status is status, "its queue was chosen"
        cluster.b.stored_as = status.value
        assert (await producer.send(messages[0])).status is status, "no broker stores it as asked"
        cluster.b.code = 14
        assert (await producer.send(messages[0])).status is status, "stored is stored"
    cluster.b.tries = 0
    async with Producer(cluster.name_server) as producer:
        statuses = [(await producer.send(message)).status for message in messages]
    assert status in statuses


async def test_messages_of_many_tasks_go_to_the_queues_in_turn(cluster: Cluster) -> None:
    async with Producer(cluster.name_server) as producer:
        await asyncio.gather(*(producer.send(Message("T", b"x")) for _ in range(100)))
    assert (len(cluster.a.bodies), len(cluster.b.bodies)) == (50, 50)


async def test_the_producer_is_registered_where_it_sends_and_leaves_when_it_closes(cluster: Cluster) -> None:
    seen: list[int] = []
    original = Broker.__call__

    def noting(self: Broker, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        seen.append(request.code)
        original(self, server, writer, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broker, "__call__", noting)
        async with Producer(cluster.name_server, group="PG") as producer:
            await producer.send(Message("T", b"x"))
            async with asyncio.timeout(WITHIN_S):
                while seen.count(RequestCode.HEART_BEAT) < 2:
                    await asyncio.sleep(0.01)
    assert seen.count(RequestCode.UNREGISTER_CLIENT) == 2


async def test_a_topic_that_died_with_its_broker_is_made_at_another_one_within_the_call() -> None:
    b = Broker("b")
    routes: dict[str, TopicRouteData] = {}

    def name_server(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        found = routes.get(request.ext_fields.get("topic", ""))
        writer.write((request.reply(17) if found is None else request.reply(body=found.to_json())).encode())

    dead = closed_port()
    async with scripted_server(b) as broker, scripted_server(name_server) as names, Producer(names.address) as producer:
        routes["T"] = TopicRouteData([BrokerData("c", "a", {0: dead})], [QueueData("a", 1, 1, 6)])
        assert len(await producer.queues("T")) == 1
        routes["TBW102"] = TopicRouteData([BrokerData("c", "b", {0: broker.address})], [QueueData("b", 4, 4, 7)])
        del routes["T"]
        assert (await producer.send(Message("T", b"x"))).queue.broker_name == "b"


# -- from a thread: the first try is made without a coroutine, what follows is the same -------------------------------

QUEUES = [MessageQueue("T", broker, 0) for broker in ("a", "b")]


def connected_thread(cluster: Cluster, **options: Any) -> SyncProducer:
    """A started producer that has sent to both brokers."""
    producer = SyncProducer(cluster.name_server, **options)
    producer.start()
    for queue in QUEUES:
        producer.send(Message("T", b"connects"), queue=queue)
    return producer


@pytest.mark.parametrize("code", [1, 14, -2])
async def test_a_thread_finds_the_broker_that_takes_its_messages(cluster: Cluster, code: int) -> None:
    def send() -> list[SendResult]:
        with connected_thread(cluster) as producer:
            cluster.a.code = code
            return [producer.send(Message("T", b"x")) for _ in range(4)]

    assert {result.queue.broker_name for result in await asyncio.to_thread(send)} == {"b"}
    assert cluster.b.bodies.count(b"x") == 4
    assert cluster.a.tries > 1
    assert set(cluster.a.msg_ids[1:]) <= set(cluster.b.msg_ids)


async def test_a_thread_is_told_what_a_task_would_be(cluster: Cluster) -> None:
    def send() -> None:
        with connected_thread(cluster) as producer:
            cluster.a.code = 13
            with pytest.raises(ResponseError) as caught:
                producer.send(Message("T", b"x"), queue=QUEUES[0])
            assert (caught.value.code, caught.value.address) == (13, cluster.a.address)
            assert cluster.a.tries == 2
            for wrong, error in (({"timeout_s": 0}, ConfigError), ({"queue": MessageQueue("U", "a", 0)}, ConfigError)):
                with pytest.raises(error):
                    producer.send(Message("T", b"x"), **wrong)
            cluster.a.code = -1
            with pytest.raises((RequestTimeout, ConnectError)):  # what is silent is left, and connected to anew
                producer.send(Message("T", b"x"), queue=QUEUES[0], timeout_s=0.2)

    await asyncio.to_thread(send)


async def test_a_thread_whose_message_is_not_stored_as_asked_may_send_it_elsewhere(cluster: Cluster) -> None:
    def send() -> None:
        with connected_thread(cluster, retry_unless_send_ok=True) as producer:
            cluster.a.stored_as = SendStatus.FLUSH_DISK_TIMEOUT.value
            assert {producer.send(Message("T", b"x")).status for _ in range(4)} == {SendStatus.SEND_OK}
            assert producer.send(Message("T", b"x"), queue=QUEUES[0]).status is SendStatus.FLUSH_DISK_TIMEOUT

    await asyncio.to_thread(send)


async def test_a_threads_usual_send_ends_with_its_first_try(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def go_on(self: FirstTry) -> None:
        pytest.fail("a coroutine was made")

    def send() -> list[SendResult]:
        with connected_thread(cluster) as producer:
            monkeypatch.setattr(FirstTry, "go_on", go_on)
            results = [producer.send(Message("T", b"x")) for _ in range(10)]
            monkeypatch.setattr(Sender, "address_for_thread", lambda *_: None)  # as with TLS: the loop's
            return results + [producer.send(Message("T", b"x")) for _ in range(10)]

    results = await asyncio.to_thread(send)
    assert {result.status for result in results} == {SendStatus.SEND_OK}
    assert {result.queue.broker_name for result in results} == {"a", "b"}


async def test_a_connected_thread_does_not_ask_the_loop(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(self: FirstTry) -> None:
        pytest.fail("the loop was asked")

    def send() -> list[SendResult]:
        with connected_thread(cluster) as producer:
            monkeypatch.setattr(FirstTry, "begin", begin)
            return [producer.send(Message("T", b"x")) for _ in range(10)]

    assert len(await asyncio.to_thread(send)) == 10


async def test_a_callback_on_the_loops_own_thread_may_not_block_it(cluster: Cluster) -> None:
    def send() -> BaseException | None:
        told: Future[tuple[int, BaseException | None]] = Future()

        def sends(stored: Future[SendResult]) -> None:
            try:
                producer.send(Message("T", b"x"))
            except RuntimeError as exc:
                told.set_result((threading.get_ident(), exc))
            else:
                told.set_result((threading.get_ident(), None))

        with connected_thread(cluster) as producer:
            while True:
                producer.send_soon(Message("T", b"x"), queue=QUEUES[0]).add_done_callback(sends)
                thread, failure = told.result(WITHIN_S)
                if thread != threading.get_ident():  # else it was stored before the callback was added, and ran here
                    return failure
                told = Future()

    assert "would wait for itself" in str(await asyncio.to_thread(send))


async def test_a_first_try_that_can_not_begin_is_no_fault_of_the_loop(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise ConnectError("broker", "it has just been closed")

    def send() -> SendResult:
        with connected_thread(cluster) as producer:
            monkeypatch.setattr(Sender, "address_for_thread", lambda *_: None)  # over the loop's connection
            monkeypatch.setattr(Sender, "begin", fails)
            return producer.send(Message("T", b"x"))

    assert (await asyncio.to_thread(send)).status is SendStatus.SEND_OK
    assert not [record for record in caplog.records if record.name == "asyncio"]


async def test_a_thread_that_waits_for_a_closed_producer_is_told_so(cluster: Cluster) -> None:
    failures: list[GantryError] = []

    def send(producer: SyncProducer) -> None:
        try:
            producer.send(Message("T", b"x"), timeout_s=3600)
        except GantryError as exc:
            failures.append(exc)

    producer = await asyncio.to_thread(connected_thread, cluster)
    cluster.a.code = cluster.b.code = -1
    sending = asyncio.create_task(asyncio.to_thread(send, producer))
    await until(lambda: cluster.tries >= 3)
    await asyncio.to_thread(producer.close)
    await sending
    assert isinstance(failures[0], ClientClosed | ConnectError)
