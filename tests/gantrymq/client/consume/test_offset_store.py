"""Offsets in a local file, and at brokers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.name_servers import NameServers
from gantrymq.client.connection.routes import Routes
from gantrymq.client.consume.offset_store import BrokerOffsets, FileOffsets
from gantrymq.errors import GantryError, ResponseError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import BrokerData, QueueData, TopicRouteData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.outages import Outages
from tests.gantrymq.client.seen import until
from tests.gantrymq.remoting.scripted import Script, ScriptedServer, scripted_server

QUEUE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


async def test_file_offsets_survive_in_javas_format(tmp_path: Path) -> None:
    path = tmp_path / "client" / "group" / "offsets.json"
    store = FileOffsets(path)
    assert await store.read(QUEUE) is None
    store.update(QUEUE, 5)
    store.update(OTHER, 7)
    await store.persist([QUEUE])
    assert path.read_bytes() == (
        b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:5,{"brokerName":"b","queueId":1,"topic":"T"}:7}}'
    )
    again = FileOffsets(path)
    assert (await again.read(QUEUE), await again.read(OTHER)) == (5, 7)


async def test_the_backup_is_read_when_the_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    store = FileOffsets(path)
    for offset in (5, 6):
        store.update(QUEUE, offset)
        await store.persist([QUEUE])
    path.write_bytes(b'{"offsetTab')
    assert await FileOffsets(path).read(QUEUE) == 5


async def test_a_file_that_can_not_be_read_now_is_not_taken_for_none(tmp_path: Path) -> None:
    path, aside = tmp_path / "offsets.json", tmp_path / "aside"
    store = FileOffsets(path)
    store.update(QUEUE, 5)
    await store.persist([QUEUE])
    path.rename(aside)
    path.mkdir()  # what reading it says is neither "not there" nor a table
    again = FileOffsets(path)
    with pytest.raises(GantryError):
        await again.read(QUEUE)
    path.rmdir()
    aside.rename(path)
    assert await again.read(QUEUE) == 5


async def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    store = FileOffsets(path)
    store.update(QUEUE, 5)
    await store.persist([])
    path.unlink()
    store.update(QUEUE, 5)
    await store.persist([QUEUE])
    assert not path.exists()


class OffsetBroker:
    """A scripted broker that keeps offsets; `failing` makes it answer with an error."""

    def __init__(self) -> None:
        self.offsets: dict[str, str] = {}
        self.writes = 0
        self.failing = 0

    def __call__(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        queue_id = request.ext_fields["queueId"]
        if self.failing:
            reply = request.reply(self.failing, "no")
        elif request.code == 15:
            self.writes += 1
            there, offset = self.offsets.get(queue_id, "0"), request.ext_fields["commitOffset"]
            if request.ext_fields.get("onlyForward") == "true" and int(there) > int(offset):
                reply = request.reply(ext_fields={"offset": there})
            else:
                self.offsets[queue_id] = offset
                reply = request.reply()
        elif queue_id in self.offsets:
            reply = request.reply(ext_fields={"offset": self.offsets[queue_id]})
        else:
            reply = request.reply(22, "not found")
        writer.write(reply.encode())


@contextlib.asynccontextmanager
async def offsets_at(broker: Script) -> AsyncIterator[BrokerOffsets]:
    """The offsets of a group at a scripted broker, which has the topic T."""

    def name_server(names: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        route = TopicRouteData([BrokerData("c", "b", {0: server.address})], [QueueData("b", 3, 3, 6)])
        writer.write(request.reply(body=route.to_json()).encode())

    async with scripted_server(broker) as server, scripted_server(name_server) as names:
        remoting = RemotingClient()
        routes = Routes(NameServers(remoting, names.address))
        await routes.to_read("T")
        yield BrokerOffsets(BrokerCalls(remoting), routes, Outages(), "g")
        await remoting.close()


async def test_broker_offsets_are_written_when_they_changed_and_again_when_that_failed() -> None:
    broker = OffsetBroker()
    async with offsets_at(broker) as store:
        assert await store.read(QUEUE) is None
        broker.failing = 1
        store.update(QUEUE, 5)
        await store.persist([QUEUE, OTHER])
        assert broker.offsets == {}
        with pytest.raises(ResponseError):  # busy is not "no offset yet": starting anew would repeat or skip everything
            await store.read(QUEUE)
        broker.failing = 0
        await store.persist([QUEUE])
        await store.persist([QUEUE])
        assert (broker.offsets, broker.writes) == ({"0": "5"}, 1)
        assert (await store.read(QUEUE), store.known(QUEUE)) == (5, 5)
        store.forget(QUEUE)
        assert store.known(QUEUE) is None


async def test_the_first_offset_of_a_topic_is_written_alone_and_the_others_side_by_side() -> None:
    """Apache's broker loses one of two first offsets that it handles at once."""
    waiting: list[tuple[asyncio.StreamWriter, RemotingCommand]] = []
    queues = [MessageQueue("T", "b", queue_id) for queue_id in range(3)]
    async with offsets_at(lambda server, writer, request: waiting.append((writer, request))) as store:
        for queue in queues:
            store.update(queue, 5)
        writing = asyncio.create_task(store.persist(queues))
        for together in (1, 2):
            await until(lambda together=together: len(waiting) >= together)  # type: ignore[misc]
            for _ in range(20):  # what is sent side by side would be here by then
                await asyncio.sleep(0)
            assert len(waiting) == together
            while waiting:
                writer, request = waiting.pop()
                writer.write(request.reply().encode())
        await writing
        for queue in queues:
            store.update(queue, 6)
        writing = asyncio.create_task(store.persist(queues))
        await until(lambda: len(waiting) == 3)
        for writer, request in waiting:
            writer.write(request.reply().encode())
        await writing


@pytest.mark.parametrize(("at_the_broker", "afterwards"), [(None, "5"), ("3", "5"), ("7", "7")])
async def test_a_broker_started_anew_is_told_again_never_taken_back(at_the_broker: str | None, afterwards: str) -> None:
    broker = OffsetBroker()
    async with offsets_at(broker) as store:
        store.update(QUEUE, 5)
        await store.persist([QUEUE])
        broker.offsets = {} if at_the_broker is None else {"0": at_the_broker}
        await store.persist([QUEUE])
        assert broker.writes == 1, "nothing has changed here"
        store.doubt([QUEUE])
        await store.persist([QUEUE])
        assert broker.offsets == {"0": afterwards}
        assert store.is_doubted(QUEUE) is (afterwards == "7")
        store.update(QUEUE, 6)
        await store.persist([QUEUE])
        assert broker.offsets == {"0": max("6", afterwards)}
        store.replace(QUEUE, 2)  # by the application or an operator
        await store.persist([QUEUE])
        assert broker.offsets == {"0": "2"}


async def test_what_another_member_writes_between_look_and_write_stays() -> None:
    broker = OffsetBroker()

    def beside_another(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        broker(server, writer, request)
        if request.code == 14:  # the answer is under way; then the other one writes
            broker.offsets["0"] = "9"

    async with offsets_at(beside_another) as store:
        broker.offsets = {"0": "3"}
        store.update(QUEUE, 5)
        store.doubt([QUEUE])
        await store.persist([QUEUE])
        assert (broker.offsets, broker.writes) == ({"0": "9"}, 1)
        assert store.is_doubted(QUEUE)
        store.replace(QUEUE, 2)
        await store.persist([QUEUE])
        assert broker.offsets == {"0": "2"}


async def test_a_queue_that_is_given_up_between_look_and_write_is_not_written() -> None:
    broker = OffsetBroker()

    def as_it_is_given_up(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        broker(server, writer, request)
        if request.code == 14:
            store.forget(QUEUE)

    async with offsets_at(as_it_is_given_up) as store:
        broker.offsets = {"0": "3"}
        store.update(QUEUE, 5)
        store.doubt([QUEUE])
        await store.persist([QUEUE])
        assert (broker.offsets, broker.writes) == ({"0": "3"}, 0)


async def test_a_queue_that_is_given_up_while_another_is_written_is_not_written() -> None:
    broker = OffsetBroker()

    def as_it_is_given_up(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        broker(server, writer, request)
        store.forget(QUEUE)

    async with offsets_at(as_it_is_given_up) as store:
        store.update(QUEUE, 5)
        store.update(OTHER, 5)  # of the broker's first two offsets one is written alone, and before the other
        await store.persist([QUEUE, OTHER])
        assert broker.offsets == {"1": "5"}


async def test_a_doubt_that_comes_during_the_write_outlives_it() -> None:
    broker, stores = OffsetBroker(), list[BrokerOffsets]()

    def doubting(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        broker(server, writer, request)
        if request.code == 15 and broker.writes == 1:
            stores[0].doubt([QUEUE])

    async with offsets_at(doubting) as store:
        stores.append(store)
        store.update(QUEUE, 5)
        await store.persist([QUEUE])
        assert store.is_doubted(QUEUE)
        await store.persist([QUEUE])
        assert broker.writes == 2 and not store.is_doubted(QUEUE)
