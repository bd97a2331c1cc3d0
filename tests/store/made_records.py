"""Records of a log, made up: plain ones, all that a twin leaves to Python, and what is no record."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from gantrymq.message import ids, record, sysflag
from gantrymq.message.record import RecordFields
from gantrymq.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC

V4, V6 = ids.encode_host("127.0.0.1", 10911), ids.encode_host("::1", 10911)
PROPERTIES = (
    b"",
    b"TAGS\x01a",
    b"TAGS\x01a\x02",
    b"TAGS\x01\x02KEYS\x01",
    b"UNIQ_KEY\x01AC1100010A0018B4AAC2\x02KEYS\x01one two  three \x02TAGS\x01tag\x02WAIT\x01true",
    b"UNIQ_KEY\x01AC1100010A0018B4AAC3\x02CLUSTER\x01c",
    b"UNIQ_KEY\x01\x02TAGS\x01a",
    b"UNIQ_KEY\x01one\x02UNIQ_KEY\x01two",
    b"UNIQ_KEY\x01one\x02UNIQ_KEY\x01",
    b"xTAGS\x01a\x02TAGS\x01b",
    b"TAGS\x01b\x02xTAGS\x01a",
    b"a\x01bTAGS\x01x",
    b"a\x01bUNIQ_KEY\x01x\x02xKEYS\x01y",
    b"KEYS\x01a\x02KEYS\x01b c",
    "KEYS\x01\u00e9 \u4e2d \U0001f600\x02TAGS\x01\u4e2d\U0001f600".encode(),
    b"TAGS\x01\xff\xfe",
    b"KEYS\x01\xc3 good",
    b"UNIQ_KEY\x01\xed\xa0\x80",
    b"KEYS\x01" + b" ".join(b"%d" % number for number in range(90)),
    b"DELAY\x013\x02REAL_TOPIC\x01T\x02REAL_QID\x010\x02TAGS\x01a",
    b"TIMER_OUT_MS\x011700000300000\x02REAL_TOPIC\x01T",
    b"TRAN_MSG\x01true\x02TAGS\x01half",
    b"\x01\x02\x01TAGS\x01",
    b"\x02\x02TAGS\x01a",
)
TOPICS = (b"T", b"T", b"T", b"orders", "th\u00e9".encode(), b"x" * 127, b"\xff", b"a/../b", b"nul\0",
          SCHEDULE_TOPIC.encode(), TIMER_TOPIC.encode())  # fmt: skip
FLAGS = (0, 0, 0, 0, sysflag.COMPRESSED, sysflag.TRANSACTION_PREPARED, sysflag.TRANSACTION_COMMIT,
         sysflag.TRANSACTION_ROLLBACK)  # fmt: skip


@dataclass
class Making:
    """A log that grows record by record, from `position` on; file ends as a master makes them."""

    file_bytes: int
    position: int = 0
    data: bytearray = field(default_factory=bytearray)
    offsets: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def add(
        self,
        body: bytes = b"body",
        *,
        topic: bytes = b"T",
        queue_id: int = 0,
        properties: bytes = b"",
        sys_flag: int = 0,
        host: bytes = V4,
        step: int = 1,
    ) -> None:
        """Add a record, before it a blank record where the file has no room for it. step: 1, or to leave a gap."""
        offset = self.offsets.get((topic, queue_id), -1) + step
        self.offsets[topic, queue_id] = max(offset, -1)
        size = record.RECORD_BYTES_MIN + len(body) + len(topic) + len(properties) + 2 * (len(host) - len(V4))
        room = self.file_bytes - self.position % self.file_bytes
        if size + record.BLANK.size > room:
            self.data += record.BLANK.pack(room, record.BLANK_MAGIC) + bytes(room - record.BLANK.size)
            self.position += room
        stamp = 1_700_000_000_000 + self.position
        fields = RecordFields(
            0, 0, queue_id, 0, max(offset, 0), self.position, sys_flag, stamp, host, stamp, host, 0, 0, 0, 0, topic,
            properties,
        )  # fmt: skip
        made = record.encode_fields(fields, body)
        self.data += made
        self.position += len(made)


@st.composite
def logs(draw: Any, file_bytes: int) -> bytes:
    """A log of some records of any kind, now and then damaged."""
    making = Making(file_bytes)
    for _ in range(draw(st.integers(1, 60))):
        making.add(
            bytes(draw(st.integers(0, 400))),
            topic=draw(st.sampled_from(TOPICS)),
            queue_id=draw(st.sampled_from((0, 0, 0, 1, 70, 2147483647))),
            properties=draw(st.sampled_from(PROPERTIES)),
            sys_flag=draw(st.sampled_from(FLAGS)),
            host=draw(st.sampled_from((V4, V4, V4, V6))),
            step=draw(st.sampled_from((1, 1, 1, 1, 1, 0, 3, -2))),
        )
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        at = draw(st.integers(0, len(making.data) - 4))
        making.data[at : at + 4] = draw(st.sampled_from((bytes(4), b"\xff" * 4, struct.pack(">i", 91), b"\x7f\0\0\0")))
    return bytes(making.data)
