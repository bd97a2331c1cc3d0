"""What is due later: gathered for a moment, then in files; brought back minute by minute.

One coroutine at a time works on the files, in threads. Adding is for the loop and never waits: what is added meanwhile
stays in the buffers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from appliance.broker.timer.entries import ENTRY_BYTES, Entry, pack_entry, unpack_entries
from appliance.broker.timer.slots import (
    HOUR,
    HOUR_MINUTES,
    MINUTE,
    PART,
    ROLLING,
    Slot,
    SlotFolder,
    by_minute,
    hour_slot,
)
from appliance.process.tasks import in_thread

TURN_S = 0.002  # so long the loop may be kept at a time
TAKE_BYTES = 512 * ENTRY_BYTES
BUFFER_BYTES_MAX = 32 << 20  # the disk does not take it: then nothing more is read from the queue


class Backlog:
    """Entries that are due later. `take` is given whole entries of a minute that comes near."""

    def __init__(self, folder: SlotFolder) -> None:
        self.folder = folder
        self.lock = asyncio.Lock()  # who works on the files
        self.counts: dict[Slot, int] = {}  # entries of each slot, buffers included
        self.lowest: dict[Slot, int] = {}  # no entry of the slot lies lower in the log; absent: not known
        self.buffered_bytes = 0
        self.split_minute = 0  # hours that begin before this have files by minute
        self._buffers: dict[Slot, bytearray] = {}
        self._unsynced: set[Slot] = set()

    def load(self, indexed: int) -> None:
        """Look at the files. Blocks. Parts of an hour whose file is still there are of an interrupted split."""
        self.counts = self.folder.load(indexed)
        hours = {slot.minute for slot in self.counts if slot.kind == HOUR}
        for slot in list(self.counts):
            hour_minute = hour_slot(slot.minute).minute
            if slot.kind == PART and hour_minute in hours:
                self.folder.delete([slot])
                del self.counts[slot]
            elif slot.kind != HOUR and hour_minute not in hours:
                self.split_minute = max(self.split_minute, hour_minute + HOUR_MINUTES)

    @property
    def first_minute(self) -> int | None:
        """The first minute for which there may be something, None when there is nothing."""
        return min((slot.minute for slot in self.counts), default=None)

    def first_from(self, minute: int, otherwise: int) -> int:
        """The first minute from this one on for which there may be something, `otherwise` when there is none."""
        return min(
            (slot.minute for slot in self.counts if slot.kind == HOUR or slot.minute >= minute), default=otherwise
        )

    @property
    def is_full(self) -> bool:
        return self.buffered_bytes > BUFFER_BYTES_MAX

    def waiting(self, minute: int) -> int:
        """Return how many entries are in slots from a minute on."""
        return sum(count for slot, count in self.counts.items() if slot.minute >= minute)

    def add(self, minute: int, due_ms: int, queue_offset: int, physical_offset: int, size_bytes: int) -> None:
        """Remember an entry in the files of a minute."""
        slot = Slot(MINUTE, minute) if minute < self.split_minute else hour_slot(minute)
        buffer = self._buffers.get(slot)
        if buffer is None:
            buffer = self._buffers[slot] = bytearray()
        buffer += pack_entry(due_ms, queue_offset, physical_offset, size_bytes)
        self.buffered_bytes += ENTRY_BYTES
        count = self.counts.get(slot, 0)
        self.counts[slot] = count + 1
        if not count or physical_offset < self.lowest.get(slot, -1):
            self.lowest[slot] = physical_offset

    # -- files --------------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write the buffers to the files. OSError: what was not written is still in the buffers."""
        async with self.lock:
            await self.flush_locked()

    def has_before(self, minute: int) -> bool:
        return any(slot.minute < minute and slot.kind != HOUR for slot in self.counts)

    async def sync(self) -> None:
        """Flush, and wait until the disk has it all. OSError."""
        async with self.lock:
            await self.flush_locked()
            await self._sync()

    def finish(self) -> None:
        """Flush and sync, blocking: at the end, when no task works on the files any more."""
        self.folder.append(self._buffers)
        self.folder.sync(self._unsynced | self.counts.keys())

    async def forget_before(self, first_kept: Callable[[], int]) -> None:
        """Delete the files of the minutes before: all in them is delivered, and on record as such."""
        async with self.lock:
            minute = first_kept()
            done = [slot for slot in self.counts if slot.minute < minute and slot.kind in (MINUTE, PART)]
            for slot in done:
                self._drop(slot)
            if done:
                await in_thread(self.folder.delete, done)

    async def take_minute(self, minute: int, take: Callable[[bytes], None], on_begin: Callable[[], None]) -> None:
        """Give `take` all entries of a minute, whose hour is split. After `on_begin`, who adds some takes them."""
        async with self.lock:
            buffered = bytes(self._buffers.get(Slot(MINUTE, minute), b""))
            on_begin()
            turn = Turn()
            for slot in (Slot(PART, minute), Slot(MINUTE, minute)):
                if slot not in self.counts:
                    continue
                position = 0
                while data := await in_thread(self.folder.read, slot, position):
                    position += len(data)
                    for at in range(0, len(data), TAKE_BYTES):
                        take(data[at : at + TAKE_BYTES])
                        await turn.over()
            for at in range(0, len(buffered), TAKE_BYTES):
                take(buffered[at : at + TAKE_BYTES])
                await turn.over()

    async def split_hour(self, minute: int, save: Callable[[], Awaitable[None]]) -> None:
        """Split the file of the hour that begins with a minute. `save` puts on record that all of it was read.

        A split that was interrupted is done again from the start: the hour's file goes last.
        """
        async with self.lock:
            self.split_minute = minute + HOUR_MINUTES
            hour = hour_slot(minute)
            if hour not in self.counts:
                return
            try:
                await self._split(hour, save)
            except BaseException:
                self.split_minute = minute
                raise

    async def roll_slot(
        self, slot: Slot, below: int, roll: Callable[[Entry], bool], flushed: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Give `roll` each entry of a slot that lies below that place in the log, and take out those it says yes to.

        The caller holds the lock and has flushed. `flushed` says when the disk has what `roll` did. False when an entry
        had to stay. OSError.
        """
        position, turn, done, complete = 0, Turn(), 0, True
        half = Slot(ROLLING, slot.minute)
        await in_thread(self.folder.delete, [half])
        while data := await in_thread(self.folder.read, slot, position):
            position += len(data)
            kept = bytearray()
            for entry in unpack_entries(data):
                if complete and entry.physical_offset < below:
                    complete = roll(entry)
                    done += complete
                    if complete:
                        continue
                kept += pack_entry(*entry)
                await turn.over()
            await in_thread(self.folder.write, half, kept, fresh=False)
        if not done:
            await in_thread(self.folder.delete, [half])
        elif await flushed():
            await in_thread(self.folder.rename, half, slot)
            self.counts[slot] -= done
        else:
            complete = False
        if complete:
            self.lowest[slot] = below
        return complete

    async def _split(self, hour: Slot, save: Callable[[], Awaitable[None]]) -> None:
        await self.flush_locked()
        lowest = self.lowest.get(hour)
        parts: dict[Slot, int] = {}
        position, turn = 0, Turn()
        while data := await in_thread(self.folder.read, hour, position):
            position += len(data)
            for at in range(0, len(data), TAKE_BYTES):
                for part_minute, entries in by_minute(data[at : at + TAKE_BYTES]).items():
                    self._buffers.setdefault(Slot(PART, part_minute), bytearray()).extend(entries)
                await turn.over()
            await self._write_parts(parts)
        await in_thread(self.folder.sync, parts)
        await self._sync()
        await save()
        await in_thread(self.folder.delete, [hour])
        for slot, count in parts.items():
            self.counts[slot] = self.counts.get(slot, 0) + count
            if lowest is not None:
                self.lowest[slot] = lowest
        self._drop(hour)

    async def _write_parts(self, parts: dict[Slot, int]) -> None:
        for slot in [slot for slot in self._buffers if slot.kind == PART]:
            data = self._buffers.pop(slot)
            await in_thread(self.folder.write, slot, data, fresh=slot not in parts and slot not in self.counts)
            parts[slot] = parts.get(slot, 0) + len(data) // ENTRY_BYTES

    async def flush_locked(self) -> None:
        """As flush, for who has the lock."""
        if not self._buffers:
            return
        buffers, self._buffers = self._buffers, {}
        self._unsynced |= buffers.keys()
        try:
            await in_thread(self.folder.append, buffers)
        finally:
            for slot, data in buffers.items():  # what could not be written stands before what came meanwhile
                self._buffers[slot] = data + self._buffers.get(slot, b"")
            self.buffered_bytes = sum(map(len, self._buffers.values()))

    async def _sync(self) -> None:
        unsynced, self._unsynced = self._unsynced, set()
        try:
            await in_thread(self.folder.sync, unsynced)
        except OSError:
            self._unsynced |= unsynced
            raise

    def _drop(self, slot: Slot) -> None:
        self.counts.pop(slot, None)
        self.lowest.pop(slot, None)
        self._buffers.pop(slot, None)
        self._unsynced.discard(slot)


class Turn:
    """Lets others have the loop every few ms."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + TURN_S

    async def over(self) -> None:
        if time.perf_counter() > self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + TURN_S
