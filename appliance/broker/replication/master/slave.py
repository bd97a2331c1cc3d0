"""One connected slave as its master knows it, and how anything is written to it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.broker.replication.ha_frames import EPOCH_HEAD, HEAD
from appliance.broker.replication.limited_event import LimitedEvent
from appliance.broker.replication.master.slave_figures import TransferRate


class State(NamedTuple):
    """One on its way to a slave. versions: of topics and groups, if it tells all of both. taken_at: when it was taken
    (awake_s), if nothing that had changed by then is still untold; else 0."""

    versions: list[list[int]] | None
    taken_at: float


@dataclass(slots=True, eq=False)
class Slave:
    """One connected slave. acknowledged: up to where it has the log, -1 before it said so; sent: what it was given.

    epoch: that of the connection, None with RocketMQ's protocol; broker: where a slave of GantryMQ serves; store, boot:
    see epochs/membership.py.
    states: those on their way to it. told_at: of awake_s, as of when it surely has the state of all tables, 0: it
    has not; tables: the versions that it has surely, None at first.
    """

    address: str
    rate: TransferRate
    epoch: int | None = None
    broker: str = ""
    store: str = ""
    boot: str = ""
    told_at: float = 0.0
    states: deque[State] = field(default_factory=deque)
    tables: list[list[int]] | None = None
    acknowledged: int = -1
    sent: int = -1
    sent_bytes: int = 0
    in_sync: bool = False  # as of the last sample
    seconds_behind: float = 0.0
    messages_behind: int | None = None  # about; None: not known
    begin: asyncio.Event = field(default_factory=asyncio.Event)
    more: LimitedEvent = field(default_factory=LimitedEvent)  # the log has grown, and a send waits for it
    heard_at: float = 0.0  # monotonic: when it last said anything

    @property
    def has_all_tables(self) -> bool:
        """Whether it has once had all of them, over this connection."""
        return self.tables is not None and self.told_at > 0

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]


def frame_head(slave: Slave, position: int, size: int) -> bytes:
    return HEAD.pack(position, size) if slave.epoch is None else EPOCH_HEAD.pack(slave.epoch, position, size)


class SlaveLost(Exception):
    """The connection to a slave is over; the text says why."""


async def give(writer: asyncio.StreamWriter, *parts: bytes | memoryview) -> None:
    """Write, and wait while the slave takes nothing. SlaveLost; OSError."""
    if writer.is_closing():  # uvloop's transport raises RuntimeError then
        raise SlaveLost("closed by the slave")
    writer.writelines(parts)
    await writer.drain()
