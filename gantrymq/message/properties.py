"""Message properties: the keys RocketMQ gives a meaning, the stored text, and Java's string hash.

The text is `name 0x01 value 0x02 name 0x01 value`, with no separator at the end; older clients write one, so readers
accept it. Pairs with an empty name or value vanish when read, the last of two equal names wins, as in Java's parser.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping

CAUSE_CHARS_MAX, CAUSE_TEXT_CHARS_MAX = 200, 500
# what would end a property, a line or a quoted condition, or can't be stored
_NOT_IN_CAUSES = re.compile(r'[\x00-\x20\x7f-\x9f"\ud800-\udfff]+')
NAME_VALUE_SEPARATOR = "\x01"
PAIR_SEPARATOR = "\x02"

PROPERTIES_BYTES_MAX = 32767  # the length is a signed 16-bit field
HASH_MAP_BUCKETS_MIN = 16  # java.util.HashMap's first size; it doubles when three quarters are taken

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QID = "REAL_QID"
TRAN_MSG = "TRAN_MSG"
PGROUP = "PGROUP"
MIN_OFFSET = "MIN_OFFSET"
MAX_OFFSET = "MAX_OFFSET"
BUYER_ID = "BUYER_ID"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG = "TRANSFER_FLAG"
CORRECTION_FLAG = "CORRECTION_FLAG"
MQ2_FLAG = "MQ2_FLAG"
RECONSUME_TIME = "RECONSUME_TIME"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
UNIQ_KEY = "UNIQ_KEY"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
CONSUME_START_TIME = "CONSUME_START_TIME"
CONSUME_ERROR = "CONSUME_ERROR"  # GantryMQ's: why the last try failed, "shop.OutOfStock at orders.py:42"
CONSUME_ERROR_TEXT = "CONSUME_ERROR_TEXT"  # GantryMQ's: the last line of its traceback
TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
INSTANCE_ID = "INSTANCE_ID"
CORRELATION_ID = "CORRELATION_ID"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
TTL = "TTL"
ARRIVE_TIME = "ARRIVE_TIME"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
CLUSTER = "CLUSTER"
MSG_TYPE = "MSG_TYPE"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TRANSACTION_ID = "__transactionId__"
START_DELIVER_TIME = "__STARTDELIVERTIME"
# RocketMQ 5's timer: what a sender asks for, then what the broker notes
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
# RocketMQ 5's POP: the handle of a delivery, which is never stored; when a message was handed out first; dead letters
POP_CK = "POP_CK"
FIRST_POP_TIME = "1ST_POP_TIME"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
TIMERS = frozenset({TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS})
DELAYING = TIMERS | {DELAY}
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"


def cause_properties(cause: str, text: str) -> dict[str, str]:
    """CONSUME_ERROR and CONSUME_ERROR_TEXT, each one line and not too long; without what is empty."""
    told = {CONSUME_ERROR: (cause, CAUSE_CHARS_MAX), CONSUME_ERROR_TEXT: (text, CAUSE_TEXT_CHARS_MAX)}
    values = {name: _NOT_IN_CAUSES.sub(" ", given[: 4 * most]).strip()[:most] for name, (given, most) in told.items()}
    return {name: value for name, value in values.items() if value}


def encode_properties(properties: Mapping[str, str]) -> str:
    """Return the stored text of the properties, in the mapping's order."""
    return PAIR_SEPARATOR.join([f"{name}{NAME_VALUE_SEPARATOR}{value}" for name, value in properties.items()])


def encode_in_java_order(properties: Mapping[str, str]) -> str:
    """Return the stored text in the order in which a Java broker writes properties that it has read and changed.

    That is the order of a java.util.HashMap: by bucket, equal buckets by the time of their first insertion.
    """
    buckets = HASH_MAP_BUCKETS_MIN
    while len(properties) > buckets * 3 // 4:
        buckets *= 2
    last = buckets - 1
    names = sorted(properties, key=lambda name: _spread_hash(name) & last)
    return PAIR_SEPARATOR.join([f"{name}{NAME_VALUE_SEPARATOR}{properties[name]}" for name in names])


def decode_properties(text: str | bytes | bytearray | memoryview) -> dict[str, str]:
    """Return the properties of a stored text. Bytes that are not UTF-8 are replaced: properties have no checksum."""
    if not isinstance(text, str):
        text = str(text, "utf-8", "replace")
    properties: dict[str, str] = {}
    for pair in text.split(PAIR_SEPARATOR):
        name, separator, value = pair.partition(NAME_VALUE_SEPARATOR)
        if name and value and separator:
            properties[name] = value
    return properties


def sendable_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """A copy of received properties that a new message may have.

    A value can hold the separator of name and value, from a client that does not check. It becomes a blank: refused,
    the message could never be sent again.
    """
    return {name: value.replace(NAME_VALUE_SEPARATOR, " ") for name, value in properties.items()}


def find_property(properties: bytes, key: bytes) -> bytes | None:
    """Return one value out of the encoded properties without decoding them, None when absent or empty.

    As in decode_properties the last of equal names wins.
    """
    mark = key + b"\x01"
    end = len(properties)
    while True:
        at = properties.rfind(mark, 0, end)
        if at < 0:
            return None
        if at == 0 or properties[at - 1] == 2:
            start = at + len(mark)
            stop = properties.find(b"\x02", start)
            value = properties[start:] if stop < 0 else properties[start:stop]
            if value:
                return value
        end = at + len(mark) - 1


def replace_properties(properties: bytes, changes: Mapping[bytes, bytes | None]) -> bytes:
    """Return the encoded properties with some set (moved to the end) or, where the value is None, removed."""
    pairs = [pair for pair in properties.split(b"\x02") if pair and pair.partition(b"\x01")[0] not in changes]
    pairs += [name + b"\x01" + value for name, value in changes.items() if value is not None]
    return b"\x02".join(pairs)


POWERS_MAX = 512  # longest text hashed in one pass; covers any topic#key that a client makes
_POWERS: dict[int, tuple[int, ...]] = {}


def powers_of_31(length: int) -> tuple[int, ...]:
    """Return 31**(length-1) … 31**0, each modulo 2**32: the weights of Java's hash for a text of at most POWERS_MAX."""
    powers = _POWERS.get(length)
    if powers is None:
        powers = tuple([pow(31, exponent, 1 << 32) for exponent in range(length - 1, -1, -1)])
        _POWERS[length] = powers
    return powers


def hash_of_ascii(text: bytes) -> int:
    """Return Java's String.hashCode of ASCII text, as an unsigned 32-bit number."""
    if len(text) > POWERS_MAX:
        return _hash_in_pieces(text)
    total: int = sum(map(operator.mul, text, powers_of_31(len(text))))
    return total & 0xFFFFFFFF


def _hash_in_pieces(text: bytes) -> int:
    """The same of a long text: powers for each of its bytes would take a hundred times its memory, and seconds."""
    total = 0
    for at in range(0, len(text), POWERS_MAX):
        piece = text[at : at + POWERS_MAX]
        total = (total * pow(31, len(piece), 1 << 32) + hash_of_ascii(piece)) & 0xFFFFFFFF
    return total


def string_hash_code(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 units, wrapping to a signed 32-bit number."""
    if text.isascii():
        code = hash_of_ascii(text.encode())
    else:
        units = memoryview(text.encode("utf-16-le", "surrogatepass"))
        code = 0
        for index in range(0, len(units), 2):
            code = (31 * code + units[index] + (units[index + 1] << 8)) & 0xFFFFFFFF
    return code - 0x100000000 if code >= 0x80000000 else code


@functools.lru_cache(maxsize=1024)
def _spread_hash(name: str) -> int:
    """Return java.util.HashMap's own hash of a key."""
    code = string_hash_code(name)
    return (code ^ (code & 0xFFFFFFFF) >> 16) & 0xFFFFFFFF
