"""Copying: the log of a slave is its master's, byte for byte. Beside Appender, and instead of it.

The bytes come in pieces that end anywhere, in the middle of a record too. What holds after each piece:

1. Below `log.position` stand whole records and blank records, each with its unit in its queue and its keys in the
   index: what Appender promises. So readers, flushers, recovery and retention know no difference.
2. From `log.position` to `end` stand the first bytes of a record, or of the space behind a file's blank record, whose
   rest has not come. No reader sees them. A crash leaves them as a torn tail, which the next start cuts.
3. The bytes of a file are the master's, those behind its blank record too.

Pieces follow each other without gap: only an empty log takes a first piece from another place, the start of a file. A
place is refused, and with it all that follows, when no record that names it can stand there: a copy that is not one is
never continued.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from gantrymq.message import record
from store.appender import ArrivalListener
from store.base.errors import CopyRefused, NoRoomForCopy
from store.base.running_state import RunningFlags
from store.log.mapped_file import MappedFile
from store.log.scan import OnPlainRecords, ScannedRecord, scan_filled
from store.parts import StoreParts
from store.startup.dispatch import Arrived

JOINT_BYTES_MAX = 16 << 20  # of the newest record and what follows it in no queue
JOINT_BYTES = 64 << 10  # where no queue tells the newest record
TOGETHER_MAX = 256  # pieces in one call; the kernel takes 1024
_SIZES = "mappedFileSizeCommitLog has to be the master's"


class RawAppender:
    """The single writer of a store whose log is a copy. Loop thread only."""

    def __init__(self, parts: StoreParts) -> None:
        self.arrival_listener: ArrivalListener | None = None
        self._log = parts.log
        self._queues = parts.queues
        self._stats = parts.stats
        self._state = parts.state
        self._dispatcher = parts.dispatcher
        self._part_bytes = 0  # what stands behind `log.position`
        self._refused_bytes = 0  # what stands there and doesn't count: it could not be erased
        self._arrived: Arrived = {}  # in this piece: see ArrivalListener

    @property
    def end(self) -> int:
        """Up to here the files have the master's log; its last bytes may be no whole record."""
        return self._log.position + self._part_bytes

    def append_raw(self, physical_offset: int, *run: bytes | memoryview) -> None:
        """Append bytes that stand side by side at this place of the master's log. CopyRefused; NoRoomForCopy.

        After an error nothing of the refused bytes counts, and the same place may be tried again.
        """
        assert self._state.is_copy
        if self._state.flags & RunningFlags.SYNC_ERROR:  # it would be acknowledged, and is not on the disk
            raise NoRoomForCopy("the disk did not take the commit log: restart this broker")
        if self._refused_bytes:
            self.forget_part()
        if physical_offset != self.end:
            self._begin_at(physical_offset)
        try:
            try:
                for data in self._add_together(run):
                    self._add(memoryview(data))
            finally:  # also where the disk is full: what is there counts
                self._take_whole_records()
        except CopyRefused:
            self.forget_part()
            raise

    def forget_part(self) -> None:
        """Erase the first bytes of a record that is not whole: the master gives them again. NoRoomForCopy."""
        self._refused_bytes, self._part_bytes = self._refused_bytes or self._part_bytes, 0
        if self._refused_bytes:
            self._write(self._log.position, memoryview(bytes(self._refused_bytes)))
            self._refused_bytes = 0

    def joint_start(self) -> int:
        """Where to begin a comparison with the master's log: at the newest record that any queue has.

        A record names its own place and time, so two logs that agree in one have agreed up to it.
        """
        log, end = self._log, self.end
        newest = max(self._queues, key=lambda queue: queue.max_physical_offset, default=None)
        unit = newest.unit_at(newest.next_index - 1) if newest is not None else None
        file = log.queue.find(end - 1)
        if file is None:
            return end
        if unit is not None and file.base <= unit.physical_offset < end <= unit.physical_offset + JOINT_BYTES_MAX:
            return unit.physical_offset
        return max(file.base, end - JOINT_BYTES)

    def reader(self, physical_offset: int) -> Callable[[], bytes]:
        """Return what reads all that the last file has from there to `end`, on a thread."""
        file, size = self._log.queue.find(physical_offset), self.end - physical_offset
        if file is None or not size:
            return bytes
        return lambda: file.peek(physical_offset - file.base, size)

    # -- one piece -----------------------------------------------------------------------------------------------

    def _begin_at(self, physical_offset: int) -> None:
        log = self._log
        if log.queue.files or log.position or self._part_bytes:
            raise CopyRefused(f"the next byte of this log is that at {self.end}, not that at {physical_offset}")
        if physical_offset < 0 or physical_offset % log.file_bytes:
            raise CopyRefused(
                f"the master's file begins at {physical_offset}, which is not a multiple of mappedFileSizeCommitLog="
                f"{log.file_bytes}: set it to the master's"
            )
        log.begin_at(physical_offset)

    def _add_together(self, run: Sequence[bytes | memoryview]) -> Sequence[bytes | memoryview]:
        """Write what lies within the file at once; return what is left for `_add`: all, if it does not fit."""
        log, end, size = self._log, self.end, sum(map(len, run))
        place = end % log.file_bytes
        if not 1 < len(run) <= TOGETHER_MAX or not place or place + size > log.file_bytes:
            return run
        file = log.queue.find(end - 1)
        if file is None or not log.make_room_to(end + size):
            return run
        try:
            written = file.write_together(place, run)
        except OSError:  # `_add` meets it again, and says so
            return run
        self._part_bytes += written
        return () if written == size else _behind(run, written)

    def _add(self, rest: memoryview) -> None:
        """Write bytes at the end. Those that end a file are taken before the next one begins."""
        log = self._log
        while rest:
            end = self.end
            if not end % log.file_bytes:
                self._take_whole_records()
            piece = rest[: log.file_bytes - end % log.file_bytes]
            if not log.make_room_to(end + len(piece)):
                raise NoRoomForCopy(f"the commit log can't grow: {log.no_space}")
            self._write(end, piece)
            self._part_bytes += len(piece)
            rest = rest[len(piece) :]

    def _write(self, physical_offset: int, piece: memoryview) -> None:
        """Write to the file, not through the map: a fourth of the price, since the kernel zeroes no page first."""
        file = self._log.queue.find(physical_offset)
        assert file is not None  # make_room_to has opened it
        try:
            file.write(physical_offset - file.base, piece)
        except OSError as exc:
            # Half of it may be there. A record of another master's could end before a whole one of it, and be followed
            # by that after a crash.
            with contextlib.suppress(OSError):
                file.write(physical_offset - file.base, memoryview(bytes(len(piece))))
            raise NoRoomForCopy(f"the commit log can't be written: {exc}") from exc

    def _take_whole_records(self) -> None:
        """Hand on what is whole now, and move `log.position` behind it."""
        if not self._part_bytes:
            return
        # Readers and flushers go by `log.position`: it may stand behind whole records alone. So units and keys come
        # first (`_hand_on`; what is there already is skipped), then the position moves, then the bytes behind it are
        # looked at: the first that can be no record ends the copy, and nothing behind it counts.
        log, before = self._log, self._log.position
        file = log.queue.find(before)
        assert file is not None
        end = self.end - file.base
        position = scan_filled(file, before - file.base, end, self._hand_on, self._on_plain())
        self._move_to(file.base + position)
        self._look_at_rest(file, position, end)
        self._stats.put_bytes += log.position - before
        arrived, self._arrived = self._arrived, {}
        if self.arrival_listener is not None:
            for queue, (first_offset, codes) in arrived.items():
                self.arrival_listener(queue.topic, queue.queue_id, first_offset, codes)

    def _look_at_rest(self, file: MappedFile, position: int, end: int) -> None:
        """What follows the whole records is the beginning of one, or a file's end; anything else is refused."""
        room = file.size - position
        if end - position < min(record.BLANK.size, room) or not room:
            return
        if room < record.BLANK.size:
            raise CopyRefused(f"a file of the master's does not end at {file.end}: {_SIZES}")
        size, magic = record.BLANK.unpack_from(file.view, position)
        if magic == record.BLANK_MAGIC:
            if size != room:
                raise CopyRefused(f"a file of the master's ends at {file.base + position + size}: {_SIZES}")
            if end == file.size:
                self._move_to(file.end)
        elif magic != record.MESSAGE_MAGIC or not record.RECORD_BYTES_MIN <= size <= room or size <= end - position:
            raise CopyRefused(f"the master's bytes at {file.base + position} are no record")

    def _move_to(self, position: int) -> None:
        self._part_bytes -= position - self._log.position
        self._log.position = position

    def _on_plain(self) -> OnPlainRecords | None:
        """What hands on plain records at once, None where there is no twin."""
        feed = self._dispatcher.plain_feed
        if feed is None:
            return None
        arrived = self._arrived if self.arrival_listener is not None else None

        def on_plain(view: memoryview, base: int, position: int, last: int, check_crc: bool) -> int:
            position = feed.feed(view, base, position, last, check_crc, arrived)
            self._stats.put_times += feed.count
            return position

        return on_plain

    def _hand_on(self, fields: ScannedRecord, physical_offset: int) -> None:
        """One whole record: into queue and index, as recovery does it; both skip what they have."""
        fed = self._dispatcher.redispatch(fields, physical_offset)
        self._stats.put_times += 1
        if fed is not None and self.arrival_listener is not None:
            queue, tags_code = fed
            arrived = self._arrived.get(queue)
            if arrived is None:
                self._arrived[queue] = fields.queue_offset, [tags_code]
            else:
                arrived[1].append(tags_code)


def _behind(run: Sequence[bytes | memoryview], written: int) -> list[memoryview]:
    """What follows the first `written` bytes of pieces that stand side by side."""
    rest = []
    for data in run:
        if written < len(data):
            rest.append(memoryview(data)[written:])
        written = max(written - len(data), 0)
    return rest
