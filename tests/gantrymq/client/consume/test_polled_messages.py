"""What is polled next."""

from __future__ import annotations

from gantrymq.client.consume.polled_messages import PolledMessages
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.message.model import MessageQueue
from tests.gantrymq.client.messages import stored

ONE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


async def test_messages_of_a_paused_queue_keep_their_order() -> None:
    polled, one, other = PolledMessages(batch_size=10), ProcessQueue(ONE, 0), ProcessQueue(OTHER, 0)
    for process_queue, offset in ((one, 1), (other, 7), (one, 2)):
        polled.add(process_queue, [stored(offset)])
    polled.paused.add(ONE)
    offsets = [await next_offset(polled)]
    polled.resume([ONE])
    offsets += [await next_offset(polled), await next_offset(polled)]
    assert offsets == [7, 1, 2]


async def next_offset(polled: PolledMessages) -> int:
    batch = await polled.next(0)
    assert batch is not None
    (message,) = batch.messages
    return message.queue_offset
