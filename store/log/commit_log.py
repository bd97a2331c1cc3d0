"""The commit log: every message of the store, in one file after the other. Appender is its single writer.

The writer sees four numbers: `position` (where the next record goes), `base` (where the current file starts), `limit`
(how far it may write without asking) and `prepare_at` (where to wake the allocator). Asking means `make_room`, which
allocates disk blocks, ends a full file with its blank record and opens the next one. A record never crosses files: 8
bytes for the blank record always remain.
"""

from __future__ import annotations

import logging
import mmap
import struct
import threading
import time
from collections.abc import Iterable

from gantrymq.message import record, sysflag
from store.base.config import PAGE_BYTES, MessageStoreConfig
from store.base.errors import StoreDamaged
from store.log.allocate import ALLOCATE_AHEAD_BYTES, WARM_AHEAD_BYTES, Allocator
from store.log.mapped_file import MappedFile
from store.log.mapped_file_queue import MappedFileQueue
from store.log.transient_pool import WAITING_BYTES_MAX, TransientPool

logger = logging.getLogger(__name__)

NEVER = 1 << 63
WARM_NEXT_BYTES = (
    64 << 20
)  # of the next file at a time with warmMapedFileEnable: it is whole before the writer gets there
_TIMESTAMP = struct.Struct(">q")
_SIZE = struct.Struct(">i")


class CommitLog:
    """The files and the write position. Bytes below `position` are whole records, and blank records at files' ends."""

    def __init__(self, config: MessageStoreConfig) -> None:
        self.file_bytes = config.commit_log_file_bytes
        self.record_bytes_max = self.file_bytes - record.BLANK.size
        self.queue = MappedFileQueue(config.commit_log_folders, self.file_bytes, config.read_only_commit_log_folders)
        self.position = 0
        self.base = 0
        self.limit = 0  # nothing may be written before make_room has looked
        self.prepare_at = NEVER
        self._room_end = 0  # up to here make_room_to has made room, in the current file
        self.map: mmap.mmap | None = None
        self.flushed_offset = 0
        self.shown_below = NEVER  # records from there on are not shown to consumers yet
        self.is_written_by_map = True  # then new pages are read ahead of the writer; a copy's bytes go to the file
        self.store_timestamp = 0  # of the last record, ms
        self._current: MappedFile | None = None
        self._next: MappedFile | None = None
        self._lock = threading.Lock()  # make_room on the loop against prepare on the allocator's thread
        self._allocator = Allocator(self.prepare)
        self.no_space = ""  # why the log could not grow when it was last asked to
        self.no_space_at = 0.0  # of the clock that is never set
        self._ahead_bytes = ALLOCATE_AHEAD_BYTES  # less while the disk is nearly full
        self.warms_ahead = True  # the allocator makes pages ready; False: the writer writes to the file itself
        self._warm_to = 0
        self._warm_next = config.warm_files_enable
        self._warm_next_to = 0
        self._queues_folder = config.root / "consumequeue"
        self._pool = TransientPool() if config.transient_pool_enable and not config.is_sync_flush else None

    def load(self) -> None:
        """Find the files. StoreDamaged when they contradict each other, or when all are gone but the queues are not."""
        self.queue.load()
        if not any(folder.is_dir() for folder in self.queue.folders) and any(self._queues_folder.glob("*/*/*")):
            raise StoreDamaged(
                str(self.queue.folder),
                "the commit log's folder is missing, its consume queues are not; is a disk not mounted? To start "
                f"again, remove {self._queues_folder} as well",
            )

    @property
    def readable_end(self) -> int:
        """Up to here messages may be shown: to the end, or as far as the transient pool is committed."""
        return self.position if self._pool is None else min(self._pool.committed, self.position)

    @property
    def shown_end(self) -> int:
        """Up to here consumers see messages."""
        return min(self.readable_end, self.shown_below)

    @property
    def descriptor(self) -> int:
        """Of the current file, to write to it instead of into `map`; -1: there is only `map`."""
        return self._current.descriptor if self._pool is None and self._current is not None else -1

    @property
    def min_offset(self) -> int:
        """Where the oldest kept file starts; -1 when there is none."""
        return self.queue.files[0].base if self.queue.files else -1

    @property
    def allocated_ahead_bytes(self) -> int:
        """Disk blocks that the log owns and has not written yet."""
        current, following = self._current, self._next
        ahead = max(current.base + current.allocated_end - self.position, 0) if current is not None else 0
        return ahead + (following.allocated_end if following is not None else 0)

    def start_at(self, position: int) -> None:
        """Recovery is over: the log ends here. What lies behind is erased on disk before this returns."""
        # First the zeros are on disk, then the next record may go there: in the other order a power cut could leave a
        # stale record right behind a new one, and the next start would take it for valid.
        self.queue.cut_after(position)
        self.position = self.flushed_offset = self.limit = position
        self._current = self.queue.find(position - 1) if position else None
        if self._current is not None:
            self.base = self._current.base
            pool = self._pool
            self.map = self._current.map if pool is None else pool.open(pool.prepare(self._current))
        if self._pool is not None:
            self._pool.committed = position

    def make_room(self, size_bytes: int) -> bool:
        """Make room for a record of this size at `position`, which may move to the next file. False: no space."""
        with self._lock:
            try:
                current = self._current
                if current is None or self.position + size_bytes + record.BLANK.size > current.end:
                    current = self._roll()
                self._allocate(current, self.position + size_bytes + record.BLANK.size)
            except OSError as exc:
                self._report_no_space(exc)
                return False
            self.no_space = ""
            self.prepare_at = min(self.prepare_at, self.position)
            return True

    def make_room_to(self, end: int) -> bool:
        """Make room up to `end`, in the current file or, when that is full, in the next. False: no space.

        For bytes of another broker's log, which bring their own blank records: none is written here.
        """
        if end > self._room_end:
            with self._lock:
                try:
                    current = self._current
                    if current is None or self.position == current.end:
                        current = self._roll()
                    self._allocate(current, end)
                except OSError as exc:
                    self._report_no_space(exc)
                    return False
                self._room_end = min(current.base + current.allocated_end, current.end)
                self.no_space = ""
                self.prepare_at = min(self.prepare_at, self.position)
        if end > self.prepare_at:
            self.request_prepare()
        return True

    def begin_at(self, position: int) -> None:
        """The empty log begins there, at the start of a file: a copy has no more than its master's last files."""
        assert not self.queue.files and position % self.file_bytes == 0
        self.position = self.flushed_offset = self.limit = position

    def append(self, parts: Iterable[bytes | memoryview], size_bytes: int, timestamp_ms: int) -> None:
        """Copy records that say `position` as their place, and only then move `position` behind them.

        The caller has seen to it that they end at `limit` or before; so nothing here can fail.
        """
        end = self.position + size_bytes
        if end > self.prepare_at:
            self.request_prepare()
        start = self.position - self.base
        self.map[start : start + size_bytes] = b"".join(parts)  # type: ignore[index]  # make_room has opened it
        self.position = end
        self.store_timestamp = timestamp_ms

    def request_prepare(self) -> None:
        """Wake the allocator; it moves `prepare_at` on when it is done."""
        self.prepare_at = NEVER
        self._allocator.request()

    def prepare(self) -> None:
        """Get blocks and pages ready ahead of the writer, and the next file in time. Runs on the allocator's thread."""
        with self._lock:
            current = self._current
            if current is None:
                return
            position = self.position
            try:
                self._allocate(current, position + WARM_AHEAD_BYTES)
                if self._next is None and (self._warm_next or current.end - position < ALLOCATE_AHEAD_BYTES):
                    self._next = self.queue.create(current.end, ALLOCATE_AHEAD_BYTES)
                    self._warm_next_to = 0
                elif self._next is not None and self._warm_next:
                    self._next.allocate(self._next.allocated_end + WARM_NEXT_BYTES)
            except OSError as exc:
                self._report_no_space(exc)
            following = self._next
        self.prepare_at = position + WARM_AHEAD_BYTES // 2
        if not self.is_written_by_map:
            return
        ahead = position + WARM_AHEAD_BYTES
        if self.warms_ahead:
            start = max(position, self._warm_to)
            current.warm(start - current.base, ahead - current.base)
            if following is not None and ahead > following.base:
                following.warm(max(start - following.base, 0), ahead - following.base)
            self._warm_to = ahead
        if following is not None and self._warm_next:
            stop = min(self._warm_next_to + WARM_NEXT_BYTES, self.file_bytes)
            following.warm(self._warm_next_to, stop)
            self._warm_next_to = stop

    def read(self, physical_offset: int, size_bytes: int) -> memoryview | None:
        """Return bytes of the log, None when they are deleted, not written yet, or not in one file."""
        file = self.queue.find(physical_offset)
        end = physical_offset + size_bytes
        if file is None or size_bytes < 0 or end > self.readable_end or end > file.end:
            return None
        start = physical_offset - file.base
        return file.view[start : start + size_bytes]

    def read_record(self, physical_offset: int) -> memoryview | None:
        """Return one record; None unless a record that knows its own place starts there."""
        head = self.read(physical_offset, record.RECORD_BYTES_MIN)
        if head is None:
            return None
        size, magic = record.BLANK.unpack_from(head)
        if magic != record.MESSAGE_MAGIC or _TIMESTAMP.unpack_from(head, 28)[0] != physical_offset:
            return None
        return self.read(physical_offset, size)

    def store_timestamp_at(self, physical_offset: int) -> int:
        """Return the store timestamp (ms) of the record that starts there, -1 when it can't be read."""
        head = self.read(physical_offset, record.RECORD_BYTES_MIN)
        if head is None or _SIZE.unpack_from(head, 4)[0] != record.MESSAGE_MAGIC:
            return -1
        born_v6 = _SIZE.unpack_from(head, 36)[0] & sysflag.BORN_HOST_V6
        timestamp: int = _TIMESTAMP.unpack_from(head, 68 if born_v6 else 56)[0]
        return timestamp

    def sync(self) -> int:
        """Bring everything written so far to disk; return up to which offset. Blocks; OSError when the disk fails."""
        self.commit()
        # `flushed_offset` promises: the disk has every byte below it. So the target is read before the first file is
        # synced (what is written meanwhile is the next sync's), every file with bytes up to it is synced, and the
        # offset moves last. An error leaves it where it was, and the store refuses: a later sync that went well would
        # prove nothing, since the kernel may have dropped the pages that it could not write.
        target, flushed = self.readable_end, self.flushed_offset
        for file in list(self.queue.files):
            if file.end > flushed and file.base < target:
                file.sync()
                if file.end <= target and file is not self._current:
                    file.finish()
        self.flushed_offset = max(self.flushed_offset, target)
        return target

    def commit(self) -> None:
        """Write what waits in the transient pool, if there is one, to the files. Blocks; OSError."""
        if self._pool is not None:
            self._pool.commit(self.position)

    def close(self) -> None:
        """End the allocator, delete the file that was made in advance, close the others."""
        self._allocator.close()
        if self._next is not None:
            self._next.delete()
            self._next = None
        self._let_go()

    def abandon(self) -> None:
        """End the allocator and close all files as they are, also of the one that was made in advance."""
        self._allocator.close()
        if self._next is not None:
            self._next.close()
            self._next = None
        self._let_go()

    def _let_go(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self.queue.close()
        self.map = None
        self._current = None
        self.limit = 0

    def _allocate(self, current: MappedFile, end: int) -> None:
        if self._pool is not None and self.position - self._pool.committed > WAITING_BYTES_MAX:
            self.commit()  # memory is bounded: where the disk does not keep up, the writer waits for it
        wanted = min(end - current.base, self.file_bytes)
        if wanted > current.allocated_end:
            start = max(wanted, self.position - current.base)
            self._ahead_bytes = min(2 * self._ahead_bytes + PAGE_BYTES, ALLOCATE_AHEAD_BYTES)
            while True:  # ends: each failure asks for less, the last one for nothing ahead
                try:
                    current.allocate(start + self._ahead_bytes)
                    break
                except OSError:  # a nearly full disk: take less, at last what is needed now
                    if not self._ahead_bytes:
                        raise
                    self._ahead_bytes = self._ahead_bytes // 16 // PAGE_BYTES * PAGE_BYTES
        self.limit = min(current.base + current.allocated_end, current.end) - record.BLANK.size

    def _roll(self) -> MappedFile:
        """End the current file with a blank record and go to the next one.

        The next file is there before the blank record is written: without space for it nothing has changed.
        """
        # Recovery goes on with the next file where a file ends with a blank record. So the next file is there, then the
        # blank record is written, then `position` moves. Stopped before the blank record, the log ends where it did;
        # behind it, the log ends in an empty file, and the next record is its first.
        current = self._current
        following = self._next
        if following is None:
            base = current.end if current is not None else self.position - self.position % self.file_bytes
            following = self._next = self.queue.create(base, min(WARM_AHEAD_BYTES, self.file_bytes))
        buffer = None if self._pool is None else self._pool.prepare(following)
        if current is not None and self.position < current.end:
            start = self.position - current.base
            current.allocate(start + record.BLANK.size)
            target = current.map if self._pool is None or self.map is None else self.map
            record.BLANK.pack_into(target, start, current.size - start, record.BLANK_MAGIC)
            if self._pool is not None:
                self._pool.end_file(self.position + record.BLANK.size)
        self._next = None
        self.queue.files.append(following)
        self._current = following
        self.base = following.base
        self.map = following.map if self._pool is None or buffer is None else self._pool.open(buffer)
        self.position = max(self.position, following.base)
        return following

    def _report_no_space(self, error: OSError) -> None:
        if not self.no_space:
            logger.error(
                "commit log can't grow",
                extra={
                    "event": "commit_log_no_space",
                    "folder": ",".join(map(str, self.queue.folders)),
                    "error": str(error),
                },
            )
        self.no_space = str(error) or type(error).__name__
        self.no_space_at = time.monotonic()
