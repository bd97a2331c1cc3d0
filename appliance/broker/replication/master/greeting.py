"""How a connection begins: which protocol the peer speaks, who it is, and why it is not served.

A slave of RocketMQ's names the place that it wants, eight bytes, and nothing else. One of GantryMQ greets
(handshake.py), proves its account where one is asked for (slave_guard.py), and then names its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from appliance.broker.epochs.standing import StandingFile
from appliance.broker.replication.ha_frames import EPOCH_OFFSET, OFFSET
from appliance.broker.replication.handshake import MAGIC, Hello, read_hello
from appliance.broker.replication.master.slave import Slave, SlaveLost, give
from appliance.broker.replication.slave_guard import SlaveGuard, new_challenge, read_proof
from appliance.settings.roles import BrokerConfig
from gantrymq.timeouts import timeout
from store.message_store import MessageStore

T = TypeVar("T")


class Greeter:
    """One master's. on_fenced: told of a greeting that speaks of a later epoch of this log: another is the master."""

    def __init__(
        self,
        store: MessageStore,
        config: BrokerConfig,
        standing: StandingFile,
        *,
        guard: SlaveGuard,
        on_fenced: Callable[[Hello], None],
    ) -> None:
        self._store = store
        self._config = config
        self._standing = standing
        self.guard = guard
        self._on_fenced = on_fenced
        self._heard = 0  # the highest epoch that ended this one
        self.broker_address = ""  # as slaves are told, once it is known

    async def greet(self, slave: Slave, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """Return the first place that the slave names, after a greeting of GantryMQ's. SlaveLost; FrameError."""
        first = await self.place(slave, reader)
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
        return await self.place(slave, reader)

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
