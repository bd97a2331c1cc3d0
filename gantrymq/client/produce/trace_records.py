"""The records of RocketMQ's message trace as text (Java: TraceDataEncoder).

A record's fields are separated by 0x01, records end with 0x02, what is missing is the word null:

    Pub             time region group topic msgId tags keys storeHost bodyLength costMs msgType offsetMsgId success
    SubBefore       time region group requestId msgId retryTimes keys
    SubAfter        requestId msgId costMs success keys contextCode time group
    EndTransaction  time region group topic msgId tags keys storeHost msgType transactionId state fromCheck
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum

FIELD = "\x01"
RECORD = "\x02"
NULL = "null"


class TraceKind(Enum):
    """What happened to the message."""

    PUB = "Pub"
    SUB_BEFORE = "SubBefore"
    SUB_AFTER = "SubAfter"
    END_TRANSACTION = "EndTransaction"


class TracedMessageType(IntEnum):
    """Java: MessageType."""

    NORMAL = 0
    TRANSACTION_HALF = 1
    TRANSACTION_COMMIT = 2
    DELAY = 3


class ConsumeOutcome(IntEnum):
    """How a listener call ended (Java: ConsumeReturnType)."""

    SUCCESS = 0
    TIMEOUT = 1
    EXCEPTION = 2
    RETURNED_NULL = 3
    FAILED = 4


@dataclass(slots=True, kw_only=True)
class TraceRecord:
    """One step in the life of one message. Which fields count depends on the kind; times are ms."""

    kind: TraceKind
    msg_id: str
    time_ms: int = 0
    region: str = ""
    group: str = ""
    topic: str = ""
    tags: str | None = None
    keys: str | None = None
    store_host: str = ""
    body_bytes: int = 0
    cost_ms: int = 0
    message_type: int = TracedMessageType.NORMAL
    offset_msg_id: str | None = None
    is_success: bool = True
    request_id: str = ""  # joins a SubBefore and its SubAfter
    retry_times: int = 0
    outcome: int = ConsumeOutcome.SUCCESS
    transaction_id: str | None = None
    transaction_state: str = ""  # COMMIT_MESSAGE, ROLLBACK_MESSAGE, UNKNOW
    is_from_check: bool = False
    client_host: str = ""  # address of the client that sent the record; not in the text


def encode_record(record: TraceRecord) -> str:
    """The record's text, its end included."""
    start = (record.time_ms, record.region, record.group)
    named = (record.topic, record.msg_id, record.tags, record.keys, record.store_host)
    fields: Iterable[object]
    match record.kind:
        case TraceKind.PUB:
            fields = (
                *start, *named, record.body_bytes, record.cost_ms, int(record.message_type), record.offset_msg_id,
                record.is_success,
            )  # fmt: skip
        case TraceKind.SUB_BEFORE:
            fields = (*start, record.request_id, record.msg_id, record.retry_times, record.keys)
        case TraceKind.SUB_AFTER:
            fields = (
                record.request_id, record.msg_id, record.cost_ms, record.is_success, record.keys, int(record.outcome),
                record.time_ms, record.group,
            )  # fmt: skip
        case TraceKind.END_TRANSACTION:
            fields = (
                *start, *named, int(record.message_type), record.transaction_id, record.transaction_state,
                record.is_from_check,
            )  # fmt: skip
    return FIELD.join((record.kind.value, *map(_text, fields))) + RECORD


def decode_records(text: str) -> list[TraceRecord]:
    """The records of a trace message's body. What is no record (of another client, or torn) is left out."""
    records: list[TraceRecord] = []
    for line in text.split(RECORD):
        fields = line.split(FIELD)
        try:
            record = _decode(TraceKind(fields[0]), fields[1:])
        except (ValueError, IndexError):
            continue
        records.append(record)
    return records


def in_order(records: Iterable[TraceRecord]) -> list[TraceRecord]:
    """By time; a message that is delivered in the millisecond it was sent in was sent first."""
    return sorted(records, key=lambda record: (record.time_ms, record.kind is not TraceKind.PUB))


def _decode(kind: TraceKind, fields: list[str]) -> TraceRecord:
    """ValueError or IndexError when the fields don't make such a record."""
    if kind is TraceKind.SUB_AFTER:  # the older form has neither outcome nor time and group
        return TraceRecord(
            kind=kind,
            request_id=fields[0],
            msg_id=fields[1],
            cost_ms=int(fields[2]),
            is_success=fields[3] == "true",
            keys=_value(fields[4]),
            outcome=int(fields[5]) if len(fields) > 5 else ConsumeOutcome.SUCCESS,
            time_ms=int(fields[6]) if len(fields) > 6 else 0,
            group=fields[7] if len(fields) > 7 else "",
        )
    record = TraceRecord(kind=kind, time_ms=int(fields[0]), region=fields[1], group=fields[2], msg_id="")
    if kind is TraceKind.SUB_BEFORE:
        record.request_id, record.msg_id = fields[3], fields[4]
        record.retry_times, record.keys = int(fields[5]), _value(fields[6])
        return record
    record.topic, record.msg_id = fields[3], fields[4]
    record.tags, record.keys, record.store_host = _value(fields[5]), _value(fields[6]), fields[7]
    if kind is TraceKind.PUB:
        record.body_bytes, record.cost_ms, record.message_type = int(fields[8]), int(fields[9]), int(fields[10])
        record.offset_msg_id = _value(fields[11]) if len(fields) > 12 else None
        record.is_success = fields[12 if len(fields) > 12 else 11] == "true"
        return record
    record.message_type, record.transaction_id = int(fields[8]), _value(fields[9])
    record.transaction_state, record.is_from_check = fields[10], fields[11] == "true"
    return record


def _text(value: object) -> str:
    """As Java prints it. Separators inside a value become spaces: they would end the field."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace(FIELD, " ").replace(RECORD, " ")


def _value(text: str) -> str | None:
    return None if text == NULL else text
