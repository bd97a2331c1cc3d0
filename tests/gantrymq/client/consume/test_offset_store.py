"""Offsets in a local file, and at brokers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.name_servers import NameServers
from gantrymq.client.connection.routes import Routes
from gantrymq.client.consume.offset_store import BrokerOffsets, FileOffsets
from gantrymq.errors import ResponseError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import BrokerData, QueueData, TopicRouteData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server

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
            self.offsets[queue_id] = request.ext_fields["commitOffset"]
            reply = request.reply()
        elif queue_id in self.offsets:
            reply = request.reply(ext_fields={"offset": self.offsets[queue_id]})
        else:
            reply = request.reply(22, "not found")
        writer.write(reply.encode())


async def test_broker_offsets_are_written_when_they_changed_and_again_when_that_failed() -> None:
    broker = OffsetBroker()

    def name_server(names: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        route = TopicRouteData([BrokerData("c", "b", {0: server.address})], [QueueData("b", 2, 2, 6)])
        writer.write(request.reply(body=route.to_json()).encode())

    async with scripted_server(broker) as server, scripted_server(name_server) as names:
        remoting = RemotingClient()
        routes = Routes(NameServers(remoting, names.address))
        await routes.to_read("T")
        store = BrokerOffsets(BrokerCalls(remoting), routes, "g")
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
        await remoting.close()
