"""Delivers delayed messages: from SCHEDULE_TOPIC_XXXX to the topic they were sent to, when their time has come.

The store puts a message with delay level L into queue L-1 of the schedule topic and writes its due time where other
consume queues hold the tag's hash. All messages of a queue have the same delay, so each queue is in order of time,
and only its head needs watching. One coroutine watches all of them: it sleeps until the earliest head is due or
something arrives.

Delivery is at least once, in order within a level. Progress (delayOffset.json) is saved every few seconds, and only
as far as the delivered copies are on disk, so that a crash repeats messages rather than losing them. The delivered
record keeps the stored property text, DELAY included; the store is told not to delay it again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path

from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.json_file import JsonFile, StateFileError, document_text, member_text
from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.message.record import split_record
from gantrymq.remoting.admin_bodies import DelayOffsetTable
from gantrymq.timeouts import wait_for_event
from store.base.config import MessageStoreConfig
from store.base.delay import DelayLevels
from store.base.results import HOPELESS, ConsumeQueueUnit, PutMessageStatus, StoreMessage
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

SLICE_SECONDS_MAX = 0.003  # then other work on the loop has a turn
LEVEL_SHARE = 32  # messages of one level before the next level has its turn
RETRY_S = 0.1  # after the store refused a delivery
WATCH_S_MAX = 1.0  # longest sleep: the wall clock may be set while we sleep
SCHEDULE_TOPIC = names.SCHEDULE_TOPIC.encode()


class ScheduleMessageService:
    """Watches the schedule topic's queues. load() first; run() delivers.

    on_delivered: told of each message the queue it left, its topic, its bytes. clock: seconds since the epoch.
    """

    def __init__(
        self,
        store: MessageStore,
        topics: TopicConfigManager,
        config: MessageStoreConfig,
        path: Path,
        *,
        flush_interval_s: float = 10.0,
        on_delivered: Callable[[int, str, int], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._topics = topics
        self._file = JsonFile(path)
        self._flush_interval_s = flush_interval_s
        self._clock = clock
        self._levels = DelayLevels(config.delay_levels)
        self._first_level = 1  # where the next slice begins, so that no level starves another
        self._idle_queues: set[int] = set()  # nothing in them to wait for: an arrival matters
        self._refused_levels: set[int] = set()  # the store would not take their last message
        self._arrived = asyncio.Event()
        self._saves = 0
        self._saved: dict[int, int] = {}
        self.offsets: dict[int, int] = {}  # delay level to the next index in its queue
        self._on_delivered = on_delivered

    # -- levels -------------------------------------------------------------------------------------------------------

    @property
    def max_level(self) -> int:
        return self._levels.max_level

    def delay_ms(self, level: int) -> int:
        """Return the delay of a level, level 1 being the first."""
        return self._levels.delay_ms(level)

    # -- life ---------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read delayOffset.json. Raises StateFileError."""
        stored = self._file.load_as(DelayOffsetTable.from_dict, "a table of delay offsets")
        if stored is None:
            return
        self.offsets = stored.offset_table
        self._saved = dict(self.offsets)

    def persist(self) -> None:
        """Write the progress now, blocking, if there was any. For a clean stop: the store flushes after us."""
        if self.offsets != self._saved:
            self._write(dict(self.offsets), self._next_save())

    async def run(self) -> None:
        """Deliver until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._save_now_and_then(), name="delay offsets")
                while True:
                    wait_s = self.deliver_slice()
                    if wait_s > 0:
                        await self._sleep(wait_s)
                    else:
                        await asyncio.sleep(0)
        finally:
            self.persist()

    async def _sleep(self, wait_s: float) -> None:
        """Until the earliest head is due, or a message arrives in a queue that had none."""
        await wait_for_event(self._arrived, min(wait_s, WATCH_S_MAX))
        self._arrived.clear()

    def message_arrived(self, queue_id: int) -> None:
        """Say that the schedule topic's queue has a new message; called from dispatch, for each."""
        if queue_id in self._idle_queues:
            self._idle_queues.discard(queue_id)
            self._arrived.set()

    # -- delivery -----------------------------------------------------------------------------------------------------

    def deliver_slice(self) -> float:
        """Deliver what is due, for a few ms. Returns seconds until more is due: 0 there is, inf nothing waits."""
        began = time.monotonic()
        wait_s = math.inf
        if self.max_level == 0:
            return wait_s
        for step in range(self.max_level):
            level = (self._first_level - 1 + step) % self.max_level + 1
            if time.monotonic() - began > SLICE_SECONDS_MAX:
                self._first_level = level
                return 0.0
            wait_s = min(wait_s, self._deliver_level(level))
        self._first_level = self._first_level % self.max_level + 1
        return wait_s

    def _deliver_level(self, level: int) -> float:
        """Deliver up to LEVEL_SHARE due messages of a level, in order. Returns as deliver_slice does."""
        index = self.offsets.get(level, 0)
        units = self._store.consume_queue_units(names.SCHEDULE_TOPIC, level - 1, index, LEVEL_SHARE)
        if not units:
            return self._correct_offset(level, index)
        now_ms = int(self._clock() * 1000)
        for unit in units:
            wait_ms = unit.tags_code - now_ms
            if (
                0 < wait_ms <= self._levels.delay_ms(level)
            ):  # a longer wait: the clock or the levels were changed, so now
                return wait_ms / 1000
            if not self._deliver(level, unit):
                return RETRY_S
            index += 1
            self.offsets[level] = index
        return 0.0

    def _correct_offset(self, level: int, index: int) -> float:
        """Nothing at the index: wait for an arrival, or follow a queue whose files were deleted or cut."""
        first = self._store.min_offset(names.SCHEDULE_TOPIC, level - 1)
        end = self._store.max_offset(names.SCHEDULE_TOPIC, level - 1)
        if index == end or end == 0:
            if index != end:
                self.offsets[level] = 0
            self._idle_queues.add(level - 1)
            return math.inf
        corrected = min(max(index, first), end)
        if corrected == index:
            return RETRY_S  # it is there, but can't be read yet
        logger.warning(
            "delay offset corrected",
            extra={"event": "delay_offset_corrected", "level": level, "queue_offset": index, "corrected": corrected},
        )
        self.offsets[level] = corrected
        return 0.0

    def _deliver(self, level: int, unit: ConsumeQueueUnit) -> bool:
        """Store one message where it was sent to. Returns False when it has to be tried again."""
        try:
            message = self._real_message(unit)
        except RecordError as exc:
            logger.error(
                "delayed message can't be delivered, skipped",
                extra={
                    "event": "delayed_message_skipped",
                    "level": level,
                    "physical_offset": unit.physical_offset,
                    "why": str(exc),
                },
            )
            return True
        result = self._store.put_message(message, delay=False)
        if result.status is PutMessageStatus.PUT_OK:
            self._refused_levels.discard(level)
            if self._on_delivered is not None:
                self._on_delivered(level - 1, message.topic, result.size_bytes)
            return True
        is_hopeless = result.status in HOPELESS
        if is_hopeless or level not in self._refused_levels:  # a full disk refuses ten times a second: say it once
            logger.warning(
                "delayed message not stored",
                extra={
                    "event": "delayed_message_skipped" if is_hopeless else "delayed_message_refused",
                    "level": level,
                    "physical_offset": unit.physical_offset,
                    "status": result.status.name,
                },
            )
        if not is_hopeless:
            self._refused_levels.add(level)
        return is_hopeless

    def _real_message(self, unit: ConsumeQueueUnit) -> StoreMessage:
        """The message as it was sent, read from the log. Raises RecordError when it can't be made."""
        record = self._store.message_bytes(unit.physical_offset)
        if record is None:
            raise RecordError("its record is gone")
        fields = split_record(record)
        if fields.topic != SCHEDULE_TOPIC:
            raise RecordError(f"a record of topic {fields.topic!r} is there")
        topic = keys.find_property(fields.properties, keys.REAL_TOPIC.encode())
        queue_id = keys.find_property(fields.properties, keys.REAL_QID.encode())
        if topic is None or queue_id is None or not queue_id.isdigit():
            raise RecordError(f"its {keys.REAL_TOPIC} or {keys.REAL_QID} is missing")
        if topic == names.TRANS_HALF_TOPIC.encode():
            raise RecordError("a half message can't be delayed")
        return StoreMessage.again(topic.decode(errors="replace"), int(queue_id), record, fields, fields.properties)

    # -- progress -----------------------------------------------------------------------------------------------------

    def wrapper(self) -> DelayOffsetTable:
        """The progress as the body of 45 wants it."""
        return DelayOffsetTable(dict(self.offsets))

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._flush_interval_s)
            if self.offsets != self._saved:
                await self._save()

    async def _save(self) -> None:
        """Save the progress as of now, once the copies delivered so far are on disk."""
        offsets = dict(self.offsets)
        if not await self._store.until_flushed():
            return  # the disk is slow or has failed: the file stays as it is, the next round tries again
        try:
            await asyncio.to_thread(self._write, offsets, self._next_save())
        except StateFileError:
            logger.exception("delay offsets not written", extra={"event": "state_file_not_written"})

    def _next_save(self) -> int:
        self._saves += 1
        return self._saves

    def _write(self, offsets: dict[int, int], save: int) -> None:
        entries = [member_text(str(level), str(offset)) for level, offset in sorted(offsets.items())]
        self._file.write(document_text({"offsetTable": entries}), save)
        self._saved = offsets
