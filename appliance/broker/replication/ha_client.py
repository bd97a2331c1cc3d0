"""A slave's end of the HA connection: it finds the joint with the master's log, copies what follows, acknowledges.

    no address    -> ask the name servers again every few seconds
    joining       -> compare the newest record here, and what follows it, with the master's bytes at the same place
    copying       -> append; acknowledge whole records
    old master    -> the master's epoch is over: another broker is the master, and this one does not follow it back
    cutting       -> the log of a later epoch goes on otherwise: what lies behind the joint is kept, and cut
    ahead         -> the master's log ends before this one: it lost its last messages
    left behind   -> the master has deleted what comes next
    begun twice   -> another broker has begun the master's epoch, too: neither is followed until a person has chosen
    would lose    -> what would be cut was confirmed here: a person has to give it up
    diverged      -> the bytes differ, or can't follow: nothing more is copied until a person has decided

RocketMQ's protocol compares nothing: its slave appends whatever has the right place. Here the slave asks for a place
before its end and looks at what comes, which any master can serve. An empty slave asks for 0, as RocketMQ's does, and
gets the master's last file.

A master of GantryMQ is greeted first (handshake.py): then frames and acknowledgements name the epoch, and the epochs
tell where the logs join before any byte is looked at.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from appliance.broker.access.access_control import own_credentials
from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import Standing, StandingFile
from appliance.broker.replication.copy_mark import CopyMark
from appliance.broker.replication.ha_frames import (
    EPOCH_OFFSET,
    OFFSET,
    STATE,
    STATE_OF_PART,
    FrameError,
    FrameReader,
    runs,
)
from appliance.broker.replication.ha_stream import HaStream, connect
from appliance.broker.replication.handshake import Hello
from appliance.broker.replication.joint import (
    BelowConfirmed,
    Joint,
    LogDiverged,
    MasterContested,
    MasterIsOver,
    where_to_cut,
)
from appliance.broker.replication.master_address import MasterAddress
from appliance.broker.replication.slave_guard import greet
from appliance.process.json_file import StateFileError
from appliance.settings.roles import BrokerConfig
from appliance.settings.tls import ENFORCING
from gantrymq.errors import ConnectError
from gantrymq.remoting.client import split_address
from gantrymq.timeouts import timeout, wait_for_event
from store.base.errors import CopyRefused, NoRoomForCopy
from store.message_store import MessageStore

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

READ_BYTES = 64 << 10  # of the socket in one turn of the loop: about a millisecond of appending and indexing
READ_BYTES_TWIN = 512 << 10  # the same with the compiled twin
CONNECT_TIMEOUT_S = 5.0
ASK_AGAIN_S_MIN, ASK_AGAIN_S_MAX = 0.5, 5.0  # name servers that know no master
MOVED_S = 0.5  # between looks at whether the master has another address, while none sends anything
ELSEWHERE = "the master has another address now"
RETRY_S_MIN = 0.2
# A new master does not answer while it opens, and with minInSyncReplicas it stores nothing before its slaves are back.
RETRY_S_MAX = 1.0
RETRY_LATER_S = 5.0  # in the states of LASTING
RETRY_REFUSED_S = 30.0  # a log that differs: a person has to act
SIGNS_WITHOUT_BYTES = 2  # of life, at the joint: the first may come before the master has looked


class HaState(enum.StrEnum):
    """What a slave is doing; the texts are shown."""

    NO_MASTER = "no master known"
    CONNECTING = "connecting"
    JOINING = "comparing logs"
    COPYING = "copying"
    OLD_MASTER = "old master"
    CUTTING = "cutting"
    AHEAD = "ahead of the master"
    LEFT_BEHIND = "left behind"
    DIVERGED = "diverged"
    CONTESTED = "epoch begun twice"
    CONFIRMED = "would lose confirmed messages"
    NO_ROOM = "disk full"


# Until the master's log has changed, there is space, or a person has acted.
LASTING = {HaState.AHEAD, HaState.LEFT_BEHIND, HaState.CONTESTED, HaState.CONFIRMED, HaState.NO_ROOM}


class MasterLost(Exception):
    """The connection to the master is over; the text says why."""


class CutNeeded(Exception):
    """What lies behind `end` is not in the master's log."""

    def __init__(self, end: int, text: str) -> None:
        super().__init__(text)
        self.end = end


class NothingAtJoint(MasterLost):
    """The master closed the connection, or lives and sends nothing, where this log ends."""


class HaClient:
    """Follows the master until cancelled.

    ask_again: has the name servers asked for the master once more. figures: where the master's log begins and ends, as
    it says itself, -1 when it does not. epoch: the master's, 0 when it knows none, None when that is not known.
    on_cut: called with where the log has to end; this client waits then. on_state: takes a state of the tables;
    returns whether topics and groups are the master's now. on_connected: called as a connection begins.
    confirmed: up to where a log that ends there was confirmed, before it followed this master.
    """

    def __init__(
        self,
        store: MessageStore,
        config: BrokerConfig,
        master: MasterAddress,
        mark: CopyMark,
        *,
        ask_again: Callable[[], None],
        figures: Callable[[], Awaitable[tuple[int, int]]],
        epoch: Callable[[], Awaitable[int | None]],
        tls: Callable[[], ssl.SSLContext | None],
        standing: StandingFile,
        member: MembershipFile,
        own_address: str,
        on_cut: Callable[[int], None],
        on_state: Callable[[bytes], bool] = lambda state: False,
        on_connected: Callable[[], None] = lambda: None,
        confirmed: Callable[[int], int] = lambda end: -1,
    ) -> None:
        self._store = store
        self._copy = store.copy
        self._read_bytes = READ_BYTES if store.parts.dispatcher.plain_feed is None else READ_BYTES_TWIN
        self._config = config
        self._master = master
        self._mark = mark
        self._ask_again = ask_again
        self._figures = figures
        self._epoch = epoch
        self._tls = tls
        self._credentials = own_credentials(config)
        self._standing = standing
        self._member = member
        self._own_address = own_address
        self._on_cut = on_cut
        self._on_state = on_state
        self._on_connected = on_connected
        self._confirmed = confirmed
        self._has_tables = False  # topics and groups were the master's in this connection, which tells what changes
        self._told: tuple[HaState, str] | None = None  # how the last connection ended, as it was logged
        self.state = HaState.NO_MASTER
        self.why = ""  # the last connection ended, or nothing is copied
        self.received_bytes = 0  # since the start
        self.own_address = ""  # of the connection to the master
        self.heard_at = 0.0  # monotonic: when the master last sent anything
        self.master_end = -1  # of its log, when it was last heard of
        self._is_paused = False
        self.has_joined = False  # this log agreed with the master's when they were last compared

    def pause(self) -> None:
        """Copy and acknowledge nothing from now on, until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self.look_again()

    async def run(self) -> None:
        retry_s, ask_again_s = 0.0, ASK_AGAIN_S_MIN
        while True:
            if self._master.changed.is_set():
                retry_s = 0.0  # the pauses had grown with the failures of another master
            self._master.changed.clear()
            if self._is_paused:
                await self._pause(RETRY_S_MAX)
                continue
            if not self._master.ha:
                self._ask_again()
                await self._pause(ask_again_s)
                ask_again_s = min(ask_again_s * 2, ASK_AGAIN_S_MAX)
                continue
            before = self.received_bytes
            try:
                await self._follow(self._master.ha)
            except NothingAtJoint as exc:
                self._ended(*await self._why_nothing(str(exc)))
            except (MasterLost, FrameError, ConnectError, OSError) as exc:
                if self.received_bytes > before:
                    retry_s, self._told = 0.0, None
                self._ended(HaState.CONNECTING, str(exc) or type(exc).__name__, logging.WARNING)
            except NoRoomForCopy as exc:
                self._ended(HaState.NO_ROOM, str(exc), logging.ERROR)
            except MasterIsOver as exc:
                self._ended(HaState.OLD_MASTER, str(exc), logging.ERROR)
            except CutNeeded as exc:
                self._ended(HaState.CUTTING, str(exc), logging.WARNING)
                self._on_cut(exc.end)
                await asyncio.Event().wait()  # the broker opens anew
            except MasterContested as exc:
                self._ended(HaState.CONTESTED, str(exc), logging.ERROR)
            except BelowConfirmed as exc:
                self._ended(HaState.CONFIRMED, str(exc), logging.ERROR)
            except (LogDiverged, CopyRefused) as exc:
                self._ended(HaState.DIVERGED, str(exc), logging.ERROR)
            retry_s = next_retry_s(self.state, retry_s)
            await self._pause(retry_s)

    # -- one connection -----------------------------------------------------------------------------------------------

    async def _follow(self, address: str) -> None:
        """Copy until the connection ends, by one of the errors that `run` names."""
        host, port = split_address(address)
        is_greeted = await self._unless_elsewhere(self._knows_epochs())
        tls = self._tls() if is_greeted else None
        if tls is None and self._config.ha_tls_mode == ENFORCING:
            why = (
                "don't both have TLS" if is_greeted else "don't greet each other: it is of another make, or refuses us"
            )
            raise MasterLost(f"haTlsMode=enforcing, and master and slave {why}")
        try:
            async with timeout(CONNECT_TIMEOUT_S):
                stream = await self._unless_elsewhere(connect(host, port, self._read_bytes, tls))
        except TimeoutError:
            raise MasterLost(f"no connection to {address} within {CONNECT_TIMEOUT_S:g} s") from None
        try:
            self.own_address = stream.own_address
            self._on_connected()
            epoch = await self._greet(stream) if is_greeted else None
            self.has_joined = False
            begin = self._copy.joint_start()
            joint = Joint(begin, await asyncio.to_thread(self._copy.reader(begin)))
            if not joint.is_over and not begin:
                joint.leave_out_first_byte()  # 0 asks for the last file
            stream.write(_place(epoch, joint.position))
            await self._copy_from(stream, joint, address, epoch)
        finally:
            self.own_address = ""
            await stream.close()

    async def _unless_elsewhere(self, step: Coroutine[Any, Any, Result]) -> Result:
        """What the step returns. MasterLost once the master has another address: a host that stands still, or is cut
        off, answers only when the time is up, and its successor needs this slave to confirm messages."""
        going, moved = asyncio.create_task(step), asyncio.create_task(self._master.changed.wait())
        try:
            await asyncio.wait((going, moved), return_when=asyncio.FIRST_COMPLETED)
            if not going.done():
                raise MasterLost(ELSEWHERE)
            return await going
        finally:
            going.cancel()
            moved.cancel()

    async def _knows_epochs(self) -> bool:
        """Whether the master is one of GantryMQ: RocketMQ's is not greeted. MasterLost; MasterIsOver."""
        epoch, highest = await self._epoch(), self._standing.standing.epochs.highest
        if epoch is None:
            where = self._master.broker
            told = f"the master at {where} does not answer" if where else "the name servers don't tell of a master yet"
            raise MasterLost(f"{told}, and has to say whether it knows epochs")
        if not epoch and highest > 1:
            raise MasterIsOver(f"the master knows no epochs, and epoch {highest} of this log has begun")
        return epoch > 0

    async def _greet(self, stream: HaStream) -> int:
        """Exchange epochs; return the connection's, with all epochs on disk. MasterLost, MasterIsOver, CutNeeded."""
        own, config = self._standing.standing.epochs, self._config
        begin, end = self._store.min_physical_offset, self._store.max_physical_offset
        member = self._member.membership
        greeting = Hello(
            broker_name=config.broker_name,
            role="SLAVE",
            address=self._own_address,
            epochs=own,
            begin=begin,
            end=end,
            group=member.group,
            store=member.store,
            boot=member.boot,
        )
        silence_s = config.ha_housekeeping_ms / 1000
        try:
            async with timeout(silence_s):
                theirs = await self._unless_elsewhere(greet(stream, stream.write, greeting, self._credentials))
        except TimeoutError:
            raise MasterLost(f"no greeting within {silence_s:g} s") from None
        except asyncio.IncompleteReadError:
            raise MasterLost("the master closed the connection without a greeting: its log says why") from None
        confirmed, yields_to = self._confirmed(end), self._standing.standing.yields_to
        cut_to = where_to_cut(own, begin, end, theirs, confirmed=confirmed, yields_to=yields_to)
        if theirs.refusal or theirs.role == "SLAVE" or not theirs.epochs.is_current:
            raise MasterLost(theirs.refusal or f"{theirs.address} is not a master: its role is {theirs.role}")
        if cut_to is not None:
            self._check_not_paused()  # it would open anew as a slave, and the epoch that it may get have no master
            raise CutNeeded(cut_to, f"the master's log differs from this one after {cut_to}, this one ends at {end}")
        if own.history != theirs.epochs.history:
            self._copy.forget_part()  # bytes of a record that another master sent
        try:
            await asyncio.to_thread(self._standing.update, lambda standing: followed(standing, theirs))
        except StateFileError as exc:
            raise MasterLost(f"the epoch can't be put on record: {exc}") from exc
        self.master_end = theirs.end
        return theirs.epochs.current

    async def _copy_from(self, stream: HaStream, joint: Joint, address: str, epoch: int | None) -> None:
        beat_s, silence_s = self._config.ha_heartbeat_ms / 1000, self._config.ha_housekeeping_ms / 1000
        frames, acknowledged, self._has_tables = FrameReader(epoch), -1, False
        self.heard_at = said_at = time.monotonic()
        if joint.is_over:
            await self._joined(address)
        elif self.state is not HaState.DIVERGED:
            self._enter(HaState.JOINING)
        while True:
            data = await stream.read(min(beat_s, MOVED_S))
            self._check_not_paused()
            if self._master.ha != address:  # the one before may stand still: it ends no connection then
                raise MasterLost(ELSEWHERE)
            now = time.monotonic()
            if data is not None:
                if not data:
                    raise (MasterLost if joint.has_begun else NothingAtJoint)("closed by the master")
                self.heard_at = now
                for position, run in runs(frames.feed(data)):
                    if self._take(joint, position, run):
                        await self._joined(address)
                    if position == STATE:
                        stream.write(_place(epoch, STATE if self._has_tables else STATE_OF_PART))
                stream.release()
            elif now - self.heard_at >= silence_s:
                raise MasterLost(f"silent for {silence_s:g} s")
            end = self._store.max_physical_offset if joint.is_over else min(joint.position, self._copy.end)
            if end != acknowledged or now - said_at >= beat_s:
                stream.write(_place(epoch, end))
                acknowledged, said_at = end, now
                await stream.drain()

    def _check_not_paused(self) -> None:
        """MasterLost."""
        if self._is_paused:
            raise MasterLost("this slave may be about to become the master")

    def _take(self, joint: Joint, position: int, run: Sequence[memoryview]) -> bool:
        """Append or compare what came; return whether this was the end of the comparison."""
        if position == STATE:
            self._has_tables |= self._on_state(bytes(run[0]))
            return False
        self.master_end = max(self.master_end, position + sum(map(len, run)))
        if joint.is_over:
            self._append(position, run)
            return False
        if run[0]:
            for piece in run:
                self._compare(joint, position, piece)
                position += len(piece)
            return joint.is_over
        joint.signs_of_life += 1
        if joint.signs_of_life == SIGNS_WITHOUT_BYTES:
            raise NothingAtJoint("the master has nothing to send")
        return False

    def _append(self, position: int, run: Sequence[memoryview]) -> None:
        if run[0]:
            self._copy.append_raw(position, *run)
            self.received_bytes += sum(map(len, run))
        elif self._copy.end not in (0, position):
            raise MasterLost(f"the master continues at {position}, this log at {self._copy.end}")

    def _compare(self, joint: Joint, position: int, piece: memoryview) -> None:
        """Compare what comes at the joint; append what is beyond it. LogDiverged."""
        joint.signs_of_life = 0
        if joint.is_over:
            self._append(position, [piece])
            return
        beyond = joint.compare(position, piece)
        if beyond:
            self._append(joint.position, [beyond])

    async def _joined(self, address: str) -> None:
        """The logs agree: what follows is copied."""
        self._enter(HaState.COPYING)
        self.has_joined = True
        logger.info(
            "slave follows its master",
            extra={"event": "slave_joined", "master": address, "physical_offset": self._copy.end},
        )
        try:
            await asyncio.to_thread(self._mark.set, self._config, address)
        except StateFileError as exc:
            raise MasterLost(f"the folder can't be marked as a copy: {exc}") from exc

    # -- what is told -------------------------------------------------------------------------------------------------

    @property
    def master_address(self) -> str:
        """Where the log is copied from, "" while that is not known."""
        return self._master.ha

    def look_again(self) -> None:
        """Try now: a person has decided."""
        self._master.changed.set()

    @property
    def master_broker(self) -> str:
        """Where the master that was followed last serves requests, "" while none was."""
        return self._standing.standing.master or self._master.broker

    @property
    def is_copying(self) -> bool:
        return self.state is HaState.COPYING

    async def _why_nothing(self, why: str) -> tuple[HaState, str, int]:
        """State, text and level for a connection that ended before a byte could be compared."""
        start, end = await self._figures()
        own = self._copy.end
        if 0 <= end < own:
            text = f"the master's log ends at {end}, this one at {own}: the master has lost messages that are here"
            return HaState.AHEAD, text, logging.ERROR
        if start > own:
            text = f"the master's log begins at {start}, this one ends at {own}: what lies between is deleted there"
            return HaState.LEFT_BEHIND, text, logging.ERROR
        return HaState.CONNECTING, why, logging.WARNING

    def _enter(self, state: HaState) -> None:
        self.state, self.why = state, ""

    def _ended(self, state: HaState, why: str, level: int) -> None:
        """A connection ended. The same end is logged once, however often it is tried again."""
        is_news = (state, why) != self._told
        self.state, self.why = self._told = state, why
        logger.log(
            level if is_news else logging.DEBUG,
            "master not followed" if level == logging.WARNING else "slave can't copy",
            extra={"event": "master_not_followed", "master": self._master.ha, "state": str(state), "why": why},
        )

    async def _pause(self, seconds: float) -> None:
        """Wait, but not when the master has another address meanwhile."""
        await wait_for_event(self._master.changed, seconds)


def next_retry_s(state: HaState, before_s: float) -> float:
    """The pause after a connection that ended in this state. before_s: the one before, 0.0 when this is the first."""
    if state is HaState.DIVERGED:
        return RETRY_REFUSED_S
    return RETRY_LATER_S if state in LASTING else min(max(before_s * 2, RETRY_S_MIN), RETRY_S_MAX)


def followed(standing: Standing, master: Hello) -> Standing:
    """With the master's epochs. MasterIsOver when a later one was heard of while it was greeted."""
    if standing.epochs.highest > master.epochs.highest:
        raise MasterIsOver(f"epoch {standing.epochs.highest} has begun, and {master.address} is of an earlier one")
    return dataclasses.replace(standing, epochs=master.epochs, master_role=master.role, master=master.address)


def _place(epoch: int | None, offset: int) -> bytes:
    """A place as the connection's protocol says it."""
    return OFFSET.pack(offset) if epoch is None else EPOCH_OFFSET.pack(epoch, offset)
