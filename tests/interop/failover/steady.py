"""What java/Steady.java does, with the SDK. Arguments: name server, topic, group, "asyncio" or "threads", and
seconds between looks at routes that nothing speaks against, for which the SDK has no setting."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from unittest import mock

from gantrymq import ConsumeFrom, Message, MessageExt, Producer, PushConsumer, SyncProducer
from gantrymq.client.connection import session
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import GantryError

PAUSE_S = 0.02


def say(*fields: object) -> None:
    sys.stdout.write("\t".join(map(str, fields)) + "\n")
    sys.stdout.flush()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def told(result: SendResult | None) -> str:
    """The broker's name where it was stored as asked."""
    return result.queue.broker_name if result is not None and result.status is SendStatus.SEND_OK else ""


async def send(producer: Producer, topic: str) -> None:
    number = 0
    while True:
        began, result = now_ms(), None
        with contextlib.suppress(GantryError):
            result = await producer.send(Message(topic, b"%d" % number))
        say("SENT", began, now_ms(), number, told(result))
        number += 1
        await asyncio.sleep(PAUSE_S)  # the load


def send_in_thread(producer: SyncProducer, topic: str, ending: threading.Event) -> None:
    number = 0
    while not ending.wait(PAUSE_S):
        began, result = now_ms(), None
        with contextlib.suppress(GantryError):
            result = producer.send(Message(topic, b"%d" % number))
        say("SENT", began, now_ms(), number, told(result))
        number += 1


async def run(name_servers: str, topic: str, group: str, way: str) -> None:
    async def listener(messages: list[MessageExt]) -> None:
        for message in messages:
            say("GOT", now_ms(), message.body.decode())

    consumer = PushConsumer(name_servers, group=group, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET)
    consumer.subscribe(topic)
    async with consumer:
        if way == "asyncio":
            async with Producer(name_servers, group=f"{group}-producer") as producer:
                sending = asyncio.create_task(send(producer, topic))
                say("STARTED")
                await asyncio.to_thread(sys.stdin.read)
                sending.cancel()
        else:
            ending = threading.Event()
            with SyncProducer(name_servers, group=f"{group}-producer") as blocking:
                thread = threading.Thread(target=send_in_thread, args=(blocking, topic, ending))
                thread.start()
                say("STARTED")
                await asyncio.to_thread(sys.stdin.read)
                ending.set()
                await asyncio.to_thread(thread.join)


if __name__ == "__main__":
    *words, refresh_s = sys.argv[1:]
    with mock.patch.object(session, "REFRESH_S", float(refresh_s)):
        asyncio.run(run(*words))
