"""What one slave is given: the log from where it is, and to a slave of GantryMQ the state of the tables, each behind
the log that it speaks of. With RocketMQ's protocol there are no states.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from appliance.broker.replication.ha_frames import EPOCH_HEAD, STATE
from appliance.broker.replication.in_sync_file import InSyncRecord
from appliance.broker.replication.master.slave import Slave, SlaveLost, State, frame_head, give
from appliance.broker.replication.state_frames import INTERVAL_S, SOON_S, StateSource
from appliance.process.awake import awake_s
from appliance.settings.roles import BrokerConfig
from store.message_store import MessageStore

READ_BYTES = 1024 * 1024  # of the log in one go, on a thread
BATCHES_A_FRAME = 8  # of haTransferBatchSize, to slaves of GantryMQ: each frame is a call of the kernel on either side
HOT_BYTES = 4 << 20  # before the log's end: if this process wrote it, it did so just now, and it is surely in memory
IDLE_S = 0.02  # between looks for new messages, unless a send waits


class Feed:
    """One master's. written_from: this process has written the log from there on. told_in_sync: what slaves are told
    of who is in sync.
    """

    def __init__(
        self,
        store: MessageStore,
        config: BrokerConfig,
        state: StateSource,
        *,
        written_from: int,
        told_in_sync: Callable[[], InSyncRecord],
    ) -> None:
        self._store = store
        self._config = config
        self._state = state
        self._written_from = written_from
        self._told_in_sync = told_in_sync

    async def run(self, slave: Slave, writer: asyncio.StreamWriter) -> None:
        """Send what there is for the slave: the log, and to one of GantryMQ the state of the tables."""
        await slave.begin.wait()
        states = None if slave.epoch is None else _States(self._store, self._state, slave.epoch, self._told_in_sync)
        try:
            await self._feed(slave, writer, states)
        finally:
            slave.more.close()
            if states is not None:
                states.close()

    async def _feed(self, slave: Slave, writer: asyncio.StreamWriter, states: _States | None) -> None:
        """Send the log from where the slave wants it, and signs of life while there is nothing new."""
        store, beat_s = self._store, self._config.ha_heartbeat_ms / 1000
        slave.sent = slave.acknowledged or store.log_file_start(store.max_physical_offset)
        sent_at = time.monotonic()
        while True:
            if states is not None and (frame := await states.next_frame(slave)):
                await give(writer, frame)
                sent_at = time.monotonic()
            data = await self._next_bytes(slave.sent)
            if data:
                await self._send(slave, writer, data)
                sent_at = time.monotonic()
                continue
            if slave.sent < store.min_physical_offset:
                raise SlaveLost(f"wants the log from {slave.sent}, which has been deleted")
            if time.monotonic() - sent_at >= beat_s:
                await give(writer, frame_head(slave, slave.sent, 0))
                sent_at = time.monotonic()
            await slave.more.wait(IDLE_S)

    async def _next_bytes(self, position: int) -> bytes | memoryview:
        """The log from there on, none when there is nothing new; what is not in memory is read by a thread."""
        store = self._store
        if position >= self._written_from and (
            position >= store.max_physical_offset - HOT_BYTES or store.is_log_in_memory(position, READ_BYTES)
        ):
            return store.log_view(position, READ_BYTES)
        read = store.log_reader(position, READ_BYTES)
        return memoryview(await asyncio.to_thread(read)) if read is not None else b""

    async def _send(self, slave: Slave, writer: asyncio.StreamWriter, data: bytes | memoryview) -> None:
        frame_bytes = self._config.ha_transfer_batch_bytes
        if slave.epoch is not None:
            frame_bytes = min(frame_bytes * BATCHES_A_FRAME, READ_BYTES)
        for start in range(0, len(data), frame_bytes):
            part = data[start : start + frame_bytes]
            position = slave.sent
            slave.sent += len(part)
            slave.sent_bytes += len(part)
            await give(writer, frame_head(slave, position, len(part)), part)


class _States:
    """States for one slave: each is taken when it is due, and sent once the slave was given the log until then."""

    def __init__(
        self, store: MessageStore, source: StateSource, epoch: int, in_sync: Callable[[], InSyncRecord]
    ) -> None:
        self._store = store
        self._source = source
        self._epoch = epoch
        self._in_sync = in_sync
        self._untold = source.watch()
        self._next_at = self._soon_at = 0.0  # the second one when topics or groups have changed
        self._waiting: tuple[int, bytes, State] | None = None  # the log's end when it was taken, the frame's body

    async def next_frame(self, slave: Slave) -> bytes:
        """The frame to send now, none when there is none."""
        now = time.monotonic()
        if self._waiting is None and now >= (self._soon_at if self._untold.is_urgent else self._next_at):
            taken_at = awake_s()
            body = await self._source.take(self._untold, self._in_sync())
            versions = None if self._untold.is_urgent else self._source.versions
            told_at = 0.0 if self._untold.has_any else taken_at
            # the end as of now: while it was taken others had turns, and delivered what it says is delivered
            self._waiting = self._store.max_physical_offset, body, State(versions, told_at)
            self._next_at = now + (0 if self._untold.has_any else INTERVAL_S)
            self._soon_at = now + SOON_S
        if self._waiting is None or slave.sent < self._waiting[0]:
            return b""
        (_end, body, state), self._waiting = self._waiting, None
        slave.states.append(state)
        return EPOCH_HEAD.pack(self._epoch, STATE, len(body)) + body

    def close(self) -> None:
        self._source.leave(self._untold)
