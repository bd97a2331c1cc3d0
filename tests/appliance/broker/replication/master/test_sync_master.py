"""SYNC_MASTER: the answer to a send waits until a slave has the message, and says so when none had it in time."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.replication.pair import STORE, TOPIC, caught_up, follower_of, slave_of
from tests.appliance.peer import Peer, connected
from tests.harness import ServingCluster, serving
from tests.waiting import until

SYNC: dict[str, Any] = {
    "slaves_enable": True,
    "broker_role": "SYNC_MASTER",
    "ha_heartbeat_ms": 200,
    "ha_housekeeping_ms": 3_600_000,  # however long a test stands still, its slaves are not given up
    "slave_timeout_ms": 60_000,
}
_OFFSET = struct.Struct(">q")


class SilentSlave:
    """Takes the log, acknowledges only when told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def of(cls, cluster: ServingCluster, begin: int) -> SilentSlave:
        slave = cls(*await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port))
        slave.say(begin)
        await until(lambda: any(each.acknowledged == begin for each in cluster.broker.slaves.slaves))
        return slave

    def say(self, offset: int) -> None:
        self._writer.write(_OFFSET.pack(offset))

    async def take_until(self, end: int) -> None:
        async with asyncio.timeout(60):
            while True:
                position, size = struct.unpack(">qi", await self._reader.readexactly(12))
                await self._reader.readexactly(size)
                if position + size >= end:
                    return

    async def is_closed(self) -> bool:
        async with asyncio.timeout(60):
            while await self._reader.read(65536):
                pass
        return True

    def close(self) -> None:
        self._writer.close()


async def ask(peer: Peer, properties: str = "", **fields: str) -> int:
    answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, properties) | fields, b"body")
    return answer.code


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ServingCluster]:
    async with serving(tmp_path, broker=SYNC, store=STORE) as serving_cluster:
        yield serving_cluster


async def test_an_answered_message_is_on_a_slave(cluster: ServingCluster, tmp_path: Path) -> None:
    async with connected(cluster.broker.port) as peer:
        assert await ask(peer) == ResponseCode.SLAVE_NOT_AVAILABLE, "stored, but on no slave"
        assert await ask(peer, "WAIT\x01false") == ResponseCode.SUCCESS
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await caught_up(slave, cluster.broker)
            await until(lambda: cluster.broker.slaves.behind_bytes == 0)
            for _ in range(20):
                assert await ask(peer) == ResponseCode.SUCCESS
                assert slave.store.max_physical_offset == cluster.broker.store.max_physical_offset
            assert follower_of(slave).ha_client.is_copying
        await until(lambda: not cluster.broker.slaves.slaves)
        assert await ask(peer) == ResponseCode.SLAVE_NOT_AVAILABLE


async def test_one_acknowledgement_answers_all_that_it_covers(cluster: ServingCluster) -> None:
    store = cluster.broker.store
    slave = await SilentSlave.of(cluster, 0)
    async with connected(cluster.broker.port) as peer:
        for _ in range(50):
            request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"body")
            peer.write(request.encode())
        await until(lambda: store.max_offset(TOPIC, 0) == 50)
        await slave.take_until(store.max_physical_offset)
        slave.say(store.max_physical_offset)
        assert [(await peer.read()).code for _ in range(50)] == [ResponseCode.SUCCESS] * 50
    slave.close()


async def test_a_slave_can_not_acknowledge_what_it_was_not_given(cluster: ServingCluster) -> None:
    slave = await SilentSlave.of(cluster, 0)
    async with connected(cluster.broker.port) as peer:
        assert await ask(peer, "WAIT\x01false") == ResponseCode.SUCCESS
        end = cluster.broker.store.max_physical_offset
        await slave.take_until(end)
        slave.say(end + 1)
        assert await slave.is_closed()
        assert await ask(peer) == ResponseCode.SLAVE_NOT_AVAILABLE
    slave.close()


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_a_slave_that_is_too_slow_is_told_as_stored_but(tmp_path: Path, flush: str) -> None:
    store = {**STORE, "flush_disk_type": flush}
    async with serving(tmp_path, broker=SYNC | {"slave_timeout_ms": 50}, store=store) as cluster:
        slave = await SilentSlave.of(cluster, 0)
        async with connected(cluster.broker.port) as peer:
            assert await ask(peer) == ResponseCode.FLUSH_SLAVE_TIMEOUT
            assert cluster.broker.store.max_offset(TOPIC, 0) == 1
            slave.close()
            await until(lambda: not cluster.broker.slaves.slaves)
            assert await ask(peer) == ResponseCode.SLAVE_NOT_AVAILABLE


async def test_a_half_message_that_is_stored_but_has_its_transaction(cluster: ServingCluster) -> None:
    async with connected(cluster.broker.port) as peer:
        fields = send_fields("G", TOPIC, 0, "TRAN_MSG\x01true\x02PGROUP\x01G\x02UNIQ_KEY\x01half") | {"f": "4"}
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"body")
        assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE
        assert answer.ext_fields["transactionId"] == "half"


async def test_sends_do_not_wait_for_a_slave_that_is_far_behind(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SYNC | {"slave_fall_behind_bytes": 100}, store=STORE) as cluster:
        slave = await SilentSlave.of(cluster, 0)
        async with connected(cluster.broker.port) as peer:
            assert await ask(peer) == ResponseCode.SLAVE_NOT_AVAILABLE
        slave.close()


async def test_only_named_addresses_may_be_slaves(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SYNC | {"ha_slave_addresses": "10.0.0.0/8, 192.0.2.7"}, store=STORE) as cluster:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        assert not cluster.broker.slaves.slaves
        writer.close()
        config, own = cluster.broker.config, "192.0.2.1"
        assert not config.why_no_slave("10.9.9.9", own) and not config.why_no_slave("::ffff:192.0.2.7", own)
        assert config.why_no_slave("192.0.2.8", own) and config.why_no_slave("::1", own)
