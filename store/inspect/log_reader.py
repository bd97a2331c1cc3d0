"""The records of a commit log in order, and every place where their chain breaks.

A break is the end of the log, a torn tail, a stale tail (records of an earlier life, which RocketMQ leaves behind when
it truncates) or damage (whole records follow, so something was lost in between). Damage does not end the reading: it
goes on with the next whole record. Whole records behind a break are stale when they are older than the last one before
it, or when their queue already has a message with their index.
"""

from __future__ import annotations

import enum
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from gantrymq.errors import RecordError
from gantrymq.message import record
from store.inspect.files import NumberedFile, data_chunks, first_data
from store.queues.descriptors import DescriptorCache

WINDOW_BYTES = 1 << 20
HEAD_BYTES = record.RECORD_BYTES_MIN
LOOK_AGAIN_S = 0.05
LOOKS_AGAIN_MAX = 40  # in all: a live log with much damage is not waited for at each place
_MAGIC = record.MESSAGE_MAGIC.to_bytes(4, "big", signed=True)

IsRepeated = Callable[[record.RecordFields], bool]


class LogRecord(NamedTuple):
    """A whole record. `fields.body_position` counts from the start of `buffer`."""

    physical_offset: int
    fields: record.RecordFields
    buffer: memoryview

    @property
    def end(self) -> int:
        return self.physical_offset + self.fields.size_bytes

    @property
    def body(self) -> bytes:
        return bytes(self.buffer[self.fields.body_position : self.fields.body_position + self.fields.body_bytes])


class BreakKind(enum.Enum):
    END = "end"  # nothing behind
    TORN = "torn"  # bytes that are no whole record, and nothing whole behind them
    STALE = "stale"  # whole records of an earlier life
    DAMAGE = "damage"  # whole records of this life follow


class LogBreak(NamedTuple):
    """`resumes_at`: where the next whole record stands (DAMAGE, STALE), else -1."""

    kind: BreakKind
    path: Path
    position: int
    physical_offset: int
    reason: str
    resumes_at: int


class LogReader:
    """All files of a commit log. Reads in windows of 1 MiB, larger only for larger records.

    A live log's writer may have been stopped in the middle of a copy, and the C library copies the first bytes of a run
    of records last. So what looks like damage there is looked at again for a while.
    """

    def __init__(self, files: list[NumberedFile], reader: DescriptorCache, *, is_live: bool = False) -> None:
        self.files = files
        self._reader = reader
        self._looks_again = LOOKS_AGAIN_MAX if is_live else 0

    @property
    def min_offset(self) -> int:
        return self.files[0].base if self.files else 0

    def find(self, physical_offset: int) -> NumberedFile | None:
        """Return the file that holds the offset."""
        if not self.files or not self.files[0].size:
            return None
        guess = (physical_offset - self.files[0].base) // self.files[0].size
        likely = self.files[guess : guess + 1] if guess >= 0 else []
        for file in itertools.chain(likely, self.files):  # a damaged run may have gaps: then look at each
            if file.base <= physical_offset < file.end:
                return file
        return None

    def record_at(self, physical_offset: int, *, check_crc: bool = True) -> LogRecord | str:
        """Return the record at this offset, or why there is none."""
        file = self.find(physical_offset)
        if file is None:
            return "outside of the commit log"
        for found in self._scan(file, physical_offset - file.base, check_crc=check_crc, window=4096):
            return found if isinstance(found, LogRecord) else (found or "the log ends there")
        return "the log ends there"

    def read(
        self, start: int | None = None, *, check_crc: bool = True, is_repeated: IsRepeated | None = None
    ) -> Iterator[LogRecord | LogBreak]:
        """Yield records from `start` (a record's offset; default: the first) on, and breaks; the last item is one."""
        index, position, last_ms = 0, 0, 0
        if start is not None:
            while index < len(self.files) and self.files[index].end <= start:
                index += 1
            position = start - self.files[index].base if index < len(self.files) else 0
        while index < len(self.files):
            file = self.files[index]
            reason: str | None = None
            for found in self._scan(file, position, check_crc=check_crc):
                if isinstance(found, LogRecord):
                    position = found.end - file.base
                    last_ms = found.fields.store_timestamp
                    yield found
                else:
                    reason = found
            if reason is None:  # a blank record, or the very end of the file
                index, position = index + 1, 0
                continue
            broken = self._judge(index, position, last_ms, reason, is_repeated)
            if self._is_whole_by_now(file, position, broken.kind, check_crc=check_crc):
                continue
            yield broken
            if broken.kind is not BreakKind.DAMAGE:
                return
            while self.files[index].end <= broken.resumes_at:
                index += 1
            position = broken.resumes_at - self.files[index].base
        if self.files:
            last = self.files[-1]
            yield LogBreak(BreakKind.END, last.path, last.size, last.end, "", -1)

    def _is_whole_by_now(self, file: NumberedFile, position: int, kind: BreakKind, *, check_crc: bool) -> bool:
        """Whether a record was written there between two looks."""
        while True:
            again = next(self._scan(file, position, check_crc=check_crc, window=HEAD_BYTES), None)
            if not isinstance(again, str):
                return True
            if kind is not BreakKind.DAMAGE or not self._looks_again:
                return False
            self._looks_again -= 1
            time.sleep(LOOK_AGAIN_S)

    def has_begun(self, file: NumberedFile) -> bool:
        return any(self._reader.read(file.path, record.BLANK.size, 0))

    def begun_files(self) -> list[NumberedFile]:
        """The files up to the last that was written to: brokers prepare the next one ahead of time."""
        files = list(self.files)
        while len(files) > 1 and not self.has_begun(files[-1]):
            files.pop()
        return files

    def next_record(self, file: NumberedFile, position: int) -> LogRecord | None:
        """Return the next whole record of this file that says its own place, searching byte by byte."""
        carried = b""
        carried_end = -1
        for start, data in data_chunks(self._reader, file.path, position, file.size):
            if carried_end == start:
                data, start = carried + data, start - len(carried)
            at = data.find(_MAGIC)
            while at >= 0:
                candidate = start + at - 4
                if candidate >= position:
                    for found in self._scan(file, candidate, check_crc=True, window=4096):
                        if isinstance(found, LogRecord):
                            return found
                        break
                at = data.find(_MAGIC, at + 1)
            carried, carried_end = data[-7:], start + len(data)
        return None

    def _judge(self, index: int, position: int, last_ms: int, reason: str, is_repeated: IsRepeated | None) -> LogBreak:
        """Say what it means that no record stands at this position."""
        file = self.files[index]
        offset = file.base + position
        behind = self.next_record(file, position)
        following = index + 1
        while behind is None and following < len(self.files):
            if self.has_begun(self.files[following]):
                behind = self.next_record(self.files[following], 0)
            following += 1
        if behind is not None:
            stale = behind.fields.store_timestamp < last_ms or (is_repeated is not None and is_repeated(behind.fields))
            kind = BreakKind.STALE if stale else BreakKind.DAMAGE
            return LogBreak(kind, file.path, position, offset, reason or "zeros", behind.physical_offset)
        if reason or first_data(self._reader, file.path, position, file.size) >= 0:
            return LogBreak(BreakKind.TORN, file.path, position, offset, reason or "zeros, then other bytes", -1)
        return LogBreak(BreakKind.END, file.path, position, offset, "", -1)

    def _scan(
        self, file: NumberedFile, position: int, *, check_crc: bool, window: int = WINDOW_BYTES
    ) -> Iterator[LogRecord | str]:
        """Yield a file's records; then, unless a blank record closes the file, why there is none: "" for zeros."""
        start = position
        buffer = memoryview(b"")
        while True:
            at = position - start
            if position + record.BLANK.size > file.size:
                return
            if at + HEAD_BYTES > len(buffer):
                start, at = position, 0
                buffer = memoryview(self._reader.read(file.path, min(window, file.size - position), position))
                if len(buffer) < record.BLANK.size:
                    yield "the file ends early"
                    return
            size, magic = record.BLANK.unpack_from(buffer, at)
            if magic == record.BLANK_MAGIC and size == file.size - position:
                return
            if not size and not magic:
                yield ""
                return
            reason = self._refuse_head(file, position, buffer[at:], size, magic)
            if reason:
                yield reason
                return
            if at + size > len(buffer):
                start, at = position, 0
                buffer = memoryview(self._reader.read(file.path, min(max(window, size), file.size - start), start))
            try:
                fields = record.split_record(buffer, at)
            except RecordError as exc:
                yield str(exc)
                return
            if check_crc:
                body = buffer[fields.body_position : fields.body_position + fields.body_bytes]
                if record.body_crc(body) != fields.body_crc:
                    topic = fields.topic.decode("utf-8", "replace")
                    yield (
                        f"body does not match its CRC; topic {topic}, queue {fields.queue_id}, "
                        f"queue offset {fields.queue_offset}"
                    )
                    return
            yield LogRecord(file.base + position, fields, buffer)
            position += fields.size_bytes

    def _refuse_head(self, file: NumberedFile, position: int, head: memoryview, size: int, magic: int) -> str:
        """Say what is wrong with a record's head; "" for nothing. Keeps an absurd size from being read."""
        if magic != record.MESSAGE_MAGIC:
            return f"magic is {magic & 0xFFFFFFFF:#010x}, not a message's"
        if size < HEAD_BYTES or position + size + record.BLANK.size > file.size:
            return f"size {size} does not fit the file"
        if len(head) < 36:
            return "the file ends early"
        (says,) = record.TIMESTAMP.unpack_from(head, 28)
        if says != file.base + position:
            return f"the record says it stands at {says}, not at {file.base + position}"
        return ""
