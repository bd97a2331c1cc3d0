"""Where a consumer goes on in a queue it was just given: the group's own offset, else what `consume_from` says."""

from __future__ import annotations

from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.offset_store import OffsetStore
from gantrymq.client.consume.options import ConsumerOptions
from gantrymq.client.consume.subscription import ConsumeFrom
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import is_retry_topic


async def start_offset(
    session: ClientSession, offsets: OffsetStore, queue: MessageQueue, options: ConsumerOptions
) -> int:
    """The offset of the first message to consume. Raises when neither offset store nor broker can say it now."""
    offset = await offsets.read(queue)
    if offset is not None:
        return offset
    address, _ = session.routes.require_address_to_read(queue.broker_name)
    calls = session.calls
    if options.consume_from is ConsumeFrom.FIRST_OFFSET or is_retry_topic(queue.topic):
        return await calls.min_offset(address, queue.topic, queue.queue_id)  # failed messages are never skipped
    if options.consume_from is ConsumeFrom.TIMESTAMP:
        assert options.consume_from_ms is not None
        return await calls.search_offset(address, queue.topic, queue.queue_id, options.consume_from_ms)
    return await calls.max_offset(address, queue.topic, queue.queue_id)
