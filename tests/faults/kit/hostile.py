"""Clients that mean harm, until their time is up: `python -m tests.faults.kit.hostile KIND PORT SECONDS`.

Prints how much it did. They don't share a process with the probe, whose time is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

from appliance.bench.frames import send_fields
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message, MessageQueue
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, LockBatchRequest, ProducerData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

CLIENTS = 40
done: Counter[str] = Counter()
numbers = itertools.count()


async def come_and_go(port: int) -> None:
    """Connections that say something that is no frame, or nothing, and leave."""
    while True:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write((b"\xff" * 8, b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0", b"")[next(numbers) % 4])
        done["connections"] += 1
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def half_frames(port: int) -> None:
    """Large frames that never end."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write((15 << 20).to_bytes(4) + bytes(12 << 20))
        done["half frames"] += 1
        with contextlib.suppress(ConnectionError):
            await writer.drain()
            await reader.read()
        writer.close()


def pouring(make: Callable[[int], bytes]) -> Callable[[int], Awaitable[None]]:
    """A client that sends the frames made of ever higher numbers as fast as they are taken, and reads answers away."""

    async def pour(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        draining = asyncio.create_task(swallow(reader))
        try:
            while True:
                writer.write(make(next(numbers)))
                done["requests"] += 1
                await writer.drain()
                await asyncio.sleep(0)  # drain alone lets nobody else have a turn
        finally:
            draining.cancel()

    return pour


def in_turn(*requests: RemotingCommand) -> Callable[[int], Awaitable[None]]:
    frames = [request.encode() for request in requests]
    return pouring(lambda number: frames[number % len(frames)])


def beat(number: int) -> bytes:
    """A heartbeat with groups and topics that nobody ever heard of."""
    wanted = [SubscriptionData(f"T{number}_{index}") for index in range(20)]
    consumers = [ConsumerData(f"CG{number}_{index}", subscription_data_set=wanted) for index in range(5)]
    body = HeartbeatData(f"c{number}", [ProducerData(f"PG{number}")], consumers).to_json()
    return RemotingCommand.request(RequestCode.HEART_BEAT, body=body).encode()


def bombs() -> list[RemotingCommand]:
    """Bodies that are much work to read."""
    bodies = [b"[" * 200_000, b"{a:" * 80_000, b"[" + b"{}," * 500_000, b'{"a":1,' * 60_000, b" " * (2 << 20)]
    codes = [RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST]
    return [RemotingCommand.request(code, body=body) for body in bodies for code in codes]


def headers() -> list[RemotingCommand]:
    """Headers as large as they may be, and expressions, keys and names that fill them."""
    pull = PULL | {"sysFlag": "6", "suspendTimeoutMillis": "60000"}
    large = "k" * 240_000
    return [
        RemotingCommand.request(RequestCode.QUERY_MESSAGE, QUERY | {"key": large}),
        RemotingCommand.request(RequestCode.QUERY_MESSAGE, QUERY | {"key": "中" * 80_000}),
        RemotingCommand.request(RequestCode.PULL_MESSAGE, pull | {"subscription": "||".join(map(str, range(5500)))}),
        RemotingCommand.request(RequestCode.PULL_MESSAGE, pull | {"subscription": large}),
        RemotingCommand.request(RequestCode.GET_MAX_OFFSET, {f"f{number}": "" for number in range(20_000)}),
        RemotingCommand.request(RequestCode.SEND_MESSAGE, {"topic": large, "properties": large[:100_000]}),
    ]


def sent(topic: str, properties: str = "", body: bytes = b"x" * 128, **changes: str) -> RemotingCommand:
    code = RequestCode.SEND_BATCH_MESSAGE if changes.get("m") == "true" else RequestCode.SEND_MESSAGE_V2
    return RemotingCommand.request(code, send_fields("hostile", topic, 0, properties) | changes, body)


def many_subscriptions(count: int) -> RemotingCommand:
    wanted = [SubscriptionData(f"T{number}") for number in range(count)]
    body = HeartbeatData("c@1", [], [ConsumerData("Hostile", subscription_data_set=wanted)]).to_json()
    return RemotingCommand.request(RequestCode.HEART_BEAT, body=body)


def many_locks(count: int) -> RemotingCommand:
    queues = [MessageQueue("T", "broker-a", number) for number in range(count)]
    return RemotingCommand.request(RequestCode.LOCK_BATCH_MQ, body=LockBatchRequest("Hostile", "c", queues).to_json())


PULL = {
    "consumerGroup": "Hostile", "topic": "Flood", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32",
    "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0",
}  # fmt: skip
QUERY = {"topic": "Flood", "maxNum": "64", "beginTimestamp": "0", "endTimestamp": "9999999999999"}


async def swallow(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        done["answers"] += 1


KINDS: dict[str, Callable[[int], Awaitable[None]]] = {
    "sends": in_turn(sent("Flood")),
    "oneway": in_turn(sent("Flood").mark_oneway()),
    "keys": in_turn(sent("Flood", "KEYS\x01" + " ".join(f"k{number}" for number in range(4000)) + "\x02")),
    "allowed_keys": in_turn(sent("Flood", "KEYS\x01" + " ".join(f"k{number}" for number in range(64)) + "\x02")),
    "batches": in_turn(sent("Flood", body=encode_batch([Message("Flood", b"x")] * 4000), m="true")),
    "subscriptions": in_turn(many_subscriptions(4000)),
    "locks": in_turn(many_locks(10_000), many_locks(1024)),
    "topics": pouring(lambda number: sent(f"New{number}").encode()),
    "conditions": in_turn(
        RemotingCommand.request(
            RequestCode.PULL_MESSAGE,
            PULL | {"expressionType": "SQL92", "subscription": " OR ".join(f"a{n} = {n}" for n in range(200))},
        )
    ),
    "queries": in_turn(RemotingCommand.request(RequestCode.QUERY_MESSAGE, QUERY | {"key": "k7"})),
    "tables": in_turn(*(RemotingCommand.request(code) for code in (21, 28, 43, 201))),
    "come_and_go": come_and_go,
    "half_frames": half_frames,
    "beats": pouring(beat),
    "bombs": in_turn(*bombs()),
    "headers": in_turn(*headers()),
}


async def again(kind: Callable[[int], Awaitable[None]], port: int) -> None:
    while True:
        with contextlib.suppress(ConnectionError, OSError):
            await kind(port)
        await asyncio.sleep(0.01)


async def main() -> None:
    kind, port, seconds = KINDS[sys.argv[1]], int(sys.argv[2]), float(sys.argv[3])
    tasks = [asyncio.create_task(again(kind, port)) for _ in range(CLIENTS)]
    await asyncio.sleep(seconds)  # so long the test wants the abuse to last
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(done))


if __name__ == "__main__":
    asyncio.run(main())
