"""Which half messages have ended: the op queue in memory, from where its progress stands to its end.

RocketMQ reads the whole op queue in every check round. Here it is read once, at start, and kept up to date: a commit
knows at once that it is the second one, and a round looks up a number instead of reading records. What a round has
passed is forgotten, so this holds about as much as ends between two rounds.
"""

from __future__ import annotations

import logging
import time
from collections import deque

from appliance.broker.transaction import half as halves
from appliance.broker.transaction.half import HALF_QUEUE
from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.message.record import split_record
from store.base.errors import NotReadableNow
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

OPS_A_READ = 256
AGAIN_S = 0.01
OFFSET_DIGITS_MAX = 20  # of a 64-bit number


class EndedHalves:
    """Half-queue offsets that have ended. `position`: each half before it has ended, or was written again or away."""

    def __init__(self) -> None:
        self.position = 0
        self._ahead: set[int] = set()  # ended ones from the position on
        self._behind: set[int] = set()  # ended ones before it, as found at start: copies may name them
        self._ops: deque[tuple[int, int]] = deque()  # (op offset, half offset) of op messages not passed yet

    @classmethod
    def load(cls, store: MessageStore, half_progress: int, op_progress: int) -> EndedHalves:
        """Read the op queue of a started store from its progress on. Blocking.

        Progress: the consumer offsets of the two queues, -1 for none; such a queue begins at its start. So does one
        that ends before its progress: it was removed when its messages had expired, and began again.
        """
        ended = cls()
        half_start = store.min_offset(names.TRANS_HALF_TOPIC, HALF_QUEUE)
        half_end = store.max_offset(names.TRANS_HALF_TOPIC, HALF_QUEUE)
        ended.position = max(half_progress, half_start) if half_progress <= half_end else half_start
        op_end = store.max_offset(names.TRANS_OP_HALF_TOPIC, HALF_QUEUE)
        op_start = store.min_offset(names.TRANS_OP_HALF_TOPIC, HALF_QUEUE)
        index = max(op_progress, op_start) if op_progress <= op_end else op_start
        began, first = time.monotonic(), index
        while index < op_end:
            units = store.consume_queue_units(names.TRANS_OP_HALF_TOPIC, HALF_QUEUE, index, OPS_A_READ)
            units = units or store.consume_queue_units(names.TRANS_OP_HALF_TOPIC, HALF_QUEUE, index, 1)
            for unit in units:
                half_offset = _read_op(store, unit.physical_offset)
                if half_offset is not None:
                    ended.found_at_start(half_offset, index)
                index += 1
            if not units and _is_hole(store, index):
                index += 1
        if half_end:
            logger.info(
                "transactions loaded",
                extra={
                    "event": "transactions_loaded",
                    "pending": ended.waiting(store),
                    "ops": op_end - first,
                    "seconds": round(time.monotonic() - began, 3),
                },
            )
        return ended

    def waiting(self, store: MessageStore) -> int:
        """How many half messages are not known to have ended."""
        return max(store.max_offset(names.TRANS_HALF_TOPIC, HALF_QUEUE) - self.position - self.count_ahead, 0)

    def __contains__(self, half_offset: int) -> bool:
        return half_offset in self._ahead or half_offset in self._behind

    @property
    def count_ahead(self) -> int:
        """How many halves from the position on have ended."""
        return len(self._ahead)

    def is_passed(self, half_offset: int) -> bool:
        """Whether rounds have been there: what is not known to have ended may wait further behind."""
        return half_offset < self.position

    def ended(self, half_offset: int, op_offset: int) -> None:
        """Note an op message."""
        if half_offset >= self.position:
            self._ahead.add(half_offset)
        self._ops.append((op_offset, half_offset))

    def found_at_start(self, half_offset: int, op_offset: int) -> None:
        """Note an op message that another process wrote."""
        self.ended(half_offset, op_offset)
        if half_offset < self.position:
            self._behind.add(half_offset)

    def pass_one(self) -> None:
        """The half at the position is dealt with."""
        self._ahead.discard(self.position)
        self.position += 1

    def skip_to(self, half_offset: int) -> None:
        """Those before are gone: their files were deleted."""
        self._ahead = {offset for offset in self._ahead if offset >= half_offset}
        self.position = half_offset

    def begin_again(self, topic: str) -> None:
        """One of the two queues is removed, since all its messages have expired, and begins again at 0."""
        if topic == names.TRANS_HALF_TOPIC:
            self.position = 0
            self._ahead.clear()
            self._behind.clear()
        if topic in (names.TRANS_HALF_TOPIC, names.TRANS_OP_HALF_TOPIC):
            self._ops.clear()

    def op_progress(self, op_end: int) -> int:
        """Forget op messages of passed halves; return the offset of the first that is still needed, else `op_end`."""
        while self._ops and self._ops[0][1] < self.position:
            self._ops.popleft()
        return self._ops[0][0] if self._ops else op_end

    def round_ended(self) -> None:
        """What was found at start has been looked at."""
        self._behind.clear()


def _is_hole(store: MessageStore, index: int) -> bool:
    """Say if no op message is to be had there; when it is being looked for, after a pause."""
    try:
        store.message_at(names.TRANS_OP_HALF_TOPIC, HALF_QUEUE, index)
    except NotReadableNow:
        time.sleep(AGAIN_S)
        return False
    return True


def _read_op(store: MessageStore, physical_offset: int) -> int | None:
    """The half-queue offset that an op message says has ended; None for anything else."""
    record = store.message_bytes(physical_offset)
    if record is None:
        return None
    try:
        fields = split_record(record)
    except RecordError as exc:
        logger.error(
            "op message can't be read",
            extra={"event": "op_unreadable", "physical_offset": physical_offset, "why": str(exc)},
        )
        return None
    body = bytes(record[fields.body_position : fields.body_position + fields.body_bytes])
    is_end = keys.find_property(fields.properties, keys.TAGS.encode()) == halves.OP_TAG.encode()
    return int(body) if is_end and body.isdigit() and len(body) < OFFSET_DIGITS_MAX else None
