"""Delivers what is due in memory, in order of time, a few ms at a time; what the store refuses is tried again."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

from appliance.broker.timer.delivery import delivered
from appliance.broker.timer.due_table import DueTable
from appliance.broker.timer.entries import Place
from appliance.broker.timer.recalls import Recalls
from gantrymq.errors import RecordError
from store.base.results import HOPELESS, PutMessageStatus
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

SLICE_SECONDS_MAX = 0.002  # then other work on the loop has a turn
DELIVER_MESSAGES = 32  # of one millisecond, at a time
READ_AHEAD_BYTES_MAX = 1 << 20
RETRY_S = 0.1  # after the store refused something


class Deliverer:
    """Takes from `due` what is due. now_ms: the wall clock. `complete_ms`: all that is due before is in `due`."""

    def __init__(
        self,
        store: MessageStore,
        due: DueTable,
        recalls: Recalls,
        now_ms: Callable[[], int],
        on_delivered: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """on_delivered: told topic, messages, bytes."""
        self._store = store
        self._due = due
        self._recalls = recalls
        self._now_ms = now_ms
        self._is_refused = False  # the store would not take the last message: said once
        self.complete_ms = 0
        self.delivered = 0  # since the start
        self.recalled = 0  # instead
        self._on_delivered = on_delivered

    def deliver_slice(self) -> float:
        """Deliver what is due, for a few ms. Returns seconds until more is due: 0 there is, inf nothing in memory."""
        ends = time.perf_counter() + SLICE_SECONDS_MAX
        while (due_ms := self._due.first_ms) is not None:
            now_ms = self._now_ms()
            if due_ms > now_ms:
                return (due_ms - now_ms) / 1000
            if due_ms >= self.complete_ms:  # its minute is being brought: others may be due before
                return RETRY_S
            if not self._recalls.read(due_ms, ends):
                return 0.0
            for place in self._due.peek(DELIVER_MESSAGES):
                if not self._deliver(due_ms, place, now_ms):
                    return RETRY_S
                self._due.drop(1)
                if time.perf_counter() > ends:
                    return 0.0
        return math.inf

    def _deliver(self, due_ms: int, place: Place, now_ms: int) -> bool:
        """Store one message where it was sent to. Returns False when it has to be tried again."""
        try:
            message = delivered(self._store, place.physical_offset, place.queue_offset, due_ms, now_ms)
        except RecordError as exc:
            self._skip(place, str(exc))
            return True
        if self._recalls.covers(due_ms, message):
            self.recalled += 1
            return True
        result = self._store.put_message(message, delay=False, though_full=True)
        if result.status is PutMessageStatus.PUT_OK:
            self._is_refused = False
            self.delivered += 1
            if self._on_delivered is not None:
                self._on_delivered(message.topic, 1, result.size_bytes)
            return True
        if result.status in HOPELESS:
            self._skip(place, result.status.name)
            return True
        if not self._is_refused:
            self._is_refused = True
            logger.warning(
                "timer message not stored, will retry",
                extra={"event": "timer_message_refused", "status": result.status.name},
            )
        return False

    def _skip(self, place: Place, why: str) -> None:
        logger.error(
            "timer message can't be delivered, skipped",
            extra={"event": "timer_message_skipped", "physical_offset": place.physical_offset, "why": why},
        )

    async def read_ahead(self) -> None:
        """Have the records that are due now in memory: long ago written, they may have to come from the disk."""
        due_ms = self._due.first_ms
        if due_ms is None or due_ms > self._now_ms():
            return
        wanted: list[tuple[int, int]] = []
        total = 0
        for place in self._due.peek(4 * DELIVER_MESSAGES):
            total += place.size_bytes
            if wanted and total > READ_AHEAD_BYTES_MAX:
                break
            wanted.append((place.physical_offset, place.size_bytes))
        reading = self._store.read_ahead(wanted)
        if reading is not None:
            await asyncio.wrap_future(reading)
