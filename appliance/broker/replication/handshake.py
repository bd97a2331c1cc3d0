"""The greeting between brokers of GantryMQ on the port for slaves; a peer of Apache's never sees it.

    slave -> master   i64 MAGIC, u32 size, JSON        who I am, my epochs
    master -> slave   i64 MAGIC, u32 size, JSON        who I am, my epochs, my log; or why you are not served

MAGIC is below zero, so it is no place in a log: the first eight bytes tell which protocol a peer speaks. A slave greets
only a master that has said, as its figures (28), that it knows epochs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from appliance.broker.epochs.history import Epochs
from appliance.broker.replication.ha_frames import OFFSET, FrameError

MAGIC = int.from_bytes(b"\xffGANTRY\x01", "big", signed=True)
SIZE = struct.Struct(">I")
HELLO_BYTES_MAX = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a broker says first. address: for requests. refusal: why the other is not served; "" when it is. group,
    store, boot: of its store (epochs/membership.py); "": it knows none.

    challenge: a master's that asks for an account first (slave_guard.py).
    """

    broker_name: str
    role: str
    address: str
    epochs: Epochs = field(default_factory=Epochs)
    begin: int = -1  # of the log
    end: int = 0
    refusal: str = ""
    challenge: str = ""
    group: str = ""
    store: str = ""
    boot: str = ""

    def to_bytes(self) -> bytes:
        body = orjson.dumps(
            {
                "brokerName": self.broker_name,
                "role": self.role,
                "address": self.address,
                "begin": self.begin,
                "end": self.end,
                "refusal": self.refusal,
                "challenge": self.challenge,
                "group": self.group,
                "store": self.store,
                "boot": self.boot,
                **self.epochs.to_dict(),
            }
        )
        return OFFSET.pack(MAGIC) + SIZE.pack(len(body)) + body

    @classmethod
    def from_json(cls, body: bytes) -> Hello:
        """Raise FrameError."""
        try:
            document: dict[str, Any] = orjson.loads(body)
            return cls(
                broker_name=str(document["brokerName"]),
                role=str(document["role"]),
                address=str(document["address"]),
                begin=int(document["begin"]),
                end=int(document["end"]),
                refusal=str(document["refusal"]),
                challenge=str(document.get("challenge", "")),
                group=str(document.get("group", "")),
                store=str(document.get("store", "")),
                boot=str(document.get("boot", "")),
                epochs=Epochs.from_dict(document),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise FrameError(f"no greeting: {exc!r}") from exc


class ExactReader(Protocol):
    """What a greeting is read from: a stream of asyncio's, or a slave's own (ha_stream.py)."""

    async def readexactly(self, n: int) -> bytes: ...


async def read_hello(reader: ExactReader, *, after_magic: bool = False) -> Hello:
    """Read a greeting. FrameError; asyncio.IncompleteReadError at the connection's end."""
    if not after_magic:
        (magic,) = OFFSET.unpack(await reader.readexactly(OFFSET.size))
        if magic != MAGIC:
            raise FrameError("no greeting arrived")
    (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
    if size > HELLO_BYTES_MAX:
        raise FrameError(f"a greeting of {size} bytes")
    return Hello.from_json(await reader.readexactly(size))
