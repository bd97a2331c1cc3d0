"""Slaves: brokers that keep a copy of this one's commit log, byte for byte, over RocketMQ's HA protocol (ha_frames.py).

A slave that asks for 0 gets the log from the beginning of its last file on, as RocketMQ does it: an empty slave is no
backup of old messages. Topics, offsets and groups it asks for with ordinary requests. A peer that reaches this port
reads every message, so it is open only with slavesEnable, and haSlaveAddresses may name who is let in.

Each connection has a task of its own and a bounded buffer: a slow slave slows nothing but itself. With SYNC_MASTER
sends wait for the slave that is furthest (group_transfer.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from appliance.broker.epochs.standing import StandingFile
from appliance.broker.replication.group_transfer import GroupTransfer
from appliance.broker.replication.ha_frames import (
    EPOCH_HEAD,
    EPOCH_OFFSET,
    HEAD,
    OFFSET,
    STATE,
    STATE_OF_PART,
    FrameError,
)
from appliance.broker.replication.handshake import MAGIC, Hello, read_hello
from appliance.broker.replication.in_sync import InSyncSet
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.broker.replication.read_gate import ReadGate
from appliance.broker.replication.slave_figures import LogEnds, TransferRate
from appliance.broker.replication.slave_guard import SlaveGuard, new_challenge, read_proof
from appliance.broker.replication.state_frames import INTERVAL_S, SOON_S, StateSource
from appliance.process.json_file import StateFileError
from appliance.remoting.plain_listener import PlainListener
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import timeout
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

SLAVES_MAX = 16
READ_BYTES = 1024 * 1024  # of the log in one go, on a thread
BATCHES_A_FRAME = 8  # of haTransferBatchSize, to slaves of GantryMQ: each frame is a call of the kernel on either side
HOT_BYTES = 4 << 20  # before the log's end: if this process wrote it, it did so just now, and it is surely in memory
IDLE_S = 0.02  # between looks for new messages, unless a send waits
SAMPLE_S = 1.0
GONE_HOSTS_MAX = 256
GONE_REMEMBERED_S = 86_400.0  # then a slave that went was taken away for good
REPORT_S = 60.0  # RocketMQ: the difference is logged each minute


@dataclass(slots=True, eq=False)
class Slave:
    """One connected slave. acknowledged: up to where it has the log, -1 before it said so; sent: what it was given.

    epoch: that of the connection, None with RocketMQ's protocol; broker: where a slave of GantryMQ serves.
    told_at: monotonic, as of when it was last told the state of all tables. states: those on their way to it, each with
    the versions of topics and groups if it tells all of both; tables: the versions that it has surely, None at first.
    """

    address: str
    rate: TransferRate
    epoch: int | None = None
    broker: str = ""
    told_at: float = 0.0
    states: deque[list[list[int]] | None] = field(default_factory=deque)
    tables: list[list[int]] | None = None
    acknowledged: int = -1
    sent: int = -1
    sent_bytes: int = 0
    in_sync: bool = False  # as of the last sample
    seconds_behind: float = 0.0
    messages_behind: int | None = None  # about; None: not known
    begin: asyncio.Event = field(default_factory=asyncio.Event)
    more: asyncio.Event = field(default_factory=asyncio.Event)  # the log has grown, and a send waits for it


class SlaveService:
    """The port that slaves connect to. open() binds, run() reports, close() ends every connection.

    on_fenced: told of a greeting that speaks of a later epoch of this log: another broker is the master.
    """

    def __init__(
        self,
        store: MessageStore,
        config: BrokerConfig,
        standing: StandingFile,
        *,
        state: StateSource,
        guard: SlaveGuard,
        gate: ReadGate,
        on_record: InSyncFile,
        on_fenced: Callable[[Hello], None] = lambda hello: None,
    ) -> None:
        self._store = store
        self._config = config
        self._standing = standing
        self._state = state
        self.guard = guard
        self._on_fenced = on_fenced
        self._heard = 0  # the highest epoch that ended this one
        self.broker_address = ""  # as slaves are told, once it is known
        self._listener: PlainListener | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._tables_heard = asyncio.Event()  # a slave has taken over a state, or others may be in sync
        self._transfer = GroupTransfer(config.slave_timeout_ms / 1000)
        self._gate = gate if config.read_confirmed_only else None
        self._replicas_min = config.min_in_sync_replicas if config.is_sync_master else 1
        self._on_record = on_record
        self.in_sync: InSyncSet | None = None  # from when the log's end is known
        self._ends = LogEnds()
        self._written_from = 0  # of the log: this process has written what follows
        self.slaves: set[Slave] = set()
        self.gone: dict[str, float] = {}  # hosts whose slave went and has not come back, and when (monotonic)
        self.port = 0  # 0: not open

    @property
    def behind_bytes(self) -> int | None:
        """What the best slave lacks of the log; None without slaves."""
        best = self._best()
        return None if best is None else self.lacks(best)

    def lacks(self, slave: Slave) -> int:
        """What a slave lacks of the log, bytes; all of it before it said where it is."""
        return max(self._store.max_physical_offset - max(slave.acknowledged, 0), 0)

    def is_in_sync(self, slave: Slave) -> bool:
        """Whether it lacks so little that a SYNC_MASTER's sends wait for it."""
        return slave.acknowledged >= 0 and self.lacks(slave) < self._config.slave_fall_behind_bytes

    def gone_for(self) -> list[tuple[str, float]]:
        """The hosts of slaves that went and did not come back, with seconds since, the last one first."""
        now = time.monotonic()
        gone = [(host, now - at) for host, at in self.gone.items() if now - at < GONE_REMEMBERED_S]
        return sorted(gone, key=lambda each: each[1])

    def when_copied(self, end_offset: int, callback: Callable[[ResponseCode], None]) -> None:
        """Call back once a slave has everything below the offset: SUCCESS, or FLUSH_SLAVE_TIMEOUT.

        At once SLAVE_NOT_AVAILABLE, when no slave is connected or the best lacks haSlaveFallbehindMax and more.
        """
        best = self._best()
        if self._config.all_ack_in_sync and (self.in_sync is None or not self.in_sync.has_required):
            callback(ResponseCode.SLAVE_NOT_AVAILABLE)
            return
        if best is None or end_offset - best.acknowledged >= self._config.slave_fall_behind_bytes:
            callback(ResponseCode.SLAVE_NOT_AVAILABLE)
            return
        self._transfer.wait(end_offset, callback)
        for slave in self.slaves:
            slave.more.set()

    async def until_tables_are_there(self) -> None:
        """Wait until the slaves in sync have topics and groups as they are now; slaveTimeout ms at most."""
        wanted = self._state.versions
        with contextlib.suppress(TimeoutError):
            async with timeout(self._config.slave_timeout_ms / 1000):
                while self._without_tables(wanted):
                    self._tables_heard.clear()
                    await self._tables_heard.wait()
        if lacking := self._without_tables(wanted):
            facts = {"event": "tables_not_copied", "slaves": lacking}
            logger.warning("slaves in sync have not said that they have a changed topic or group", extra=facts)

    def _without_tables(self, wanted: list[list[int]]) -> list[str]:
        """Who of the slaves in sync may lack these versions: counters only grow while this broker runs."""
        there = {
            slave.broker
            for slave in self.slaves
            if slave.tables is not None
            and all(has[1] >= want[1] for has, want in zip(slave.tables, wanted, strict=True))
        }
        return [name for name in self._in_sync_set().names if name not in there]

    async def open(self, port: int) -> None:
        """Bind. port 0: a free one. Raises OSError."""
        self._written_from = self._store.max_physical_offset
        self._require_replicas()
        self._listener = self.guard.listener(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._connected), port
        )
        self.port = await self._listener.open()
        self._listener.accept()

    async def run(self) -> None:
        """Watch how far the slaves are, and log it each minute, until cancelled."""
        reported = time.monotonic()
        self._sample(reported)
        await asyncio.sleep(SAMPLE_S)
        if self._gate is not None:  # not before: who listens to the store is settled by now
            self._gate.close_behind()
        while True:
            now = time.monotonic()
            self._sample(now)
            await self._look_who_is_in_sync(now)
            self._tables_heard.set()
            if now - reported >= REPORT_S:
                reported = now
                for slave in self.slaves:
                    logger.info("Slave fall behind master", extra={"event": "slave_difference", **self._facts(slave)})
            await asyncio.sleep(SAMPLE_S)

    async def close(self) -> None:
        self._transfer.close()
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        await listener.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    # -- figures ------------------------------------------------------------------------------------------------------

    def _best(self) -> Slave | None:
        """The slave that is furthest."""
        known = [slave for slave in self.slaves if slave.acknowledged >= 0]
        return max(known, key=lambda slave: slave.acknowledged, default=None)

    def _sample(self, now: float) -> None:
        self._ends.note(self._store.max_physical_offset, now, self._store.stats.put_times)
        for slave in self.slaves:
            slave.rate.note(slave.sent_bytes, now)
            slave.seconds_behind = self._ends.seconds_behind(slave.acknowledged, now)
            slave.messages_behind = self._ends.messages_behind(slave.acknowledged)
            in_sync = self.is_in_sync(slave)
            if slave.in_sync and not in_sync:
                logger.warning("slave falls behind", extra={"event": "slave_falls_behind", **self._facts(slave)})
            elif in_sync and not slave.in_sync:
                logger.info("slave is in sync", extra={"event": "slave_in_sync", **self._facts(slave)})
            slave.in_sync = in_sync

    async def _look_who_is_in_sync(self, now: float) -> None:
        in_sync, end = self._in_sync_set(), self._store.max_physical_offset
        leaving = in_sync.leaving(end, now)
        if leaving and not await self._record(name for name in self._on_record.record.names if name not in leaving):
            leaving = []  # and required as before
        joined, left = in_sync.look(end, now, leaving)
        facts = {"event": "in_sync_changed", "joined": joined, "left": left, "confirmed": in_sync.confirmed}
        if joined or left:
            logger.log(logging.WARNING if left else logging.INFO, "slaves in sync changed", extra=facts)
        self._confirmed()
        still = set(in_sync.required).intersection(self._on_record.record.names)  # which have not been heard yet
        await self._record(still.union(in_sync.names))

    async def _record(self, names: Iterable[str]) -> bool:
        """Have these on record as the set of this epoch; say if they are."""
        record = InSyncRecord(
            self._standing.standing.epochs.current, tuple(sorted(names)), self._in_sync_set().confirmed
        )
        was = self._on_record.record
        if (record.epoch, record.names) == (was.epoch, was.names):
            return True
        try:
            await asyncio.to_thread(self._on_record.keep, record)
        except StateFileError as exc:
            facts = {"event": "state_file_not_written", "why": str(exc)}
            logger.error("slaves in sync not put on record: none leaves the set", extra=facts)
            return False
        return True

    def _in_sync_set(self) -> InSyncSet:
        if self.in_sync is None:
            was, epoch = self._on_record.record, self._standing.standing.epochs.current
            self.in_sync = InSyncSet(
                self._config.in_sync_lag_ms / 1000,
                self._store.max_physical_offset,
                on_record=was.names if epoch and was.epoch == epoch else (),
                now=time.monotonic(),
            )
        return self.in_sync

    def _told_in_sync(self) -> InSyncRecord:
        """What slaves are told of the set. Without a slave in it nothing more is confirmed by one."""
        in_sync, record = self._in_sync_set(), self._on_record.record
        return dataclasses.replace(record, confirmed=in_sync.confirmed) if in_sync.names else record

    def _confirmed(self) -> None:
        """More may be confirmed: sends that wait for it are answered, and consumers see it."""
        in_sync = self._in_sync_set()
        if self._config.all_ack_in_sync and in_sync.has_required:
            self._transfer.acknowledged(in_sync.confirmed)
        if self._gate is not None:
            self._gate.show(in_sync.confirmed if in_sync.has_required else None)
        self._require_replicas()

    def _require_replicas(self) -> None:
        """Refuse messages while fewer brokers than minInSyncReplicas have all that is confirmed."""
        if self._replicas_min > 1:
            there = 1 + (len(self.in_sync.names) if self.in_sync is not None else 0)
            lacking = f"{there} in sync, the master counted, minInSyncReplicas={self._replicas_min}"
            self._store.require_copies(lacking if there < self._replicas_min else "")

    def _facts(self, slave: Slave) -> dict[str, object]:
        return {
            "slave": slave.address,
            "bytes": self.lacks(slave),
            "messages": "unknown" if slave.messages_behind is None else slave.messages_behind,
            "seconds": round(slave.seconds_behind, 1),
            "bytes_per_s": round(slave.rate.bytes_per_s),
        }

    # -- one slave ----------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        host, port = writer.get_extra_info("peername")[:2]
        slave = Slave(f"{host}:{port}", TransferRate(time.monotonic()))
        why = self._refusal(host)
        try:
            if not why:
                why = "this broker stops"
                await self._serve(slave, reader, writer)
        except* (SlaveLost, FrameError) as lost:
            why = str(lost.exceptions[0])
        except* OSError as errors:
            why = str(errors.exceptions[0])
        finally:
            self._connections.discard(task)
            self.slaves.discard(slave)
            self._note_gone(slave, host, why)  # first: TLS waits for the good-bye of one that stands still
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _refusal(self, host: str) -> str:
        """Why a peer is not served; "" when it is."""
        if len(self.slaves) >= SLAVES_MAX:
            return f"{SLAVES_MAX} slaves are connected already"
        if not self._config.may_be_slave(host):
            return "its address is not in haSlaveAddresses"
        return ""

    async def _serve(self, slave: Slave, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.slaves.add(slave)
        first = await self._greet(slave, reader, writer)
        logger.info("slave connected", extra={"event": "slave_connected", "slave": slave.address, "epoch": slave.epoch})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hear(slave, reader, first), name=f"slave {slave.address}: acknowledgements")
            tasks.create_task(self._feed_all(slave, writer), name=f"slave {slave.address}: log")

    def _note_gone(self, slave: Slave, host: str, why: str) -> None:
        was_slave = slave.acknowledged >= 0
        if slave.epoch is not None and all(other.broker != slave.broker for other in self.slaves):
            self._in_sync_set().gone(slave.broker, time.monotonic())
        if was_slave and self._listener is not None:
            self.gone.pop(host, None)
            self.gone[host] = time.monotonic()
            if len(self.gone) > GONE_HOSTS_MAX:
                del self.gone[next(iter(self.gone))]
        logger.log(
            logging.WARNING if was_slave else logging.INFO,
            "slave gone",
            extra={"event": "slave_gone", "slave": slave.address, "why": why},
        )

    async def _greet(self, slave: Slave, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """Return the first place that the slave names, after a greeting of GantryMQ's. SlaveLost; FrameError."""
        first = await self._place(slave, reader)
        if first != MAGIC:
            if self.guard.needs_account:
                raise SlaveLost("it can't sign, as a slave of RocketMQ's, and haAccounts=true asks for an account")
            return first
        theirs = await self._in_time(read_hello(reader, after_magic=True))
        refusal = await self._wrong_account(reader, writer) if self.guard.needs_account else ""
        refusal = refusal or self._refusal_of(theirs)
        await give(writer, self.hello(refusal).to_bytes())
        if refusal:
            raise SlaveLost(refusal)
        slave.epoch, slave.broker = self._standing.standing.epochs.current, theirs.address
        return await self._place(slave, reader)

    async def _wrong_account(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Ask for an account; return why it is none to serve, "" when it is one. SlaveLost; FrameError."""
        challenge = new_challenge()
        await give(writer, self.hello(challenge=challenge).to_bytes())
        return self.guard.refusal(challenge, await self._in_time(read_proof(reader)))

    def hello(self, refusal: str = "", challenge: str = "") -> Hello:
        """What this master says first to a peer of GantryMQ."""
        return Hello(
            broker_name=self._config.broker_name,
            role=self._config.broker_role,
            address=self.broker_address,
            epochs=self._standing.standing.epochs.heard(self._heard),
            begin=self._store.min_physical_offset,
            end=self._store.max_physical_offset,
            refusal=refusal,
            challenge=challenge,
        )

    def _refusal_of(self, theirs: Hello) -> str:
        """Why a peer of GantryMQ is not served; "" when it is. A later epoch of this log ends this master."""
        own = self._standing.standing.epochs
        if theirs.broker_name != self._config.broker_name:
            return f"this is {self._config.broker_name}, not {theirs.broker_name}"
        if theirs.epochs.highest > own.highest:
            if own.shares(theirs.epochs):
                self._heard = theirs.epochs.highest
                self._on_fenced(theirs)
            return f"the master of epoch {own.current} hears of epoch {theirs.epochs.highest}: it is over"
        return "" if theirs.role == "SLAVE" else f"epoch {own.current} has a master already, which is this broker"

    async def _place(self, slave: Slave, reader: asyncio.StreamReader) -> int:
        """Read one place, in the slave's protocol. SlaveLost."""
        if slave.epoch is None:
            return int(OFFSET.unpack(await self._in_time(reader.readexactly(OFFSET.size)))[0])
        epoch, offset = EPOCH_OFFSET.unpack(await self._in_time(reader.readexactly(EPOCH_OFFSET.size)))
        if epoch != slave.epoch:
            raise SlaveLost(f"acknowledges in epoch {epoch}, this is epoch {slave.epoch}")
        return int(offset)

    async def _in_time(self, reading: Awaitable[T]) -> T:
        silence_s = self._config.ha_housekeeping_ms / 1000
        try:
            async with timeout(silence_s):
                return await reading
        except TimeoutError:
            raise SlaveLost(f"silent for {silence_s:.0f} s") from None
        except asyncio.IncompleteReadError:
            raise SlaveLost("closed by the slave") from None

    async def _hear(self, slave: Slave, reader: asyncio.StreamReader, offset: int) -> None:
        """Take what the slave says it has, this offset first. Ends by SlaveLost."""
        while True:
            if offset in (STATE, STATE_OF_PART) and slave.states:
                versions = slave.states.popleft()
                if offset == STATE and versions is not None:
                    slave.tables = versions
                    self._tables_heard.set()
                offset = await self._place(slave, reader)
                continue
            # First it says where to begin; then it can't have more than it was given.
            end = self._store.max_physical_offset if slave.acknowledged < 0 else slave.sent
            if not 0 <= offset <= max(end, slave.acknowledged):
                raise SlaveLost(f"says it has the log up to {offset}, beyond {end}: it is not this log's copy")
            slave.acknowledged = offset
            if not slave.begin.is_set():
                self.gone.pop(slave.address.rpartition(":")[0], None)
                slave.begin.set()
            if slave.epoch is not None:
                end, now = self._store.max_physical_offset, time.monotonic()
                self._in_sync_set().acknowledged(slave.broker, offset, end, now)
                self._confirmed()
            if not self._config.all_ack_in_sync:
                self._transfer.acknowledged(offset)
            offset = await self._place(slave, reader)

    async def _feed_all(self, slave: Slave, writer: asyncio.StreamWriter) -> None:
        """Send what there is for the slave: the log, and to one of GantryMQ the state of the tables."""
        await slave.begin.wait()
        if slave.epoch is None:
            await self._feed(slave, writer, None)
            return
        states = _States(self._state, slave.epoch, self._told_in_sync)
        try:
            await self._feed(slave, writer, states)
        finally:
            states.close()

    async def _feed(self, slave: Slave, writer: asyncio.StreamWriter, states: _States | None) -> None:
        """Send the log from where the slave wants it, and signs of life while there is nothing new."""
        store, beat_s = self._store, self._config.ha_heartbeat_ms / 1000
        slave.sent = slave.acknowledged or store.log_file_start(store.max_physical_offset)
        sent_at = time.monotonic()
        while True:
            if states is not None and (frame := await states.next_frame(slave, store.max_physical_offset)):
                await give(writer, frame)
                sent_at = time.monotonic()
            data = await self._next_bytes(slave.sent)
            if data:
                await self._send(slave, writer, data)
                sent_at = time.monotonic()
                continue
            if slave.sent < store.min_physical_offset:
                raise SlaveLost(f"wants the log from {slave.sent}, which is deleted")
            if time.monotonic() - sent_at >= beat_s:
                await give(writer, _head(slave, slave.sent, 0))
                sent_at = time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with timeout(IDLE_S):
                    await slave.more.wait()
            slave.more.clear()

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
            await give(writer, _head(slave, position, len(part)), part)


class _States:
    """States for one slave: each is taken when it is due, and sent once the slave was given the log until then."""

    def __init__(self, source: StateSource, epoch: int, in_sync: Callable[[], InSyncRecord]) -> None:
        self._source = source
        self._epoch = epoch
        self._in_sync = in_sync
        self._untold = source.watch()
        self._next_at = self._soon_at = 0.0  # the second one when topics or groups have changed
        # the log's end and the time when it was taken, the state, and versions if it tells all of topics and groups
        self._waiting: tuple[int, float, bytes, list[list[int]] | None] | None = None

    async def next_frame(self, slave: Slave, log_end: int) -> bytes:
        """The frame to send now, none when there is none."""
        now = time.monotonic()
        if self._waiting is None and now >= (self._soon_at if self._untold.is_urgent else self._next_at):
            state = await self._source.take(self._untold, self._in_sync())
            self._waiting = log_end, now, state, None if self._untold.is_urgent else self._source.versions
            self._next_at = now + (0 if self._untold.has_any else INTERVAL_S)
            self._soon_at = now + SOON_S
        if self._waiting is None or slave.sent < self._waiting[0]:
            return b""
        (_end, taken_at, state, versions), self._waiting = self._waiting, None
        slave.states.append(versions)
        if not self._untold.has_any:
            slave.told_at = taken_at
        return EPOCH_HEAD.pack(self._epoch, STATE, len(state)) + state

    def close(self) -> None:
        self._source.leave(self._untold)


def _head(slave: Slave, position: int, size: int) -> bytes:
    return HEAD.pack(position, size) if slave.epoch is None else EPOCH_HEAD.pack(slave.epoch, position, size)


class SlaveLost(Exception):
    """The connection to a slave is over; the text says why."""


async def give(writer: asyncio.StreamWriter, *parts: bytes | memoryview) -> None:
    """Write, and wait while the slave takes nothing. SlaveLost; OSError."""
    if writer.is_closing():  # uvloop's transport raises RuntimeError then
        raise SlaveLost("closed by the slave")
    writer.writelines(parts)
    await writer.drain()
