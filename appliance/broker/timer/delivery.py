"""A waiting message back into what was sent: read from the log, checked, its properties cleaned."""

from __future__ import annotations

from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message.record import RecordFields, split_record
from gantrymq.message.topics import TIMER_TOPIC, TRANS_HALF_TOPIC
from store.base.results import StoreMessage
from store.base.timer import due_ms_of
from store.message_store import MessageStore

TOPIC = TIMER_TOPIC.encode()
REAL_TOPIC = keys.REAL_TOPIC.encode()
REAL_QID = keys.REAL_QID.encode()
ENQUEUE_MS = keys.TIMER_ENQUEUE_MS.encode()
DEQUEUE_MS = keys.TIMER_DEQUEUE_MS.encode()
ROLL_TIMES = keys.TIMER_ROLL_TIMES.encode()


def delivered(store: MessageStore, physical_offset: int, queue_offset: int, due_ms: int, now_ms: int) -> StoreMessage:
    """Return the message as its consumers get it. RecordError when that place holds no such message.

    As in RocketMQ 5 the sender's TIMER_ properties stay, with TIMER_OUT_MS, and TIMER_ENQUEUE_MS and TIMER_DEQUEUE_MS
    are added; REAL_TOPIC and REAL_QID go.
    """
    record, fields = _read(store, physical_offset)
    properties = fields.properties
    topic = keys.find_property(properties, REAL_TOPIC)
    queue_id = keys.find_property(properties, REAL_QID)
    if topic is None or queue_id is None or not queue_id.isdigit():
        raise RecordError(f"its {keys.REAL_TOPIC} or {keys.REAL_QID} is missing")
    if topic == TRANS_HALF_TOPIC.encode() or topic == TOPIC:
        raise RecordError("that is not a topic to deliver to")
    if fields.queue_offset != queue_offset or due_ms_of(properties) != due_ms:
        raise RecordError("another message is there")
    changes: dict[bytes, bytes | None] = {REAL_TOPIC: None, REAL_QID: None}
    cleaned = keys.replace_properties(properties, changes)
    noted = b"%b\x02%b\x01%d\x02%b\x01%d" % (cleaned, ENQUEUE_MS, fields.store_timestamp, DEQUEUE_MS, now_ms)
    return StoreMessage.again(
        topic.decode(errors="replace"),
        int(queue_id),
        record,
        fields,
        noted if len(noted) <= keys.PROPERTIES_BYTES_MAX else cleaned,
    )


def rolled(store: MessageStore, physical_offset: int) -> StoreMessage:
    """Return a waiting message as it is stored once more, to go on waiting. RecordError when there is none."""
    record, fields = _read(store, physical_offset)
    times = keys.find_property(fields.properties, ROLL_TIMES)
    count = int(times) + 1 if times is not None and times.isdigit() else 1
    noted = keys.replace_properties(fields.properties, {ROLL_TIMES: str(count).encode()})
    fits = len(noted) <= keys.PROPERTIES_BYTES_MAX
    return StoreMessage.again(TIMER_TOPIC, fields.queue_id, record, fields, noted if fits else fields.properties)


def _read(store: MessageStore, physical_offset: int) -> tuple[memoryview, RecordFields]:
    record = store.message_bytes(physical_offset)
    if record is None:
        raise RecordError("its record is gone")
    fields = split_record(record)
    if fields.topic != TOPIC:
        raise RecordError(f"a record of topic {fields.topic!r} is there")
    return record, fields
