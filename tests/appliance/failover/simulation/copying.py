"""The log's way from a master to its slaves: connections, frames and acknowledgements that name their epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from appliance.broker.epochs.history import Epochs
from appliance.broker.replication.handshake import Hello
from appliance.broker.replication.joint import BelowConfirmed, LogDiverged, MasterContested, MasterIsOver, where_to_cut
from appliance.failover.own import Role
from appliance.failover.view import Holder

if TYPE_CHECKING:
    from tests.appliance.failover.simulation.member import Process

SILENT_S = 1.5  # then a connection is over for either side
BATCH_MAX = 8


@dataclass(slots=True)
class Connection:
    """slave: the process that connected. sent: up to where the master has sent. heard_at: by the clock of either."""

    master: Process
    slave: Process
    holder: Holder
    sent: int = 0
    acknowledged: int = -1
    master_heard_at: float = 0.0
    slave_heard_at: float = 0.0
    arrives_at: list[float] = field(default_factory=lambda: [0.0, 0.0])  # to the slave, to the master: in order
    is_broken: bool = False


class Copying:
    """Both sides of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world
        self.source: Connection | None = None  # as a slave
        self.owner = 0
        self.following = 0
        self.slaves: dict[int, Connection] = {}  # as a master, by member
        self._counted: dict[Holder, int] = {}
        self._required_since = 0.0

    def look(self) -> None:
        """Connect anew what is broken; say something to each slave."""
        process, now = self._process, self._process.clock()
        disk, rng = process.disk, self._world.rng
        if rng.random() < 0.3:
            disk.synced = rng.randint(disk.synced, len(disk.log))
        if rng.random() < 0.2:
            disk.confirmed = process.confirmed
        if process.role == Role.FOLLOWING:
            if self.source is not None and now - self.source.slave_heard_at > SILENT_S:
                self.source, self.following = None, 0
            if self.source is None and self.owner and process.attempt is None:
                self._connect()
            return
        for connection in list(self.slaves.values()):
            self._send(connection)
        if process.role == Role.DRAINING and not process.is_over:
            self._see_drained()

    def stop(self) -> None:
        """Neither copy nor acknowledge, nor feed any more."""
        self.source, self.owner, self.following = None, 0, 0
        self.slaves.clear()
        self._counted.clear()

    def begin(self) -> None:
        """As a master of a new epoch: who is required has a moment to come."""
        self._counted.clear()
        self._required_since = self._process.clock()

    # -- a slave ------------------------------------------------------------------------------------------------------

    def follow(self, owner: int) -> None:
        if owner != self.owner or self.source is None:
            self.source, self.owner, self.following = None, owner, 0

    def _connect(self) -> None:
        owner = self._world.members.get(self.owner)
        master = None if owner is None else owner.process
        if master is None or master.member.paused_until > self._world.now:
            return
        connection = Connection(master, self._process, self._process.holder)
        connection.slave_heard_at = self._process.clock()
        self.source = connection
        self._to_master(
            connection, master.copying.hello_of_slave, self._process.disk.epochs, len(self._process.disk.log)
        )

    def hello_of_master(self, connection: Connection, hello: Hello) -> None:
        """Cut where the logs part, and copy from there on."""
        process, disk = self._process, self._process.disk
        if self.source is not connection or process.role != Role.FOLLOWING:
            return
        guard = process.confirmed if self._world.rules.guards_confirmed else -1
        try:
            end = where_to_cut(disk.epochs, 0, len(disk.log), hello, confirmed=guard, yields_to=disk.yields_to)
        except (BelowConfirmed, LogDiverged, MasterContested, MasterIsOver) as exc:
            self._world.note("does not follow", process, exc)
            if isinstance(exc, BelowConfirmed) and not self._world.checker.has_accepted:
                self._world.checker.fail(f"{process} would lose what was confirmed: {exc}")
            if isinstance(exc, MasterIsOver) and not self._world.rules.checks_epoch:
                end = None
            else:
                self.source = None
                return
        if end is not None and end < len(disk.log):
            self._world.checker.cuts(process, end)
            self._world.note("cuts", process, "from", len(disk.log), "to", end)
            del disk.log[end:]
            disk.synced = min(disk.synced, end)
            process.confirmed = disk.confirmed = min(process.confirmed, end)
        self._take_epochs(hello.epochs)
        disk.yields_to = ""
        self.following = hello.epochs.current
        self._to_master(connection, connection.master.copying.acknowledged, process.disk.epochs.current, len(disk.log))

    def frame(self, connection: Connection, epochs: Epochs, at: int, records: list[int], confirmed: int) -> None:
        """Bytes of a master, or a sign of life."""
        process, disk = self._process, self._process.disk
        if self.source is not connection:
            return
        if self._world.rules.checks_epoch and (epochs.current < disk.epochs.highest or process.role != Role.FOLLOWING):
            self._world.note("refuses a frame of epoch", process, epochs.current)
            self.source, self.following = None, 0
            return
        connection.slave_heard_at = process.clock()
        if at <= len(disk.log) or not self._world.rules.checks_epoch:
            disk.log.extend(records[max(len(disk.log) - at, 0) :])
        self._take_epochs(epochs)
        process.confirmed = max(process.confirmed, min(confirmed, len(disk.log)))
        end = len(disk.log)
        self._to_master(connection, connection.master.copying.acknowledged, epochs.current, end)

    def _take_epochs(self, theirs: Epochs) -> None:
        disk = self._process.disk
        if theirs.highest >= disk.epochs.highest and disk.epochs.history != theirs.history:
            disk.epochs = theirs.until(len(disk.log))

    # -- a master -----------------------------------------------------------------------------------------------------

    def hello_of_slave(self, connection: Connection, epochs: Epochs, end: int) -> None:
        process = self._process
        if epochs.highest > max(process.disk.epochs.highest, process.taken) and process.role != Role.FOLLOWING:
            process.fall(str(connection.slave), f"epoch {epochs.highest} has begun")
            process.disk.epochs = process.disk.epochs.heard(epochs.highest, epochs.highest_id)
        if process.role not in (Role.MASTER, Role.DRAINING) or self._is_copy(connection):
            return
        own = process.disk.epochs
        hello = Hello(broker_name="b", role="", address="", epochs=own, begin=0, end=len(process.disk.log))
        connection.master_heard_at = process.clock()
        connection.sent = -1
        self.slaves[connection.slave.member.at] = connection
        self._to_slave(connection, connection.slave.copying.hello_of_master, hello)

    def _is_copy(self, connection: Connection) -> bool:
        """Whether its store is the master's own, or that of another one that is served."""
        now, slave = self._process.clock(), connection.slave.member
        there = [each.slave.member for each in self.slaves.values() if now - each.master_heard_at <= SILENT_S]
        return any(each is not slave and each.store == slave.store for each in (self._process.member, *there))

    def acknowledged(self, connection: Connection, epoch: int, end: int) -> None:
        process = self._process
        if self.slaves.get(connection.slave.member.at) is not connection or process.role == Role.FOLLOWING:
            return
        connection.master_heard_at = process.clock()
        is_first, connection.sent = connection.sent < 0, max(connection.sent, end)
        connection.acknowledged = end
        if is_first or end >= connection.sent:
            self._send(connection)
        if epoch != process.disk.epochs.current and self._world.rules.checks_epoch:
            return  # it is on its way into this epoch
        self._counted[connection.holder] = end
        self.confirm()

    def stray(self, holder: Holder) -> None:
        """Someone connects who says that it is this member, and has all."""
        if not self._world.rules.authenticates:
            self._counted[holder] = len(self._process.disk.log)
            if (connection := self.slaves.get(holder.id)) is not None:
                connection.master_heard_at = self._process.clock()
            self.confirm()

    def appended(self) -> None:
        for connection in self.slaves.values():
            self._send(connection)
        self.confirm()

    def confirm(self) -> None:
        """What all required have is confirmed: consumers see it, and producers hear of it inside the proof."""
        process = self._process
        if process.role not in (Role.MASTER, Role.DRAINING) or process.is_over:
            return
        until, own = len(process.disk.log), process.member.id
        for holder in process.required:
            if holder.id != own:
                until = min(until, self._counted.get(holder, -1))
        if until > process.confirmed:
            self._world.checker.confirms(process, until)
            process.confirmed = until

    def caught_up_and_lost(self) -> tuple[frozenset[Holder], frozenset[Holder]]:
        process, now = self._process, self._process.clock()
        if process.role == Role.FOLLOWING:
            return frozenset(), frozenset()
        end, heard, caught_up = len(process.disk.log), set(), set()
        for connection in self.slaves.values():
            if now - connection.master_heard_at <= SILENT_S:
                heard.add(connection.holder)
                if connection.acknowledged >= process.confirmed and end - connection.acknowledged < BATCH_MAX:
                    caught_up.add(connection.holder)
        if now - self._required_since <= SILENT_S:
            return frozenset(caught_up), frozenset()
        lost = frozenset(holder for holder in process.required if holder not in heard and holder != process.holder)
        return frozenset(caught_up), lost

    def _see_drained(self) -> None:
        process, end = self._process, len(self._process.disk.log)
        connection = self.slaves.get(process.target)
        if process.confirmed >= end and connection is not None and connection.acknowledged >= end:
            process.is_over = True  # and nothing is confirmed here any more

    def _send(self, connection: Connection) -> None:
        """What it lacks, if it has answered the last frame; otherwise a sign of life."""
        process = self._process
        if connection.sent < 0:
            return
        at = connection.sent
        records = process.disk.log[at : at + BATCH_MAX]
        connection.sent = at + len(records)
        epochs = process.disk.epochs
        self._to_slave(connection, connection.slave.copying.frame, epochs, at, records, process.confirmed)

    # -- the wire -----------------------------------------------------------------------------------------------------

    def _to_slave(self, connection: Connection, act, *args) -> None:  # type: ignore[no-untyped-def]
        self._pass(connection, connection.master, connection.slave, 0, act, args)

    def _to_master(self, connection: Connection, act, *args) -> None:  # type: ignore[no-untyped-def]
        self._pass(connection, connection.slave, connection.master, 1, act, args)

    def _pass(self, connection: Connection, sender: Process, receiver: Process, way: int, act, args) -> None:  # type: ignore[no-untyped-def]
        """In order, as TCP does it; what is lost breaks the connection."""
        world = self._world
        if connection.is_broken:
            return
        if (sender.member.at, receiver.member.at) in world.cuts:
            connection.is_broken = True
            return
        at = max(world.now + world.delay(), connection.arrives_at[way])
        connection.arrives_at[way] = at
        world.soon(receiver, at - world.now, act, connection, *args)
