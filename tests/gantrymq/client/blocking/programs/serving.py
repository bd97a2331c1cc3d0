"""Consumes until a signal comes; a word for each message, then for the end. Arguments: address, topic, "sync", "async"
or "blocking" (an async listener that never awaits), seconds that a call takes."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from gantrymq import ConsumeFrom, MessageExt, PushConsumer, SyncPushConsumer


def listener(messages: list[MessageExt]) -> None:
    for message in messages:
        print("begun", message.body.decode(), flush=True)
        time.sleep(float(seconds))  # a call in progress, for the signal to come into
        print("handled", message.body.decode(), flush=True)


async def blocking(messages: list[MessageExt]) -> None:
    listener(messages)


address, topic, kind, seconds = sys.argv[1:]
logging.getLogger("gantrymq").setLevel(logging.ERROR)  # a broker that is slow to answer is not what this shows
make = SyncPushConsumer if kind == "sync" else PushConsumer
consumer = make(
    address, group=topic, listener=blocking if kind == "blocking" else listener,
    concurrency=20 if kind == "blocking" else 1, consume_from=ConsumeFrom.FIRST_OFFSET, close_wait_s=20,
)  # fmt: skip
consumer.subscribe(topic)
code = consumer.run() if isinstance(consumer, SyncPushConsumer) else asyncio.run(consumer.run())
print("closed", code, flush=True)
sys.exit(code)
