"""Feeding queues and index from records that are in the log already: what recovery and catching up do.

A put does the same inline, in MessageStore. Index entries wait in the index's list, for both, until some hundred are
there; here it is emptied.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from store.base.running_state import RunningFlags, RunningState
from store.index.service import PENDING_MAX, IndexService
from store.log.commit_log import CommitLog
from store.log.scan import OnPlainRecords, ScannedRecord, has_queue_unit
from store.queues.consume_queue import ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable
from store.queues.tags import TagsCodes
from store.startup.log_cut import find_end

logger = logging.getLogger(__name__)

# (topic, encoded properties) to the bit map that goes into the queue's extension, b"" for none. Must not raise
BitmapOf = Callable[[str, bytes], bytes]

# in one piece of the log: of each queue, the queue offset of its first new message and the tags codes from there on
Arrived = dict[ConsumeQueue, tuple[int, list[int]]]

GAP_UNITS_MAX = 1_000_000  # a hole in a queue wider than this is no hole but a damaged record


class PlainFeed(Protocol):
    """A compiled twin of `redispatch` for plain records that stand side by side.

    The first that is not plain ends a call, and changes nothing. count: how many records the last call took.
    """

    @property
    def count(self) -> int: ...

    def feed(
        self,
        view: memoryview,
        base: int,
        position: int,
        last: int,
        check_crc: bool,
        arrived: Arrived | None,
        /,
    ) -> int:
        """As OnPlainRecords; arrived: is told of new messages, None where that is of no interest."""


class Dispatcher:
    """Both queue and index skip what they have."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: IndexService,
        tags_codes: TagsCodes,
        state: RunningState,
        *,
        ext_enable: bool,
    ) -> None:
        self.dispatched = 0  # end of the last record that was
        self._log = log
        self._queues = queues
        self._index = index
        self._tags_codes = tags_codes
        self._state = state
        self.bitmap_of: BitmapOf | None = None
        self.plain_feed: PlainFeed | None = None  # set before the store is loaded; not with extensions of queues
        self._ext_enable = ext_enable

    def refill(self, fields: ScannedRecord, physical_offset: int) -> None:
        """Feed the queue alone: the index has the record, and behind newer ones it would be in disorder."""
        self.redispatch(fields, physical_offset, to_index=False)

    def redispatch(
        self, fields: ScannedRecord, physical_offset: int, *, to_index: bool = True
    ) -> tuple[ConsumeQueue, int] | None:
        """Feed queue and index from one record. Return the queue that got a unit, and the message's tags code."""
        fed: tuple[ConsumeQueue, int] | None = None
        topic, queue_id, index, sys_flag, size_bytes, timestamp, properties = fields
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            return None
        slot = self._queues.slots.get(name) or self._queues.slot(name)
        if slot is None:
            return None
        if has_queue_unit(sys_flag):
            queue = self._queues.of(slot, queue_id)
            if physical_offset + size_bytes > queue.max_physical_offset:
                if index < queue.next_index:  # the queue was deleted and started again
                    self._queues.cut(queue, index)
                if queue.next_index < index <= queue.next_index + GAP_UNITS_MAX or queue.next_index == 0 < index:
                    queue.skip_to(index)
                tags_code = self._tags_codes.code(slot, properties, timestamp)
                fed = queue, tags_code
                if self._ext_enable:
                    tags_code = self.extended(queue, properties, tags_code, timestamp)
                queue.append(physical_offset, size_bytes, tags_code)
                if not queue.dirty:
                    queue.dirty = True
                    self._queues.dirty.append(queue)
        if not to_index:
            return fed
        if self._index.enabled:
            pending = self._index.pending
            pending.append((slot.prefix_hash, properties, physical_offset, timestamp))
            if len(pending) >= PENDING_MAX:
                self.put_pending()
        self._log.store_timestamp = timestamp
        return fed

    def on_plain(self) -> OnPlainRecords | None:
        """What dispatches plain records at once, None where there is no twin."""
        feed = self.plain_feed
        if feed is None:
            return None
        return lambda view, base, position, last, check_crc: feed.feed(view, base, position, last, check_crc, None)

    def catch_up(self) -> None:
        """Dispatch what the log has and the queues lack."""
        if self.dispatched < self._log.position:
            self.dispatched = find_end(
                self._log, self.dispatched, check_crc=False, on_record=self.redispatch, on_plain=self.on_plain()
            )

    def put_pending(self) -> None:
        """Index what is pending. When the disk is full, messages are stored but not found by key until it has space."""
        try:
            self._index.put_pending()
        except OSError as exc:
            self._index.enabled = False
            logger.error("key index can't grow", extra={"event": "index_error", "error": str(exc)})
            self._state.set_flag(RunningFlags.INDEX_ERROR, True)

    def extended(self, queue: ConsumeQueue, properties: bytes, tags_code: int, store_timestamp: int) -> int:
        """Put the third field of a unit into the queue's extension; return what stands in its place."""
        assert queue.ext is not None
        bitmap = self.bitmap_of(queue.topic, properties) if self.bitmap_of is not None else b""
        return queue.ext.append(tags_code, store_timestamp, bitmap)
