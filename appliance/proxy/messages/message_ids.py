"""The ids that the proxy gives to clients and reads back. All that a later call needs is in them, so that any proxy can
serve it, this one after a restart as well.

    transaction id   broker, place of the half message in its queue and in the log
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code

PARTS = 4
VERSION = "1"


class TransactionId(NamedTuple):
    """Where a half message is."""

    broker_name: str
    queue_offset: int
    physical_offset: int

    def to_text(self) -> str:
        text = f"{VERSION} {self.queue_offset} {self.physical_offset} {self.broker_name}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> TransactionId:
        """Refused when the proxy gave no such id."""
        try:
            packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            version, queue_offset, physical_offset, broker_name = packed.decode().split(" ", PARTS - 1)
            if version != VERSION:
                raise ValueError(version)
            return cls(broker_name, int(queue_offset), int(physical_offset))
        except (ValueError, binascii.Error, UnicodeDecodeError) as exc:
            raise Refused(Code.INVALID_TRANSACTION_ID, "not a transaction id of a proxy") from exc
