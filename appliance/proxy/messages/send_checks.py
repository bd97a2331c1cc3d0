"""A client's message as the brokers' message, or why it can't be one. Decided here, without I/O.

What is refused, and with which code, is RocketMQ 5's; clients show the code.
"""

from __future__ import annotations

import gzip
import re
import time
import zlib

from google.protobuf.timestamp_pb2 import Timestamp

from appliance.proxy.messages.properties import BORN_HOST, BORN_TIMESTAMP, RESERVED, SHARDING_KEY, TRACE_CONTEXT
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code, Encoding, Message, MessageType
from gantrymq.client.connection.send_codec import MESSAGE_BYTES_MAX, Outgoing
from gantrymq.message import properties as names
from gantrymq.message import sysflag

USER_PROPERTIES_MAX = 128
USER_PROPERTIES_BYTES_MAX = 16 << 10
MESSAGE_GROUP_CHARS_MAX = 63
DELAY_MS_MAX = 24 * 3600 * 1000
RECOVERY_SECONDS_MAX = 3600
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def outgoing_of(message: Message, topic: str) -> Outgoing:
    """The message as brokers take it; topic: its whole name. Refused."""
    body = _body(message)
    _check_user_properties(message)
    properties = {**message.user_properties, **_system_properties(message, topic)}
    text = names.encode_properties(properties)
    if len(text.encode()) > names.PROPERTIES_BYTES_MAX:
        raise Refused(Code.MESSAGE_PROPERTIES_TOO_LARGE, f"properties: {names.PROPERTIES_BYTES_MAX} bytes at most")
    is_half = message.system_properties.message_type == MessageType.TRANSACTION
    outgoing = Outgoing(
        topic,
        body,
        text,
        message.system_properties.message_id,
        flag=0,
        sys_flag=sysflag.TRANSACTION_PREPARED if is_half else 0,
        is_batch=False,
    )
    outgoing.is_timed = names.TIMER_DELIVER_MS in properties
    return outgoing


def _body(message: Message) -> bytes:
    body = message.body
    if not body:
        raise Refused(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if message.system_properties.body_encoding == Encoding.GZIP:
        body = _unpacked(body)
    if len(body) > MESSAGE_BYTES_MAX:
        raise Refused(Code.MESSAGE_BODY_TOO_LARGE, f"message body cannot exceed {MESSAGE_BYTES_MAX} bytes")
    return body


def _unpacked(body: bytes) -> bytes:
    """A gzip body as it was: consumers of RocketMQ 4 could not read it."""
    try:
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        unpacked = unpacker.decompress(body, MESSAGE_BYTES_MAX + 1)
        if not unpacker.eof and len(unpacked) <= MESSAGE_BYTES_MAX:
            raise gzip.BadGzipFile("it ends too early")
        return unpacked
    except (zlib.error, gzip.BadGzipFile) as exc:
        raise Refused(Code.MESSAGE_CORRUPTED, f"the body is not gzip: {exc}") from exc


def _check_user_properties(message: Message) -> None:
    user = message.user_properties
    if len(user) > USER_PROPERTIES_MAX:
        why = f"{len(user)} user properties: {USER_PROPERTIES_MAX} at most"
        raise Refused(Code.MESSAGE_PROPERTIES_TOO_LARGE, why)
    size = 0
    for name, value in user.items():
        if name in RESERVED:
            raise Refused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {name}")
        if _CONTROL.search(name) or _CONTROL.search(value):
            why = f"property {name!r:.60} has a control character"
            raise Refused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, why)
        size += len(name.encode()) + len(value.encode())
    if size > USER_PROPERTIES_BYTES_MAX:
        why = f"user properties take {size} bytes: {USER_PROPERTIES_BYTES_MAX} at most"
        raise Refused(Code.MESSAGE_PROPERTIES_TOO_LARGE, why)


def _system_properties(message: Message, topic: str) -> dict[str, str]:
    system = message.system_properties
    if not system.message_id.strip() or _CONTROL.search(system.message_id):
        raise Refused(Code.ILLEGAL_MESSAGE_ID, "message id cannot be blank")
    properties = {names.UNIQ_KEY: system.message_id, names.PGROUP: topic}
    if system.tag:
        properties[names.TAGS] = _plain(system.tag, Code.ILLEGAL_MESSAGE_TAG, "tag")
        if "|" in system.tag:
            raise Refused(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
    if system.keys:
        keys = [_plain(key, Code.ILLEGAL_MESSAGE_KEY, "key") for key in system.keys if key]
        properties[names.KEYS] = " ".join(keys)
    if system.message_group:
        properties[SHARDING_KEY] = _plain(system.message_group, Code.ILLEGAL_MESSAGE_GROUP, "message group")
        if len(system.message_group) > MESSAGE_GROUP_CHARS_MAX:
            raise Refused(Code.ILLEGAL_MESSAGE_GROUP, f"message group: {MESSAGE_GROUP_CHARS_MAX} characters at most")
    if system.trace_context:
        properties[TRACE_CONTEXT] = _plain(system.trace_context, Code.BAD_REQUEST, "trace context")
    if system.born_host:
        properties[BORN_HOST] = _plain(system.born_host, Code.BAD_REQUEST, "born host")
    if system.HasField("born_timestamp"):
        properties[BORN_TIMESTAMP] = str(milliseconds_of(system.born_timestamp))
    return properties | _kind(message)


def _kind(message: Message) -> dict[str, str]:
    """What the message's type adds."""
    system = message.system_properties
    is_timed, is_half = system.HasField("delivery_timestamp"), system.message_type == MessageType.TRANSACTION
    if is_half and (is_timed or system.message_group):
        why = "a message in a transaction has no delivery time and no message group"
        raise Refused(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, why)
    if is_timed and system.message_group:
        why = "a message has a delivery time or a message group, not both"
        raise Refused(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, why)
    properties = {}
    if is_timed:
        deliver_ms = milliseconds_of(system.delivery_timestamp)
        if deliver_ms - time.time() * 1000 > DELAY_MS_MAX:
            raise Refused(Code.ILLEGAL_DELIVERY_TIME, "the max delay time of message is 1 day")
        properties[names.TIMER_DELIVER_MS] = str(max(deliver_ms, 1))
    if is_half:
        properties[names.TRAN_MSG] = "true"
    if system.HasField("orphaned_transaction_recovery_duration"):
        seconds = system.orphaned_transaction_recovery_duration.seconds
        if not 0 <= seconds <= RECOVERY_SECONDS_MAX:
            raise Refused(Code.BAD_REQUEST, f"transaction recovery time: 0 to {RECOVERY_SECONDS_MAX} s")
        if is_half and seconds:
            properties[names.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(seconds)
    return properties


def milliseconds_of(moment: Timestamp) -> int:
    """Since the epoch, also of one that protobuf's own conversion refuses."""
    return int(moment.seconds * 1000 + moment.nanos // 1_000_000)


def _plain(text: str, code: Code, what: str) -> str:
    """A text that stands in a property. Refused when it is blank or has a control character."""
    if not text.strip():
        raise Refused(code, f"{what} cannot be the char sequence of whitespace")
    if _CONTROL.search(text):
        raise Refused(code, f"{what} cannot contain control character")
    return text


# -- what a topic takes -----------------------------------------------------------------------------------------------

ALL_TYPES = (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION)


def accepted_types(attribute: str) -> tuple[MessageType, ...]:
    """The types that a topic's attribute message.type names; a topic without one takes all, as in RocketMQ 4."""
    if attribute in ("NORMAL", "FIFO", "DELAY", "TRANSACTION"):
        return (MessageType.Value(attribute),)
    return ALL_TYPES


def type_of(message: Message) -> MessageType:
    """What a message is, by what it has."""
    system = message.system_properties
    if system.message_type == MessageType.TRANSACTION:
        return MessageType.TRANSACTION
    if system.HasField("delivery_timestamp"):
        return MessageType.DELAY
    return MessageType.FIFO if system.message_group else MessageType.NORMAL


def check_type(message: Message, attribute: str) -> None:
    """Refused when the topic has another type."""
    kind, accepted = type_of(message), accepted_types(attribute)
    if kind not in accepted:
        why = f"message type {MessageType.Name(kind)} does not match topic type {attribute}"
        raise Refused(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, why)
