"""How a connection begins: which protocol the peer speaks, who it is, and why it is not served.

A slave of RocketMQ's names the place that it wants, eight bytes, and nothing else. One of GantryMQ greets
(handshake.py), proves its account where one is asked for (slave_guard.py), and then names its place.

Until then it has a place in a waiting room only (waiting_room.py). Where slaves of RocketMQ's can come it may take as
long as any silence: they say nothing for their first five seconds. A peer is told why it is not served once it has
begun a greeting: RocketMQ's slave would take other bytes for a part of its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import StandingFile
from appliance.broker.replication.ha_frames import EPOCH_OFFSET, OFFSET
from appliance.broker.replication.handshake import MAGIC, Hello, read_hello
from appliance.broker.replication.master.slave import Slave, SlaveLost, give
from appliance.broker.replication.master.waiting_room import WaitingRoom
from appliance.broker.replication.slave_guard import SlaveGuard, new_challenge, read_proof
from appliance.settings.roles import BrokerConfig
from gantrymq.timeouts import timeout
from store.message_store import MessageStore

T = TypeVar("T")

GREETING_S = 2.0  # for who must greet, at its first try
PLACES, PLACES_AN_ADDRESS = 64, 4  # in the waiting room
PLACES_OF_STRANGERS = 8  # addresses that haSlaveAddresses leaves out are heard only to be told that


class SlaveRefused(SlaveLost):
    """A peer has said who it is, and is not served."""


class Greeter:
    """One master's. on_fenced: told of a greeting that speaks of a later epoch of this log: another is the master.

    admit: takes a slave that has shown who it is in, or returns why it does not; with its greeting, if it has one.
    """

    def __init__(
        self,
        store: MessageStore,
        config: BrokerConfig,
        standing: StandingFile,
        member: MembershipFile,
        *,
        guard: SlaveGuard,
        admit: Callable[[Slave, Hello | None], str],
        on_fenced: Callable[[Hello], None],
    ) -> None:
        self._store = store
        self._config = config
        self._standing = standing
        self._member = member
        self.guard = guard
        self._admit = admit
        self._on_fenced = on_fenced
        silence_s = config.ha_housekeeping_ms / 1000
        greeting_s = min(GREETING_S, silence_s)
        self._room = WaitingRoom(
            places=PLACES,
            places_an_address=PLACES_AN_ADDRESS,
            patience_s=greeting_s if guard.needs_greeting else silence_s,
            patience_s_max=silence_s,
        )
        self._strangers = WaitingRoom(
            places=PLACES_OF_STRANGERS,
            places_an_address=PLACES_AN_ADDRESS,
            patience_s=greeting_s,
            patience_s_max=silence_s,
        )
        self._heard = 0  # the highest epoch that ended this one
        self.broker_address = ""  # as slaves are told, once it is known

    async def greet(self, slave: Slave, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """Have the slave taken in, and return the first place that it names. SlaveLost; FrameError; OSError."""
        if refusal := self._config.why_no_slave(slave.host, writer.get_extra_info("sockname")[0]):
            async with self._strangers.place(slave.host):
                await self._refuse_stranger(slave, refusal, reader, writer)
        async with self._room.place(slave.host):
            first = await self.place(slave, reader)
            theirs = await self._in_time(read_hello(reader, after_magic=True)) if first == MAGIC else None
            refusal = await self._why_not(slave, theirs, reader, writer)
        if theirs is None:
            if refusal:
                raise SlaveRefused(refusal)
            return first
        epoch = self._standing.standing.epochs.current
        await give(writer, self.hello(refusal).to_bytes())
        if refusal:
            raise SlaveRefused(refusal)
        slave.epoch, slave.broker, slave.store, slave.boot = epoch, theirs.address, theirs.store, theirs.boot
        return await self.place(slave, reader)

    async def _why_not(
        self, slave: Slave, theirs: Hello | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str:
        """Why a peer is not served; "" when it is taken in. theirs: its greeting, which RocketMQ's slave has not."""
        if self.guard.needs_account:
            if theirs is None:
                return "it can't sign, as a slave of RocketMQ's, and haAccounts=true requires an account"
            if refusal := await self._wrong_account(reader, writer):
                return refusal
        refusal = self._refusal_of(theirs) if theirs is not None else ""
        return refusal or self._admit(slave, theirs)

    async def _refuse_stranger(
        self, slave: Slave, refusal: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> NoReturn:
        """Tell a peer of GantryMQ that its address is not let in, and nothing of this broker. SlaveLost; FrameError."""
        if await self.place(slave, reader) == MAGIC:
            theirs = await self._in_time(read_hello(reader, after_magic=True))
            # With its own epochs and end: it compares them before it looks at the refusal.
            await give(writer, replace(theirs, address="", refusal=refusal).to_bytes())
        raise SlaveRefused(refusal)

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
            group=self._member.membership.group,
            store=self._member.membership.store,
        )

    def _refusal_of(self, theirs: Hello) -> str:
        """Why a peer of GantryMQ is not served; "" when it is. A later epoch of this log ends this master."""
        own, member = self._standing.standing.epochs, self._member.membership
        if theirs.broker_name != self._config.broker_name:
            return f"this is {self._config.broker_name}, not {theirs.broker_name}"
        if theirs.group and member.group and theirs.group != member.group:
            return f"its store is of group {theirs.group}, the master's of group {member.group}: of another cluster"
        if theirs.store and theirs.store == member.store:
            return copied(theirs.store, "the master's")
        if own.is_rival(theirs.epochs.highest, theirs.epochs.highest_id) and own.shares(theirs.epochs):
            if theirs.role != "SLAVE":
                self._on_fenced(theirs)
            return f"epoch {own.highest} was begun twice, as {own.highest_id} and {theirs.epochs.highest_id}"
        if self._standing.standing.rival is not None:
            return f"epoch {own.highest} was begun twice: an administrator has to choose"
        if theirs.epochs.highest > own.highest:
            if own.shares(theirs.epochs):
                self._heard = theirs.epochs.highest
                self._on_fenced(theirs)
            return f"the master of epoch {own.current} hears of epoch {theirs.epochs.highest}: it is over"
        return "" if theirs.role == "SLAVE" else f"epoch {own.current} has a master already, which is this broker"

    async def place(self, slave: Slave, reader: asyncio.StreamReader) -> int:
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


def copied(store: str, whose: str) -> str:
    """Why a slave with a store of another member is not served."""
    return (
        f"its store is a copy of {whose}, {store}: both would count as one member. Stop it and delete "
        "config/member.json in its store folder"
    )
