"""Stores pending messages again before the commit-log file that they lie in goes.

The store asks before it deletes a file, whatever its reason: age, size or a full disk. What waits there for a later
minute is appended to the log once more; what is due within a minute keeps the file for that long. So no pending message
is lost to retention, and none is copied before it must be (RocketMQ 5 copies each message every two days instead).
"""

from __future__ import annotations

import itertools
import logging

from appliance.broker.timer.backlog import Turn
from appliance.broker.timer.delivery import rolled
from appliance.broker.timer.entries import Entry
from appliance.broker.timer.service import TimerService
from appliance.broker.timer.slots import MINUTE_MS
from appliance.process.json_file import StateFileError
from gantrymq.errors import RecordError
from store.base.results import PutMessageStatus
from store.message_store import MessageStore

logger = logging.getLogger(__name__)


class Rolling:
    """Answers Cleaner.ask_before_delete."""

    def __init__(self, store: MessageStore, timer: TimerService) -> None:
        self._store = store
        self._timer = timer
        self._kept_end = 0  # end of the file that had to stay: said once
        self.rolled = 0  # since the start

    async def may_delete(self, end_offset: int) -> bool:
        """Say if the log below `end_offset` may go, having stored again what waits there."""
        before, is_free = self.rolled, False
        try:
            is_free = await self._release(end_offset)
        except (OSError, StateFileError) as exc:
            logger.error("waiting messages not stored again", extra={"event": "timer_stuck", "why": str(exc)})
        if self.rolled > before:
            logger.info(
                "waiting messages stored again",
                extra={"event": "timer_rolled", "messages": self.rolled - before, "end_offset": end_offset},
            )
        if not is_free and self._kept_end != end_offset:
            self._kept_end = end_offset
            logger.warning(
                "commit log file kept for waiting messages",
                extra={"event": "timer_keeps_file", "end_offset": end_offset},
            )
        return is_free

    async def _release(self, end_offset: int) -> bool:
        timer, backlog = self._timer, self._timer.backlog
        if not timer.has_work():
            return True
        is_recorded = await timer.keep_record(sync=True)  # a restart must not want to read what is about to go
        if not is_recorded or timer.unread_from() < end_offset:
            return False
        async with backlog.lock:
            await backlog.flush_locked()
            turn = Turn()
            for is_below in itertools.chain(timer.due.scan_below(end_offset), timer.recalls.scan_below(end_offset)):
                if is_below:
                    return False
                await turn.over()
            for slot in list(backlog.counts):
                if slot.minute * MINUTE_MS < timer.taken_ms or backlog.lowest.get(slot, -1) >= end_offset:
                    continue
                if not await backlog.roll_slot(slot, end_offset, self._roll, self._store.until_flushed):
                    return False
        return True

    def _roll(self, entry: Entry) -> bool:
        """Store one message again. False when the store refuses."""
        try:
            message = rolled(self._store, entry.physical_offset)
        except RecordError as exc:
            logger.error(
                "waiting message is gone",
                extra={"event": "timer_message_skipped", "physical_offset": entry.physical_offset, "why": str(exc)},
            )
            return True
        if self._store.put_message(message, delay=False, though_full=True).status is not PutMessageStatus.PUT_OK:
            return False
        self.rolled += 1
        return True
