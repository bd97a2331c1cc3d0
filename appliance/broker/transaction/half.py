"""The records of a transaction as values: prepared, committed, op, prepared again, discarded. No store, no clock.

Properties are written in a Java broker's order, so that a record is the same to the byte whichever make wrote it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message import sysflag
from gantrymq.message import topics as names
from gantrymq.message.ids import offset_message_id
from gantrymq.message.record import RecordFields, encode_fields, split_record
from store.base.results import StoreMessage

QUEUE_ID_MAX = (1 << 31) - 1
HALF_QUEUE = 0  # all half messages of a broker stand in one queue
OP_TAG = "d"  # "delete": the only thing an op message of 4.9 says
_HALF_TOPIC = names.TRANS_HALF_TOPIC.encode()
_ENDED_PROPERTIES = f"{keys.WAIT}\x01true\x02{keys.TAGS}\x01{OP_TAG}".encode()
# What later records of the same transaction need on top of the prepared one: both counters of a check.
RESERVED_PROPERTIES_BYTES = 96


@dataclass(slots=True)
class HalfMessage:
    """A prepared message read from the log. `body` is a view of the mapped file: use it before anything else runs."""

    fields: RecordFields
    body: memoryview
    properties: dict[str, str]

    @property
    def queue_offset(self) -> int:
        return self.fields.queue_offset

    @property
    def group(self) -> str | None:
        """The producer group that may end it, and is asked."""
        return self.properties.get(keys.PGROUP)

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(keys.UNIQ_KEY)

    @property
    def check_times(self) -> int:
        """How often its producers were asked; 0 for a message that was not rewritten yet."""
        return number(self.properties.get(keys.TRANSACTION_CHECK_TIMES, "0"))

    @property
    def is_copy(self) -> bool:
        """Whether this is not the record that the producer knows, but one that a check or an operator wrote."""
        return keys.TRANSACTION_CHECK_TIMES in self.properties or keys.TRAN_PREPARED_QUEUE_OFFSET in self.properties

    @property
    def first_queue_offset(self) -> int:
        """Where the record that the producer knows stands, for a copy made during immunity; -1 for others."""
        return number(self.properties.get(keys.TRAN_PREPARED_QUEUE_OFFSET, "-1"))

    def real_place(self) -> tuple[str, int]:
        """Return topic and queue id of the message that a commit makes. RecordError when no message could bear them:
        another make's record, or a damaged one."""
        topic, queue_id = self.properties.get(keys.REAL_TOPIC, ""), self.properties.get(keys.REAL_QID, "")
        if not 0 < len(topic.encode()) <= names.TOPIC_CHARS_MAX:
            raise RecordError(f"its {keys.REAL_TOPIC} is {topic[:200]!r}")
        if not queue_id.isdecimal() or len(queue_id) > 10 or int(queue_id) > QUEUE_ID_MAX:
            raise RecordError(f"its {keys.REAL_QID} is {queue_id[:20]!r}")
        return topic, int(queue_id)


def number(text: str) -> int:
    """Return the number that a property holds, -1 for anything else, as RocketMQ reads it."""
    try:
        return int(text)
    except ValueError:
        return -1


def read_half(record: memoryview) -> HalfMessage:
    """Take a record of the half topic apart. RecordError when it is none."""
    fields = split_record(record)
    if fields.topic != _HALF_TOPIC:
        raise RecordError(f"a record of topic {fields.topic!r} is not a half message")
    body = record[fields.body_position : fields.body_position + fields.body_bytes]
    return HalfMessage(fields, body, keys.decode_properties(fields.properties))


def prepared_properties(properties: dict[str, str], cluster: str, topic: str, queue_id: int) -> bytes:
    """Return the stored properties of a half message; `properties` are the client's and are changed.

    The order of insertion matters where two names share a hash bucket: RocketMQ takes WAIT out and puts it back.
    """
    properties[keys.CLUSTER] = cluster
    if keys.WAIT in properties:
        properties[keys.WAIT] = properties.pop(keys.WAIT)
    properties[keys.REAL_TOPIC] = topic
    properties[keys.REAL_QID] = str(queue_id)
    return keys.encode_in_java_order(properties).encode()


def committed(half: HalfMessage) -> StoreMessage:
    """Return the message for its real topic. It keeps the half's properties and tells where the half stands."""
    topic, queue_id = half.real_place()
    sys_flag = half.fields.sys_flag & ~sysflag.TRANSACTION_MASK | sysflag.TRANSACTION_COMMIT
    return _message(half, topic, queue_id, half.properties, sys_flag, half.fields.physical_offset)


def op_message(queue_offset: int, queue_id: int, now_ms: int, store_host: bytes) -> StoreMessage:
    """Return the message that says that the half at `queue_offset` has ended."""
    body = str(queue_offset).encode()
    return StoreMessage(
        names.TRANS_OP_HALF_TOPIC, queue_id, body, _ENDED_PROPERTIES, 0, 0, now_ms, store_host, store_host
    )


def prepared_again(half: HalfMessage, changes: dict[str, str]) -> StoreMessage:
    """Return a half as it is written again at its queue's end, with some properties set. Its flag is lost, as in
    RocketMQ."""
    fields = half.fields
    properties = half.properties | changes
    return StoreMessage(
        names.TRANS_HALF_TOPIC,
        fields.queue_id,
        half.body,
        keys.encode_in_java_order(properties).encode(),
        0,
        fields.sys_flag,
        fields.born_timestamp,
        fields.born_host,
        fields.store_host,
    )


def resumed(half: HalfMessage) -> StoreMessage:
    """Return a half, or what became of one that was checked too often, as it waits again."""
    properties = half.properties | {keys.TRANSACTION_CHECK_TIMES: "0"}
    return _message(half, names.TRANS_HALF_TOPIC, HALF_QUEUE, properties, half.fields.sys_flag, 0)


def discarded(half: HalfMessage, changes: dict[str, str]) -> StoreMessage:
    """Return the message for the topic of those that no producer answers for."""
    return _message(half, names.TRANS_CHECK_MAX_TIME_TOPIC, 0, half.properties | changes, half.fields.sys_flag, 0)


def _message(
    half: HalfMessage, topic: str, queue_id: int, properties: dict[str, str], sys_flag: int, prepared_offset: int
) -> StoreMessage:
    fields = half.fields
    return StoreMessage(
        topic,
        queue_id,
        half.body,
        keys.encode_in_java_order(properties).encode(),
        fields.flag,
        sys_flag,
        fields.born_timestamp,
        fields.born_host,
        fields.store_host,
        fields.reconsume_times,
        prepared_offset,
    )


# -- asking the producer ----------------------------------------------------------------------------------------------


def check_request(
    half: HalfMessage, check_times: int, queue_offset: int, physical_offset: int
) -> tuple[dict[str, str], bytes]:
    """Return ext fields and body of CHECK_TRANSACTION_STATE (39) for the copy that was written at those offsets.

    The body is the message as its consumers would get it, but with the copy's offsets and with WAIT=false.
    """
    topic, queue_id = half.real_place()
    properties = half.properties | {keys.TRANSACTION_CHECK_TIMES: str(check_times), keys.WAIT: "false"}
    fields = half.fields._replace(
        topic=topic.encode(),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        properties=keys.encode_in_java_order(properties).encode(),
    )
    ext_fields = {"commitLogOffset": str(physical_offset)}
    unique_key = half.unique_key
    if unique_key is not None:
        ext_fields |= {"msgId": unique_key, "transactionId": unique_key}
    ext_fields |= {
        "tranStateTableOffset": str(queue_offset),
        "offsetMsgId": offset_message_id(fields.store_host, physical_offset),
    }
    return ext_fields, encode_fields(fields, half.body)


class Verdict(enum.Enum):
    """What a check round does with a half message that has not ended."""

    DISCARD = enum.auto()  # asked too often, or too old
    KEEP = enum.auto()  # its own immunity lasts: written again unasked, so that those behind it have their turn
    WAIT = enum.auto()  # too young, and so is everything behind it
    CHECK = enum.auto()


def verdict(half: HalfMessage, now_ms: int, *, timeout_ms: int, check_times_max: int, reserved_ms: int) -> Verdict:
    """Decide by the half's age, its own immunity and how often it was asked about.

    reserved_ms: how long files are kept. A message without a time of immunity is immune for `timeout_ms`.
    """
    if half.check_times >= check_times_max:
        return Verdict.DISCARD
    age_ms = now_ms - half.fields.born_timestamp
    if age_ms > reserved_ms:
        return Verdict.DISCARD
    immunity = half.properties.get(keys.CHECK_IMMUNITY_TIME_IN_SECONDS)
    if immunity is not None:
        seconds = number(immunity)
        immunity_ms = timeout_ms if seconds == -1 else seconds * 1000
        if age_ms < immunity_ms:
            return Verdict.KEEP
        return Verdict.CHECK
    return Verdict.WAIT if 0 <= age_ms <= timeout_ms else Verdict.CHECK
