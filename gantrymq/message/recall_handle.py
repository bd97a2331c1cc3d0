"""The handle by which the sender of a message for a time can recall it. RocketMQ 5's: broker and clients of either
project read it, though clients need not.

URL-safe base64 of `v1 TOPIC BROKER TIME ID`: TIME is a millisecond after the message's TIMER_OUT_MS, ID its UNIQ_KEY.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

VERSION = "v1"
PARTS = 5
TEXT_CHARS_MAX = 1024


class RecallHandle(NamedTuple):
    """due_ms: when the message is delivered, its TIMER_OUT_MS."""

    topic: str
    broker_name: str
    due_ms: int
    msg_id: str

    @classmethod
    def parse(cls, text: str) -> RecallHandle:
        """ValueError when it is no handle."""
        if not 0 < len(text) <= TEXT_CHARS_MAX:
            raise ValueError("recall handle is invalid")
        try:
            plain = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True).decode()
            version, topic, broker_name, time_ms, msg_id = plain.split(" ")[:PARTS]
            if version != VERSION or not time_ms.isascii() or not time_ms.isdecimal() or not topic or not msg_id:
                raise ValueError(version)
            return cls(topic, broker_name, int(time_ms) - 1, msg_id)
        except (ValueError, binascii.Error) as exc:
            raise ValueError("recall handle is invalid") from exc

    def __str__(self) -> str:
        plain = f"{VERSION} {self.topic} {self.broker_name} {self.due_ms + 1} {self.msg_id}"
        return base64.urlsafe_b64encode(plain.encode()).decode()
