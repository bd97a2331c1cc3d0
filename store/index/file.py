"""One file of the key index: a hash table from message key to physical offsets (RocketMQ: IndexFile).

    header  40 bytes: i64 first and last store timestamp, i64 first and last physical offset, i32 used slots, i32 next
    entry slots   i32 each: number of the newest entry of the chain, 0 = empty
    entries 20 bytes each: i32 key hash, i64 physical offset, i32 seconds since the first timestamp, i32 previous entry

Entry number 0 is never used. The key's text is not stored: equal hashes are for the caller to tell apart. Disk blocks
are allocated before they are written through the map, since a full disk would end the process otherwise.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from store.base import file_bytes
from store.base.config import SECTOR_BYTES

HEADER = struct.Struct(">qqqqii")
SLOT = struct.Struct(">i")
ENTRY = struct.Struct(">iqii")
HEADER_BYTES = HEADER.size
ALLOCATE_ENTRIES = 1 << 20
LOOK_ENTRIES = 1024
ENTRIES_A_STEP = 256  # of a search: about half a millisecond
SECONDS_MAX = 0x7FFFFFFF

Entry = tuple[int, int, int]  # key hash, physical offset, store timestamp

_unpack_slot = SLOT.unpack_from
_pack_slot = SLOT.pack_into
_pack_entry = ENTRY.pack_into
_pack_header = HEADER.pack_into
RUN_ENTRIES = 64  # written at once
_pack_run = struct.Struct(">" + "iqii" * RUN_ENTRIES).pack_into


class IndexDamaged(Exception):
    """An entry that is not one of its chain's."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(f"{path}: entry {number} does not belong into its chain")
        self.path = path
        self.number = number


class IndexFile:
    """Maps the file at once when opened; the header is kept in fields and written through at each put."""

    __slots__ = (
        "_fd",
        "allocated_entries",
        "begin_ms",
        "begin_offset",
        "count",
        "dirty",
        "end_ms",
        "end_offset",
        "entries",
        "entries_at",
        "map",
        "path",
        "slots",
        "used_slots",
    )  # fmt: skip

    def __init__(self, path: Path, slots: int, entries: int) -> None:
        self.path = path
        self.slots = slots
        self.entries = entries
        self.dirty = False
        self.entries_at = HEADER_BYTES + 4 * slots
        self.allocated_entries = 0
        self._fd = file_bytes.create_sized(path, self.entries_at + 20 * entries)
        self.map = mmap.mmap(self._fd, self.entries_at + 20 * entries)
        self.map.madvise(mmap.MADV_RANDOM)  # or a fault on a new page reads ahead: up to 8 MiB, 20 ms on the loop
        header = os.pread(
            self._fd, HEADER_BYTES, 0
        )  # not by the map: on a full tmpfs a look into a hole ends the process
        (self.begin_ms, self.end_ms, self.begin_offset, self.end_offset, self.used_slots, count) = HEADER.unpack(header)
        self.count = max(count, 1)

    def prepare(self) -> None:
        """Own the blocks of the slots and the first entries before the first put does. Blocks; OSError."""
        self._allocate(self.count)

    def is_sane(self) -> bool:
        """Return whether header and last entry agree, as they do after a clean stop. Times say nothing: clocks are set
        back, and the next master's may be behind."""
        last = self._peek(self.count - 1) if 1 < self.count <= self.entries else (0, 0, 0, 0)
        if self.count <= 1:
            return not any(self._peek(1))
        return bool(
            self.count <= self.entries
            and 0 <= self.begin_offset <= self.end_offset == last[1]
            and 0 < self.used_slots <= self.count
        )

    def first_offset(self) -> int:
        """Return the physical offset that the first entry says, -1 when there is none. Believes no header."""
        entry = self._peek(1)
        return entry[1] if any(entry) else -1

    def entries_of_ends(self) -> tuple[int, int]:
        """Return how many entries the first message has here, and how many the last: others may be elsewhere."""
        first = last = 0
        while first + 1 < self.count and self._peek(first + 1)[1] == self.begin_offset:
            first += 1
        while self.count - 1 - last >= 1 and self._peek(self.count - 1 - last)[1] == self.end_offset:
            last += 1
        return first, last

    def preset(self, previous: IndexFile) -> None:
        """Start where the previous, full file ends, as RocketMQ does."""
        self.begin_ms = self.end_ms = previous.end_ms
        self.begin_offset = self.end_offset = previous.end_offset

    def put_many(self, entries: list[Entry], start: int = 0) -> int:
        """Add entries from number `start` of the list on; return how many of the list are done: fewer when full.

        Entries of messages older than the last one are passed over: dispatched again, they are here already.
        OSError when the disk is full.
        """
        done = start
        while len(entries) - done >= RUN_ENTRIES and self._put_run(entries[done : done + RUN_ENTRIES]):
            done += RUN_ENTRIES
        return self._put_each(entries, done) if done < len(entries) else done

    def _put_run(self, run: list[Entry]) -> bool:
        """Add RUN_ENTRIES entries, the entries themselves with one write. False, and nothing done, in a rare case."""
        count, begin_ms, used_slots = self.count, self.begin_ms, self.used_slots
        has_room = count + RUN_ENTRIES <= min(self.allocated_entries, self.entries)
        if not has_room or count <= 1 or begin_ms <= 0 or run[0][1] < self.end_offset:
            return False
        mapping, slots, first = self.map, self.slots, count
        seconds = seconds_of_ms = -1
        fields: list[int] = []
        places = [HEADER_BYTES + 4 * (entry[0] % slots) for entry in run]
        itemgetter(*places)(mapping)  # these cache misses overlap; in the loop each would be waited for
        for (key_hash, physical_offset, timestamp_ms), slot_at in zip(run, places, strict=True):
            (previous,) = _unpack_slot(mapping, slot_at)
            if previous <= 0 or previous >= count:
                previous = 0
                used_slots += 1
            if timestamp_ms != seconds_of_ms:
                seconds_of_ms = timestamp_ms
                seconds = min(max((timestamp_ms - begin_ms) // 1000, 0), SECONDS_MAX)
            fields += (key_hash, physical_offset, seconds, previous)
            _pack_slot(mapping, slot_at, count)
            count += 1
        _pack_run(mapping, self.entries_at + 20 * first, *fields)
        _pack_header(mapping, 0, begin_ms, timestamp_ms, self.begin_offset, physical_offset, used_slots, count)
        self.dirty = True  # before the rest: a syncing thread believes what `end_offset` says
        self.count, self.used_slots, self.end_offset, self.end_ms = count, used_slots, physical_offset, timestamp_ms
        return True

    def _put_each(self, entries: list[Entry], start: int) -> int:
        mapping, slots, entries_at, begin_ms = self.map, self.slots, self.entries_at, self.begin_ms
        count, used_slots, end_offset, end_ms = self.count, self.used_slots, self.end_offset, self.end_ms
        if not self.allocated_entries:
            self._allocate(count)
        limit = min(self.allocated_entries, self.entries)
        done = start
        try:
            for key_hash, physical_offset, timestamp_ms in entries[start:] if start else entries:
                if count >= limit:
                    if count >= self.entries:
                        break
                    self._allocate(count)
                    limit = min(self.allocated_entries, self.entries)
                done += 1
                if physical_offset < end_offset:
                    continue
                slot_at = HEADER_BYTES + 4 * (key_hash % slots)
                (previous,) = _unpack_slot(mapping, slot_at)
                if previous <= 0 or previous >= count:
                    previous = 0
                    used_slots += 1
                if begin_ms > 0:
                    seconds = (timestamp_ms - begin_ms) // 1000
                    if seconds < 0 or seconds > SECONDS_MAX:
                        seconds = 0 if seconds < 0 else SECONDS_MAX
                else:
                    seconds = 0
                _pack_entry(mapping, entries_at + 20 * count, key_hash, physical_offset, seconds, previous)
                _pack_slot(mapping, slot_at, count)
                if count <= 1:
                    self.begin_ms = begin_ms = timestamp_ms
                    self.begin_offset = physical_offset
                end_offset, end_ms = physical_offset, timestamp_ms
                count += 1
        finally:  # also when the disk is full: what is linked must count
            _pack_header(mapping, 0, begin_ms, end_ms, self.begin_offset, end_offset, used_slots, count)
            self.dirty = True  # before the rest: a syncing thread believes what `end_offset` says
            self.count, self.used_slots, self.end_offset, self.end_ms = count, used_slots, end_offset, end_ms
        return done

    def search(self, key_hash: int, offsets: list[int], limit: int, begin_ms: int, end_ms: int) -> Iterator[None]:
        """Append physical offsets with this hash and time, newest first, until there are `limit`; a step looks at
        ENTRIES_A_STEP entries, for any number of messages may share a key. Not to be continued when closed."""
        if self.count <= 1:
            return  # there may be no disk blocks to look at
        number = _unpack_slot(self.map, HEADER_BYTES + 4 * (key_hash % self.slots))[0]
        if self.count > self.entries:
            raise IndexDamaged(self.path, self.count - 1)
        left = ENTRIES_A_STEP
        while 0 < number < self.count and len(offsets) < limit:
            if not left:
                yield
                left = ENTRIES_A_STEP
            left -= 1
            entry_hash, physical_offset, seconds, previous = self.entry(number)
            if entry_hash % self.slots != key_hash % self.slots or previous >= number:
                raise IndexDamaged(self.path, number)
            if seconds < 0:
                break
            stored_ms = self.begin_ms + seconds * 1000  # whole seconds: up to 999 ms early
            if entry_hash == key_hash and stored_ms <= end_ms and stored_ms + 999 >= begin_ms:
                offsets.append(physical_offset)
            if stored_ms + 999 < begin_ms:
                break
            number = previous

    def entry(self, number: int) -> tuple[int, int, int, int]:
        """Return (key hash, physical offset, seconds, previous entry)."""
        fields: tuple[int, int, int, int] = ENTRY.unpack_from(self.map, self.entries_at + 20 * number)
        return fields

    def _peek(self, number: int) -> tuple[int, int, int, int]:
        """Read an entry that may be a hole: not by the map, see __init__."""
        data = os.pread(self._fd, ENTRY.size, self.entries_at + 20 * number)
        fields: tuple[int, int, int, int] = ENTRY.unpack(data) if len(data) == ENTRY.size else (0, 0, 0, 0)
        return fields

    def cut_below(self, physical_end: int) -> bool:
        """After a crash: keep the entries of messages before `physical_end`, whose entries are surely on disk.

        What lies behind is taken out of its chains, the newest first. Where chains don't have it, a page was lost, and
        all chains are rebuilt. False when the entries make no sense: then the file can't be trusted at all.
        """
        if self.count > self.entries:
            return False  # before blocks for so many entries are asked of the disk
        self._allocate(self.count)
        kept = self._first_number_from(physical_end)
        if not self._is_rising(kept) or not self._unlink_from(kept):
            return self.rebuild_below(physical_end)
        heads = self._heads()
        if max(heads) >= kept or min(heads) < 0:
            return self.rebuild_below(physical_end)
        self._end_at(kept, len(heads) - heads.count(0))
        return True

    def rebuild_below(self, physical_end: int) -> bool:
        """Keep the entries of messages before `physical_end` and link them again.

        The entries themselves must make sense: offsets never fall and every entry was written. What makes no sense at
        the end was not synced and is cut off. False when entries to be kept stand behind it.
        """
        if self.count > self.entries:
            return False
        self._allocate(self.count)
        heads = array("i", bytes(4 * self.slots))
        used, number, last_offset = 0, 1, 0
        end = self._first_number_from(physical_end)
        while number < end:
            key_hash, physical_offset, seconds, previous = self.entry(number)
            is_hole = not (key_hash or physical_offset or seconds or previous)
            if is_hole or key_hash < 0 or physical_offset < last_offset or seconds < 0:
                if self._has_entries(number, end, last_offset, physical_end):
                    return False
                break
            slot = key_hash % self.slots
            ENTRY.pack_into(self.map, self.entries_at + 20 * number, key_hash, physical_offset, seconds, heads[slot])
            used += heads[slot] == 0
            heads[slot] = number
            last_offset = physical_offset
            number += 1
        heads.byteswap()
        self.map[HEADER_BYTES : self.entries_at] = heads.tobytes()
        self._end_at(number, used)
        return True

    def _first_number_from(self, physical_end: int) -> int:
        """Return the number of the first entry at or behind the offset, by halving: offsets never fall.

        Zeros count as behind: after a power cut the header may know entries that the disk has not.
        """
        low, high = 1, self.count
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry[1] < physical_end and any(entry):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_rising(self, count: int) -> bool:
        """Return whether the last pages of entries below `count` are what they should be, and not holes."""
        first = max(1, count - LOOK_ENTRIES)
        offsets = [self.entry(number)[1] for number in range(first, count)]
        return offsets == sorted(offsets) and (first == 1 or offsets[0] >= self.begin_offset)

    def _unlink_from(self, kept: int) -> bool:
        """Take the entries from number `kept` on out of their chains. False when one is not the head of its chain.

        An entry on two of the disk's sectors may have lost the second, and with it what stood before it in the chain.
        Then the entries behind it are holes; of the last one that is not known.
        """
        last_at = self.entries_at + 20 * (self.count - 1)
        if self.count > kept and last_at % SECTOR_BYTES > SECTOR_BYTES - ENTRY.size:
            return False
        for number in range(self.count - 1, kept - 1, -1):
            key_hash, _physical_offset, _seconds, previous = self.entry(number)
            slot_at = HEADER_BYTES + 4 * (key_hash % self.slots)
            if _unpack_slot(self.map, slot_at)[0] != number or not 0 <= previous < number:
                return False
            _pack_slot(self.map, slot_at, previous)
        return True

    def _heads(self) -> array[int]:
        heads = array("i", self.map[HEADER_BYTES : self.entries_at])
        heads.byteswap()
        return heads

    def _end_at(self, count: int, used_slots: int) -> None:
        """From now on `count` is the next entry's number. Saved and synced."""
        if count < self.count:
            last = self.entry(count - 1) if count > 1 else (0, 0, 0, 0)
            self.end_ms, self.end_offset = self.begin_ms + 1000 * last[2], last[1]
        self.count, self.used_slots = count, used_slots
        _pack_header(self.map, 0, self.begin_ms, self.end_ms, self.begin_offset, self.end_offset, used_slots, count)
        self.sync()

    def _has_entries(self, number: int, end: int, last_offset: int, physical_end: int) -> bool:
        """Return whether an entry from `number` to `end` is of a message between the two offsets."""
        return any(last_offset < self.entry(each)[1] < physical_end for each in range(number, end))

    def sync(self) -> None:
        """Wait until the disk has the entries. Blocks."""
        self.dirty = False
        if self._fd >= 0:
            os.fdatasync(self._fd)

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self.map.close()

    def _allocate(self, count: int) -> None:
        """Own the blocks of the slots, and of the next entries."""
        if not self.allocated_entries:
            file_bytes.allocate_range(self._fd, 0, self.entries_at + 20)
        end = min(count + ALLOCATE_ENTRIES, self.entries)
        file_bytes.allocate_range(self._fd, self.entries_at + 20 * count, self.entries_at + 20 * end)
        self.allocated_entries = end
