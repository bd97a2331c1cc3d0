"""The records of the lease book on disk: `store/config/pop.journal`, one line each, behind each other.

    8 hex digits of the CRC-32 of the rest, blank, the record as JSON, newline

A line is written before its request is answered, so it survives the process; once a second the file is synced, so that
a power cut takes a second at most. What it takes is delivered again: offsets of groups never lie behind a message that
is out. A torn line at the end is what a crash leaves, and is cut off. Damage before the end makes every lease doubtful:
none is believed, and groups go on at their offsets; modes are whole records, and each that can be read counts.

The file is written anew when it has grown to four times what is needed: first beside, then in its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from appliance.errors import StartError
from appliance.process.tasks import in_thread
from appliance.settings.replaced_file import sync_path

logger = logging.getLogger(__name__)

SYNC_S = 1.0
REWRITE_BYTES_MIN = 1 << 20
REWRITE_RATIO = 4
FILE_BYTES_MAX = 1 << 30  # of one that a start reads

Record = list[Any]


class Journal:
    """One broker's. read() before anything else; `records`: what the file must hold to be whole, for a rewrite."""

    def __init__(self, path: Path, records: Callable[[], Iterable[Record]]) -> None:
        self.path = path
        self._temporary = path.with_name(path.name + ".tmp")
        self._records = records
        self._descriptor = -1
        self._size = 0
        self._needed = 0  # bytes after the last rewrite
        self._is_unsynced = False
        self._failure = ""
        self._beside: list[bytes] | None = None  # lines since a rewrite began
        self.on_kept: Callable[[], None] = lambda: None  # a file that was written anew has come into use
        self.is_damaged = False  # as the last start found it
        self.rewrites = 0

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self) -> list[Record]:
        """Return the records of the file; see above for what of a damaged one. Raises StartError."""
        try:
            if not self.path.exists():
                return []
            if self.path.stat().st_size > FILE_BYTES_MAX:
                raise StartError(f"{self.path} has more than {FILE_BYTES_MAX} bytes: move it away to start without it")
            data = self.path.read_bytes()
        except OSError as exc:
            raise StartError(f"{self.path} can't be read: {exc.strerror}") from exc
        lines = data.split(b"\n")
        torn = lines.pop()  # behind the last newline
        records = [_record_of(line) for line in lines]
        while records and records[-1] is None:  # a crash of the machine may leave more than one line half written
            records.pop()
        self.is_damaged = None in records
        if self.is_damaged:
            logger.error(
                "journal of POP is damaged: what was leased is delivered again",
                extra={"event": "pop_journal_damaged", "path": str(self.path), "lines": records.count(None)},
            )
        elif torn or len(records) < len(lines):
            logger.warning("journal of POP ends torn", extra={"event": "pop_journal_torn", "path": str(self.path)})
        return [record for record in records if record is not None]

    # -- writing ------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin a file with what is needed now. Raises StartError."""
        try:
            self._write_anew()
        except OSError as exc:
            raise StartError(f"{self.path} can't be written: {exc.strerror}") from exc

    def _write_anew(self) -> None:
        text = b"".join(map(line_of, self._records()))
        with _file_beside(self._temporary) as descriptor:
            _write_synced(descriptor, text)
            self._take_over(descriptor, len(text))
        sync_path(self.path.parent)

    def append(self, record: Record) -> None:
        """Write a record. A disk that fails is said once; the broker serves on, and the next rewrite has it all."""
        if self._descriptor < 0:
            return
        line = line_of(record)
        if self._beside is not None:
            self._beside.append(line)
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):  # half a line would be damage for the next start
                os.ftruncate(self._descriptor, self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size += written
            self._is_unsynced = True
        except OSError as exc:
            self._fail(exc)

    def _fail(self, exc: OSError) -> None:
        if not self._failure:
            logger.error(
                "journal of POP can't be written: a crash now delivers again what is out",
                extra={"event": "pop_journal_not_written", "path": str(self.path), "why": str(exc)},
            )
        self._failure = str(exc)

    @property
    def _is_due(self) -> bool:
        """Whether the file is to be written anew: it is long, or lacks what could not be written."""
        return bool(self._failure) or self._size > max(REWRITE_BYTES_MIN, REWRITE_RATIO * self._needed)

    async def rewrite(self) -> None:
        """Put a file with what is needed in the place of this one; what is recorded meanwhile goes to both."""
        text = b"".join(map(line_of, self._records()))
        self._beside = []
        try:
            with _file_beside(self._temporary) as descriptor:
                await in_thread(_write_synced, descriptor, text)
                later = b"".join(self._beside)
                _write(descriptor, later)
                self._take_over(descriptor, len(text) + len(later))
        except OSError as exc:
            self._fail(exc)
        finally:
            self._beside = None

    def _take_over(self, descriptor: int, size: int) -> None:
        self._temporary.replace(self.path)
        old, self._descriptor = self._descriptor, descriptor
        if old >= 0:
            os.close(old)
        self._size = self._needed = size
        self._failure = ""
        self._is_unsynced = True
        self.rewrites += 1
        self.on_kept()

    async def run(self) -> None:
        """Sync each second, write anew when that is due, and tidy up at the end."""
        try:
            while True:
                await asyncio.sleep(SYNC_S)
                if self._is_due:
                    await self.rewrite()
                if self._is_unsynced:
                    await self._sync()
        finally:
            self.close()

    async def _sync(self) -> None:
        self._is_unsynced = False
        try:
            await in_thread(os.fsync, self._descriptor)
        except OSError as exc:
            self._fail(exc)

    def close(self) -> None:
        """Leave a short file, synced; else the long one, which says the same. Blocks."""
        if self._descriptor < 0:
            return
        try:
            self._write_anew()
        except OSError as exc:
            self._fail(exc)
        os.close(self._descriptor)
        self._descriptor = -1


def line_of(record: Record) -> bytes:
    """A record as a line of the file."""
    text = orjson.dumps(record)
    return b"%08x %s\n" % (zlib.crc32(text), text)


@contextlib.contextmanager
def _file_beside(path: Path) -> Iterator[int]:
    """An empty file's descriptor, closed if what is done with it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    try:
        yield descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _write(descriptor: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[os.write(descriptor, left) :]


def _write_synced(descriptor: int, text: bytes) -> None:
    _write(descriptor, text)
    os.fsync(descriptor)


def _record_of(line: bytes) -> Record | None:
    """None: the line is damaged."""
    checksum, blank, text = line.partition(b" ")
    try:
        if not blank or int(checksum, 16) != zlib.crc32(text):
            return None
        record = orjson.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, list) else None
