"""The flows of the SDK that are measured, each in a process of its own: `python -m tests.bench.sdk.flows`.

Arguments: name servers, a topic that exists, a flow, a number of messages. Prints one line of JSON. The CPU time is
that of this whole process while the messages pass, all of its threads included; a tenth as many go before, unmeasured.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import orjson

from gantrymq import ConsumeFrom, Message, MessageExt, Producer, PushConsumer, SyncProducer

BODY = b"x" * 1024
IN_FLIGHT = 100


class Cost(NamedTuple):
    """What one flow came to. p50_ms, p99_ms: from the call of send to the listener, where that is measured."""

    messages: int
    cpu_us: float  # a message
    rate: float  # messages a second
    p50_ms: float | None = None
    p99_ms: float | None = None


class Meter:
    """CPU and wall time from its making on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def cost(self, messages: int) -> Cost:
        cpu_s, wall_s = time.process_time() - self._cpu, time.perf_counter() - self._wall
        return Cost(messages, cpu_s / messages * 1e6, messages / wall_s)


Send = Callable[[Producer, str, int], Awaitable[None]]


async def _single(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        await producer.send(Message(topic, BODY))


async def _pipelined(producer: Producer, topic: str, count: int) -> None:
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await producer.send(Message(topic, BODY))

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def _many(producer: Producer, topic: str, count: int) -> None:
    await producer.send_many(Message(topic, BODY) for _ in range(count))


async def _soon(producer: Producer, topic: str, count: int) -> None:
    futures = [await producer.send_soon(Message(topic, BODY)) for _ in range(count)]
    await producer.flush()
    for future in futures:
        future.result()


async def _sending(send: Send, name_servers: str, topic: str, count: int) -> Cost:
    async with Producer(name_servers) as producer:
        await send(producer, topic, count // 10 + 1)
        meter = Meter()
        await send(producer, topic, count)
        return meter.cost(count)


def _blocking(name_servers: str, topic: str, count: int) -> Cost:
    with SyncProducer(name_servers) as producer:
        for _ in range(count // 10 + 1):
            producer.send(Message(topic, BODY))
        meter = Meter()
        for _ in range(count):
            producer.send(Message(topic, BODY))
        return meter.cost(count)


async def _consume(name_servers: str, topic: str, count: int) -> Cost:
    """All that is in the topic is there before: the client alone decides how fast it goes."""
    warm_up = count // 10 + 1
    async with Producer(name_servers) as producer:
        await _many(producer, topic, warm_up + count)
    seen, meter, last = 0, Meter(), asyncio.get_running_loop().create_future()

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal seen, meter
        for _ in messages:
            seen += 1
            if seen == warm_up:
                meter = Meter()
            elif seen == warm_up + count:
                last.set_result(meter.cost(count))

    consumer = PushConsumer(
        name_servers, group=f"{topic}-readers", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe(topic)
    async with consumer:
        cost: Cost = await last
    return cost


async def _end_to_end(name_servers: str, topic: str, count: int, rate: float) -> Cost:
    """One message after the other: the next one is sent when the listener has the one before, and its time has come."""
    arrived: asyncio.Queue[float] = asyncio.Queue()

    async def listener(messages: list[MessageExt]) -> None:
        for _ in messages:
            arrived.put_nowait(time.perf_counter())

    consumer = PushConsumer(
        name_servers, group=f"{topic}-readers", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe(topic)
    async with Producer(name_servers) as producer, consumer:

        async def pass_one() -> float:
            await producer.send(Message(topic, BODY))
            return await arrived.get()

        return await one_by_one(count, rate, pass_one)


async def one_by_one(count: int, rate: float, pass_one: Callable[[], Awaitable[float]]) -> Cost:
    """Measure what sends a message and returns when it arrived, seconds of perf_counter; the first are a warm-up."""
    took_ms: list[float] = []
    warm_up, meter, due = count // 10 + 1, Meter(), time.perf_counter()
    for number in range(warm_up + count):
        if number == warm_up:
            took_ms, meter = [], Meter()
        due = await next_one_due(due, rate)
        began = time.perf_counter()
        took_ms.append((await pass_one() - began) * 1000)
    cost = meter.cost(count)
    took_ms.sort()
    return cost._replace(p50_ms=statistics.median(took_ms), p99_ms=took_ms[min(count - 1, count * 99 // 100)])


async def next_one_due(due: float, rate: float) -> float:
    """Wait until `due`, a time of perf_counter, if it is not over; when the next message is due, at so many a second.

    What is late is not made up for: a message that took long delays the next one, and only itself counts as slow.
    """
    now = time.perf_counter()
    if due > now:
        await asyncio.sleep(due - now)  # the flow has a rate: each message waits for its time
    return max(due, now) + 1 / rate


SENDS: dict[str, Send] = {
    "single await": _single,
    f"pipelined, {IN_FLIGHT} in flight": _pipelined,
    "send_many": _many,
    "send_soon": _soon,
}
END_TO_END = {"end to end": math.inf, "end to end, 1000/s": 1000.0, "end to end, 200/s": 200.0}  # messages/s at most
FLOWS = (*SENDS, "blocking send", "consume", *END_TO_END)


def measure(name_servers: str, topic: str, flow: str, count: int) -> Cost:
    """Put that many messages through the flow. The topic is the flow's own."""
    if flow == "blocking send":
        return _blocking(name_servers, topic, count)
    if flow == "consume":
        return asyncio.run(_consume(name_servers, topic, count))
    if flow in END_TO_END:
        return asyncio.run(_end_to_end(name_servers, topic, count, END_TO_END[flow]))
    return asyncio.run(_sending(SENDS[flow], name_servers, topic, count))


if __name__ == "__main__":
    told = measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    sys.stdout.buffer.write(orjson.dumps(told._asdict()))
