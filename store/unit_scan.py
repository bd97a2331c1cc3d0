"""One read of a consume queue, unit by unit: the rules of RocketMQ's getMessage, with no queue and no repair in sight.

The reader brings the units in the order of their queue offsets; the scan takes a unit's record into the answer, passes
over the unit, or says why the read ends before it. At any time all units before the one at hand are decided for good:
a next read that starts there misses nothing and brings nothing twice.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Protocol

from gantrymq.errors import RecordError
from gantrymq.message import record
from store.base.results import GetMessageStatus
from store.queues.consume_queue import FILLER_SIZE
from store.queues.consume_queue_ext import ADDRESS_MAX, ConsumeQueueExt
from store.queues.filter import Filter

Unit = tuple[int, int, int]
"""Physical offset, size in bytes, tags code (or an address in the queue's extension)."""

NOWHERE = -1  # no record starts or ends there
ANY_SIZE = 1 << 62  # bytes that the next record may have
NO_ROOM = -1
_NO_MATCH = GetMessageStatus.NO_MATCHED_MESSAGE  # at hand as names: to find a member in its class takes long
_REMOVING = GetMessageStatus.MESSAGE_WAS_REMOVING


class Stop(enum.Enum):
    """Why a read ends before a unit. The unit is undecided: the next read starts with it."""

    FULL = enum.auto()  # the answer has what it may bring, or as many records were looked into as one read may
    LOG_END = enum.auto()  # the record is not committed yet, or not shown whole: for readers the queue ends here
    REPAIR = enum.auto()  # the unit is damaged, and a thread looks in the log for what it should say


_FULL, _LOG_END, _REPAIR = Stop.FULL, Stop.LOG_END, Stop.REPAIR


class Limits(NamedTuple):
    """How much one read may bring: more of what memory holds, less of what the disk has to read."""

    hot_bytes: int  # memory holds the log that far back from its end
    memory_count_max: int
    memory_bytes_max: int
    disk_count_max: int
    disk_bytes_max: int


class LogFile(Protocol):
    """A file of the commit log, as far as a scan needs it."""

    base: int

    @property
    def end(self) -> int: ...

    @property
    def view(self) -> memoryview: ...


class LogFiles(Protocol):
    """The files of the commit log, as far as a scan needs them."""

    def find(self, physical_offset: int) -> LogFile | None:
        """Return the file that holds the offset, None when there is none."""

    def next_start(self, physical_offset: int) -> int:
        """Return where the file begins that follows the offset's, or the first kept file if that is further on."""


class UnitScan:
    """The answer of one read, as far as it has come.

    `take` keeps these true: `count` records of together `size_bytes` bytes were taken, in queue order; `buffers` holds
    all of them but the run [_run_start, _run_end), which lies in the file at hand; one more record may have `_hot_room`
    or `_cold_room` bytes; and as long as `count` is 0, `why_empty` is the reason that the last unit passed over gave.
    """

    __slots__ = (
        "_codes",
        "_cold_below",
        "_cold_room",
        "_count_max",
        "_ext",
        "_file_end",
        "_file_start",
        "_files",
        "_hot_room",
        "_limits",
        "_log_end",
        "_looks_left",
        "_readable_end",
        "_removed_below",
        "_run_end",
        "_run_start",
        "_view",
        "_wanted",
        "_written_end",
        "buffers",
        "count",
        "prove",
        "size_bytes",
        "why_empty",
    )

    def __init__(
        self,
        files: LogFiles,
        log_end: int,
        limits: Limits,
        count_max: int,
        wanted: Filter | None,
        ext: ConsumeQueueExt | None = None,
        *,
        written_end: int | None = None,
    ) -> None:
        """`log_end`: records that end behind this physical offset may not be shown. `ext`: the queue's extension.
        `written_end`: up to there the log has records, which are shown later; None: up to `log_end`."""
        self.count = self.size_bytes = 0
        self.buffers: list[memoryview] = []
        self.why_empty = _NO_MATCH
        self.prove: Callable[[Unit, int], Unit | None] | None = None
        self._files = files
        self._log_end = log_end
        self._written_end = log_end if written_end is None else written_end
        self._limits = limits
        self._count_max = count_max
        self._hot_room = self._cold_room = ANY_SIZE
        self._cold_below = log_end - limits.hot_bytes
        self._wanted = wanted
        self._ext = ext
        self._codes: frozenset[int] | None = None
        self._looks_left: int | None = None  # how many records may still be looked into; None: none has to be
        if wanted is not None:
            self._codes = wanted.tags_codes
            self._looks_left = wanted.records_max or None
        self._removed_below = 0
        self._run_start = self._run_end = NOWHERE
        self._file_start = self._file_end = self._readable_end = NOWHERE
        self._view: memoryview | None = None

    def take(self, unit: Unit, index: int) -> Stop | None:
        """Decide about the unit at queue offset `index`: take its record, or pass over it. Or say why the read ends.

        While `prove` is set the units are doubted: it returns the unit as it should be (a filler when the message is
        lost), None when that takes a while.
        """
        physical_offset, size_bytes, tags_code = unit
        # A filler stands for a message that is lost; a file that is being deleted takes all its messages along.
        if size_bytes == FILLER_SIZE or physical_offset < self._removed_below:
            return None
        # A full answer ends before a unit that is not wanted, too: so does RocketMQ's, and clients see its next offset.
        if size_bytes > (self._cold_room if physical_offset < self._cold_below else self._hot_room):
            return _FULL
        if self._looks_left == 0:
            return _FULL
        # A doubted unit may name any place; it is proved first.
        if physical_offset >= self._log_end and self.prove is None:
            return _LOG_END
        # The tags code costs nothing, so it is asked before the record is touched. An address stands for a code.
        codes = self._codes
        if codes is not None and tags_code not in codes and (tags_code > ADDRESS_MAX or self._ext_rules_out(tags_code)):
            self.why_empty = _NO_MATCH
            return None
        if self.prove is not None:
            proved = self.prove(unit, index)
            if proved is None:
                return _REPAIR
            physical_offset, size_bytes, _code = proved
            if size_bytes == FILLER_SIZE:
                return None
        if not self._file_start <= physical_offset < self._file_end:
            self._go_to_file(physical_offset)
        if physical_offset + size_bytes > self._readable_end or self._view is None:
            # What is shown may end within a record, and a doubted unit was not compared with it: it comes later.
            if self._log_end < physical_offset + size_bytes <= min(self._written_end, self._file_end):
                return _LOG_END
            self.why_empty = _REMOVING
            self._removed_below = self._files.next_start(physical_offset)
            return None
        if self._looks_left is not None and not self._content_matches(physical_offset, size_bytes, tags_code):
            self.why_empty = _NO_MATCH
            return None
        self._add(physical_offset, size_bytes)
        return None

    def close(self) -> list[memoryview]:
        """Return the bytes of all records taken: adjacent ones of one file share a view."""
        if self._run_end != NOWHERE:
            self._end_run()
        return self.buffers

    def _add(self, physical_offset: int, size_bytes: int) -> None:
        """Take the record, which lies whole in the file at hand, into the answer. Then say how much room is left.

        Only now: the first record goes whatever its size, or its reader would never get past it.
        """
        self._removed_below = 0
        if physical_offset != self._run_end:
            if self._run_end != NOWHERE:
                self._end_run()
            self._run_start = physical_offset
        self._run_end = physical_offset + size_bytes
        self.count = count = self.count + 1
        self.size_bytes = taken_bytes = self.size_bytes + size_bytes
        _, memory_count_max, memory_bytes_max, disk_count_max, disk_bytes_max = self._limits
        may_go_on = count < self._count_max
        self._hot_room = memory_bytes_max - taken_bytes if may_go_on and count < memory_count_max else NO_ROOM
        self._cold_room = disk_bytes_max - taken_bytes if may_go_on and count < disk_count_max else NO_ROOM

    def _end_run(self) -> None:
        """Turn the run into a view. Runs end with their file, so it lies in the one at hand."""
        assert self._view is not None
        self.buffers.append(self._view[self._run_start - self._file_start : self._run_end - self._file_start])
        self._run_end = NOWHERE

    def _go_to_file(self, physical_offset: int) -> None:
        """Make the offset's file the one at hand: most units name the file of the unit before."""
        if self._run_end != NOWHERE:
            self._end_run()
        file = self._files.find(physical_offset)
        if file is None:
            self._view = None
            self._file_start = self._file_end = self._readable_end = NOWHERE
            return
        self._view = file.view
        self._file_start, self._file_end = file.base, file.end
        self._readable_end = min(self._log_end, file.end)

    def _ext_rules_out(self, tags_code: int) -> bool:
        """Return whether the third field of a unit is an address in the extension, and what stands there is not wanted.

        What the extension has lost rules nothing out: too much is safe, since the client compares again.
        """
        extended = self._ext.unit(tags_code) if self._ext is not None else None
        return extended is not None and self._wanted is not None and not self._wanted.may_match(extended)

    def _content_matches(self, physical_offset: int, size_bytes: int, tags_code: int) -> bool:
        """Ask the filter about one record; the extension may save looking into it."""
        assert self._wanted is not None and self._looks_left is not None and self._view is not None
        if self._ext_rules_out(tags_code):
            return False
        self._looks_left -= 1
        try:
            properties = record.properties_of(self._view, physical_offset - self._file_start, size_bytes)
        except RecordError:
            return True  # damaged: the client gets it, and sees the damage
        return self._wanted.matches(properties)
