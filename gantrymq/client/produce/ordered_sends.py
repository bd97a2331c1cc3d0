"""Sending many messages, each to a chosen queue: what `Producer.send_many` does with queue, selector or key.

The messages of a queue travel in batches, one on its way at a time, so that they keep their order also when one is
tried again. Queues don't wait for each other.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable

from gantrymq.client.connection.background import Background
from gantrymq.client.produce.batching import Around, Batches, StoredCallback
from gantrymq.client.produce.options import ProducerOptions
from gantrymq.client.produce.sender import Sender
from gantrymq.client.results import SendResult
from gantrymq.errors import GantryError, SendIncomplete
from gantrymq.message.model import Message, MessageQueue

QueueChoice = Callable[[Message], Awaitable[MessageQueue | None]]


async def send_in_order(
    messages: Iterable[Message],
    choose: QueueChoice,
    sender: Sender,
    options: ProducerOptions,
    *,
    timeout_s: float,
    on_stored: StoredCallback | None,
    around: Around | None = None,
) -> list[SendResult]:
    """Send all; the results in the order of the messages. SendIncomplete when some were not stored.

    choose: says the queue of a message, None for any. timeout_s: for each message, from when it is its turn to be read.
    buffer_bytes bounds what is read ahead.
    """
    background = Background()
    own = dataclasses.replace(options, delivery_timeout_s=timeout_s, linger_s=0.0)
    batches = Batches(sender, background, own, on_stored=on_stored, around=around)
    futures: list[asyncio.Future[SendResult] | None] = []
    failures: dict[int, GantryError] = {}
    try:
        for position, message in enumerate(messages):
            try:
                futures.append(await batches.add(message, await choose(message)))
            except GantryError as exc:
                futures.append(None)
                failures[position] = exc
        await batches.flush()
    finally:
        await background.close()
    results: list[SendResult | None] = []
    for position, future in enumerate(futures):
        failure = None if future is None else future.exception()
        if isinstance(failure, GantryError):
            failures[position] = failure
        elif failure is not None:
            raise failure
        results.append(None if future is None or failure is not None else future.result())
    if failures:
        raise SendIncomplete(failures, results)
    return [result for result in results if result is not None]
