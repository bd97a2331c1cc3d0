"""Delivers messages that wait for a time of their own: from the timer's topic to the topic they were sent to.

Three things happen side by side. The timer's queue is read as messages come (queue_reader.py): each goes into the files
of the minute in which it is due (backlog.py), and into memory too if that minute is near. Minutes that come near are
brought from the files into memory. What is due in memory is delivered, in order of time, a few ms at a time so that
others have the loop. Each second what has been reached is put on record.

Delivery is at least once: after a crash, what was delivered since the last record (about a second, and all messages of
the millisecond that was under way) comes again. Nothing comes early.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

from appliance.broker.timer.backlog import Backlog
from appliance.broker.timer.deliverer import RETRY_S, Deliverer
from appliance.broker.timer.due_table import DueTable
from appliance.broker.timer.entries import PLACE, Place, unpack_entries
from appliance.broker.timer.progress import Progress, ProgressFile
from appliance.broker.timer.queue_reader import NOTHING_UNREAD, TimerQueueReader
from appliance.broker.timer.recalls import RECORD_BYTES_MAX, Recalls, recalled_key
from appliance.broker.timer.slots import HOUR_MINUTES, MINUTE_MS, SlotFolder, hour_slot
from appliance.process.json_file import StateFileError
from gantrymq.message.topics import TIMER_TOPIC
from gantrymq.timeouts import timeout
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

GATHER_S = 0.005  # messages that come one by one are looked at together
WATCH_S_MAX = 1.0  # longest sleep: the wall clock may be set while we sleep
LEAD_MS = 20_000  # a minute is in memory so long before it begins
SPLIT_LEAD_MINUTES = 5  # an hour's file is split so long before it begins
MEMORY_MESSAGES_MAX = 1_000_000  # overdue minutes wait in their files while so many are in memory
SYNC_EVERY = 10  # records of progress
REPORT_S = 60.0


class TimerService:
    """load() after the store's; run() delivers.

    flush_interval_s: between records. on_delivered: told topic, messages and bytes of what is delivered.
    on_first: called when the first waiting message has come. clock: seconds since the epoch.
    """

    def __init__(
        self,
        store: MessageStore,
        folder: Path,
        *,
        flush_interval_s: float = 1.0,
        on_delivered: Callable[[str, int, int], None] | None = None,
        on_first: Callable[[], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._file = ProgressFile(folder / "progress.json")
        self._clock = clock
        self._flush_interval_s = flush_interval_s
        self._arrived = asyncio.Event()
        self.taken_ms = 0  # what comes now and is due before goes into memory, be the minute wholly there or not
        self._open_minute = 0  # files of earlier minutes may be deleted: nothing more goes there
        self._before = Progress()  # what the last run had reached
        self._saved = Progress()
        self._is_stuck = False  # the disk would not take entries or progress: said once
        self._recorded = 0  # of `delivered`, in the record
        self._reported = 0  # of `delivered`, in the log
        self.backlog = Backlog(SlotFolder(folder))
        self.due = DueTable()
        self.recalls = Recalls(store)
        self._deliverer = Deliverer(store, self.due, self.recalls, self._now_ms, on_delivered)
        self._queue = TimerQueueReader(store)
        self._read_first = 0  # nothing is delivered until the queue is read so far: there may be recalls
        self._on_first = on_first

    @property
    def indexed(self) -> int:
        """The next message of the queue to look at."""
        return self._queue.indexed

    # -- metrics ------------------------------------------------------------------------------------------------------

    @property
    def delivered(self) -> int:
        """How many messages were delivered since the start."""
        return self._deliverer.delivered

    @property
    def pending(self) -> int:
        """How many messages wait, as far as the queue has been read."""
        return self.due.count + self.backlog.waiting(self.taken_ms // MINUTE_MS)

    @property
    def next_due_ms(self) -> int | None:
        """When the next message is due; one that is not in memory counts from its minute or hour on."""
        if self.due.first_ms is not None:
            return self.due.first_ms
        minute = self.taken_ms // MINUTE_MS
        return min((slot.minute * MINUTE_MS for slot in self.backlog.counts if slot.minute >= minute), default=None)

    @property
    def behind_ms(self) -> int:
        """How late the delivery is."""
        due_ms = self.next_due_ms
        return max(self._now_ms() - due_ms, 0) if due_ms is not None else 0

    # -- life ---------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read progress and files. Blocks. Raises StateFileError; OSError when the folder can't be used."""
        self._before = self._saved = self._file.load()
        self._queue.indexed = self._before.indexed
        self._read_first = self._store.max_offset(TIMER_TOPIC, 0)
        self.backlog.load(self.indexed)
        now_minute = self._now_ms() // MINUTE_MS
        first = self.backlog.first_minute
        start = now_minute if first is None else min(first, now_minute)
        self._open_minute = start
        self._deliverer.complete_ms = self.taken_ms = start * MINUTE_MS
        self.backlog.split_minute = max(self.backlog.split_minute, hour_slot(start).minute)
        if not self.backlog.counts:
            self.backlog.split_minute += HOUR_MINUTES  # nothing of this hour has to be split

    @property
    def reached(self) -> tuple[int, int]:
        """Seen and delivered as of now, for a slave that has the log up to now; as on record while there is no news,
        since slaves write what changes."""
        has_news = self.delivered != self._recorded or self.indexed != self._saved.seen
        progress = self._as_of_now() if has_news else self._saved
        return progress.seen, progress.delivered_ms

    def put_progress(self, seen: int, delivered_ms: int) -> None:
        """Put a master's progress on record in place of this one: a promoted slave reads the queue again. Blocks."""
        self._file.write(Progress(0, seen, delivered_ms))

    def end_at_queue(self) -> None:
        """After a cut, before load(): the files may name what was cut, so the queue is read again. Blocks."""
        known, end = self._file.load(), self._store.max_offset(TIMER_TOPIC, 0)
        if known != Progress():
            self._file.write(Progress(0, min(known.seen, end), known.delivered_ms))

    def persist(self) -> None:
        """Put on record what has been reached, blocking. For a clean stop: the store flushes after us."""
        progress = self._reached()._replace(indexed=self.indexed)
        if not self.indexed or (progress == self._saved and not self.backlog.counts):
            return
        try:
            self.backlog.finish()
            self._file.write(progress)
        except (OSError, StateFileError):
            logger.exception("timer not recorded", extra={"event": "timer_not_saved"})  # the next run reads it again

    async def run(self) -> None:
        """Deliver until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._bring_minutes(), name="timer minutes")
                tasks.create_task(self._keep_record(), name="timer progress")
                tasks.create_task(self._report(), name="timer report")
                while True:
                    await self._turn()
        finally:
            self.persist()

    def has_work(self) -> bool:
        """Say if anything waits, or has waited and is not on record yet."""
        return not self._is_idle() or self.unread_from() != NOTHING_UNREAD

    def unread_from(self) -> int:
        """Return where the first message lies that has not been read from the queue."""
        return self._queue.unread_from()

    def message_arrived(self) -> None:
        """Say that the timer's queue has a new message; called for each."""
        self._arrived.set()

    async def _turn(self) -> None:
        """Read some of the queue, deliver some; sleep when there was neither."""
        has_more = self.read_queue()
        await self._deliverer.read_ahead()
        wait_s = self.deliver_slice()
        if has_more or wait_s <= 0:
            await asyncio.sleep(0)
            return
        with contextlib.suppress(TimeoutError):
            async with timeout(min(wait_s, WATCH_S_MAX)):
                await self._arrived.wait()
                await asyncio.sleep(GATHER_S)
        self._arrived.clear()

    # -- the queue ----------------------------------------------------------------------------------------------------

    def read_queue(self) -> bool:
        """Look at the next messages of the timer's queue; say if there may be more."""
        if self.backlog.is_full:
            return False
        units = self._queue.read()
        if not units:
            return self._queue.follow()
        if self._on_first is not None:
            self._on_first()
            self._on_first = None
        self._follow_clock()
        for due_ms, place in self._queue.pass_by(units):
            if not self._before.has_delivered(due_ms, place.queue_offset):
                self._remember(due_ms, place)
        return True

    def _remember(self, due_ms: int, place: Place) -> None:
        if place.size_bytes <= RECORD_BYTES_MAX and recalled_key(self._store, place.physical_offset) is not None:
            place = place._replace(size_bytes=-place.size_bytes)
        self.backlog.add(max(due_ms // MINUTE_MS, self._open_minute), due_ms, *place)
        if due_ms < self.taken_ms:
            self._expect(due_ms, place)

    def _expect(self, due_ms: int, place: Place) -> None:
        """Have in memory what is due soon."""
        soon = self.recalls if place.size_bytes < 0 else self.due
        soon.add(due_ms, PLACE.pack(*place))

    def recall_stored(self, queue_offset: int) -> None:
        """A recall is in the queue: it counts, even if what it recalls is due before it has been read."""
        self._read_first = max(self._read_first, queue_offset + 1)

    def deliver_slice(self) -> float:
        """Deliver what is due, for a few ms. Returns seconds until more is due: 0 there is, inf nothing in memory."""
        if self.indexed < min(self._read_first, self._store.max_offset(TIMER_TOPIC, 0)):
            return RETRY_S if self.backlog.is_full else 0.0
        return self._deliverer.deliver_slice()

    # -- minutes ------------------------------------------------------------------------------------------------------

    async def _bring_minutes(self) -> None:
        """Have in memory what is due soon."""
        while True:
            now_ms = self._now_ms()
            try:
                await self.bring_minutes(now_ms)
            except (OSError, StateFileError) as exc:
                self._note_stuck(exc)
            ahead_s = (self._deliverer.complete_ms - LEAD_MS - self._now_ms()) / 1000
            await asyncio.sleep(min(max(ahead_s, RETRY_S), WATCH_S_MAX))

    async def bring_minutes(self, now_ms: int) -> None:
        """Bring every minute that begins within the lead time, as far as memory allows; split hours. OSError."""
        while self._deliverer.complete_ms <= now_ms + LEAD_MS and self.due.count < MEMORY_MESSAGES_MAX:
            self._skip_to(now_ms // MINUTE_MS)
            minute = self._deliverer.complete_ms // MINUTE_MS
            await self._split_to(minute)
            await self.backlog.take_minute(minute, self._take, self._begin_minute)
            self._deliverer.complete_ms = self.taken_ms
            self._arrived.set()
            await asyncio.sleep(0)
        await self._split_to(now_ms // MINUTE_MS + SPLIT_LEAD_MINUTES)

    def _skip_to(self, minute: int) -> None:
        """Pass by minutes before this one for which there is nothing: a clock that began in 1970 leaves 29 million."""
        minute = min(minute, self.backlog.first_from(self._deliverer.complete_ms // MINUTE_MS, minute))
        if minute * MINUTE_MS > self._deliverer.complete_ms:
            self.taken_ms = self._deliverer.complete_ms = minute * MINUTE_MS
            self.backlog.split_minute = max(self.backlog.split_minute, hour_slot(minute).minute)

    async def _split_to(self, minute: int) -> None:
        """Split the hours up to the one with this minute."""
        while self.backlog.split_minute <= minute:
            indexed = self.indexed
            await self.backlog.split_hour(self.backlog.split_minute, lambda: self._save(indexed))  # noqa: B023

    def _begin_minute(self) -> None:
        self.taken_ms = self._deliverer.complete_ms + MINUTE_MS
        self.recalls.forget_before(self._deliverer.complete_ms - MINUTE_MS)

    def _take(self, data: bytes) -> None:
        for entry in unpack_entries(data):
            if not self._before.has_delivered(entry.due_ms, entry.queue_offset):
                self._expect(entry.due_ms, Place(*entry[1:]))

    # -- progress -----------------------------------------------------------------------------------------------------

    def _follow_clock(self) -> None:
        """Use earlier minutes' files again when the clock was set back: a restart finds what is due by its minute."""
        self._open_minute = min(self._open_minute, self._now_ms() // MINUTE_MS)

    def _as_of_now(self) -> Progress:
        """What has been reached. A queue that is read again after a start is as it was before until that is done:
        nothing is delivered meanwhile."""
        if self.indexed < min(self._before.seen, self._read_first):
            return self._before._replace(indexed=self._saved.indexed)
        due_ms = self.due.first_ms
        delivered_ms = min(self._deliverer.complete_ms, self._now_ms() if due_ms is None else due_ms)
        return Progress(self._saved.indexed, self.indexed, delivered_ms)

    def _reached(self) -> Progress:
        """What has been reached now; nothing more goes into files of earlier minutes."""
        progress = self._as_of_now()
        last_ms = min(progress.delivered_ms, self._deliverer.complete_ms - 1)
        self._open_minute = max(self._open_minute, last_ms // MINUTE_MS)
        return progress

    async def _keep_record(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(self._flush_interval_s)
            if self._is_idle():
                continue
            rounds += 1
            try:
                await self.keep_record(sync=rounds % SYNC_EVERY == 0)
                self._is_stuck = False
            except (OSError, StateFileError) as exc:
                self._note_stuck(exc)

    def _is_idle(self) -> bool:
        """Nothing ever waited, or nothing has happened since the last record."""
        return not self.due.count and not self.backlog.counts and self.indexed == self._saved.indexed

    async def keep_record(self, *, sync: bool) -> bool:
        """Write entries; put on record what was delivered, once its copies are on disk; delete files that are done.

        Returns False when the disk is slow or has failed: the record stays as it is, the next round tries again.
        """
        reached, indexed = self._reached(), self.indexed
        open_minute, delivered_count = self._open_minute, self.delivered
        is_news = (
            delivered_count != self._recorded
            or reached.seen != self._saved.seen
            or (sync and indexed != self._saved.indexed)
            or self.backlog.has_before(open_minute)
        )
        if not is_news:
            return True
        await (self.backlog.sync() if sync else self.backlog.flush())
        if not await self._store.until_flushed():
            return False
        await self._write(reached._replace(indexed=max(indexed if sync else 0, self._saved.indexed)))
        self._recorded = delivered_count
        await self.backlog.forget_before(lambda: min(open_minute, self._open_minute))
        return True

    async def _save(self, indexed: int) -> None:
        """Put on record that the files have all before `indexed`. OSError when the disk does not confirm."""
        if not await self._store.until_flushed():
            raise OSError("the commit log is not on disk")
        await self._write(self._saved._replace(indexed=max(indexed, self._saved.indexed)))

    async def _write(self, progress: Progress) -> None:
        if progress != self._saved:
            await asyncio.to_thread(self._file.write, progress)
            self._saved = progress

    def _note_stuck(self, exc: Exception) -> None:
        if not self._is_stuck:
            self._is_stuck = True
            logger.error("timer files can't be written", extra={"event": "timer_stuck", "why": str(exc)})

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            sent, self._reported = self.delivered - self._reported, self.delivered
            if sent or self.pending:
                logger.info(
                    "timer",
                    extra={
                        "event": "timer_progress",
                        "pending": self.pending,
                        "delivered": sent,
                        "recalled": self._deliverer.recalled,
                        "behind_ms": self.behind_ms,
                    },
                )

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
