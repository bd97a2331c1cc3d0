"""A master and its slave on the test's loop, and a proxy between them that cuts where it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from appliance.bench.frames import send_fields
from appliance.broker.controller import BrokerController
from appliance.broker.replication.follower import Follower
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.codes import RequestCode
from store.base.config import MessageStoreConfig
from tests.appliance.peer import connected
from tests.harness import SMALL_STORE, ServingCluster
from tests.waiting import until

FILE_BYTES = 1 << 20
STORE = {"commit_log_file_bytes": FILE_BYTES}
MASTER: dict[str, Any] = {"slaves_enable": True, "ha_heartbeat_ms": 200}
TOPIC = "Copied"
PULL = {
    "consumerGroup": "TOOLS_CONSUMER",
    "topic": TOPIC,
    "queueId": "0",
    "maxMsgNums": "32",
    "sysFlag": "6",
    "commitOffset": "0",
    "suspendTimeoutMillis": "20000",
    "subscription": "*",
    "subVersion": "0",
}


@contextlib.asynccontextmanager
async def slave_of(
    cluster: ServingCluster, folder: Path, *, broker_id: int = 1, store: dict[str, Any] | None = None, **broker: Any
) -> AsyncIterator[BrokerController]:
    """Serve as a slave of the cluster's broker, from `folder`."""
    settings = {"broker_role": "SLAVE", "broker_id": broker_id, "ha_heartbeat_ms": 200, **broker}
    config = BrokerConfig(listen_port=0, namesrv_addresses=cluster.namesrv_address, **settings)
    store_config = MessageStoreConfig(root=folder, **{**SMALL_STORE, **STORE, **(store or {})})
    async with BrokerController(config, store_config) as controller:
        yield controller


def follower_of(slave: BrokerController) -> Follower:
    assert slave.follower is not None
    return slave.follower


async def caught_up(slave: BrokerController, master: BrokerController) -> None:
    await until(lambda: slave.store.max_physical_offset == master.store.max_physical_offset > 0)


async def send(cluster: ServingCluster, count: int, body: bytes = b"%d " * 40) -> None:
    async with connected(cluster.broker.port) as peer:
        fields = send_fields("G", TOPIC, 0, "")
        for number in range(count):
            answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body.replace(b"%d", b"%d" % number))
            assert answer.code == 0, answer.remark


def log_of(broker: BrokerController) -> bytes:
    """All bytes of the log, from its first file to its end."""
    files = sorted(broker.store_config.commit_log_folders[0].iterdir())
    first = broker.store.min_physical_offset
    return b"".join(path.read_bytes() for path in files)[: broker.store.max_physical_offset - first]


class CuttingProxy:
    """Passes bytes on between slave and master; each connection is reset after as many bytes as `cut_after` says.

    from_slave, from_master: cleared, nothing gets through that way, and no side is told: one-way loss; with both
    cleared, a partition. delay_s: how long all is on its way, in both directions.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_after: list[int] = []  # bytes, for one connection after the other; then no more cuts
        self.cuts_what_slaves_say = False  # it is their bytes that are counted, not the master's
        self.cuts = 0
        self.delay_s = 0.0
        self.from_slave, self.from_master = asyncio.Event(), asyncio.Event()
        self.from_slave.set()
        self.from_master.set()

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, slave_reader: asyncio.StreamReader, slave_writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        limit = self.cut_after.pop(0) if self.cut_after else None
        limits = (limit, None) if self.cuts_what_slaves_say else (None, limit)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(slave_reader, writer, limits[0], self.from_slave))
                group.create_task(self._pass_on(reader, slave_writer, limits[1], self.from_master))
        except* (ConnectionError, EOFError):
            self.cuts += limit is not None
        finally:
            slave_writer.transport.abort()  # a reset, not an end
            writer.transport.abort()
            self._tasks.discard(task)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None, may_pass: asyncio.Event
    ) -> None:
        """Ends by EOFError: at the peer's end, or after `limit` bytes."""
        while limit is None or limit > 0:
            data = await reader.read(65536 if limit is None else min(limit, 65536))
            if not data:
                raise EOFError
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            await may_pass.wait()
            writer.write(data)
            await writer.drain()
            if limit is not None:
                limit -= len(data)
        raise EOFError
