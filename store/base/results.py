"""The values that go into the store and come out of it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.message.record import RecordFields

if TYPE_CHECKING:
    from store.queues.topic_slot import TopicSlot


class PutMessageStatus(enum.IntEnum):
    """RocketMQ's statuses of a put, with the meaning they have here."""

    PUT_OK = 0
    FLUSH_DISK_TIMEOUT = 1  # stored, the disk did not confirm in time
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3
    SERVICE_NOT_AVAILABLE = 4  # closed, disk full, or a queue or index file can't be written
    CREATE_MAPED_FILE_FAILED = 5  # sic: RocketMQ's spelling
    MESSAGE_ILLEGAL = 6
    PROPERTIES_SIZE_EXCEEDED = 7
    OS_PAGE_CACHE_BUSY = 8
    UNKNOWN_ERROR = 9
    WHEEL_TIMER_FLOW_CONTROL = 10  # RocketMQ 5's: its slot is full; never here
    WHEEL_TIMER_MSG_ILLEGAL = 11  # no time, or one beyond the longest delay
    WHEEL_TIMER_NOT_ENABLE = 12


HOPELESS = frozenset({PutMessageStatus.MESSAGE_ILLEGAL, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED})  # at any time


class GetMessageStatus(enum.IntEnum):
    """RocketMQ's statuses of a read."""

    FOUND = 0
    NO_MATCHED_MESSAGE = 1
    MESSAGE_WAS_REMOVING = 2
    OFFSET_FOUND_NULL = 3
    OFFSET_OVERFLOW_BADLY = 4
    OFFSET_OVERFLOW_ONE = 5
    OFFSET_TOO_SMALL = 6
    NO_MATCHED_LOGIC_QUEUE = 7
    NO_MESSAGE_IN_QUEUE = 8


@dataclass(slots=True)
class _ToStore:
    """A message or a batch to store. Hosts are 8 or 20 bytes; `properties` is the final encoded text.

    `slot` is a hint that saves looking the topic up: MessageStore.topic_slot's answer. One that is another topic's, or
    out of date, does no harm.
    """

    topic: str
    queue_id: int
    body: bytes | memoryview
    properties: bytes
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    slot: TopicSlot | None = field(default=None, compare=False, repr=False)


class StoreMessage(_ToStore):
    """A message to store."""

    __slots__ = ()

    @classmethod
    def again(
        cls, topic: str, queue_id: int, record: memoryview, fields: RecordFields, properties: bytes
    ) -> StoreMessage:
        """What is stored already, to be stored once more, in another topic. The body is a view of the record."""
        return cls(
            topic,
            queue_id,
            record[fields.body_position : fields.body_position + fields.body_bytes],
            properties,
            fields.flag,
            fields.sys_flag,
            fields.born_timestamp,
            fields.born_host,
            fields.store_host,
            fields.reconsume_times,
        )


class StoreBatch(_ToStore):
    """Messages for one queue. `body` is a batch body (gantrymq.message.batch), `properties` go to each of them."""

    __slots__ = ()


@dataclass(slots=True)
class PutMessageResult:
    """`offsets` are the physical offsets of a batch's messages; for a single message only `physical_offset` counts.

    `waits_in` is the topic of a message that was delayed: it counts for its own topic when it is delivered. `due_ms` is
    when, if it has a time of its own.
    """

    status: PutMessageStatus
    physical_offset: int = 0
    size_bytes: int = 0
    queue_offset: int = 0
    store_timestamp: int = 0
    message_count: int = 1
    offsets: Sequence[int] = ()
    waits_in: str | None = None
    due_ms: int = 0


@dataclass(slots=True)
class GetMessageResult:
    """`buffers` are record bytes in queue order; adjacent records share one view."""

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    buffers: list[memoryview] = field(default_factory=list)
    message_count: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class QueryMessageResult:
    """Records whose key has the wanted hash, oldest first: callers compare the key itself."""

    buffers: list[bytes] = field(default_factory=list)
    index_last_update_timestamp: int = 0
    index_last_update_physical_offset: int = 0


class ConsumeQueueUnit(NamedTuple):
    """One 20-byte entry of a consume queue."""

    physical_offset: int
    size_bytes: int
    tags_code: int
