"""Frames of sends, for tests of the fast path."""

from __future__ import annotations

from collections.abc import Sequence

from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.remoting.command import JSON, RemotingCommand
from tests.appliance.fast_path.rig import Pair

UNIQUE = "UNIQ_KEY\x01AC1100010A0018B4AAC2"


def send(
    number: int,
    body: bytes = b"body",
    properties: str | None = None,
    *,
    code: int = 310,
    serialize_type: int = JSON,
    flag: int = 0,
    **changes: str,
) -> bytes:
    """A send's frame as the Java client writes it; changes: ext fields by their letter."""
    fields = {
        "a": "producers", "b": "orders", "c": "TBW102", "d": "4", "e": str(number % 4), "f": "0",
        "g": "1700000000123", "h": "0",
        "i": f"{UNIQUE}{number:012d}\x02WAIT\x01true\x02TAGS\x01TagA" if properties is None else properties,
        "j": "0", "k": "false", "m": "false",
    } | changes  # fmt: skip
    return RemotingCommand(code, fields, body, None, number, flag, "JAVA", 401, serialize_type).encode()


def batch(number: int, bodies: Sequence[bytes], *, serialize_type: int = JSON, **changes: str) -> bytes:
    messages = [
        Message("orders", body, tags="TagB", keys=[f"k{index}", "same"], properties={"x": "é"})
        for index, body in enumerate(bodies)
    ]
    return send(number, encode_batch(messages), "", code=320, serialize_type=serialize_type, m="true", **changes)


async def first_messages(pair: Pair) -> None:
    """One message for each topic: from then on their sends are plain."""
    for number, topic in enumerate(("orders", "payments", "a")):
        await pair.receive(send(number, b=topic, e="0"))
