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
from collections.abc import Callable, Iterable

from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import StandingFile
from appliance.broker.replication.ha_frames import STATE, STATE_OF_PART, FrameError, PlaceReader
from appliance.broker.replication.handshake import Hello
from appliance.broker.replication.in_sync import GONE_S, InSyncSet
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.broker.replication.master.copied_offsets import move_until
from appliance.broker.replication.master.feed import Feed
from appliance.broker.replication.master.greeting import Greeter, SlaveRefused, copied
from appliance.broker.replication.master.group_transfer import GroupTransfer
from appliance.broker.replication.master.proof import MasterProof
from appliance.broker.replication.master.published_set import PublishedSet
from appliance.broker.replication.master.slave import Slave, SlaveLost
from appliance.broker.replication.master.slave_figures import LogEnds, TransferRate
from appliance.broker.replication.read_gate import ReadGate
from appliance.broker.replication.slave_guard import SlaveGuard
from appliance.broker.replication.state_frames import StateSource
from appliance.process.json_file import StateFileError
from appliance.remoting.acceptor import PlainListener, peer_address
from appliance.settings.roles import BrokerConfig
from gantrymq.log_limit import LogLimit
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import timeout
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

SLAVES_MAX = 16
SLAVES_AN_ADDRESS_MAX = 8  # without accounts, where any program may say that it is a slave
SAMPLE_S = 1.0
GONE_HOSTS_MAX = 256
GONE_REMEMBERED_S = 86_400.0  # then a slave that went was taken away for good
RECORD_S = 5.0  # between two writes of what is shown, if nothing else of the record changes
GOOD_BYE_S = 2.0  # for a peer to take what was written, and TLS's end: this broker may be waiting to open anew
REPORT_S = 60.0  # RocketMQ: the difference is logged each minute
READ_BYTES = 4096  # acknowledgements in one go


class SlaveService:
    """The port that slaves connect to. open() binds, run() reports, close() ends every connection."""

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
        member: MembershipFile,
        on_fenced: Callable[[Hello], None] = lambda hello: None,
        published: PublishedSet | None = None,
        proof: MasterProof | None = None,
    ) -> None:
        """published: where etcd has the set on record, too. proof: with automatic failover."""
        self._store = store
        self._config = config
        self._standing = standing
        self._state = state
        self.guard = guard
        self.greeter = Greeter(store, config, standing, member, guard=guard, admit=self._admit, on_fenced=on_fenced)
        self.fenced_by = ""  # "epoch 3 at HOST:PORT": nothing is confirmed here any more
        self._listener: PlainListener | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._tables_heard = asyncio.Event()  # a slave has taken over a state, or others may be in sync
        self.proof = proof
        self._transfer = GroupTransfer(config.slave_timeout_ms / 1000, lambda: self.may_confirm)
        self._gate = gate
        self._recorded_at = 0.0  # monotonic: when the record was written last
        self._member = member
        self._replicas_min = config.min_in_sync_replicas if config.is_sync_master else 1
        self._on_record = on_record
        self.published = published
        self.in_sync: InSyncSet | None = None  # from when the log's end is known
        self._ends = LogEnds()
        self._log_limit = LogLimit()
        self.slaves: set[Slave] = set()  # those that were let in
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

    @property
    def has_slaves_in_sync(self) -> bool:
        return self.in_sync is not None and bool(self.in_sync.names)

    @property
    def required(self) -> list[str]:
        """Where those slaves serve without which nothing more is confirmed."""
        return self._in_sync_set().required

    @property
    def is_all_confirmed(self) -> bool:
        """Whether all that are required have the whole log."""
        return self.in_sync is not None and self.in_sync.confirmed >= self._store.max_physical_offset

    def gone_for(self) -> list[tuple[str, float]]:
        """The hosts of slaves that went and did not come back, with seconds since, the last one first."""
        now = time.monotonic()
        gone = [(host, now - at) for host, at in self.gone.items() if now - at < GONE_REMEMBERED_S]
        return sorted(gone, key=lambda each: each[1])

    def when_copied(self, end_offset: int, callback: Callable[[ResponseCode], None]) -> None:
        """Call back once a slave has everything below the offset: SUCCESS, or FLUSH_SLAVE_TIMEOUT.

        At once SLAVE_NOT_AVAILABLE, when no slave is connected or the best lacks haSlaveFallbehindMax and more.
        """
        if not self.may_confirm:
            self._transfer.wait(end_offset, callback)
            return
        if self._config.all_ack_in_sync and (self.in_sync is None or not self.in_sync.has_required):
            callback(ResponseCode.SLAVE_NOT_AVAILABLE)
            return
        if self.proof is None:  # else all on record are waited for, also those that have not found a new master yet
            best = self._best()
            if best is None or end_offset - best.acknowledged >= self._config.slave_fall_behind_bytes:
                callback(ResponseCode.SLAVE_NOT_AVAILABLE)
                return
        self._transfer.wait(end_offset, callback)
        for slave in self.slaves:
            slave.more.set()

    @property
    def may_confirm(self) -> bool:
        """Whether this is the master for all that is known here. Looked at once for a batch."""
        return not self.fenced_by and (self.proof is None or self.proof.is_proven)

    def proof_changed(self) -> None:
        """The proof has begun, or is over."""
        self._confirmed()
        self._require_replicas()

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
            logger.warning("slaves in sync have not confirmed a changed topic or group", extra=facts)

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
        self._feed = Feed(
            self._store,
            self._config,
            self._state,
            written_from=self._store.max_physical_offset,
            told_in_sync=self._told_in_sync,
        )
        self._require_replicas()
        self._listener = self.guard.listener(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._connected), port
        )
        self.port = await self._listener.open()
        if self._config.has_own_slaves_only:
            facts = {"event": "own_slaves_only", "port": self.port}
            logger.warning(
                "SYNC_MASTER without slavesEnable: only slaves of this machine may copy its log; "
                "set slavesEnable=true, or their addresses with haSlaveAddresses, for others",
                extra=facts,
            )
        self._listener.accept()

    def fence(self, epoch: int, master: str) -> None:
        """Confirm nothing more: neither to senders nor to consumers."""
        self.fenced_by = f"epoch {epoch} at {master}"

    async def run(self) -> None:
        """Watch how far the slaves are, and log it each minute, until cancelled."""
        reported = time.monotonic()
        self._limit_offsets()
        self._sample(reported)
        self._confirmed()
        await self._record(self._in_sync_set().required)  # before anything is acknowledged that no slave has
        self._require_replicas()
        await asyncio.sleep(SAMPLE_S)
        while True:
            if self._config.read_confirmed_only:  # not before: who listens to the store is settled by now
                self._gate.close_behind()
            now = time.monotonic()
            self._sample(now)
            await self.look_who_is_in_sync(now)
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

    async def look_who_is_in_sync(self, now: float) -> None:
        in_sync, end = self._in_sync_set(), self._store.max_physical_offset
        leaving = in_sync.leaving(end, now)
        if leaving and not await self._record(name for name in self._on_record.record.names if name not in leaving):
            leaving = []  # and required as before
        complete = {slave.broker for slave in self.slaves if slave.has_all_tables}
        joined, left = in_sync.look(end, now, leaving, may_join=complete)
        self._limit_offsets()
        facts = {"event": "in_sync_changed", "joined": joined, "left": left, "confirmed": in_sync.confirmed}
        if joined or left:
            logger.log(logging.WARNING if left else logging.INFO, "slaves in sync changed", extra=facts)
        self._confirmed()
        if self.may_confirm:
            self._require_replicas()
        if left and not in_sync.has_required:
            in_sync.show(self._standing.standing.epochs.history[-1].start)
        still = set(in_sync.required).intersection(self._on_record.record.names)  # which have not been heard yet
        await self._record(still.union(in_sync.names))
        if self.may_confirm:
            self._require_replicas()  # etcd may have confirmed that this is the master

    async def _record(self, names: Iterable[str]) -> bool:
        """Have these on record as the set of this epoch, in etcd first; say if they are."""
        names, end = tuple(sorted(names)), self._store.max_physical_offset
        in_sync, own = self._in_sync_set(), self.greeter.broker_address
        if self.published is not None and not await self.published.keep(names, own, self._stores(own), end=end):
            return False
        epoch = self._standing.standing.epochs.current
        shown = -1 if in_sync.shown is None else in_sync.shown
        leave_s = min(GONE_S, self._config.in_sync_lag_ms / 1000)
        was, now = self._on_record.record, time.monotonic()
        record = InSyncRecord(epoch, names, in_sync.confirmed, shown, was.version, leave_s)
        if not record.names:  # of a SYNC_MASTER's log nothing more is confirmed then
            alone, until = not self._config.is_sync_master, was.confirmed if was.epoch == epoch else -1
            record = dataclasses.replace(record, alone=alone, confirmed=in_sync.confirmed if was.names else until)
        is_other = (record.epoch, record.names, record.alone) != (was.epoch, was.names, was.alone)
        is_due = self._config.read_confirmed_only and shown != was.shown and now - self._recorded_at >= RECORD_S
        is_due |= record.confirmed != was.confirmed
        if is_other:
            record = dataclasses.replace(record, version=was.version + 1)
        elif not is_due:
            return True
        self._recorded_at = now
        try:
            with self.proof.writing() if self.proof is not None else contextlib.nullcontext():
                await asyncio.to_thread(self._on_record.keep, record)
        except StateFileError as exc:
            facts = {"event": "state_file_not_written", "why": str(exc)}
            logger.error("slaves in sync not recorded: no slave leaves the set", extra=facts)
            return False
        return True

    def _stores(self, own: str) -> dict[str, tuple[str, str]]:
        """Store and boot of each member that has all that is confirmed now: what it says of an earlier boot is over."""
        confirmed, member = self._in_sync_set().confirmed, self._member.membership
        there = {
            slave.broker: (slave.store, slave.boot)
            for slave in self.slaves
            if slave.epoch is not None and slave.acknowledged >= confirmed
        }
        return {**there, own: (member.store, member.boot)}

    def _in_sync_set(self) -> InSyncSet:
        if self.in_sync is None:
            was, epoch = self._on_record.record, self._standing.standing.epochs.current
            is_this_epochs, end = bool(epoch) and was.epoch == epoch, self._store.max_physical_offset
            self.in_sync = InSyncSet(
                self._config.in_sync_lag_ms / 1000,
                end,
                confirmed=max(was.confirmed_of(end), 0) if is_this_epochs else None,
                on_record=was.names if is_this_epochs else (),
                now=time.monotonic() + SAMPLE_S,  # those on record have so long to come back
                shown=self._shown_before(was, is_this_epochs=is_this_epochs),
            )
        return self.in_sync

    def _shown_before(self, was: InSyncRecord, *, is_this_epochs: bool) -> int | None:
        """Up to where consumers may see the log when this master opens. A promoted one shows all that it has then, and
        what it takes itself once another of the set that it was in has it, too."""
        if is_this_epochs:
            return was.shown if was.shown >= 0 else None
        return self._store.max_physical_offset if set(was.names) - {self.greeter.broker_address} else None

    def _told_in_sync(self) -> InSyncRecord:
        """What slaves are told of the set. Without a slave in it nothing more is confirmed by one."""
        in_sync, record = self._in_sync_set(), dataclasses.replace(self._on_record.record, alone=False)
        return dataclasses.replace(record, confirmed=in_sync.confirmed) if in_sync.names else record

    def _confirmed(self) -> None:
        """More may be confirmed: sends that wait for it are answered, and consumers see it."""
        if not self.may_confirm:
            return
        in_sync = self._in_sync_set()
        if self._config.all_ack_in_sync and in_sync.has_required:
            self._transfer.acknowledged(in_sync.confirmed)
        self._gate.show(in_sync.shown if self._config.read_confirmed_only else None)

    def _limit_offsets(self) -> None:
        if self.proof is not None:
            self._state.let_offsets_move(move_until(self._in_sync_set().required, self.slaves))

    def _require_replicas(self) -> None:
        """Refuse messages while fewer brokers than minInSyncReplicas have all that is confirmed, and before etcd has
        confirmed that this is the master."""
        if self.published is None and self._replicas_min <= 1:
            return
        lacking = self.published.lacking if self.published is not None else ""
        lacking = lacking or (self.proof.lacking if self.proof is not None else "")
        there = 1 + (len(self.in_sync.names) if self.in_sync is not None else 0)
        if not lacking and there < self._replicas_min:
            lacking = f"{there} in sync, the master counted, minInSyncReplicas={self._replicas_min}"
        self._store.require_copies(lacking)

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
        host, port = peer_address(writer.transport)
        slave = Slave(f"{host}:{port}", TransferRate(time.monotonic()))
        why, is_refused = "this broker stops", False
        try:
            await self._serve(slave, reader, writer)
        except* (SlaveLost, FrameError) as lost:
            why, is_refused = str(lost.exceptions[0]), isinstance(lost.exceptions[0], SlaveRefused)
        except* OSError as errors:
            why = str(errors.exceptions[0])
        finally:
            self._connections.discard(task)
            self.slaves.discard(slave)
            # first: TLS waits for the good-bye of one that stands still
            self._note_gone(slave, why, is_refused=is_refused)
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with timeout(GOOD_BYE_S):
                    await writer.wait_closed()
            writer.transport.abort()

    def _admit(self, slave: Slave, theirs: Hello | None) -> str:
        """Count one more slave, or return why there is no place for it."""
        for other in self.slaves if theirs is not None and theirs.store else ():
            if theirs is not None and other.store == theirs.store and other.broker != theirs.address:
                return copied(other.store, other.broker)
        if len(self.slaves) >= SLAVES_MAX:
            return f"{SLAVES_MAX} slaves are connected already"
        of_its_address = sum(other.host == slave.host for other in self.slaves)
        if of_its_address >= SLAVES_AN_ADDRESS_MAX and not self.guard.needs_account:
            return f"{of_its_address} slaves of its address are connected already"
        self.slaves.add(slave)
        return ""

    async def _serve(self, slave: Slave, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await self.greeter.greet(slave, reader, writer)
        slave.heard_at = time.monotonic()
        self._log(logging.INFO, "slave connected", "slave_connected", slave, epoch=slave.epoch)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hear(slave, reader, first), name=f"slave {slave.address}: acknowledgements")
            tasks.create_task(self._feed.run(slave, writer), name=f"slave {slave.address}: log")
            tasks.create_task(self._silence(slave), name=f"slave {slave.address}: timeouts")

    def _note_gone(self, slave: Slave, why: str, *, is_refused: bool) -> None:
        was_slave, host = slave.acknowledged >= 0, slave.host
        if slave.epoch is not None and all(other.broker != slave.broker for other in self.slaves):
            self._in_sync_set().gone(slave.broker, time.monotonic())
        if was_slave and self._listener is not None:
            self.gone.pop(host, None)
            self.gone[host] = time.monotonic()
            if len(self.gone) > GONE_HOSTS_MAX:
                del self.gone[next(iter(self.gone))]
        if was_slave:
            self._log(logging.WARNING, "slave gone", "slave_gone", slave, why=why)
        elif is_refused:
            self._log(logging.WARNING, "slave not let in", "slave_not_let_in", slave, why=why)
        else:
            self._log(logging.INFO, "connection of no slave ended", "slave_not_known", slave, why=why)

    def _log(self, level: int, text: str, event: str, slave: Slave, **facts: object) -> None:
        """Write a line about a connection, a few of a kind only: any program may connect."""
        left_out = self._log_limit.left_out(event)
        if left_out is not None:
            facts |= {"event": event, "slave": slave.address}
            logger.log(level, text, extra=facts | ({"left_out": left_out} if left_out else {}))

    async def _hear(self, slave: Slave, reader: asyncio.StreamReader, first: int) -> None:
        """Take what the slave says it has, this offset first. Ends by SlaveLost, FrameError."""
        places = PlaceReader(slave.epoch)
        self._check_place(slave, first)
        self._acknowledged(slave, first)
        while data := await reader.read(READ_BYTES):
            slave.heard_at = time.monotonic()
            newest = -1  # of several acknowledgements that came together
            for place in places.feed(data):
                if place in (STATE, STATE_OF_PART) and slave.states:
                    self._took_state(slave, has_tables=place == STATE)
                else:
                    self._check_place(slave, place)
                    newest = place
            if newest >= 0:
                self._acknowledged(slave, newest)
        raise SlaveLost("closed by the slave")

    def _took_state(self, slave: Slave, *, has_tables: bool) -> None:
        state = slave.states.popleft()
        if has_tables and state.versions is not None:
            slave.tables = state.versions
            self._tables_heard.set()
        slave.told_at = state.taken_at or slave.told_at
        self._in_sync_set().heard(slave.broker, slave.heard_at)
        self._limit_offsets()

    def _check_place(self, slave: Slave, place: int) -> None:
        """First it says where to begin; then it can't have more than it was given. SlaveLost."""
        end = self._store.max_physical_offset if slave.acknowledged < 0 else slave.sent
        if not 0 <= place <= max(end, slave.acknowledged):
            raise SlaveLost(f"reports the log up to {place}, beyond {end}: it is not this log's copy")

    def _acknowledged(self, slave: Slave, offset: int) -> None:
        slave.acknowledged = offset
        if not slave.begin.is_set():
            self.gone.pop(slave.host, None)
            slave.begin.set()
        if slave.epoch is not None:
            in_sync, end = self._in_sync_set(), self._store.max_physical_offset
            came_in_sync = in_sync.acknowledged(slave.broker, offset, end, slave.heard_at)
            self._confirmed()
            if came_in_sync and self.may_confirm:
                self._require_replicas()
        if not self._config.all_ack_in_sync and self.may_confirm:
            self._transfer.acknowledged(offset)

    async def _silence(self, slave: Slave) -> None:
        """One timer for the connection, not for each acknowledgement. Ends by SlaveLost."""
        silence_s = self._config.ha_housekeeping_ms / 1000
        left_s = silence_s
        while left_s > 0:
            await asyncio.sleep(left_s)
            left_s = slave.heard_at + silence_s - time.monotonic()
        raise SlaveLost(f"silent for {silence_s:.0f} s")
