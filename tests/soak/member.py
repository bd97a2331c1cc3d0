"""A member of a group as a process: `python -m tests.soak.member NAMESRV GROUP TOPIC ordered|shared FILE`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gantrymq import ConsumeFrom, MessageExt, MessageQueue, PushConsumer
from tests.soak.records import Ledger


def consumer_of(namesrv: str, group: str, topics: Sequence[str], ledger: Ledger, *, is_ordered: bool) -> PushConsumer:
    """A consumer that writes down what it gets, not started."""

    async def listener(messages: list[MessageExt]) -> None:
        for message in messages:
            body = message.body.decode()
            ledger.consumed(body, message.topic, message.queue_id, message.queue_offset)

    async def assigned(queues: list[MessageQueue]) -> None:
        for queue in queues:
            ledger.assigned(queue.topic, queue.queue_id, time.monotonic())

    consumer = PushConsumer(
        namesrv, group=group, listener=listener, ordered=is_ordered, consume_from=ConsumeFrom.FIRST_OFFSET,
        on_assigned=assigned,
    )  # fmt: skip
    for topic in topics:
        consumer.subscribe(topic)
    return consumer


async def main() -> int:
    namesrv, group, topic, kind, path = sys.argv[1:]
    ledger = Ledger(Path(path))
    return await consumer_of(namesrv, group, [topic], ledger, is_ordered=kind == "ordered").run()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
