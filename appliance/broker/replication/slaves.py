"""Slaves: brokers that keep a copy of this one's commit log, byte for byte, over RocketMQ's HA protocol.

    slave -> master   i64: up to here I have the log. First the place to begin at, then acknowledgements
    master -> slave   i64 place, i32 size, that many bytes of the log; size 0 says that the connection lives

A slave that asks for 0 gets the log from the beginning of its last file on, as RocketMQ does it: an empty slave is no
backup of old messages. Topics, offsets and groups it asks for with ordinary requests. A peer that reaches this port
reads every message, so it is open only with slavesEnable.

Only asynchronous replication: no send waits for a slave.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
import time
from dataclasses import dataclass, field

from appliance.settings.roles import BrokerConfig
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

SLAVES_MAX = 16
READ_BYTES = 1024 * 1024  # of the log in one go, on a thread; sent in frames of haTransferBatchSize
IDLE_S = 0.02  # between looks for new messages
REPORT_S = 60.0  # RocketMQ: the difference is logged each minute

_OFFSET = struct.Struct(">q")
_FRAME = struct.Struct(">qi")


@dataclass(slots=True, eq=False)
class Slave:
    """One connected slave. acknowledged: up to where it has the log, -1 before it said so."""

    address: str
    acknowledged: int = -1
    begin: asyncio.Event = field(default_factory=asyncio.Event)


class SlaveService:
    """The port that slaves connect to. open() binds, run() reports, close() ends every connection."""

    def __init__(self, store: MessageStore, config: BrokerConfig) -> None:
        self._store = store
        self._config = config
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.slaves: set[Slave] = set()
        self.port = 0  # 0: not open

    @property
    def behind_bytes(self) -> int | None:
        """What the best slave lacks of the log; None without slaves."""
        known = [slave.acknowledged for slave in self.slaves if slave.acknowledged >= 0]
        return max(self._store.max_physical_offset - max(known), 0) if known else None

    async def open(self, port: int) -> None:
        """Bind. port 0: a free one. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, self._config.bind_address, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        """Log how far the slaves are, each minute, until cancelled."""
        while True:
            await asyncio.sleep(REPORT_S)
            if self.slaves:
                logger.info(
                    "slaves",
                    extra={"event": "slaves", "connected": len(self.slaves), "behind_bytes": self.behind_bytes},
                )

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    # -- one slave ----------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        host, port = writer.get_extra_info("peername")[:2]
        slave = Slave(f"{host}:{port}")
        why = "closed by the slave"
        try:
            if len(self.slaves) >= SLAVES_MAX:
                why = f"{SLAVES_MAX} slaves are connected already"
                return
            self.slaves.add(slave)
            logger.info("slave connected", extra={"event": "slave_connected", "slave": slave.address})
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._hear(slave, reader), name=f"slave {slave.address}: acknowledgements")
                tasks.create_task(self._feed(slave, writer), name=f"slave {slave.address}: log")
        except* SlaveLost as lost:
            why = str(lost.exceptions[0])
        except* OSError as errors:
            why = str(errors.exceptions[0])
        finally:
            self._connections.discard(task)
            self.slaves.discard(slave)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            logger.info("slave gone", extra={"event": "slave_gone", "slave": slave.address, "why": why})

    async def _hear(self, slave: Slave, reader: asyncio.StreamReader) -> None:
        """Take what the slave says it has. Ends by SlaveLost."""
        silence_s = self._config.ha_housekeeping_ms / 1000
        while True:
            try:
                async with asyncio.timeout(silence_s):
                    (offset,) = _OFFSET.unpack(await reader.readexactly(_OFFSET.size))
            except TimeoutError:
                raise SlaveLost(f"silent for {silence_s:.0f} s") from None
            except asyncio.IncompleteReadError:
                raise SlaveLost("closed by the slave") from None
            end = self._store.max_physical_offset
            if not 0 <= offset <= end:
                raise SlaveLost(f"says it has the log up to {offset}, which ends at {end}: it is not this log's copy")
            slave.acknowledged = offset
            slave.begin.set()

    async def _feed(self, slave: Slave, writer: asyncio.StreamWriter) -> None:
        """Send the log from where the slave wants it, and signs of life while there is nothing new."""
        await slave.begin.wait()
        position = slave.acknowledged or self._store.log_file_start(self._store.max_physical_offset)
        frame_bytes, beat_s = self._config.ha_transfer_batch_bytes, self._config.ha_heartbeat_ms / 1000
        sent_at = time.monotonic()
        while True:
            read = self._store.log_reader(position, READ_BYTES)
            if read is None:
                if position < self._store.min_physical_offset:
                    raise SlaveLost(f"wants the log from {position}, which is deleted")
                if time.monotonic() - sent_at >= beat_s:
                    writer.write(_FRAME.pack(position, 0))
                    await writer.drain()
                    sent_at = time.monotonic()
                await asyncio.sleep(IDLE_S)
                continue
            data = await asyncio.to_thread(read)
            for start in range(0, len(data), frame_bytes):
                part = data[start : start + frame_bytes]
                writer.write(_FRAME.pack(position, len(part)) + part)
                await writer.drain()
                position += len(part)
            sent_at = time.monotonic()


class SlaveLost(Exception):
    """The connection to a slave is over; the text says why."""
