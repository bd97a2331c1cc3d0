"""Routes as values, and their cache over a scripted name server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gantrymq.client.connection.name_servers import NameServers, parse_name_servers
from gantrymq.client.connection.routes import Routes, readable_queues, topic_route, writable_queues
from gantrymq.errors import ConfigError, ConnectError, RouteNotFound
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import BrokerData, QueueData, TopicRouteData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server


def route(*, order: str | None = None) -> TopicRouteData:
    return TopicRouteData(
        broker_datas=[
            BrokerData("c", "b", {0: "h:1"}),
            BrokerData("c", "a", {0: "h:2", 1: "h:3"}),
            BrokerData("c", "slave-only", {1: "h:4"}),
            BrokerData("c", "closed", {0: "h:5"}),
        ],
        queue_datas=[
            QueueData("b", 2, 1, 6),
            QueueData("a", 1, 2, 6),
            QueueData("slave-only", 1, 1, 6),
            QueueData("closed", 1, 1, 1),
        ],
        order_topic_conf=order,
    )


def queues(*pairs: tuple[str, int]) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("T", broker, queue_id) for broker, queue_id in pairs)


def test_messages_go_to_writable_queues_of_brokers_with_a_master() -> None:
    assert writable_queues("T", route()) == queues(("a", 0), ("a", 1), ("b", 0))


def test_messages_come_from_readable_queues_slaves_included() -> None:
    assert readable_queues("T", route()) == queues(("a", 0), ("b", 0), ("b", 1), ("slave-only", 0))


def test_an_ordered_topic_says_itself_where_messages_go() -> None:
    assert writable_queues("T", route(order="b:1;a:2")) == queues(("b", 0), ("a", 0), ("a", 1))


def test_what_is_wrong_in_an_order_of_queues_is_left_out() -> None:
    assert writable_queues("T", route(order="b;a:2;c:x;b:-1")) == queues(("a", 0), ("a", 1))


def test_a_template_has_as_many_queues_as_the_topic_will_get_and_none_to_read() -> None:
    template = TopicRouteData([BrokerData("c", "a", {0: "h:1"})], [QueueData("a", 8, 8, 7)])
    found = topic_route("T", template, is_template=True)
    assert found.writable == queues(*(("a", queue_id) for queue_id in range(4)))
    assert found.readable == ()


@pytest.mark.parametrize("addresses", ["a:1;b:2", "a:1,b:2", " a:1 ; b:2;", ["a:1", "b:2"]])
def test_name_servers_are_listed_in_several_ways(addresses: str | list[str]) -> None:
    assert parse_name_servers(addresses) == ["a:1", "b:2"]


@pytest.mark.parametrize("addresses", ["", " ; ", []])
def test_no_name_server_at_all_is_a_config_error(addresses: str | list[str]) -> None:
    with pytest.raises(ConfigError):
        parse_name_servers(addresses)


class Topics:
    """What a scripted name server knows."""

    def __init__(self, **routes: TopicRouteData) -> None:
        self.routes = routes
        self.asked = 0

    def __call__(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        self.asked += 1
        found = self.routes.get(request.ext_fields.get("topic", ""))
        reply = request.reply(17, "no route") if found is None else request.reply(body=found.to_json())
        writer.write(reply.encode())


def one_broker(queue_count: int = 2, address: str = "h:1") -> TopicRouteData:
    return TopicRouteData([BrokerData("c", "a", {0: address})], [QueueData("a", queue_count, queue_count, 6)])


@contextlib.asynccontextmanager
async def routes_at(topics: Topics) -> AsyncIterator[Routes]:
    async with scripted_server(topics) as server:
        remoting = RemotingClient()
        yield Routes(NameServers(remoting, server.address))
        await remoting.close()


async def test_a_burst_of_first_sends_asks_once() -> None:
    topics = Topics(T=one_broker())
    async with routes_at(topics) as routes:
        found = await asyncio.gather(*(routes.to_send("T") for _ in range(50)))
        assert all(one.writable == queues(("a", 0), ("a", 1)) for one in found)
        assert topics.asked == 1


async def test_an_unknown_topic_is_sent_through_the_template_until_it_exists() -> None:
    topics = Topics(TBW102=one_broker(8))
    async with routes_at(topics) as routes:
        assert len((await routes.to_send("T")).writable) == 4
        with pytest.raises(RouteNotFound):
            await routes.to_read("T")
        topics.routes["T"] = one_broker(6)
        await routes.refresh()
        assert len((await routes.to_send("T")).writable) == 6
        assert len((await routes.to_read("T")).readable) == 6


async def test_no_template_either_is_route_not_found() -> None:
    async with routes_at(Topics()) as routes:
        with pytest.raises(RouteNotFound):
            await routes.to_send("T")


@pytest.mark.parametrize("learnt", ["TU", "UT"])
async def test_a_route_that_vanished_is_kept_and_an_address_that_moved_is_learnt(learnt: str) -> None:
    topics = Topics(T=one_broker(address="h:1"), U=one_broker(address="h:1"))
    async with routes_at(topics) as routes:
        for topic in learnt:
            await routes.to_send(topic)
        del topics.routes["T"]
        topics.routes["U"] = one_broker(address="h:2")
        await routes.refresh()
        assert (await routes.to_send("T")).writable
        assert routes.address("a") == "h:2"
        assert routes.masters() == ["h:2"]
        assert routes.served_by("h:2") == [("a", "U")], "nobody can say more of T"


async def test_a_broker_that_no_route_showed_for_a_while_has_moved_when_it_is_elsewhere() -> None:
    elsewhere = TopicRouteData([BrokerData("c", "b", {0: "h:9"})], [QueueData("b", 1, 1, 6)])
    topics = Topics(T=one_broker(address="h:1"))
    async with routes_at(topics) as routes:
        moves: list[tuple[str, str | None, str]] = []
        routes.on_moved = lambda name, before, now: moves.append((name, before, now))
        await routes.to_send("T")
        topics.routes["T"] = elsewhere
        await routes.refresh()
        assert (routes.address("a"), moves) == (None, [])
        topics.routes["T"] = one_broker(address="h:2")
        await routes.refresh()
        assert moves == [("a", "h:1", "h:2")]


async def test_a_topic_whose_brokers_are_gone_is_sent_where_it_would_be_made_now() -> None:
    topics = Topics(T=one_broker(address="h:1"))
    async with routes_at(topics) as routes:
        await routes.to_send("T")
        topics.routes = {"TBW102": TopicRouteData([BrokerData("c", "b", {0: "h:2"})], [QueueData("b", 8, 8, 7)])}
        with pytest.raises(RouteNotFound):
            await routes.look_again("T")
        assert {queue.broker_name for queue in (await routes.to_send("T")).writable} == {"a"}
        assert await routes.look_again("T", use_template=True)
        assert {queue.broker_name for queue in (await routes.to_send("T")).writable} == {"b"}
        topics.routes["T"] = one_broker(address="h:3")
        assert await routes.look_again("T", use_template=True)
        assert routes.address((await routes.to_send("T")).writable[0].broker_name) == "h:3"


async def test_a_route_stays_where_no_broker_would_make_the_topic() -> None:
    topics = Topics(T=one_broker())
    async with routes_at(topics) as routes:
        before = await routes.to_send("T")
        topics.routes = {}
        with pytest.raises(RouteNotFound):
            await routes.look_again("T", use_template=True)
        assert await routes.to_send("T") is before


async def test_the_next_name_server_is_asked_when_one_is_gone_and_kept_while_it_answers() -> None:
    dead = closed_port()
    async with scripted_server(Topics(T=one_broker())) as server:
        remoting = RemotingClient()
        name_servers = NameServers(remoting, [dead, server.address])
        for _ in range(4):
            assert (await name_servers.invoke(105, {"topic": "T"})).code == 0
        assert len(server.requests) == 4
        await remoting.close()


async def test_questions_that_fail_together_go_on_at_the_server_that_answers() -> None:
    class OneOfTwo:
        async def invoke(self, address: str, request: RemotingCommand, *, timeout_s: float) -> RemotingCommand:
            await asyncio.sleep(0)
            if address == "dead:1":
                raise ConnectError(address, "refused")
            return request.reply()

    for _ in range(10):  # which one is asked first is a matter of chance
        name_servers = NameServers(OneOfTwo(), "dead:1;live:1")  # type: ignore[arg-type]
        answers = await asyncio.gather(*(name_servers.invoke(105) for _ in range(2)))
        assert [answer.code for answer in answers] == [0, 0]


async def test_all_name_servers_gone_is_a_connect_error() -> None:
    remoting = RemotingClient()
    with pytest.raises(ConnectError):
        await NameServers(remoting, closed_port()).invoke(105, {"topic": "T"})
    await remoting.close()


async def test_a_slave_is_read_when_the_master_is_gone() -> None:
    async with routes_at(Topics(T=route())) as routes:
        await routes.to_read("T")
    assert routes.address_to_read("a", 0) == ("h:2", True)
    assert routes.address_to_read("a", 1) == ("h:3", False)
    assert routes.address_to_read("a", 7) == ("h:2", True)
    assert routes.address_to_read("slave-only") == ("h:4", False)
    assert routes.address_to_read("unknown") is None
