"""The frames of the load, encoded in advance: while it runs, only the opaque and the UNIQ_KEYs are patched in place."""

from __future__ import annotations

import secrets
import struct
import time
from dataclasses import dataclass

from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import JSON, ONEWAY_FLAG, RemotingCommand
from gantrymq.remoting.signature import Credentials

JAVA_VERSION = 401
GROUP = "BenchProducer"
OPAQUE_START = 1_000_000_000  # ten digits that stay ten digits up to 2^31: a frame never changes its size
DIGITS = 10
DIGITS_MARK = b"#" * DIGITS  # of a key or queue offset, to be patched
BATCH_PROPERTIES = "WAIT\x01true"
# A timestamp the latency load finds again in what a pull brings: marker, then 19 digits of nanoseconds.
TIME_MARK = b"@sent@"
TIME_DIGITS = 19


@dataclass(frozen=True)
class Style:
    """How a request is written: its header's encoding, whether it is answered, and the account that signs it."""

    serialize_type: int = JSON
    one_way: bool = False
    credentials: Credentials | None = None


PLAIN = Style()


def batch_item(properties: str, body: bytes) -> bytes:
    """One message of a batch body: sizes, ignored magic and checksum, flag, body, properties."""
    raw = properties.encode()
    head = struct.pack(">iiiii", 22 + len(body) + len(raw), 0, 0, 0, len(body))
    return head + body + struct.pack(">h", len(raw)) + raw


class PullFrame:
    """One pull request (11) of a queue, of which only the queue offset changes."""

    def __init__(self, topic: str, queue_id: int, *, suspend: bool) -> None:
        self._buffer = bytearray(pull_frame(topic, queue_id, suspend=suspend))
        self._offset_at = self._buffer.index(DIGITS_MARK)
        self.frame_bytes = len(self._buffer)

    def at(self, queue_offset: int) -> bytearray:
        self._buffer[self._offset_at : self._offset_at + DIGITS] = b"%010d" % queue_offset
        return self._buffer


class TimedFrame:
    """A single send whose body carries the moment it was sent and whose opaque is the caller's."""

    def __init__(self, topic: str, queue_id: int, body_bytes: int) -> None:
        body = TIME_MARK + b"0" * TIME_DIGITS
        body += bytes(body_bytes - len(body))
        self._buffer = bytearray(
            send_frame(RequestCode.SEND_MESSAGE_V2, topic, queue_id, message_properties(key_prefix()), body)
        )
        self._opaque_at = self._buffer.index(b'"opaque":') + len(b'"opaque":')
        self._key_at = self._buffer.index(DIGITS_MARK)
        self._time_at = self._buffer.index(TIME_MARK) + len(TIME_MARK)

    def at(self, opaque: int, sent_ns: int) -> bytearray:
        digits = b"%d" % opaque
        buffer = self._buffer
        buffer[self._opaque_at : self._opaque_at + DIGITS] = digits
        buffer[self._key_at : self._key_at + DIGITS] = digits
        buffer[self._time_at : self._time_at + TIME_DIGITS] = b"%019d" % sent_ns
        return buffer


def send_fields(
    group: str, topic: str, queue_id: int | str, properties: str, *, is_batch: bool = False
) -> dict[str, str]:
    """Ext fields of a send (310, 320), as the Java client writes them."""
    return {
        "a": group,
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": str(queue_id),
        "f": "0",
        "g": str(int(time.time() * 1000)),
        "h": "0",
        "i": properties,
        "j": "0",
        "k": "false",
        "m": "true" if is_batch else "false",
    }


def send_frame(code: int, topic: str, queue_id: int | str, properties: str, body: bytes, style: Style = PLAIN) -> bytes:
    """A send (310) or batch (320), whole."""
    is_batch = code == RequestCode.SEND_BATCH_MESSAGE
    return _request(code, send_fields(GROUP, topic, queue_id, properties, is_batch=is_batch), body, style)


def pull_frame(topic: str, queue_id: int, *, suspend: bool, style: Style = PLAIN) -> bytes:
    """A pull (11) of 32 messages with DIGITS_MARK for its queue offset."""
    fields = {
        "consumerGroup": "BenchConsumer",
        "topic": topic,
        "queueId": str(queue_id),
        "queueOffset": DIGITS_MARK.decode(),
        "maxMsgNums": "32",
        "sysFlag": "6" if suspend else "4",  # 4: the subscription is in the request, 2: may be held
        "commitOffset": "0",
        "suspendTimeoutMillis": "15000",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }
    return _request(RequestCode.PULL_MESSAGE, fields, b"", style)


def _request(code: int, fields: dict[str, str], body: bytes, style: Style) -> bytes:
    flag = ONEWAY_FLAG if style.one_way else 0
    request = RemotingCommand(code, fields, body, None, OPAQUE_START, flag, "JAVA", JAVA_VERSION, style.serialize_type)
    if style.credentials is not None:
        style.credentials.sign(request)
    return request.encode()


def message_properties(prefix: str, digits: str = DIGITS_MARK.decode()) -> str:
    """A message's properties, with a key that ends with `digits`."""
    return f"UNIQ_KEY\x01{prefix}{digits}\x02WAIT\x01true\x02TAGS\x01TagA"


def key_prefix() -> str:
    """32 characters with the digits, as Java's unique ids have; random, so that no two connections share a key."""
    return secrets.token_hex((32 - DIGITS) // 2).upper()


def positions(data: bytes, mark: bytes) -> list[int]:
    """Where `mark` stands, without overlaps."""
    found, at = [], data.find(mark)
    while at >= 0:
        found.append(at)
        at = data.find(mark, at + len(mark))
    return found
