"""Frames of pulls, and queues for them, for tests of the fast path."""

from __future__ import annotations

from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.command import JSON, RemotingCommand
from tests.appliance.fast_path.rig import Pair
from tests.appliance.fast_path.sends import batch, first_messages, send

GROUP = "readers"


def pull(number: int, offset: int, *, serialize_type: int = JSON, flag: int = 0, **changes: str | None) -> bytes:
    """A pull's frame as the Java client writes it; a change to None leaves the field out."""
    fields: dict[str, str | None] = {
        "consumerGroup": GROUP, "topic": "orders", "queueId": "1", "queueOffset": str(offset), "maxMsgNums": "32",
        "sysFlag": "5", "commitOffset": str(offset), "suspendTimeoutMillis": "15000", "subscription": "*",
        "subVersion": "0", "expressionType": "TAG",
    } | changes  # fmt: skip
    given = {name: value for name, value in fields.items() if value is not None}
    return RemotingCommand(11, given, b"", None, 100_000 + number, flag, "JAVA", 401, serialize_type).encode()


async def fill(pair: Pair, count: int = 300, *, body_bytes: int = 300) -> None:
    """Messages of three tags, some of them in batches, in the four queues of `orders`."""
    for side in (pair.fast, pair.plain):
        side.broker.groups.update(SubscriptionGroupConfig(GROUP))
    await first_messages(pair)
    for number in range(10, 10 + count):
        tag = "TagA" if number % 3 else "TagC"
        await pair.receive(send(number, b"b" * (number * 31 % body_bytes), f"TAGS\x01{tag}\x02a\x01b"))
    await pair.receive(batch(5000, [b"x" * 10] * 20, e="1"))
