"""Ends while its consumer works and nothing was closed; prints what was handled: `leaving.py NAME_SERVERS TOPIC`."""

from __future__ import annotations

import logging
import sys
import threading

from gantrymq import ConsumeFrom, MessageExt, SyncPushConsumer

logging.basicConfig(level=logging.WARNING)
logging.getLogger("gantrymq").setLevel(logging.ERROR)  # a broker that is slow to answer is not what this shows
for name in ("blocking.shared_loop", "consume.listener_calls", "consume.failed_messages"):
    logging.getLogger(f"gantrymq.client.{name}").setLevel(logging.WARNING)
started = threading.Semaphore(0)
may_end = threading.Event()


def listener(messages: list[MessageExt]) -> None:
    started.release()
    may_end.wait()
    sys.stdout.write(f"{messages[0].body.decode()}\n")  # in one piece: two threads write


consumer = SyncPushConsumer(
    sys.argv[1], group=sys.argv[2], listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET, concurrency=2
)
consumer.subscribe(sys.argv[2])
consumer.start()
for _ in range(2):
    started.acquire()
threading.Timer(0.5, may_end.set).start()  # calls are in progress when the main thread has ended
