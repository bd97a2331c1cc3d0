"""Slaves copy the commit log over RocketMQ's HA protocol: byte for byte, from where they are, as far as it goes."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.replication.ha_frames import EPOCH_HEAD, EPOCH_OFFSET, STATE
from appliance.broker.replication.handshake import Hello, read_hello
from appliance.broker.replication.master import slaves
from appliance.broker.replication.master.feed import HOT_BYTES
from appliance.process.logs import FactsFormatter
from gantrymq.remoting.admin_bodies import KVTable, SlaveDifferences
from gantrymq.remoting.codes import RequestCode
from tests.appliance.peer import connected, registration
from tests.harness import ServingCluster, serving
from tests.waiting import WITHIN_S, until

FILE_BYTES = 1 << 20
SLAVES: dict[str, Any] = {
    "slaves_enable": True,
    "ha_heartbeat_ms": 200,
    "ha_housekeeping_ms": 3_600_000,  # however long a test stands still, its slaves are not given up
    "ha_transfer_batch_bytes": 32_768,
}


class Copy:
    """A slave: reports a place, takes frames, keeps what they bring."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begin: int) -> None:
        self._reader, self._writer = reader, writer
        self.begin = -1  # the first frame tells
        self.end = begin
        self.log = b""
        self.frames: list[tuple[int, int]] = []
        self.say(begin)

    @classmethod
    async def of(cls, cluster: ServingCluster, begin: int = 0) -> Copy:
        return cls(*await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port), begin)

    def say(self, offset: int) -> None:
        self._writer.write(struct.pack(">q", offset))

    async def take(self) -> int:
        """The next frame; returns its size."""
        async with asyncio.timeout(WITHIN_S):
            position, size = struct.unpack(">qi", await self._reader.readexactly(12))
            data = await self._reader.readexactly(size)
        if self.begin < 0:
            self.begin = self.end = position
        assert position == self.end, "no gap and nothing twice"
        self.frames.append((position, size))
        self.log += data
        self.end += size
        return size

    async def follow(self, end: int) -> None:
        while self.end < end:
            await self.take()
        self.say(self.end)

    async def is_closed(self) -> bool:
        async with asyncio.timeout(WITHIN_S):
            while chunk := await self._reader.read(65536):
                del chunk
        return True

    def close(self) -> None:
        self._writer.close()


def on_disk(cluster: ServingCluster, begin: int, end: int) -> bytes:
    files = sorted((cluster.broker.store_config.root / "commitlog").iterdir())
    return b"".join(path.read_bytes() for path in files)[begin:end]


async def send(cluster: ServingCluster, count: int) -> None:
    async with connected(cluster.broker.port) as peer:
        fields = send_fields("G", "Copied", 0, "")
        for number in range(count):
            answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"%d " % number * 400)
            assert answer.code == 0, answer.remark


def mapped_bytes(path: Path) -> int:
    """What this process has looked at of a file through maps of it, as the kernel counts it."""
    found, is_of_file = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line.partition(" ")[0].endswith(":"):
            is_of_file = line.endswith(str(path))
        elif is_of_file and line.startswith("Rss:"):
            found += int(line.split()[1]) << 10
    return found


async def test_no_page_that_an_earlier_life_wrote_is_touched_on_the_loop(tmp_path: Path) -> None:
    store = {"commit_log_file_bytes": FILE_BYTES}
    async with serving(tmp_path, broker=SLAVES, store=store) as cluster:
        await send(cluster, 900)
    async with serving(tmp_path, broker=SLAVES, store=store) as cluster:
        first, end = (
            cluster.broker.store_config.root / "commitlog" / f"{0:020}",
            cluster.broker.store.max_physical_offset,
        )
        assert FILE_BYTES < end < HOT_BYTES, "near the end, and the first file is full"
        before = mapped_bytes(first)
        copy = await Copy.of(cluster, 1)
        await copy.follow(end)
        assert copy.log == on_disk(cluster, 1, end)
        assert mapped_bytes(first) == before
        assert len(cluster.broker.store.log_view(1, 100_000)) == 100_000
        assert bytes(cluster.broker.store.log_view(1, 100_000)) == copy.log[:100_000]
        assert mapped_bytes(first) > before, "a look through the map is seen"
        await send(cluster, 3)
        await copy.follow(cluster.broker.store.max_physical_offset)
        assert copy.log == on_disk(cluster, 1, copy.end)


async def test_a_slave_of_gantrymq_gets_eight_batches_in_a_frame(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES, store={"commit_log_file_bytes": FILE_BYTES}) as cluster:
        await send(cluster, 300)
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        name, end = cluster.broker.config.broker_name, cluster.broker.store.max_physical_offset
        writer.write(Hello(broker_name=name, role="SLAVE", address="127.0.0.1:1").to_bytes())
        theirs = await read_hello(reader)
        writer.write(EPOCH_OFFSET.pack(theirs.epochs.current, 0))
        at, sizes = 0, []
        while at < end:
            _epoch, place, size = EPOCH_HEAD.unpack(await reader.readexactly(EPOCH_HEAD.size))
            data = await reader.readexactly(size)
            if place != STATE:
                assert place == at and data == on_disk(cluster, at, at + size)
                at += size
                sizes.append(size)
        assert sizes[0] == 8 * 32_768 < end
        writer.close()


async def test_a_slave_gets_the_log_byte_for_byte_over_the_ends_of_files(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES, store={"commit_log_file_bytes": FILE_BYTES}) as cluster:
        copy = await Copy.of(cluster)
        await send(cluster, 900)
        end = cluster.broker.store.max_physical_offset
        assert end > FILE_BYTES, "more than one file"
        await copy.follow(end)
        assert (copy.begin, copy.log) == (0, on_disk(cluster, 0, end))
        assert all(start // FILE_BYTES == (start + size - 1) // FILE_BYTES for start, size in copy.frames if size)
        assert max(size for _, size in copy.frames) <= 32_768
        await until(lambda: cluster.broker.slaves.behind_bytes == 0)
        copy.close()
        await until(lambda: not cluster.broker.slaves.slaves)


async def test_a_slave_goes_on_where_it_was_and_an_empty_one_begins_with_the_last_file(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES, store={"commit_log_file_bytes": FILE_BYTES}) as cluster:
        await send(cluster, 900)
        end = cluster.broker.store.max_physical_offset
        late, empty = await Copy.of(cluster, 5000), await Copy.of(cluster, 0)
        await asyncio.gather(late.follow(end), empty.follow(end))
        assert (late.begin, late.log) == (5000, on_disk(cluster, 5000, end))
        assert empty.begin == end - end % FILE_BYTES
        assert empty.log == on_disk(cluster, empty.begin, end)
        late.close()
        empty.close()


async def test_silence_is_broken_by_signs_of_life(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES) as cluster:
        await send(cluster, 1)
        copy = await Copy.of(cluster)
        await copy.follow(cluster.broker.store.max_physical_offset)
        assert await copy.take() == 0, "a sign of life"
        copy.close()


async def test_a_slave_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES | {"ha_housekeeping_ms": 300}) as cluster:
        copy = await Copy.of(cluster)
        assert await copy.is_closed()
        copy.close()


@pytest.mark.parametrize("said", [-1, 10**12])
async def test_a_slave_of_another_log_is_refused(tmp_path: Path, said: int) -> None:
    async with serving(tmp_path, broker=SLAVES) as cluster:
        await send(cluster, 1)
        copy = await Copy.of(cluster, said)
        assert await copy.is_closed()


async def test_the_difference_is_told_in_the_status(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES) as cluster, connected(cluster.broker.port) as peer:

        async def figures() -> dict[str, str]:
            return KVTable.from_json((await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).body).table

        assert (await figures())["slaveBehindBytes"] == "none"
        await send(cluster, 3)
        end = cluster.broker.store.max_physical_offset
        copy = await Copy.of(cluster, 0)
        await until(lambda: len(cluster.broker.slaves.slaves) == 1 and cluster.broker.slaves.behind_bytes is not None)
        table = await figures()
        assert (table["slavesConnected"], table["slaveBehindBytes"]) == ("1", str(end))
        await copy.follow(end)
        await until(lambda: cluster.broker.slaves.behind_bytes == 0)
        table = await figures()
        assert (table["slaveBehindBytes"], table["slavesInSync"], table["slavesGone"]) == ("0", "1", "none")
        [slave] = SlaveDifferences.of_runtime_info(table)
        assert (slave.behind_bytes, slave.in_sync) == (0, True)
        copy.close()
        await until(lambda: not cluster.broker.slaves.slaves)
        table = await figures()
        assert (table["slavesConnected"], table["slavesGone"].split()[0]) == ("0", "127.0.0.1")
        again = await Copy.of(cluster, end)
        await until(lambda: not cluster.broker.slaves.gone)
        assert (await figures())["slavesGone"] == "none"
        again.close()


async def test_a_stuck_slave_holds_up_neither_sends_nor_another_slave(tmp_path: Path) -> None:
    """It asks for the log and reads nothing; what waits for it is bounded by the sockets' buffers."""
    async with serving(tmp_path, broker=SLAVES) as cluster, connected(cluster.broker.port) as peer:
        stuck = socket.create_connection(("127.0.0.1", cluster.broker.slaves.port))
        try:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.sendall(struct.pack(">q", 0))
            await until(lambda: len(cluster.broker.slaves.slaves) == 1)
            [known] = cluster.broker.slaves.slaves
            other = await Copy.of(cluster)
            fields, body = send_fields("G", "Copied", 0, ""), b"x" * (1 << 20)
            end = 0
            while known.sent < 0 or end - known.sent < 2 << 20:
                assert end < 64 << 20, "a slave that reads nothing is fed all"
                answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body)
                assert answer.code == 0, answer.remark
                end = cluster.broker.store.max_physical_offset
                while other.end < end:
                    await other.take()
                    other.log = b""
            assert known.acknowledged == 0
            other.close()
        finally:
            stuck.close()


async def test_a_slave_that_falls_behind_is_told_once_and_its_difference_each_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slaves, "REPORT_S", 0.0)

    def told(event: str) -> list[logging.LogRecord]:
        return [record for record in caplog.records if getattr(record, "event", "") == event]

    async with serving(tmp_path, broker=SLAVES | {"slave_fall_behind_bytes": 1000}) as cluster:
        copy = await Copy.of(cluster, 0)
        with caplog.at_level("INFO"):
            await until(lambda: len(told("slave_in_sync")) == 1)
            await send(cluster, 3)
            await until(lambda: len(told("slave_falls_behind")) == 1)
            lacks = cluster.broker.slaves.behind_bytes
            line = f"bytes={lacks} messages="
            formatter = FactsFormatter()
            await until(lambda: any(line in formatter.format(record) for record in told("slave_difference")))
            assert told("slave_difference")[0].getMessage() == "Slave fall behind master", "as RocketMQ's"
            await copy.follow(cluster.broker.store.max_physical_offset)
            await until(lambda: len(told("slave_in_sync")) == 2)
            assert len(told("slave_falls_behind")) == 1
            copy.close()
            await until(lambda: len(told("slave_gone")) == 1)
            assert told("slave_gone")[0].levelno == logging.WARNING


async def test_the_port_is_closed_unless_it_is_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        assert cluster.broker.slaves.port == 0


async def test_a_slave_that_registers_is_told_where_to_ask(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=SLAVES) as cluster, connected(cluster.namesrv.port) as peer:
        fields, body = registration("10.9.9.9:10911", broker_id=1)
        answer = await peer.ask(RequestCode.REGISTER_BROKER, fields, body)
        assert answer.ext_fields["haServerAddr"] == f"127.0.0.1:{cluster.broker.slaves.port}"
