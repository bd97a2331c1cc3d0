"""A client's heartbeats: no broker waits for another one's answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gantrymq import MessageExt, PushConsumer
from gantrymq.client.connection.background import Background
from gantrymq.client.connection.greetings import Greetings
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.connection.session import ClientSession
from gantrymq.errors import ConnectError, GantryError
from gantrymq.remoting.bodies import BrokerData, HeartbeatData, QueueData, TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.seen import until
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server, silence
from tests.waiting import WITHIN_S

ENDLESS_S = 10 * WITHIN_S  # of a heartbeat: a test that waits for it fails


def answers(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
    writer.write(request.reply(ext_fields={"offset": "0"}).encode())


def codes(server: ScriptedServer) -> list[int]:
    return [request.code for request in server.requests]


class Names:
    """A name server of one broker name, whose members may change."""

    def __init__(self) -> None:
        self.members: dict[int, str] = {}

    def __call__(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.ext_fields["topic"] != "T":
            writer.write(request.reply(ResponseCode.TOPIC_NOT_EXIST).encode())
            return
        route = TopicRouteData([BrokerData("c", "a", self.members)], [QueueData("a", 1, 1, 6)])
        writer.write(request.reply(body=route.to_json()).encode())


async def test_a_new_master_is_greeted_while_the_old_one_is_silent() -> None:
    names = Names()
    async with scripted_server(silence) as old, scripted_server(answers) as new, scripted_server(names) as name_server:
        names.members = {0: old.address}
        options = ClientOptions(name_servers=name_server.address)
        session = ClientSession(options, heartbeat=lambda client_id: HeartbeatData(client_id), heartbeat_slaves=True)
        session.calls.timeout_s = ENDLESS_S
        session.open()
        await session.routes.to_read("T")
        session.meet_brokers()
        await until(lambda: codes(old) == [RequestCode.HEART_BEAT])
        names.members = {0: new.address, 1: old.address}
        await session.routes.look_again("T")
        await until(lambda: codes(new) == [RequestCode.HEART_BEAT])
        assert len(old.requests) == 1, "one on its way at a time"
        async with asyncio.timeout(WITHIN_S):
            answer = await session.greeting(new.address, WITHIN_S)
        assert answer is not None
        session.calls.timeout_s = 0.1
        await session.close()


async def test_a_broker_that_does_not_know_a_consumer_is_greeted_again_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gantrymq.client.connection.greetings.JOIN_S", 0.05)
    names = Names()

    def forgetful(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code == RequestCode.PULL_MESSAGE:
            has_forgotten = codes(server).count(RequestCode.HEART_BEAT) < 10
            if has_forgotten:
                writer.write(request.reply(ResponseCode.SUBSCRIPTION_NOT_EXIST).encode())
        elif request.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            writer.write(request.reply(body=b'{"consumerIdList":["%s"]}' % consumer.client_id.encode()).encode())
        else:
            answers(server, writer, request)

    async with (
        scripted_server(answers) as slave,
        scripted_server(forgetful) as master,
        scripted_server(names) as name_server,
    ):
        names.members = {0: master.address, 1: slave.address}
        consumer = PushConsumer(name_server.address, group="G", listener=takes_all)
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: codes(master).count(RequestCode.HEART_BEAT) >= 10)
            assert codes(slave).count(RequestCode.HEART_BEAT) <= 4, "no more than on starting"


async def takes_all(messages: list[MessageExt]) -> None:
    """Takes everything."""


class Asked:
    """What greets: each call ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ends: list[asyncio.Future[GantryError | None]] = []

    async def __call__(self, address: str) -> GantryError | None:
        self.begun.append(address)
        self.ends.append(asyncio.get_running_loop().create_future())
        return await self.ends[-1]


@pytest.fixture
async def asked() -> AsyncIterator[tuple[Asked, Greetings]]:
    greet, background = Asked(), Background()
    yield greet, Greetings(background, greet)
    await background.close()


async def test_one_is_on_its_way_to_an_address_and_one_waits(asked: tuple[Asked, Greetings]) -> None:
    greet, greetings = asked
    first = greetings.begin("a")
    await until(lambda: greet.begun == ["a"])
    second = greetings.begin("a")
    assert greetings.begin("a") is second is not first
    greetings.begin("b")
    await until(lambda: greet.begun == ["a", "b"])
    greet.ends[0].set_result(None)
    await until(lambda: greet.begun == ["a", "b", "a"])
    assert first.done() and not second.done()
    assert greetings.begin("a") is not second


async def test_a_round_waits_for_those_that_answered_the_last_time(asked: tuple[Asked, Greetings]) -> None:
    greet, greetings = asked
    first = asyncio.create_task(greetings.round(["dead", "live"]))
    await until(lambda: len(greet.ends) == 2)
    greet.ends[0].set_result(ConnectError("dead", "nobody"))
    await asyncio.sleep(0)
    assert not first.done()
    greet.ends[1].set_result(None)
    await first
    again = asyncio.create_task(greetings.round(["dead", "live"]))
    await until(lambda: len(greet.ends) == 4)
    greet.ends[3].set_result(None)
    await again
    assert not greet.ends[2].done()


async def test_who_is_told_again_that_he_is_unknown_greets_once_more(asked: tuple[Asked, Greetings]) -> None:
    greet, greetings = asked
    joined: list[int] = []
    for _ in range(3):
        greetings.join("a", lambda: joined.append(1))
    await until(lambda: len(greet.ends) == 1)
    greetings.join("a", lambda: joined.append(1))  # while it is under way
    greet.ends[0].set_result(None)
    await until(lambda: len(greet.ends) == 2)
    assert joined == [1]
    greet.ends[1].set_result(None)
    await until(lambda: joined == [1, 1])
