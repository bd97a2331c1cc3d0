"""Rebuilding damaged index files from the log, in the background, while the store runs.

An index file that can't be believed is set aside by the index service: it leaves a marker of its name in
`<root>/index_rebuild` and is gone. Here the messages between its neighbours are indexed again, a slice of the log at a
time, into a file of that name beside the others, which takes its place when it is whole and on disk. Queries meanwhile
find what the other files have. A stop or crash in between costs only time: the marker stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from concurrent.futures import Executor
from pathlib import Path

from store.base import file_bytes
from store.base.config import MessageStoreConfig
from store.index.file import Entry, IndexFile
from store.index.service import PENDING_MAX, IndexGap, IndexService
from store.log.commit_log import CommitLog
from store.log.mapped_file import MappedFile
from store.log.scan import ScannedRecord, next_record, scan_file
from store.queues.topic_slot import TopicSlot, is_storable

logger = logging.getLogger(__name__)

SLICE_BYTES = 128 << 10  # the loop is kept for less than a millisecond at a time
PAUSE_S = 0.002  # and has most of its time for others: about 40 MiB of log a second
READ_AHEAD_BYTES = 4 << 20  # read by a thread: the loop must not wait for a disk
RETRY_AFTER_S = 60.0  # where the disk was full


class IndexRebuilder:
    """`run` rebuilds what is set aside, and waits for more."""

    def __init__(self, config: MessageStoreConfig, log: CommitLog, index: IndexService, executor: Executor) -> None:
        self.current = ""  # the file that is being made
        self._config = config
        self._log = log
        self._index = index
        self._executor = executor

    async def run(self) -> None:
        while True:
            self._index.set_aside_event.clear()
            try:
                for path in self._index.markers():
                    await self._rebuild(path)
            except OSError as exc:
                logger.error("index file can't be rebuilt", extra={"event": "index_rebuild", "error": str(exc)})
                await asyncio.sleep(RETRY_AFTER_S)
                continue
            finally:
                self.current = ""
            await self._index.set_aside_event.wait()

    async def _rebuild(self, marker: Path) -> None:
        """Rebuild one file, or forget it when all its messages have expired."""
        loop = asyncio.get_running_loop()
        gap = self._index.gap(marker.name, self._log.position)
        start, end = max(gap.start, self._log.min_offset), gap.end + (gap.entries_behind >= 0)
        if start >= gap.end:
            marker.unlink(missing_ok=True)
            return
        self.current = marker.name
        began = time.monotonic()
        os.truncate(marker, 0)  # what an earlier attempt left
        file = IndexFile(marker, self._config.index_slots, self._config.index_entries)
        builder = _Builder(marker.parent, self._config, file, gap)
        try:
            await loop.run_in_executor(self._executor, file.prepare)
            await self._read(builder, start, end)
            builder.put_pending()
            for made in builder.files:
                await loop.run_in_executor(self._executor, made.sync)
        except BaseException:
            builder.close()
            raise
        for made in builder.files:
            if made.count <= 1:  # a file of 40 MB that each further crash would set aside again
                made.delete()
                continue
            try:
                self._index.adopt(made)
            except FileExistsError:  # more messages than were indexed before, and no name left for a further file
                logger.error("index is incomplete", extra={"event": "index_incomplete", "entries": made.count - 1})
                made.delete()
        await loop.run_in_executor(self._executor, self._index.sync_names)
        logger.info(
            "index file rebuilt",
            extra={
                "event": "index_rebuilt",
                "path": str(file.path),
                "entries": sum(made.count - 1 for made in builder.files),
                "physical_offset": start,
                "end_offset": end,
                "seconds": round(time.monotonic() - began, 1),
            },
        )

    async def _read(self, builder: _Builder, start: int, end: int) -> None:
        """Index the messages of the log between two physical offsets; over what is damaged to what is whole."""
        loop = asyncio.get_running_loop()
        position, warm_to = start, start
        while position < end:
            file = self._log.queue.find(position)
            if file is None:
                if position >= self._log.min_offset:
                    return
                position = self._log.min_offset  # expired meanwhile
                continue
            if position >= warm_to:
                warm_to = min(position + READ_AHEAD_BYTES, file.end)
                await loop.run_in_executor(self._executor, _read_through, file, position, warm_to)
            stop = min(position + SLICE_BYTES, end, file.end)
            reached = file.base + scan_file(
                file, position - file.base, check_crc=False, on_record=builder.add, stop=stop - file.base
            )
            if reached >= stop:
                position = reached
            else:
                found = next_record(file.view, reached - file.base + 1, file.base, stop - file.base)
                position = file.base + found if found is not None else stop
            await asyncio.sleep(PAUSE_S)


class _Builder(IndexService):
    """An index of one file, and of more where its messages have more keys than it can take."""

    def __init__(self, folder: Path, config: MessageStoreConfig, file: IndexFile, gap: IndexGap) -> None:
        super().__init__(folder, config, time.time)
        self._gap = gap
        self.files = [file]
        self.active = file
        self._topics: dict[bytes, TopicSlot | None] = {}

    def add(self, fields: ScannedRecord, physical_offset: int) -> None:
        slot = self._topics.get(fields.topic)
        if slot is None:
            name = fields.topic.decode("utf-8", "replace")
            if not is_storable(name):
                return
            slot = self._topics[fields.topic] = TopicSlot(name)
        self.pending.append((slot.prefix_hash, fields.properties, physical_offset, fields.store_timestamp))
        if len(self.pending) >= PENDING_MAX:
            self.put_pending()

    def _write(self, entries: list[Entry]) -> None:
        """Leave out what the files before and behind have: their messages are whole in `entries`."""
        gap = self._gap
        if entries and entries[0][1] == gap.start:
            entries = entries[gap.entries_before :]
        if gap.entries_behind > 0 and entries and entries[-1][1] == gap.end:
            entries = entries[: -gap.entries_behind]
        super()._write(entries)

    def _new_name(self) -> int:
        return int(self.files[-1].path.name) + 1


def _read_through(file: MappedFile, start: int, end: int) -> None:
    try:
        fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # expired meanwhile
    try:
        file_bytes.read_through(fd, start - file.base, end - file.base)
    finally:
        os.close(fd)
