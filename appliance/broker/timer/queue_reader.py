"""Reads the timer's queue: which messages wait, and when each is due."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from appliance.broker.timer.entries import Place
from gantrymq.message.topics import TIMER_TOPIC
from store.base.results import ConsumeQueueUnit
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

INDEX_UNITS = 256  # of the queue, at a time
NOTHING_UNREAD = 1 << 62
DUE_MS_MIN = 1 << 33  # less is no time but a tag's hash, by a RocketMQ 4.9 that has worked on the store


class TimerQueueReader:
    """Goes through the queue once. indexed: the queue offset of the next message to look at."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self.indexed = 0

    def read(self) -> list[ConsumeQueueUnit]:
        """Return the next units, which begin at `indexed`; the caller passes them by with `pass_by`."""
        return self._store.consume_queue_units(TIMER_TOPIC, 0, self.indexed, INDEX_UNITS)

    def pass_by(self, units: list[ConsumeQueueUnit]) -> Iterator[tuple[int, Place]]:
        """Each message of the units that waits for something: when it is due (ms), and where it lies."""
        for queue_offset, unit in enumerate(units, start=self.indexed):
            due_ms = unit.tags_code if unit.tags_code >= DUE_MS_MIN else self._due_ms_in_record(unit)
            if due_ms:
                yield due_ms, Place(queue_offset, unit.physical_offset, unit.size_bytes)
        self.indexed += len(units)

    def follow(self) -> bool:
        """Nothing at the offset: its end, or the queue's files were deleted or cut. Say if it moved."""
        first, end = self._store.min_offset(TIMER_TOPIC, 0), self._store.max_offset(TIMER_TOPIC, 0)
        corrected = min(max(self.indexed, first), end)
        if corrected == self.indexed:
            return False
        logger.warning(
            "timer queue offset corrected",
            extra={"event": "timer_offset_corrected", "queue_offset": self.indexed, "corrected": corrected},
        )
        self.indexed = corrected
        return True

    def unread_from(self) -> int:
        """Return where in the log the first message lies that has not been read from the queue."""
        units = self._store.consume_queue_units(TIMER_TOPIC, 0, self.indexed, 1)
        return units[0].physical_offset if units else NOTHING_UNREAD

    def _due_ms_in_record(self, unit: ConsumeQueueUnit) -> int:
        """The unit does not say it: RocketMQ 4.9 has made it, or the queue has an extension. 0: nothing waits there."""
        message = self._store.look_message_by_offset(unit.physical_offset)
        value = message.properties.get("TIMER_OUT_MS", "") if message is not None else ""
        if message is None or message.topic != TIMER_TOPIC or not value.isdecimal() or len(value) > 18:
            return 0
        return int(value)
