"""The flows of other systems' clients, each in a process of its own: `python -m tests.bench.sdk.other_clients`.

Arguments: client, port, a stream or queue that does not exist yet, a flow, a number of messages. Each client is used as
its own documentation does it, and waits for what its server answers. Prints one line of JSON, as `flows` does.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson

from tests.bench.sdk.flows import BODY, END_TO_END, IN_FLIGHT, Cost, Meter, one_by_one

BLOCK_MS = 200  # a read without messages ends then
READ_AT_ONCE = 32  # as GantryMQ's consumers pull
T = TypeVar("T")
Arrived = Callable[[], None]


class Client(ABC):
    """One client of asyncio, connected by `open`."""

    def __init__(self, port: int, topic: str) -> None:
        self._port = port
        self._topic = topic
        self.reading: asyncio.Task[None] | None = None  # what reads, where that is not the client's own

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the stream or queue."""

    @abstractmethod
    async def send(self) -> None:
        """One message, until the server has it."""

    @abstractmethod
    async def consume(self, arrived: Arrived) -> None:
        """Have `arrived` called for each message from the first on, and acknowledge it."""

    @abstractmethod
    async def close(self) -> None:
        """End what `consume` began, and disconnect."""

    async def send_pipelined(self, count: int) -> None:
        """IN_FLIGHT of them on the way at once."""
        left = iter(range(count))

        async def work() -> None:
            for _ in left:
                await self.send()

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


class RedisPy(Client):
    """redis-py and Streams; what is on the way at once is one pipeline, as its documentation has it."""

    async def open(self) -> None:
        redis: Any = importlib.import_module("redis.asyncio")
        self._redis = redis.Redis(host="127.0.0.1", port=self._port, protocol=2)
        self._is_closing = False
        await self._redis.ping()

    async def send(self) -> None:
        await self._redis.xadd(self._topic, {"body": BODY})

    async def send_pipelined(self, count: int) -> None:
        for start in range(0, count, IN_FLIGHT):
            async with self._redis.pipeline(transaction=False) as pipeline:
                for _ in range(min(IN_FLIGHT, count - start)):
                    pipeline.xadd(self._topic, {"body": BODY})
                await pipeline.execute()

    async def consume(self, arrived: Arrived) -> None:
        await self._redis.xgroup_create(self._topic, "readers", id="0", mkstream=True)
        self.reading = asyncio.create_task(self._read(arrived))

    async def _read(self, arrived: Arrived) -> None:
        while not self._is_closing:
            found = await self._redis.xreadgroup(
                "readers", "one", {self._topic: ">"}, count=READ_AT_ONCE, block=BLOCK_MS
            )
            for _, messages in found or ():
                for _ in messages:
                    arrived()
                await self._redis.xack(self._topic, "readers", *(number for number, _ in messages))

    async def close(self) -> None:
        self._is_closing = True
        if self.reading is not None:  # not cancelled: on older Pythons redis-py can swallow that
            await self.reading
        await self._redis.aclose()


class NatsPy(Client):
    """nats-py and JetStream."""

    async def open(self) -> None:
        nats: Any = importlib.import_module("nats")
        self._nats = await nats.connect(f"nats://127.0.0.1:{self._port}")
        self._stream = self._nats.jetstream()
        await self._stream.add_stream(name=self._topic, subjects=[self._topic])

    async def send(self) -> None:
        await self._stream.publish(self._topic, BODY)

    async def consume(self, arrived: Arrived) -> None:
        async def each(message: Any) -> None:
            arrived()
            await message.ack()

        await self._stream.subscribe(self._topic, durable="readers", cb=each, manual_ack=True)

    async def close(self) -> None:
        await self._nats.close()


class AioPika(Client):
    """aio-pika with publisher confirms."""

    async def open(self) -> None:
        self._aio_pika: Any = importlib.import_module("aio_pika")
        self._connection = await self._aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{self._port}/")
        self._channel = await self._connection.channel(publisher_confirms=True)
        await self._channel.set_qos(prefetch_count=READ_AT_ONCE)
        self._queue = await self._channel.declare_queue(self._topic, durable=True)

    async def send(self) -> None:
        message = self._aio_pika.Message(BODY, delivery_mode=self._aio_pika.DeliveryMode.PERSISTENT)
        await self._channel.default_exchange.publish(message, self._topic)

    async def consume(self, arrived: Arrived) -> None:
        async def each(message: Any) -> None:
            arrived()
            await message.ack()

        await self._queue.consume(each)

    async def close(self) -> None:
        await self._connection.close()


CLIENTS: dict[str, type[Client]] = {"redis-py": RedisPy, "nats-py": NatsPy, "aio-pika": AioPika}


async def _first(awaited: Awaitable[T], client: Client) -> T:
    """What is waited for, or the failure of what reads."""
    wanted = asyncio.ensure_future(awaited)
    await asyncio.wait({wanted} | ({client.reading} if client.reading else set()), return_when=asyncio.FIRST_COMPLETED)
    if not wanted.done() and client.reading is not None:
        client.reading.result()
    return await wanted


async def _sends(client: Client, flow: str, count: int) -> Cost:
    async def single(count: int) -> None:
        for _ in range(count):
            await client.send()

    send: Callable[[int], Awaitable[None]] = single if flow == "single await" else client.send_pipelined
    await send(count // 10 + 1)
    meter = Meter()
    await send(count)
    return meter.cost(count)


async def _consume(client: Client, count: int) -> Cost:
    """All messages are there before."""
    warm_up = count // 10 + 1
    await client.send_pipelined(warm_up + count)
    seen, meter, last = 0, Meter(), asyncio.get_running_loop().create_future()

    def arrived() -> None:
        nonlocal seen, meter
        seen += 1
        if seen == warm_up:
            meter = Meter()
        elif seen == warm_up + count:
            last.set_result(meter.cost(count))

    await client.consume(arrived)
    cost: Cost = await _first(last, client)
    return cost


async def _end_to_end(client: Client, count: int, rate: float) -> Cost:
    arrivals: asyncio.Queue[float] = asyncio.Queue()
    await client.consume(lambda: arrivals.put_nowait(time.perf_counter()))

    async def pass_one() -> float:
        await client.send()
        return arrivals.get_nowait() if arrivals.qsize() else await _first(arrivals.get(), client)

    return await one_by_one(count, rate, pass_one)


async def _measure(client: Client, flow: str, count: int) -> Cost:
    await client.open()
    try:
        if flow == "consume":
            return await _consume(client, count)
        if flow in END_TO_END:
            return await _end_to_end(client, count, END_TO_END[flow])
        return await _sends(client, flow, count)
    finally:
        await client.close()


def _blocking_redis(port: int, topic: str) -> Callable[[], object]:
    client: Any = importlib.import_module("redis").Redis(host="127.0.0.1", port=port)
    return lambda: client.xadd(topic, {"body": BODY})


def _blocking_pika(port: int, topic: str) -> Callable[[], object]:
    pika: Any = importlib.import_module("pika")
    channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).channel()
    channel.queue_declare(topic, durable=True)
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    return lambda: channel.basic_publish("", topic, BODY, persistent)


BLOCKING = {"redis-py": _blocking_redis, "pika": _blocking_pika}


def measure(client: str, port: int, topic: str, flow: str, count: int) -> Cost:
    """Put that many messages through the flow of a client."""
    if flow != "blocking send":
        return asyncio.run(_measure(CLIENTS[client](port, topic), flow, count))
    send = BLOCKING[client](port, topic)
    for _ in range(count // 10 + 1):
        send()
    meter = Meter()
    for _ in range(count):
        send()
    return meter.cost(count)


if __name__ == "__main__":
    told = measure(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
    sys.stdout.buffer.write(orjson.dumps(told._asdict()))
