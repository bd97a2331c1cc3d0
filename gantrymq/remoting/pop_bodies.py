"""Bodies of POP's requests (RocketMQ 5): acknowledging several messages, who gets which queues, and how; what is in
flight.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from gantrymq.errors import BodyError
from gantrymq.message.topics import pop_retry_topic
from gantrymq.remoting.json_body import Body, json_field, list_of

OWN_TOPIC = "0"  # BatchAck.retry
BITS_BYTES_MAX = 4096  # of one acknowledgement


@dataclass
class BatchAck(Body):
    """Deliveries of one batch that are done with. bit_set: bit i is the offset start_offset + i."""

    consumer_group: str = json_field(name="c", default="")
    topic: str = json_field(name="t", default="")
    retry: str = json_field(name="r", default=OWN_TOPIC)
    start_offset: int = json_field(name="so", default=0)
    queue_id: int = json_field(name="q", default=0)
    revive_queue_id: int = json_field(name="rq", default=0)
    pop_time: int = json_field(name="pt", default=0)
    invisible_time: int = json_field(name="it", default=0)
    bit_set: str = json_field(name="b", default="")

    @property
    def real_topic(self) -> str:
        """The topic whose queue the messages are in."""
        return self.topic if self.retry == OWN_TOPIC else pop_retry_topic(self.consumer_group, self.topic)

    @property
    def offsets(self) -> list[int]:
        """The queue offsets. Raises BodyError when the bits can't be read."""
        if len(self.bit_set) > BITS_BYTES_MAX:
            raise BodyError(f"bitSet of {len(self.bit_set)} characters: at most {BITS_BYTES_MAX} are read")
        try:
            bits = int.from_bytes(base64.b64decode(self.bit_set, validate=True), "little")
        except binascii.Error as exc:
            raise BodyError(f"bitSet is no Base64: {exc}") from exc
        return [self.start_offset + at for at in range(bits.bit_length()) if bits >> at & 1]

    def with_offsets(self, offsets: Iterable[int]) -> BatchAck:
        """The same, of these offsets: none is before start_offset."""
        bits = sum(1 << offset - self.start_offset for offset in set(offsets))
        self.bit_set = base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()
        return self


@dataclass
class BatchAckRequest(Body):
    """Body of 200151."""

    broker_name: str = ""
    acks: list[BatchAck] = json_field(read=list_of(BatchAck), default=list)


@dataclass
class QueryAssignmentRequest(Body):
    """Body of 400: which queues does this member of the group get? strategy_name: RocketMQ's, "AVG" usually."""

    topic: str = ""
    consumer_group: str = ""
    client_id: str = ""
    strategy_name: str = ""
    message_model: str = "CLUSTERING"


@dataclass
class SetModeRequest(Body):
    """Body of 401: how the group consumes the topic, "PULL" or "POP".

    pop_share_queue_num: how many further members share a member's queues; 0: all do.
    """

    topic: str = ""
    consumer_group: str = ""
    mode: str = "PULL"
    pop_share_queue_num: int = 0


@dataclass
class LeasedMessage(Body):
    """A message in flight. Times: ms since the epoch. due_at: when it is delivered again, unless something happens.

    client: who has it, "" if the broker was started since. deliveries: how often it was delivered so far.
    """

    topic: str = ""
    queue_id: int = 0
    offset: int = 0
    message_id: str = ""
    client: str = ""
    popped_at: int = 0
    due_at: int = 0
    deliveries: int = 1
    is_ordered: bool = False


@dataclass
class GroupLeases(Body):
    """Body of 29410: what a group has in flight at one broker. leases: the oldest of `total`.

    modes: "POP" or "PULL" by topic: those that an administrator has set, and those that the group pops now.
    """

    modes: dict[str, str] = field(default_factory=dict)
    total: int = 0
    leases: list[LeasedMessage] = json_field(read=list_of(LeasedMessage), default=list)
