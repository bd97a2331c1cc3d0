"""Where a consumer goes on in a queue it was just given: the group's own offset, else what `ConsumeFrom` says; and
which store keeps the group's offsets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.offset_store import BrokerOffsets, FileOffsets, OffsetStore
from gantrymq.client.consume.subscription import ConsumeFrom, MessageModel
from gantrymq.errors import ConfigError, ConnectError
from gantrymq.home import home_folder
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import is_retry_topic


@dataclass(frozen=True)
class StartAt:
    """Where a group begins in a queue it never consumed; `timestamp_ms` (store time) with TIMESTAMP."""

    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        if self.consume_from is ConsumeFrom.TIMESTAMP and self.timestamp_ms is None:
            raise ConfigError("consume_from TIMESTAMP needs consume_from_ms")


def offset_store(session: ClientSession, group: str, model: MessageModel, folder: Path | None) -> OffsetStore:
    """The brokers when members share the work; a file of this host, where Java keeps its own, when each gets all."""
    if model is MessageModel.CLUSTERING:
        return BrokerOffsets(session.calls, session.routes, group)
    folder = folder or home_folder() / ".rocketmq_offsets"
    return FileOffsets(folder / session.client_id / group / "offsets.json")


async def start_offset(session: ClientSession, offsets: OffsetStore, queue: MessageQueue, start_at: StartAt) -> int:
    """The offset of the first message to consume. Raises when neither offset store nor broker can say it now."""
    offset = await offsets.read(queue)
    if offset is not None:
        return offset
    found = session.routes.address_to_read(queue.broker_name)
    if found is None:
        raise ConnectError(queue.broker_name, "no address of this broker is known")
    calls, address = session.calls, found[0]
    if start_at.consume_from is ConsumeFrom.FIRST_OFFSET or is_retry_topic(queue.topic):
        return await calls.min_offset(address, queue.topic, queue.queue_id)  # failed messages are never skipped
    if start_at.consume_from is ConsumeFrom.TIMESTAMP:
        assert start_at.timestamp_ms is not None
        return await calls.search_offset(address, queue.topic, queue.queue_id, start_at.timestamp_ms)
    return await calls.max_offset(address, queue.topic, queue.queue_id)
